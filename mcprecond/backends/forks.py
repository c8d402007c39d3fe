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

from mcprecond.backends.first_use import or_not_kept, say_not_kept

#: All compiled functions of the package.
_COMPILED: list[Any] = []


def compiler(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return what `numba.njit` returns for these options; what it compiles is known here.

    It is kept in Numba's cache, where there is a folder for that.
    """

    def compile_function(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**options)(function)
        try:
            compiled.enable_caching()
        except RuntimeError:  # Numba finds no folder that it can write
            say_not_kept("Numba", "NUMBA_CACHE_DIR")
        else:
            cache = compiled._cache
            cache.load_overload, cache.save_overload = map(or_not_kept, (cache.load_overload, cache.save_overload))
        _COMPILED.append(compiled)
        return compiled

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
