"""What the logger "mcprecond" says while kernels are compiled, which takes seconds.

At the level WARNING, which Python prints on stderr where logging is not set up: one line for each compiler, Numba or
NVRTC, and each kind of solve, once it has been at work for two seconds, and one line where compiled kernels cannot be
kept. Kernels that are
found in the cache are loaded in silence.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba.core import event

from mcprecond.interrupts import hold_back

LOGGER = logging.getLogger("mcprecond")
#: Seconds of compiling before somebody is told.
SILENT = 2.0
#: For how long a compiler is at work on a kind of solve where nothing is kept yet.
LASTS = {"Numba": "ten seconds or so", "NVRTC": "some seconds"}

#: What has been said in this process: (what it is about, compiler).
SAID: set[tuple[str, str]] = set()


class Stopwatch:
    """Adds up the seconds of a compiler, and says after `SILENT` of them for a kind of solve that it is at work, also
    while it is.

    Parameters
    ----------
    compiler : {"Numba", "NVRTC"}
    """

    def __init__(self, compiler: str) -> None:
        self.compiler, self._spent = compiler, defaultdict[str, float](float)

    @property
    def spent(self) -> float:
        """The seconds for all kinds."""
        return sum(self._spent.values())

    @contextlib.contextmanager
    def running(self, what: str, folder: str | None) -> Iterator[None]:
        """While a function of some module is compiled, and kept in a folder; None where it is not."""
        kind = kind_of(what)
        timer = threading.Timer(max(SILENT - self._spent[kind], 0.0), say_compiling, (self.compiler, what, folder))
        timer.daemon = True
        started = time.perf_counter()
        if (kind, self.compiler) not in SAID:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._spent[kind] += time.perf_counter() - started


def kind_of(what: str) -> str:
    """The kind of solve that a module of the package has kernels for."""
    return "multigrid" if what.startswith("multigrid.") else "CG, sweeps and what they need"


NOT_KEPT = "not kept"
NUMBA, NVRTC = Stopwatch("Numba"), Stopwatch("NVRTC")


def say_compiling(compiler: str, what: str, folder: str | None) -> None:
    """Say once in a process that a compiler is at work on a kind of solve, for how long, and where its results are
    kept, if they are.
    """
    kind = kind_of(what)
    kept = folder is not None and (NOT_KEPT, compiler) not in SAID
    _once(
        kind,
        compiler,
        f"{compiler} compiles the kernels of mcprecond for {kind}, now those of {what}, which takes {LASTS[compiler]}; "
        + (
            f"they are kept in {folder}, so that this happens once for each method, each kind of numbers and each way "
            "of storage"
            if kept
            else "this happens in every process, since none is kept"
        ),
    )


def say_not_kept(compiler: str, variable: str) -> None:
    """Say once that compiled kernels cannot be kept, and which variable names the folder for them."""
    _once(
        NOT_KEPT,
        compiler,
        f"kernels that {compiler} compiles are not kept, since the folder for them cannot be written; set {variable} "
        "to one that can",
    )


def _once(what: str, compiler: str, message: str) -> None:
    if (what, compiler) not in SAID:
        SAID.add((what, compiler))
        LOGGER.warning("%s", message)


class _Numba(event.Listener):
    """Hears of every function that Numba compiles and has not kept, and of the functions that it calls."""

    def __init__(self) -> None:
        self.stack = contextlib.ExitStack()
        self.depth = 0

    def on_start(self, event: Any) -> None:
        self.depth += 1
        compiled = event.data.get("dispatcher")
        if self.depth == 1 and compiled is not None and compiled.py_func.__module__.startswith("mcprecond."):
            self.stack.enter_context(hold_back())  # LLVM calls functions of llvmlite
            what = compiled.py_func.__module__.removeprefix("mcprecond.")
            self.stack.enter_context(NUMBA.running(what, numba_folder(compiled.stats.cache_path)))

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.stack.close()


def numba_folder(cache_path: str | None) -> str | None:
    """The folder of the package's cache, by the folder of one function's: beside the modules, or elsewhere."""
    if cache_path is None:
        return None
    folder = Path(cache_path)
    package = Path(__file__).parents[1]
    return f"{package}, in __pycache__" if folder.is_relative_to(package) else str(folder.parent)


def cupy_folder() -> str:
    """The folder in which CuPy keeps what NVRTC has compiled."""
    return os.environ.get("CUPY_CACHE_DIR") or os.path.expanduser("~/.cupy/kernel_cache")


def or_not_kept(use_cache: Callable[..., Any]) -> Callable[..., Any]:
    """Let Numba load or save a function, or do without where the files cannot be read or written.

    Files that are empty or truncated, as a full disk leaves them, are dropped, and the function is compiled again.
    """

    def use(*args: Any) -> Any:
        try:
            try:
                with hold_back():
                    return use_cache(*args)
            except OSError:
                raise
            except Exception:  # pickle raises many kinds
                use_cache.__self__.flush()  # type: ignore[attr-defined]
                return use_cache(*args)
        except OSError:
            return say_not_kept("Numba", "NUMBA_CACHE_DIR")

    return use


event.register("numba:compile", _Numba())
