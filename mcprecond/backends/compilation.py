"""Functions that Numba compiles and keeps in its cache, where there is a folder for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from mcprecond.backends.first_use import or_not_kept, say_not_kept

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    raise ImportError("mcprecond needs Numba's compiler, which NUMBA_DISABLE_JIT turns off; unset that variable")


def compiler(*, keeps: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return what `numba.njit` returns for these options.

    Parameters
    ----------
    keeps : bool
        Whether compiled functions are kept. Those that are compiled into one other function need not be.
    **options
        Of `numba.njit`.
    """

    def compile_function(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**options)(function)
        if not keeps:
            return compiled
        try:
            compiled.enable_caching()
        except RuntimeError:  # Numba finds no folder that it can write
            say_not_kept("Numba", "NUMBA_CACHE_DIR")
        else:
            cache = compiled._cache
            cache.load_overload, cache.save_overload = map(or_not_kept, (cache.load_overload, cache.save_overload))
        return compiled

    return compile_function
