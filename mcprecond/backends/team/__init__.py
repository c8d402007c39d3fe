"""LLVM that is written by hand, where what Numba makes of Python is too slow or not there; README.md says why."""

from mcprecond.backends.team.threads import get_threads, set_threads

__all__ = ["get_threads", "set_threads"]
