"""The gate for refactoring tells other code from the same code in another place."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = """
__device__ int offset = 3;
extern "C" __global__ void first(int *x) { x[threadIdx.x] += offset; }
extern "C" __global__ void second(double *x) { x[1] = 2 * x[0]; }
"""
VARIANT = "pcg.cu sm_90 LANES=2"


@pytest.fixture
def tools(monkeypatch):
    """The modules of the gate."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    monkeypatch.setattr(sys, "path", [*sys.path])  # the gate adds to it
    import gate
    import machine_code

    return gate, machine_code


def test_code_of_kernels(tools):
    _, machine_code = tools

    def compiled(source):
        return machine_code.compiled(source, "a.cu", ("--std=c++17", "-arch=sm_90"))

    found = compiled(KERNELS)
    assert found.keys() == {"first", "second", machine_code.ALL} and found["first"]["registers"] > 0
    assert compiled("\n// why\n" + '#line 7 "b.cu"\n' + KERNELS) == found
    renamed = compiled(KERNELS.replace("second", "other").replace("offset", "shift"))
    assert renamed == {"other" if name == "second" else name: kernel for name, kernel in found.items()}
    other = compiled(KERNELS.replace("+=", "-="))
    assert {name for name, kernel in other.items() if kernel != found[name]} == {"first"}


def test_what_differs_is_named_and_what_has_moved_is_no_difference(tools):
    compare = tools[0].compare
    kernels = {name: {"code": name * 4, "registers": 32, "stack": 0} for name in ("a", "b")}
    record = {
        "format": 1,
        "cuda": {"made with": {"NVRTC": "13.5"}, "kernels": {VARIANT: kernels}},
        "cpu": {"made with": {"numpy": "2"}, "cases": {"pcg": "0", "color": "1"}},
    }
    assert not compare(record, copy.deepcopy(record))[1]
    now = copy.deepcopy(record)
    now["cuda"]["kernels"]["solvers/cg.cu sm_90 LANES=2"] = now["cuda"]["kernels"].pop(VARIANT)
    assert not compare(record, now)[1]
    now = copy.deepcopy(record)
    now["cuda"]["kernels"][VARIANT]["a"] = {"code": "c", "registers": 40, "stack": 8}
    now["cpu"]["cases"] = {"pcg": "2", "smooth": "1"}
    changed = {f"other code: a of {VARIANT}, registers 32 -> 40, stack 0 -> 8", "other bits: pcg"}
    assert set(compare(record, now)[1]) == changed | {"gone: color", "new: smooth"}
