"""Every .cu file compiles in all its variants, and for every architecture that CUDA 13 knows.

NVRTC needs no device for that. What this NVRTC has compiled once, it compiles again, and that takes a tenth of the time
of all tests. So digests of what was compiled are kept, as Numba keeps the CPU's functions: a compilation is left out
where text, options and NVRTC are the same.
"""

from __future__ import annotations

import hashlib
import re
from importlib.metadata import distributions

import pytest
from kernel_variants import BOTH, CHOICES, REAL, SOURCES, USUAL, VARIANTS, compilations, declared, kernel_set

from mcprecond.backends.cuda_source import cuda_source
from mcprecond.backends.gpu import compile_options

#: Half of the time, for code that nobody runs; what cannot be compiled cannot be so either.
FAST = "--Ofast-compile=max"
#: Under which name pytest's cache keeps the digests.
KEPT = "cuda/compiled"


@pytest.fixture(scope="module")
def compiled(pytestconfig):
    """The digests of what earlier runs have compiled, and those of this run, which are kept for the next one. Where
    pytest has no cache, everything is compiled.
    """
    cache = getattr(pytestconfig, "cache", None)
    before, used = set(cache.get(KEPT, []) if cache else []), set()
    yield before, used
    if cache:
        cache.set(KEPT, sorted(used))


@pytest.fixture(scope="module")
def nvrtc_versions():
    """What tells one NVRTC from another."""
    from cupy.cuda import nvrtc

    named = ((str(each.metadata["Name"]), each.version) for each in distributions())
    return [*nvrtc.getVersion(), *sorted({found for found in named if "nvrtc" in found[0]})]


def test_there_are_sources():
    assert len(SOURCES) >= 9


def test_all_sources_are_compiled():
    assert len(REAL) + len(BOTH) == len(SOURCES)


@pytest.mark.parametrize(("name", "variant", "architecture"), list(compilations()))
def test_compiles(name, variant, architecture, compiled, nvrtc_versions):
    from cupy.cuda import nvrtc

    first = declared(name, VARIANTS[0]) | CHOICES.get(name, [{}])[0]
    as_it_is_run = architecture == USUAL and variant == kernel_set(name).select_macros(first)  # once for a source
    options = (*compile_options(variant), f"-arch=sm_{architecture}", *([] if as_it_is_run else [FAST]))
    text, (before, used) = cuda_source(SOURCES[name]), compiled
    digest = hashlib.sha256(repr((nvrtc_versions, options, text)).encode()).hexdigest()
    if digest in before:
        used.add(digest)
        return
    program = nvrtc.createProgram(text, name, [], [])
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError:
        pytest.fail(f"{name} for sm_{architecture}:\n{nvrtc.getProgramLog(program)}")
    assert nvrtc.getCUBIN(program)
    nvrtc.destroyProgram(program)
    used.add(digest)


@pytest.mark.parametrize("name", SOURCES)
def test_every_kernel_has_a_function_on_the_cpu(name):
    """The kernels of a .cu file are those that its module registers."""
    kernels = re.findall(
        r'extern "C" __global__ void(?:\s+__launch_bounds__\([^()]+\))?\s+(\w+)', cuda_source(SOURCES[name])
    )
    assert sorted(kernels) == sorted(kernel_set(name).functions)
