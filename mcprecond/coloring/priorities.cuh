// The orders of ECL-GC, numbers that priorities.py has.
#pragma once
