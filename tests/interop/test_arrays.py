"""Vectors and matrices of other array libraries, which are known by what they can say: DLPack, and CSR tensors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from graphs import DTYPES, grid5, patterns, spd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, MulticolorSGS, SmoothedAggregation, color, pcg
from mcprecond.interop.arrays import as_linear_operator


class Foreign:
    """A vector of another library: it speaks DLPack, and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


#: The library.
FOREIGN = SimpleNamespace(from_dlpack=Foreign, __name__="foreign")


class Tensor(Foreign):
    """A sparse tensor in CSR layout with the methods of PyTorch's."""

    def __init__(self, csr, backend, index=np.int64):
        self.shape, self.dtype = csr.shape, "foreign.float"
        xp = backend.xp
        self._parts = xp.asarray(csr.indptr, dtype=index), xp.asarray(csr.indices, dtype=index), xp.asarray(csr.data)
        super().__init__(self._parts[2])

    def crow_indices(self):
        return Foreign(self._parts[0])

    def col_indices(self):
        return Foreign(self._parts[1])

    def values(self):
        return Foreign(self._parts[2])

    def __dlpack__(self, **options):
        raise BufferError("a sparse tensor is no array")


def vectors(A, count, seed=0):
    shape = A.shape[:1] if count is None else (A.shape[0], count)
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(A.dtype)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), dtype=st.sampled_from(DTYPES), count=st.sampled_from([None, 1, 3]))
def test_foreign_vectors(backend, to_device, pattern, dtype, count):
    A = spd(pattern, dtype=dtype)
    M = MulticolorSGS(to_device(A))
    operator, r = as_linear_operator(M, xp=FOREIGN), to_device(vectors(A, count))
    z = operator @ Foreign(r)
    assert isinstance(z, Foreign) and (operator.shape, operator.dtype) == (M.shape, M.dtype)
    np.testing.assert_array_equal(backend.to_host(z._array), backend.to_host(M @ r))
    if count is None:
        for turned, expected in ((operator.T, M.T), (operator.H, M.H)):
            np.testing.assert_array_equal(backend.to_host((turned @ Foreign(r))._array), backend.to_host(expected @ r))
        for name in ("matvec", "rmatvec"):
            found, expected = getattr(operator, name)(Foreign(r)), getattr(M, name)(r)
            np.testing.assert_array_equal(backend.to_host(found._array), backend.to_host(expected))


def test_nothing_is_copied_at_the_door(backend, to_device):
    """What the operator reads is the memory that it was given, and what comes back is what it wrote."""
    passed = []

    class Recording(backend.linalg.LinearOperator):
        def _matvec(self, r):
            passed.extend((r, 2 * r))
            return passed[-1]

    r = to_device(np.arange(5.0))
    operator = as_linear_operator(Recording(dtype=r.dtype, shape=(5, 5)), xp=FOREIGN)
    z = operator.matvec(Foreign(r))
    pointers = [backend.xp.from_dlpack(Foreign(array)) for array in (r, passed[0], passed[1], z._array)]
    addresses = [a.ctypes.data if backend.name == "cpu" else a.data.ptr for a in pointers]
    assert addresses[0] == addresses[1] and addresses[2] == addresses[3]


def test_a_solver_written_for_another_library(backend, to_device):
    """Preconditioned Richardson steps in terms of foreign vectors only."""
    A = spd(grid5(12))
    M = as_linear_operator(SmoothedAggregation(to_device(A), max_coarse=20), xp=backend.xp)
    matrix, b = to_device(A), to_device(vectors(A, None))
    x = backend.xp.zeros_like(b)
    for _ in range(30):
        x += M @ (b - matrix @ x)
    assert float(abs(b - matrix @ x).max()) < 1e-8
    assert "vectors of" in repr(M)


@pytest.mark.parametrize("xp", ["numpy", np])
def test_libraries_by_name(xp):
    A = spd(grid5(4))
    assert isinstance(as_linear_operator(MulticolorSGS(A), xp=xp) @ Foreign(np.ones(16)), np.ndarray)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), dtype=st.sampled_from(DTYPES), index=st.sampled_from([np.int32, np.int64]))
def test_sparse_tensors_are_matrices(backend, to_device, pattern, dtype, index):
    A = spd(pattern, dtype=dtype)
    tensor, r = Tensor(A, backend, index), to_device(vectors(A, None))
    for make in (MulticolorSGS, ILU0):
        M, expected = make(tensor), make(to_device(A))
        np.testing.assert_array_equal(backend.to_host(M @ r), backend.to_host(expected @ r))
        M.update(tensor)
        np.testing.assert_array_equal(backend.to_host(M @ r), backend.to_host(expected @ r))
    assert color(tensor).is_valid(to_device(A))


def test_solves_with_a_sparse_tensor(backend, to_device):
    A = spd(grid5(15))
    b = to_device(vectors(A, None))
    tensor = Tensor(A, backend)
    found, expected = (pcg(matrix, b, M=MulticolorSGS(matrix), rtol=1e-8) for matrix in (tensor, to_device(A)))
    assert found.converged and found.iterations == expected.iterations


def test_other_tensors_are_refused(backend):
    tensor = Tensor(spd(grid5(4)), backend)

    def wrong():
        raise RuntimeError("crow_indices expected sparse row compressed tensor layout but got Strided")

    tensor.crow_indices = wrong
    with pytest.raises(TypeError, match=r"A is a tensor and must be one in CSR layout .* try A.detach\(\)"):
        MulticolorSGS(tensor)
    blocks = Tensor(spd(grid5(4)), backend)
    blocks.values = lambda: Foreign(backend.xp.ones((64, 2, 2)))
    with pytest.raises(TypeError, match="got blocks or a batch"):
        MulticolorSGS(blocks)


def test_wrong_arguments_are_named(backend, to_device):
    M = MulticolorSGS(to_device(spd(grid5(4))))
    with pytest.raises(TypeError, match="M must be a linear operator of SciPy or CuPy, got 3"):
        as_linear_operator(3, xp="numpy")
    with pytest.raises(ValueError, match="xp must be one of torch, jax, numpy, cupy, or a module"):
        as_linear_operator(M, xp="tensorflow")
    with pytest.raises(TypeError, match="or a module with from_dlpack, got None"):
        as_linear_operator(M, xp=None)
    with pytest.raises(TypeError, match="r must speak DLPack"):
        as_linear_operator(M, xp="numpy") @ [1.0] * 16

    class Elsewhere(Foreign):
        def __dlpack_device__(self):
            return (2 if backend.name == "cpu" else 1), 0

    with pytest.raises((TypeError, ValueError), match=r"is on the|cannot be used"):
        as_linear_operator(M, xp="numpy") @ Elsewhere(backend.xp.ones(16))
