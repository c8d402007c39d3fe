"""Every .cu file compiles for every architecture that CUDA 13 knows; NVRTC needs no device for that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mcprecond
from mcprecond.backends.gpu import compile_options, cuda_source

PACKAGE = Path(mcprecond.__file__).parent
SOURCES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.cu"))}
ARCHITECTURES = [75, 80, 90, 100, 120]
VARIANTS = [
    {
        "OFFSET": np.int32,
        "VALUE": np.float64,
        "STORED": np.float64,
        "LANES": 2,
        "NATURAL": 1,
        "ENTRY": np.int32,
        "BITS": np.int64,
    },
    {
        "OFFSET": np.int64,
        "VALUE": np.float64,
        "STORED": np.float32,
        "LANES": 8,
        "NATURAL": 0,
        "ENTRY": np.float64,
        "BITS": np.int64,
    },
    {
        "OFFSET": np.int32,
        "VALUE": np.float32,
        "STORED": np.float32,
        "LANES": 32,
        "NATURAL": 0,
        "ENTRY": np.float32,
        "BITS": np.int32,
    },
]
COMPLEX = {np.float32: np.complex64, np.float64: np.complex128}
COMPLEX_VARIANTS = [{name: COMPLEX.get(value, value) for name, value in variant.items()} for variant in VARIANTS]


def test_there_are_sources():
    assert "backends/device.cuh" not in SOURCES and len(SOURCES) >= 9


def check_compiles(name, architecture, variant):
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(cuda_source(SOURCES[name]), name, [], [])
    try:
        nvrtc.compileProgram(program, (*compile_options(variant), f"-arch=sm_{architecture}"))
    except nvrtc.NVRTCError:
        pytest.fail(f"{name} for sm_{architecture}:\n{nvrtc.getProgramLog(program)}")
    assert nvrtc.getCUBIN(program)
    nvrtc.destroyProgram(program)


@pytest.mark.parametrize("variant", VARIANTS, ids=["double", "mixed", "single"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", SOURCES)
def test_compiles(name, architecture, variant):
    check_compiles(name, architecture, variant)


@pytest.mark.parametrize("variant", COMPLEX_VARIANTS, ids=["double", "mixed", "single"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    "name", [name for name in SOURCES if name.startswith(("preconditioners", "reordering", "solvers"))]
)
def test_compiles_for_complex_numbers(name, architecture, variant):
    check_compiles(name, architecture, variant)


@pytest.mark.parametrize("variant", [*VARIANTS[1:], *COMPLEX_VARIANTS[:2]])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("columns", [2, 3, 4])
def test_compiles_for_several_right_hand_sides(columns, architecture, variant):
    check_compiles("preconditioners/sweeps.cu", architecture, {**variant, "RHS": columns})


@pytest.mark.parametrize("name", SOURCES)
def test_every_kernel_has_a_twin(name):
    """The kernels of a .cu file are those that its module registers."""
    import importlib
    import re

    module = importlib.import_module("mcprecond." + name.removesuffix(".cu").replace("/", "."))
    kernels = re.findall(
        r'extern "C" __global__ void(?: __launch_bounds__\([^()]+\))? (\w+)', SOURCES[name].read_text()
    )
    assert sorted(kernels) == sorted(module.KERNELS.twins)
