"""Functions that Numba compiles and keeps in its cache, where there is a folder for that."""

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numba
from numba.core import event
from numba.core.bytecode import FunctionIdentity

from mcprecond.backends.code_digest import digest_of
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
            kept = compiled._cache
            key_of, digest = kept._index_key, cache(partial(digest_of, function, options))
            kept._index_key = lambda *types: (*key_of(*types), digest())
            kept._cache_file.save = partial(save_by_key, kept._cache_file)
            kept.load_overload, kept.save_overload = map(or_not_kept, (kept.load_overload, kept.save_overload))
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


class OwnNumbers(event.Listener):
    """Gives functions numbers that no other process gives, while Numba compiles a function of the package.

    Numba numbers the functions that it compiles, and the names of their symbols have these numbers. It counts from 1 in
    every process. So the kept code of two processes can have one symbol for two functions of the same name, such as
    two that differ in a closure variable, and the linker takes the first one for both.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.others: Any = None

    def on_start(self, event: Any) -> None:
        compiled = event.data.get("dispatcher")
        if self.depth == 0 and compiled is not None and compiled.py_func.__module__.startswith("mcprecond."):
            self.others = FunctionIdentity._unique_ids
            FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))
            self.depth = 1
        elif self.depth:
            self.depth += 1

    def on_end(self, event: Any) -> None:
        if self.depth == 1:
            FunctionIdentity._unique_ids = self.others
        self.depth = max(self.depth - 1, 0)


event.register("numba:compile", OwnNumbers())
