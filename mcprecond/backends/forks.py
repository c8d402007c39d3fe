"""What happens in a child of os.fork: an error of Python, where GNU OpenMP would end the child by a signal.

Numba's parallel loops run on the threads of GNU OpenMP by default. A fork has none of these threads, and the first
parallel loop in it is its end: "fork() called from a process already using GNU OpenMP". So in a fork of a process that
has started these threads, every compiled function of the package forgets what was compiled, and refuses to compile
again.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from mcprecond.backends import threads  # noqa: F401 - it settles what Numba reads when it is imported

# isort: split
import numba

#: All compiled functions of the package.
_COMPILED: list[Any] = []


def compiler(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return what `numba.njit` returns for these options; what it compiles is known here."""

    def compile_function(function: Callable[..., Any]) -> Any:
        _COMPILED.append(numba.njit(**options)(function))
        return _COMPILED[-1]

    return compile_function


def _dies_of_parallel_loops() -> bool:
    """Whether this process has started threads of GNU OpenMP, asked in a fork of it."""
    try:
        if numba.threading_layer() != "omp":
            return False
    except ValueError:  # no parallel loop so far
        return False
    return importlib.import_module("numba.np.ufunc.omppool").openmp_vendor == "GNU"


def _refuse(*args: Any, **kwargs: Any) -> None:
    raise RuntimeError(
        "mcprecond cannot go on in a fork of a process in which it has run already, since GNU OpenMP's threads do not "
        "survive a fork; start processes with multiprocessing.get_context('spawn') or 'forkserver', or fork before the "
        "first use"
    )


def _after_fork() -> None:
    if _dies_of_parallel_loops():
        for function in _COMPILED:
            function._reset_overloads()
            function._compile_for_args = _refuse


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
