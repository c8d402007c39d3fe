"""The door: every bad matrix is refused with the name of the argument, what was found, and what to do."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mcprecond import (
    ILU0,
    ClassicalAMG,
    ColorBlocks,
    MulticolorDILU,
    MulticolorSGS,
    SmoothedAggregation,
    color,
    pcg,
)
from mcprecond.backends import get_backend, gpu_problem

ENTRANCES = {
    "color": color,
    "ColorBlocks": ColorBlocks,
    "MulticolorSGS": MulticolorSGS,
    "pcg": lambda A: pcg(A, np.ones(5)),
}
VALUE_ENTRANCES = [name for name in ENTRANCES if name != "color"]


@pytest.mark.parametrize("entrance", [name for name in ENTRANCES if name != "pcg"])
def test_not_sparse(entrance):
    with pytest.raises(
        TypeError, match=r"A must be a sparse matrix .* got numpy\.ndarray; try scipy\.sparse\.csr_array"
    ):
        ENTRANCES[entrance](np.eye(5))


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_not_square(entrance):
    with pytest.raises(ValueError, match=r"A must be square, got shape \(4, 5\)"):
        ENTRANCES[entrance](sp.csr_array((4, 5)))


@pytest.mark.parametrize("entrance", VALUE_ENTRANCES)
@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, np.clongdouble])
def test_wrong_dtype(entrance, dtype):
    with pytest.raises(
        TypeError, match=f"A must hold float32, float64, complex64 or complex128 values, got {np.dtype(dtype)}"
    ):
        ENTRANCES[entrance](sp.eye_array(5, dtype=dtype, format="csr"))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint32, bool])
def test_integers_and_booleans_are_converted_as_scipy_does(dtype):
    """In A, b, M and updates alike; A is not changed."""
    wide, b = sp.csr_array(sp.random_array((9, 9), density=0.3, rng=0) > 0).astype(float), np.arange(9) % 2
    wide = (wide + wide.T + 9 * sp.eye_array(9) if dtype is not bool else sp.eye_array(9)).tocsr()
    A = wide.astype(dtype)
    expected = pcg(wide, b.astype(float), M=MulticolorSGS(wide), rtol=1e-10)
    M = MulticolorSGS(A)
    M.update(A)
    for matrix, preconditioner in ((A, M), (A.toarray(), M), (wide, MulticolorSGS(A))):
        found = pcg(matrix, b.astype(dtype), M=preconditioner, rtol=1e-10)
        assert found.x.dtype == np.float64
        np.testing.assert_array_equal(found.x, expected.x)
    np.testing.assert_array_equal(pcg(A, b, M=A).x, pcg(wide, b, M=wide).x)
    assert A.dtype == dtype


def test_color_reads_any_dtype():
    assert color(sp.csr_array(np.ones((5, 5), dtype=bool))).n_colors == 5


@pytest.mark.parametrize("entrance", VALUE_ENTRANCES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite(entrance, value):
    A = grid5(5)
    A.data[A.indptr[7]] = value
    with pytest.raises(ValueError, match=f"A holds {value} in row 7, column 2"):
        ENTRANCES[entrance](A)


@pytest.mark.parametrize(
    "container", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.dia_array]
)
def test_every_format_is_welcome(container):
    A = container(grid5(5))
    expected = MulticolorSGS(grid5(5), "greedy") @ np.ones(25)
    np.testing.assert_array_equal(MulticolorSGS(A, "greedy") @ np.ones(25), expected)
    assert pcg(A, np.ones(25)).converged


class FakeCupyMatrix:
    """What a CuPy matrix looks like from outside."""


FakeCupyMatrix.__module__ = "cupyx.scipy.sparse._csr"


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_cupy_matrix_without_a_device(entrance, monkeypatch):
    monkeypatch.setattr("mcprecond.backends.gpu_problem", lambda: "CuPy finds no CUDA device")
    with pytest.raises(ValueError, match="CuPy finds no CUDA device"):
        ENTRANCES[entrance](FakeCupyMatrix())


def test_gpu_asked_for_without_one(monkeypatch):
    monkeypatch.setattr("mcprecond.backends.gpu_problem", lambda: "CuPy is not installed")
    with pytest.raises(ValueError, match="device='gpu' cannot be used: CuPy is not installed"):
        MulticolorSGS(grid5(5), device="gpu")


def test_gpu_problem_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    problem = gpu_problem()
    assert problem is not None and "\n" not in problem and "install" in problem


class CudaError(Exception):
    """Stands for CuPy's."""


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (12080, "CuPy is for CUDA 13; the driver is for CUDA 12, so from a clone: pip install '.[gpu-cuda12]', after"),
        (11080, "CuPy is for CUDA 13; the driver is for CUDA 11, so install driver 580 or newer"),
        (0, "finds no CUDA device (cudaErrorInsufficientDriver"),
    ],
)
def test_a_driver_that_is_missing_or_too_old(monkeypatch, driver, said):
    def count():
        raise CudaError("cudaErrorInsufficientDriver: too old for the runtime")

    runtime = SimpleNamespace(
        getDeviceCount=count,
        driverGetVersion=lambda: driver,
        runtimeGetVersion=lambda: 13000,
        CUDARuntimeError=CudaError,
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    problem = gpu_problem()
    assert problem is not None and said in problem and "\n" not in problem


@pytest.mark.parametrize(
    "raised",
    [
        "ImportError('Failed to import CuPy.\\n\\nOriginal error: libcudart') from OSError('no libcudart.so.13')",
        "OSError(28, 'no libcudart.so.13: the disk is full')",
    ],
)
def test_a_cupy_that_cannot_be_imported(monkeypatch, tmp_path, raised):
    (tmp_path / "cupy.py").write_text(f"raise {raised}")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    problem = gpu_problem()
    assert problem is not None and problem.startswith("CuPy cannot be imported (")
    assert "no libcudart.so.13" in problem and "\n" not in problem


def test_unknown_device():
    with pytest.raises(ValueError, match="device must be 'cpu' or 'gpu', got 'tpu'"):
        get_backend("tpu")


OPERATORS = {
    "SGS": MulticolorSGS,
    "SGS of nodes": lambda A, **options: MulticolorSGS(A, block_size=2, **options),
    "DILU": MulticolorDILU,
    "ILU0": ILU0,
    "multigrid": lambda A, **options: SmoothedAggregation(A, max_coarse=5, **options),
    "classical multigrid": lambda A, **options: ClassicalAMG(A, max_coarse=5, **options),
    "Chebyshev": lambda A, **options: SmoothedAggregation(A, smoother="chebyshev", max_coarse=5, **options),
}


@pytest.mark.parametrize("kind", OPERATORS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(entry=st.integers(0, 287), value=st.sampled_from([np.nan, np.inf, -np.inf, 1e300, None]))
def test_an_update_that_refuses_a_value_or_a_pattern_changes_nothing(kind, entry, value, backend, to_device):
    """1e300 is out of the range of the values that are stored, but multigrid scales diagonals; None stands for an entry
    that is missing.
    """
    A, r = grid5(8), to_device(np.random.default_rng(0).uniform(-1, 1, 64))
    entry %= A.nnz
    if value == 1e300 and ("multigrid" in kind or kind == "Chebyshev"):
        assume(A.indices[entry] != np.searchsorted(A.indptr, entry, side="right") - 1)
    M = OPERATORS[kind](to_device(A), dtype=np.float32)
    before, bad = backend.to_host(M @ r), A.copy()
    bad.data[entry] = 0 if value is None else value
    if value is None:
        bad.eliminate_zeros()
    with pytest.raises(ValueError):
        M.update(to_device(bad))
    np.testing.assert_array_equal(backend.to_host(M @ r), before)
