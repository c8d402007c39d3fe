"""LLVM that is written by hand, where Numba's code for Python is too slow or missing; README.md says why."""

from mcprecond.backends.team.threads import get_threads, set_threads

__all__ = ["get_threads", "set_threads"]
