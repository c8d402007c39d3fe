"""What the logger "mcprecond" says while kernels are compiled, which takes seconds and happens once.

At the level INFO one line for each compiler, Numba or NVRTC, when it begins to compile; at the level WARNING one line
where compiled kernels cannot be kept. Kernels that are found in the cache are loaded in silence.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba.core import event

LOGGER = logging.getLogger("mcprecond")
#: Seconds in which CuPy loads any kernel that it has kept; it does not tell when it calls the compiler.
LOADED = 0.1


#: What has been said in this process: (level, compiler).
SAID: set[tuple[int, str]] = set()


def say_compiling(compiler: str, folder: str | None) -> None:
    """Say once that a compiler is at work, and in which folder its results are kept, if they are."""
    kept = folder is not None and (logging.WARNING, compiler) not in SAID
    _once(
        logging.INFO,
        compiler,
        f"{compiler} compiles kernels, "
        + (f"which happens once; they are kept in {folder}" if kept else "as in every process, since none is kept"),
    )


def say_not_kept(compiler: str, variable: str) -> None:
    """Say once that compiled kernels cannot be kept, and which variable names the folder for them."""
    _once(
        logging.WARNING,
        compiler,
        f"kernels that {compiler} compiles are not kept, since the folder for them cannot be written; set {variable} "
        "to one that can",
    )


def _once(level: int, compiler: str, message: str) -> None:
    if (level, compiler) not in SAID:
        SAID.add((level, compiler))
        LOGGER.log(level, "%s", message)


class _Numba(event.Listener):
    """Hears of every function that Numba compiles and has not kept."""

    def on_start(self, event: Any) -> None:
        compiled = event.data.get("dispatcher")
        if compiled is not None and compiled.py_func.__module__.startswith("mcprecond."):
            say_compiling("Numba", numba_folder(compiled.stats.cache_path))

    def on_end(self, event: Any) -> None:
        pass


def numba_folder(cache_path: str | None) -> str | None:
    """The folder of the whole package for that of one function: beside the modules, or elsewhere."""
    if cache_path is None:
        return None
    folder = Path(cache_path)
    package = Path(__file__).parents[1]
    return f"{package}, in __pycache__" if folder.is_relative_to(package) else str(folder.parent)


def cupy_folder() -> str:
    """The folder in which CuPy keeps what NVRTC has compiled."""
    return os.environ.get("CUPY_CACHE_DIR", str(Path.home() / ".cupy" / "kernel_cache"))


def or_not_kept(use_cache: Callable[..., Any]) -> Callable[..., Any]:
    """Let Numba load or save a function, or do without where the files cannot be read or written.

    Files that are empty or cut off, as a full disk leaves them, are forgotten, and written anew.
    """

    def use(*args: Any) -> Any:
        try:
            try:
                return use_cache(*args)
            except OSError:
                raise
            except Exception:  # pickle raises many kinds
                use_cache.__self__.flush()  # type: ignore[attr-defined]
                return use_cache(*args)
        except OSError:
            return say_not_kept("Numba", "NUMBA_CACHE_DIR")

    return use


def compile_by_cupy(kernel: Any) -> None:
    """Compile a RawKernel, or load it from CuPy's cache; without a cache where that cannot be written."""
    with _said_if_it_lasts():
        try:
            kernel.compile()
        except OSError:
            say_not_kept("NVRTC", "CUPY_CACHE_DIR")
            os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
            kernel.compile()


@contextlib.contextmanager
def _said_if_it_lasts() -> Iterator[None]:
    timer = threading.Timer(LOADED, say_compiling, ("NVRTC", cupy_folder()))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


event.register("numba:compile", _Numba())
