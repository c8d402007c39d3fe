"""What `mcprecond info` prints for a report of a bug."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import mcprecond
from mcprecond.backends import cubins
from mcprecond.backends.team import get_threads
from mcprecond.studies import surroundings as module
from mcprecond.studies.surroundings import surroundings

PROPERTIES = {"name": b"NVIDIA H200", "totalGlobalMem": 139 * 2**30, "major": 9, "minor": 0}


def test_a_report_says_what_is_asked_first(device):
    facts = surroundings()
    assert facts["mcprecond"] == mcprecond.__version__
    assert facts["numpy"] == np.__version__ and facts["numba"] == numba.__version__
    assert facts["cpu_threads"] == str(get_threads())
    assert {"python", "scipy", "pyamg", "cupy", "platform", "cpu", "cpus", "memory", "gpu"} <= set(facts)
    assert {"settings", "numba_cache", "cupy_cache", "matrix_cache"} <= set(facts)
    assert all(isinstance(fact, str) and fact for fact in facts.values())
    if device == "gpu":
        assert {"gpu_driver", "cuda_runtime", "nvrtc"} <= set(facts) and "compute capability" in facts["gpu"]


def test_settings_and_caches_are_those_of_the_process(monkeypatch):
    monkeypatch.setenv("CUPY_CACHE_DIR", "/elsewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/kept")
    monkeypatch.setenv("NUMBA_DISABLE_JIT_", "1")
    monkeypatch.setenv("SECRET", "do not print")
    facts = surroundings()
    assert facts["cupy_cache"] == "/elsewhere" and Path(facts["matrix_cache"]).is_relative_to("/kept")
    assert "NUMBA_DISABLE_JIT_=1" in facts["settings"] and "do not print" not in str(facts)


def test_packages_that_are_missing_or_there_twice(monkeypatch):
    there = {"cupy-cuda12x": "14.0.0", "cupy-cuda13x": "14.1.0", "numba": "0.61.0"}

    def version(name):
        if name not in there:
            raise importlib.metadata.PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr(module, "version", version)
    facts = surroundings()
    assert facts["pyamg"] == "not installed" and facts["numba"] == "0.61.0"
    assert facts["cupy"] == "14.1.0 (cupy-cuda13x), 14.0.0 (cupy-cuda12x)"
    del there["cupy-cuda12x"], there["cupy-cuda13x"]
    assert surroundings()["cupy"] == "not installed"


@pytest.mark.parametrize(
    ("written", "driver"),
    [
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n", "580.65.06"),
        ("", "unknown"),
    ],
)
def test_the_gpu_and_its_driver(monkeypatch, tmp_path, written, driver):
    runtime = SimpleNamespace(
        getDeviceCount=lambda: 2,
        getDeviceProperties=lambda device: PROPERTIES if device == 1 else None,
        runtimeGetVersion=lambda: 12090,
    )
    cuda = SimpleNamespace(
        runtime=runtime, Device=lambda: SimpleNamespace(id=1), nvrtc=SimpleNamespace(getVersion=lambda: (12, 9))
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(module, "DRIVER", tmp_path / "version")
    monkeypatch.setattr(module, "cuda_of_driver", lambda: 13000)
    monkeypatch.setattr(module.cubins, "find_nvrtc", lambda: "libnvrtc.so.12")
    (tmp_path / "version").write_text(written)
    facts = surroundings()
    assert facts["gpu"] == "NVIDIA H200, number 1 of 2, 139.0 GiB, compute capability 9.0"
    assert facts["gpu_driver"] == f"{driver}, for CUDA 13.0"
    assert facts["cuda_runtime"] == facts["nvrtc"] == "12.9"


@pytest.fixture
def without_toolkit(monkeypatch):
    """CuPy where there is neither NVRTC nor a header of CUDA."""
    pytest.importorskip("cupy")

    def refuse(name):
        raise DynamicLibNotFoundError(name)

    from cuda.pathfinder import DynamicLibNotFoundError

    monkeypatch.setattr(cubins, "find_nvrtc", cubins.find_nvrtc.__wrapped__)
    monkeypatch.setattr("cuda.pathfinder.load_nvidia_dynamic_lib", refuse)
    monkeypatch.setattr("cuda.pathfinder.find_nvidia_header_directory", lambda name: None)


def test_a_cupy_without_the_toolkit_is_told(without_toolkit, here):
    facts = json.loads(here("info", "--json")[1])
    assert facts["nvrtc"].startswith("CuPy has no NVRTC") and facts["cuda_headers"].startswith("CuPy has no headers")
    for problem in (facts["nvrtc"], facts["cuda_headers"]):
        assert re.search(r"or cupy-cuda\d\dx\[ctk\]$", problem) and "\n" not in problem


def test_a_cupy_with_the_toolkit():
    pytest.importorskip("cupy")
    facts = surroundings()
    assert re.fullmatch(r"\d+\.\d+", facts["nvrtc"])


def test_without_cupy_nothing_is_said_of_the_compiler(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    facts = surroundings()
    assert "nvrtc" not in facts and "cuda_headers" not in facts and "CuPy is not installed" in facts["gpu"]


def test_info_prints_all_of_it(here):
    code, said, _ = here("info", "--json")
    assert code == 0 and set(surroundings()) < set(json.loads(said))
    code, said, _ = here("info")
    assert code == 0
    for name, fact in surroundings().items():
        if name != "memory":
            assert f"{name.replace('_', ' ')} " in said and fact in said
