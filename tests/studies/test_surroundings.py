"""What `mcprecond info` prints for a report of a bug."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import mcprecond
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
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 12090,
    )
    cuda = SimpleNamespace(
        runtime=runtime, Device=lambda: SimpleNamespace(id=1), nvrtc=SimpleNamespace(getVersion=lambda: (12, 9))
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(module, "DRIVER", tmp_path / "version")
    (tmp_path / "version").write_text(written)
    facts = surroundings()
    assert facts["gpu"] == "NVIDIA H200, number 1 of 2, 139.0 GiB, compute capability 9.0"
    assert facts["gpu_driver"] == f"{driver}, for CUDA 13.0"
    assert facts["cuda_runtime"] == facts["nvrtc"] == "12.9"


def test_info_prints_all_of_it(here):
    code, said, _ = here("info", "--json")
    assert code == 0 and set(surroundings()) < set(json.loads(said))
    code, said, _ = here("info")
    assert code == 0
    for name, fact in surroundings().items():
        if name != "memory":
            assert f"{name.replace('_', ' ')} " in said and fact in said
