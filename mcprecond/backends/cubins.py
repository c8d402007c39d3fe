"""Machine code of CUDA kernels, kept in files beside those that CuPy keeps.

NVRTC compiles one program at a time in a process, and needs no GPU. So each program is compiled in a process of its
own: one that is needed now, and beside it, on as many cores as there are, others that will be needed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from mcprecond.backends import nvrtc
from mcprecond.backends.first_use import NVRTC, cupy_folder, say_not_kept
from mcprecond.backends.threads import default_threads

#: Options of NVRTC for all programs: lambdas are compiled for the device, and subnormal numbers of single precision are
#: flushed to zero.
OPTIONS = ("--device-as-default-execution-space", "-ftz=true")
DIGEST = 32  # bytes of SHA-256 in front of the machine code: a full disk leaves files that are cut off


@dataclass(frozen=True)
class Program:
    """A CUDA source, the options of NVRTC for it, and the compute capability of the device, 90 for 9.0."""

    source: str
    options: tuple[str, ...]
    capability: int

    @property
    def name(self) -> str:
        """The module whose kernels it has, such as multigrid.polynomial."""
        found = re.search(r'#line 1 "(.+)[.]cu"', self.source)
        return found[1].replace("/", ".") if found else "a source"

    @property
    def file(self) -> Path:
        """Where its machine code is kept."""
        versions = (_cupy_version(), *OPTIONS, *self.options, str(self.capability))
        key = hashlib.sha256("\0".join((*versions, self.source)).encode()).hexdigest()
        return Path(cupy_folder()) / f"mcprecond-{key[:40]}.cubin"


#: The machine code of each program that this process has asked for. The future of a program can be canceled as long as
#: no process has begun to compile it.
_CODES: dict[Program, Future[bytes]] = {}
_LOCK = threading.Lock()
_CALLS = itertools.count()  # numbers the calls of compile_ahead


def machine_code(program: Program) -> bytes:
    """A program's machine code, compiled now unless it is kept or some process is at it.

    Raises
    ------
    RuntimeError
        What NVRTC says, where it refuses the source; or that there is no NVRTC.
    """
    if kept := read_kept(program):
        return kept
    mine: Future[bytes] | None = None
    try:
        with _LOCK:
            code = _CODES.get(program)
            if code is None or code.cancel():
                code = _CODES[program] = mine = Future()
                mine.set_running_or_notify_cancel()
        with NVRTC.running(program.name, cupy_folder()):
            if mine is not None:
                _complete(mine, program)
            return code.result()
    except BaseException as error:  # Ctrl-C, wherever: nobody shall wait for what nobody completes
        if mine is not None:
            _give_up(mine, program, error)
        raise


def read_kept(program: Program) -> bytes | None:
    """The machine code in the file of a program, where there is one and all of it is there."""
    try:
        content = program.file.read_bytes()
    except OSError:
        return None
    digest, code = content[:DIGEST], content[DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def compile_ahead(programs: Iterable[Program]) -> None:
    """Let processes compile programs as soon as cores are free, in this order and before what waits of earlier calls;
    those whose machine code is kept are left out.
    """
    call = next(_CALLS)
    for place, program in enumerate(programs):
        if read_kept(program):
            continue
        with _LOCK:
            if program in _CODES:
                continue
            code = _CODES[program] = Future()
        _waiting().put((-call, place, code, program))


@functools.cache
def _waiting() -> queue.PriorityQueue[tuple[int, int, Future[bytes], Program]]:
    """The programs that wait for a core. The threads that take them end with the process, whatever is left."""
    waiting: queue.PriorityQueue[tuple[int, int, Future[bytes], Program]] = queue.PriorityQueue()

    def work() -> None:
        while True:
            *_, code, program = waiting.get()
            if code.set_running_or_notify_cancel():
                _complete(code, program)

    for _ in range(max(1, default_threads() - 1)):
        threading.Thread(target=work, name="mcprecond-nvrtc", daemon=True).start()
    return waiting


def _complete(code: Future[bytes], program: Program) -> None:
    """Compile a program and keep the machine code. A failure is not kept: the next call tries again."""
    try:
        compiled = _compile(program)
        _keep(compiled, program.file)
        code.set_result(compiled)
    except BaseException as error:
        _give_up(code, program, error)


def _give_up(code: Future[bytes], program: Program, error: BaseException) -> None:
    """Tell an error to all who wait for a program, and forget that it was asked for."""
    with _LOCK:
        if _CODES.get(program) is code:
            del _CODES[program]
    if not code.done():
        code.set_exception(error)


def _compile(program: Program) -> bytes:
    """The machine code, from another process, or from this one where none can be started."""
    source, options = program.source.encode(), (*OPTIONS, *program.options)
    command = [sys.executable, "-I", "-S", nvrtc.__file__, find_nvrtc(), str(program.capability), *options]
    try:
        done = subprocess.run(command, input=source, capture_output=True)
    except OSError:
        return nvrtc.compile_source(find_nvrtc(), source, program.capability, options)
    if done.returncode:
        said = done.stderr.decode(errors="replace") or f"its process ended with {done.returncode}"
        raise RuntimeError(f"NVRTC does not compile kernels of mcprecond:\n{said}")
    return done.stdout


def _keep(code: bytes, file: Path) -> None:
    """Write a file with machine code, all of it or none."""
    partial = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(hashlib.sha256(code).digest() + code)
        partial.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        say_not_kept("NVRTC", "CUPY_CACHE_DIR")


@functools.cache
def find_nvrtc() -> str:
    """The path of NVRTC, as CuPy finds it.

    Raises
    ------
    RuntimeError
        If there is none; the message says what to install.
    """
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return str(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            "CuPy has no NVRTC, which compiles the kernels of mcprecond; install the CUDA toolkit, or "
            f"{_cupy_with_toolkit()}"
        ) from error


def find_headers() -> str:
    """The folder of CUDA's headers, as CuPy finds it. Kernels of CuPy include them; those of this package do not.

    Raises
    ------
    RuntimeError
        If there are none; the message says what to install.
    """
    from cuda.pathfinder import find_nvidia_header_directory

    if folder := find_nvidia_header_directory("cudart"):
        return folder
    raise RuntimeError(
        f"CuPy has no headers of CUDA, which its kernels include; install the CUDA toolkit, or {_cupy_with_toolkit()}"
    )


def _cupy_with_toolkit() -> str:
    """The requirement that brings the missing parts of CUDA to the CuPy that is installed."""
    import cupy

    return f"cupy-cuda{cupy.cuda.runtime.runtimeGetVersion() // 1000}x[ctk]"


@functools.cache
def _cupy_version() -> str:
    """The versions of CuPy and of the CUDA that it is built for."""
    import cupy

    return f"{cupy.__version__} {cupy.cuda.runtime.runtimeGetVersion()}"
