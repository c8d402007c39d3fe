"""CUDA programs are compiled in processes, kept, and found again. NVRTC needs no GPU for that."""

from __future__ import annotations

import dataclasses
import errno
import importlib
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cupy")

from mcprecond.backends import ahead, cubins, first_use, gpu
from mcprecond.backends.ahead import variants_ahead
from mcprecond.backends.cubins import Program, compile_ahead, machine_code, read_kept

SCALE = Program('extern "C" __global__ void scale(double* x) { x[threadIdx.x] *= FACTOR; }', ("-DFACTOR=2",), 90)
REFUSED = Program("nothing that C++ knows", (), 90)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for what is compiled, and a process that has compiled and said nothing yet."""
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(cubins, "_CODES", {})
    monkeypatch.setattr(first_use, "SAID", set())
    return tmp_path / "kept"


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.INFO, "mcprecond")
    return lambda: [record.getMessage() for record in caplog.records]


def forget_and_refuse(monkeypatch) -> None:
    """As in another process, which must not compile."""
    monkeypatch.setattr(cubins, "_CODES", {})
    monkeypatch.setattr(subprocess, "run", None)


def test_what_is_compiled_is_kept(folder, monkeypatch):
    code = machine_code(SCALE)
    assert code.startswith(b"\x7fELF") and b"scale" in code
    forget_and_refuse(monkeypatch)
    assert machine_code(SCALE) == code == read_kept(SCALE)
    assert [file.suffix for file in folder.iterdir()] == [".cubin"]


def test_programs_differ_by_source_options_and_device(folder):
    others = [
        dataclasses.replace(SCALE, **change)
        for change in ({"options": ("-DFACTOR=3",)}, {"capability": 80}, {"source": SCALE.source + "\n"})
    ]
    assert len({program.file for program in (SCALE, *others)}) == 4
    assert len({machine_code(program) for program in (SCALE, *others)}) >= 3


@pytest.mark.parametrize("left", [0, 1, 100, -1])
def test_files_that_are_cut_off_are_written_anew(folder, monkeypatch, left):
    code = machine_code(SCALE)
    SCALE.file.write_bytes(SCALE.file.read_bytes()[:left])
    assert read_kept(SCALE) is None
    monkeypatch.setattr(cubins, "_CODES", {})
    assert machine_code(SCALE) == code == read_kept(SCALE)


def test_without_a_folder_that_can_be_written(folder, said):
    folder.write_text("")
    assert machine_code(SCALE).startswith(b"\x7fELF")
    assert machine_code(dataclasses.replace(SCALE, options=("-DFACTOR=3",))).startswith(b"\x7fELF")
    # On a busy machine it also says that it compiles.
    assert len([message for message in said() if "CUPY_CACHE_DIR" in message]) == 1


def test_a_refused_source_is_told_and_tried_again(folder):
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"identifier|declaration"):
            machine_code(REFUSED)
    assert not folder.exists() or not list(folder.iterdir())


def test_what_is_compiled_ahead_is_there_later(folder, monkeypatch):
    """In whatever order it is asked for, whether a process is at it or it still waits; failures are told when asked."""
    programs = [dataclasses.replace(SCALE, options=(f"-DFACTOR={factor}",)) for factor in range(5)]
    compile_ahead([*programs, REFUSED, *programs])
    codes = [machine_code(program) for program in reversed(programs)]
    assert len(set(codes)) == 5
    with pytest.raises(RuntimeError):
        machine_code(REFUSED)
    forget_and_refuse(monkeypatch)
    compile_ahead(programs)
    assert [machine_code(program) for program in reversed(programs)] == codes


def test_where_no_process_can_be_started(folder, monkeypatch):
    code = machine_code(SCALE)
    SCALE.file.unlink()
    monkeypatch.setattr(cubins, "_CODES", {})
    monkeypatch.setattr("sys.executable", str(Path("/nowhere/python")))
    assert machine_code(SCALE) == code
    monkeypatch.setattr(cubins, "_CODES", {})
    with pytest.raises(RuntimeError):
        machine_code(REFUSED)


def test_a_device_that_is_older_than_the_compiler_is_told(folder):
    with pytest.raises(RuntimeError, match=r"compute capability 3.0, and NVRTC compiles for \d+\.\d and newer"):
        machine_code(dataclasses.replace(SCALE, capability=30))


def test_a_cupy_without_the_compiler(folder, monkeypatch):
    """It is not found, or cannot be loaded."""
    monkeypatch.setattr(cubins, "find_nvrtc", cubins.find_nvrtc.__wrapped__)
    with monkeypatch.context() as patched:
        patched.setattr("cuda.pathfinder.load_nvidia_dynamic_lib", refuse := Refusing())
        with pytest.raises(RuntimeError, match=r"CuPy has no NVRTC.* install") as error:
            machine_code(SCALE)
        assert refuse.asked == 1 and "\n" not in str(error.value)
    monkeypatch.setattr(cubins, "find_nvrtc", lambda: "/nowhere/libnvrtc.so")
    with pytest.raises(RuntimeError, match=r"/nowhere/libnvrtc\.so") as error:
        machine_code(SCALE)
    assert "Traceback" not in str(error.value)


class Refusing:
    """Stands for a search that finds nothing."""

    asked = 0

    def __call__(self, name: str) -> None:
        self.asked += 1
        raise RuntimeError(f"no {name}\nin many places")


@pytest.mark.parametrize("place", ["running", "_complete", "_compile", "_keep"])
def test_an_interrupt_leaves_nobody_waiting(folder, monkeypatch, place):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cubins.NVRTC if place == "running" else cubins, place, stop)
        with pytest.raises(KeyboardInterrupt):
            machine_code(SCALE)
    assert cubins._CODES == {}
    assert b"scale" in machine_code(SCALE)


@pytest.mark.parametrize("failing", ["write_bytes", "replace", "mkdir"])
def test_a_disk_that_is_full_or_read_only(folder, monkeypatch, said, failing):
    def refuse(self, *_, **__):
        if failing == "write_bytes":
            self.touch()  # as far as it came
        raise OSError(errno.ENOSPC if failing == "write_bytes" else errno.EROFS, "cannot be written", str(self))

    if failing != "mkdir":
        folder.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(Path, failing, refuse)
        assert b"scale" in machine_code(SCALE)
    assert not folder.exists() or not list(folder.iterdir())
    assert len([message for message in said() if "CUPY_CACHE_DIR" in message]) == 1


def test_bytes_that_have_changed_are_compiled_anew(folder, monkeypatch):
    code = machine_code(SCALE)
    changed = bytearray(SCALE.file.read_bytes())
    changed[len(changed) // 2] ^= 1
    SCALE.file.write_bytes(changed)
    monkeypatch.setattr(cubins, "_CODES", {})
    assert machine_code(SCALE) == code == read_kept(SCALE)


def test_processes_that_start_at_once_share_a_folder(folder):
    program = (
        "from test_cubins import SCALE\nfrom mcprecond.backends.cubins import machine_code\n"
        "import sys; sys.stdout.buffer.write(machine_code(SCALE))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), str(Path(__file__).parent)])}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        for _ in range(2)
    ]
    results = [process.communicate() for process in running]
    assert results == [(machine_code(SCALE), b"")] * 2
    assert [file.suffix for file in folder.iterdir()] == [".cubin"]


def test_a_device_that_is_newer_than_the_compiler_gets_ptx(folder):
    assert b".target" in machine_code(dataclasses.replace(SCALE, capability=999))


def test_a_compiler_at_work_is_said_once(folder, said, monkeypatch):
    """Not before two seconds, added up; also while one program takes long."""
    monkeypatch.setattr(first_use, "SILENT", 0.3)
    monkeypatch.setattr(cubins, "NVRTC", first_use.Stopwatch("NVRTC"))
    monkeypatch.setattr(cubins, "_compile", lambda program: time.sleep(0.2) or b"code")
    for factor in range(3):
        machine_code(dataclasses.replace(SCALE, options=(f"-DFACTOR={factor}",)))
        assert (said() == []) == (factor == 0)
    (message,) = said()
    assert "NVRTC" in message and "seconds" in message and f"kept in {folder}" in message


@pytest.mark.parametrize(
    ("module", "least"),
    [("mcprecond.matrix", 11), ("mcprecond.multigrid.strength", 11), ("mcprecond.linalg.columns", 5)],
)
def test_variants_that_follow_are_variants(module, least, monkeypatch):
    """Each is one that its kernel set declares, in full, and is there once; the list is made once for a device and
    types.
    """
    monkeypatch.setattr("mcprecond.backends.ahead._LISTED", set())
    monkeypatch.setattr("mcprecond.backends.ahead._call_operations", lambda device: None)
    monkeypatch.setattr(gpu, "_capability", lambda device: 90)
    first = importlib.import_module(module).KERNELS
    macros = {"OFFSET": np.int32, "VALUE": np.dtype(np.float32), "LANES": 2}
    found = variants_ahead(first, macros, 0)
    for kernel_set, choices in found:
        assert kernel_set.select_macros(choices) == choices, kernel_set.source
    programs = {gpu._program(kernel_set, choices, 0) for kernel_set, choices in found}
    assert len(programs) == len(found) >= least
    assert variants_ahead(first, macros | {"LANES": 8}, 0) == []


def test_operations_that_are_called_ahead_raise_nothing(backend):
    with np.errstate(all="ignore"):
        for operation in ahead.operations(backend.xp):
            operation()
