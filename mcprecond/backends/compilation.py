"""Functions that Numba compiles and keeps in its cache, where there is a folder for that."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
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
            cache._cache_file.save = partial(save_by_key, cache._cache_file)
            cache.load_overload, cache.save_overload = map(or_not_kept, (cache.load_overload, cache.save_overload))
        return compiled

    return compile_function


def save_by_key(files: Any, key: Any, data: Any) -> None:
    """Keep a compiled function in a file of its own, whose number is a hash of what the function is compiled for.

    Numba counts instead. Where two processes begin with an empty folder and compile a function for different types, the
    first file of one of them is then taken for that of the other, and computes something else. Numba also writes the
    index first, which leads to a file of older source where Ctrl-C comes in between.
    """
    meaning = repr((files._version, files._source_stamp, key)).encode()
    name = files._data_name(int.from_bytes(hashlib.sha256(meaning).digest()[:6]))
    files._save_data(name, data)
    files._save_index(files._load_index() | {key: name})
