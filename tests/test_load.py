"""Many setups and solves in one process: memory stays flat, and solves at once have the bits of one alone."""

import importlib.util
import sys
from pathlib import Path

import pytest

from mcprecond import ILU0, MulticolorSGS, SmoothedAggregation

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def load():
    """The benchmark with that name, whose parts run here with fewer solves."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("load_benchmark", BENCHMARKS / "load.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


@pytest.mark.nightly
@pytest.mark.parametrize(("build", "count"), [(MulticolorSGS, 120), (ILU0, 100), (SmoothedAggregation, 60)])
def test_memory_is_flat(build, count, load, device):
    """What a setup leaves behind would show: its matrix has hundreds of kilobytes on average."""
    if device == "gpu":
        count //= 5  # many tests share a GPU; benchmarks/load.py has more
    found = load.memory(build, count, device)
    assert len(found["process_bytes"]) == 10
    assert found["pool_slope"] <= 100 and found["python_slope"] <= 1000
    assert found["process_bytes"][-1] <= found["process_bytes"][4] + 2**24  # C's allocator keeps some


@pytest.mark.parametrize("threads", [16])
def test_threads(threads, load, device):
    found = load.at_once([0] * threads, 4, device, streams=False)
    assert found["solves"] == 4 * threads


@pytest.mark.parametrize("device", [pytest.param("gpu", marks=pytest.mark.gpu)])
def test_streams(load, device):
    assert load.at_once([0] * 8, 4, device, streams=True)["solves"] == 32


@pytest.mark.parametrize("device", [pytest.param("gpu", marks=pytest.mark.gpu)])
def test_two_devices(load, device):
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one GPU, and this needs two")
    assert load.at_once([0, 1] * 4, 4, device, streams=True)["solves"] == 32


def test_every_coloring_of_a_grid(load, device):
    cases = list(load.colorings(14, device))
    assert len(cases) == 21 and all(case["vertices"] == 2**14 for case in cases)
