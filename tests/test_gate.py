"""The gate for refactoring tells other code from the same code in another place."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KERNELS = """
__device__ int offset = 3;
extern "C" __global__ void first(int *x) { x[threadIdx.x] += offset; }
extern "C" __global__ void second(double *x) { __shared__ double y[32]; y[threadIdx.x] = x[0]; __syncthreads(); x[1] = y[5]; }
"""  # noqa: E501
VARIANT = "pcg.cu sm_90 LANES=2"


@pytest.fixture
def tools(monkeypatch):
    """The modules of the gate."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    monkeypatch.setattr(sys, "path", [*sys.path])  # the gate adds to it
    import cpu_bits
    import gate
    import machine_code

    return gate, machine_code, cpu_bits


@pytest.mark.parametrize("architecture", [75, 90, 120])
def test_code_of_kernels(tools, architecture):
    _, machine_code, _ = tools

    def compiled(source):
        return machine_code.compiled(source, "a.cu", ("--std=c++17", f"-arch=sm_{architecture}"))

    found = compiled(KERNELS)
    assert found.keys() == {"first", "second", machine_code.ALL}
    assert found["first"]["registers"] > 0 and found["first"]["shared"] == 0
    assert found["second"]["shared"] == 32 * 8
    lines = KERNELS.strip().splitlines()
    assert compiled("\n\n// why\n" + '#line 7 "b.cu"\n' + KERNELS) == found
    assert compiled("\n".join([lines[0], lines[2], lines[1]])) == found
    renamed = compiled(KERNELS.replace("second", "other").replace("offset", "shift"))
    assert renamed == {"other" if name == "second" else name: kernel for name, kernel in found.items()}

    def others(old, new):
        return {name for name, kernel in compiled(KERNELS.replace(old, new)).items() if kernel != found[name]}

    assert others("+=", "-=") == {"first"}
    assert others("y[5]", "y[6]") == {"second"}
    assert others("y[32]", "y[64]") == {"second"}
    assert others("= 3", "= 4") == {machine_code.ALL}


@pytest.fixture
def record():
    kernels = {name: {"code": name * 4, "registers": 32, "stack": 0} for name in ("a", "b")}
    variants = {VARIANT: kernels, VARIANT.replace("90", "75"): copy.deepcopy(kernels)}
    return {
        "format": 1,
        "cuda": {"made with": {"NVRTC": "13.5"}, "kernels": variants},
        "cpu": {"made with": {"numpy": "2"}, "cases": {"pcg": "0", "color": "1"}},
    }


def test_the_same_is_no_difference(tools, record):
    notes, differences = tools[0].compare(record, copy.deepcopy(record))
    assert not differences and not any(note.startswith(("moved", "note")) for note in notes)


def test_what_differs_is_named(tools, record):
    now = copy.deepcopy(record)
    now["cuda"]["kernels"][VARIANT]["a"] = {"code": "c", "registers": 40, "stack": 8}
    now["cuda"]["kernels"][VARIANT]["d"] = now["cuda"]["kernels"][VARIANT].pop("b") | {"code": "d"}
    now["cpu"]["cases"] = {"pcg": "2", "smooth": "1"}
    now["cpu"]["made with"]["numpy"] = "3"
    notes, differences = tools[0].compare(record, now)
    assert set(differences) == {
        f"other code: a of {VARIANT}, registers 32 -> 40, stack 0 -> 8",
        f"gone: b of {VARIANT}",
        f"new: d of {VARIANT}",
        "gone: color",
        "new: smooth",
        "other bits: pcg",
    }
    assert "note: numpy was 2, is 3: results may differ for that" in notes


@pytest.mark.parametrize("name", ["solvers/cg.cu sm_90 LANES=2", "pcg.cu sm_90 LANES=2 MORE=1"])
def test_what_has_moved_is_no_difference(tools, record, name):
    now = copy.deepcopy(record)
    now["cuda"]["kernels"][name] = now["cuda"]["kernels"].pop(VARIANT)
    now["cuda"]["kernels"][name]["c"] = now["cuda"]["kernels"][name].pop("b")
    notes, differences = tools[0].compare(record, now)
    assert not differences
    assert {f"moved: a of {VARIANT} -> a of {name}", f"moved: b of {VARIANT} -> c of {name}"} < set(notes)


def test_what_has_moved_and_changed_is_a_difference(tools, record):
    now = copy.deepcopy(record)
    name = VARIANT.replace("pcg", "cg")
    now["cuda"]["kernels"][name] = now["cuda"]["kernels"].pop(VARIANT)
    now["cuda"]["kernels"][name]["a"] = {"code": "c", "registers": 40, "stack": 0}
    assert tools[0].compare(record, now)[1] == [f"other code: a of {name}, registers 32 -> 40"]


def test_bits_repeat(tools, monkeypatch):
    import numba

    cpu_bits = tools[2]
    monkeypatch.setattr(cpu_bits, "THREADS", min(cpu_bits.THREADS, numba.config.NUMBA_NUM_THREADS))
    chosen = (
        "color grid5 eb-pps",
        "color grid5 ecl_gc",
        "apply unsymmetric grid5 dilu float64",
        "pcg ssor float64 form=auto",
    )
    found = cpu_bits.of_all_cases(chosen.__contains__)
    assert found.keys() == set(chosen) and len(set(found.values())) == len(chosen)
    assert cpu_bits.of_all_cases(chosen.__contains__) == found
