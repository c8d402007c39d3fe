// The places of a fingerprint, which fingerprint.py tells all files that include this one.
#pragma once
