"""A process that compiles beside this one: Numba compiles one function at a time in each."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def is_kept(function: Any) -> bool:
    """Whether Numba's cache has a compiled function, for whatever types; also where nothing can be kept."""
    folder = function.stats.cache_path
    if folder is None:
        return True
    module = function.py_func.__module__.rpartition(".")[2]
    return any(Path(folder).glob(f"{module}.{function.py_func.__name__}-*.nbi"))


@contextlib.contextmanager
def compile_beside(call: str) -> Iterator[None]:
    """Let a process import a module and call a function of it, "module:function", whose results the cache keeps.

    It is waited for in the end. Where it cannot be started, or fails, this process compiles what is missing.
    """
    module, _, function = call.partition(":")
    program = f"from {module} import {function}; {function}()"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    silent = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdin=silent, stdout=silent, stderr=silent
        )
    except OSError:
        yield
        return
    try:
        yield
        process.wait()
    finally:
        process.kill()
        process.wait()
