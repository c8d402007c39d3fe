"""Every .cu file compiles in all its variants, and for every architecture that CUDA 13 knows.

NVRTC needs no device for that.
"""

from __future__ import annotations

import re

import pytest
from kernel_variants import BOTH, CHOICES, REAL, SOURCES, USUAL, VARIANTS, compilations, declared, kernel_set

from mcprecond.backends.cuda_source import cuda_source
from mcprecond.backends.gpu import compile_options

#: Half of the time, for code that nobody runs; what cannot be compiled cannot be so either.
FAST = "--Ofast-compile=max"


def test_there_are_sources():
    assert len(SOURCES) >= 9


def test_all_sources_are_compiled():
    assert len(REAL) + len(BOTH) == len(SOURCES)


@pytest.mark.parametrize(("name", "variant", "architecture"), list(compilations()))
def test_compiles(name, variant, architecture):
    from cupy.cuda import nvrtc

    first = declared(name, VARIANTS[0]) | CHOICES.get(name, [{}])[0]
    as_it_is_run = architecture == USUAL and variant == kernel_set(name).select_macros(first)  # once for a source
    options = (*compile_options(variant), f"-arch=sm_{architecture}", *([] if as_it_is_run else [FAST]))
    program = nvrtc.createProgram(cuda_source(SOURCES[name]), name, [], [])
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError:
        pytest.fail(f"{name} for sm_{architecture}:\n{nvrtc.getProgramLog(program)}")
    assert nvrtc.getCUBIN(program)
    nvrtc.destroyProgram(program)


@pytest.mark.parametrize("name", SOURCES)
def test_every_kernel_has_a_function_on_the_cpu(name):
    """The kernels of a .cu file are those that its module registers."""
    kernels = re.findall(
        r'extern "C" __global__ void(?:\s+__launch_bounds__\([^()]+\))?\s+(\w+)', cuda_source(SOURCES[name])
    )
    assert sorted(kernels) == sorted(kernel_set(name).functions)
