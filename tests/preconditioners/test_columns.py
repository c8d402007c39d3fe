"""Several right-hand sides: one pass over the factors gives, for each of them, what a pass for it alone gives."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, dominant, grid5, random_values, spd, star, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS

KINDS = {
    "forward": lambda A: MulticolorGS(A, "ecl_gc", sweep="forward", omega=0.9),
    "backward twice": lambda A: MulticolorGS(A, "ecl_gc", sweep="backward", sweeps=2),
    "sgs": lambda A: MulticolorSGS(A, "ecl_gc"),
    "ssor twice": lambda A: MulticolorSGS(A, "ecl_gc", omega=1.3, sweeps=2),
    "dilu": lambda A: MulticolorDILU(A, "ecl_gc"),
    "ilu": lambda A: ILU0(A, coloring="ecl_gc"),
}


def columns(n: int, count: int, dtype: type = np.float64) -> np.ndarray:
    return random_values(np.random.default_rng(count), n * count, dtype).astype(dtype).reshape(n, count)


def check_columns(M, R, backend, to_device) -> None:
    """Equal to the last bit."""
    Z = M @ to_device(R)
    assert Z.shape == R.shape and Z.dtype == M.dtype
    for c in range(R.shape[1]):
        alone = M @ to_device(np.ascontiguousarray(R[:, c]))
        np.testing.assert_array_equal(backend.to_host(Z)[:, c], backend.to_host(alone))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_those_of_single_vectors(kind, dtype, backend, to_device):
    M = KINDS[kind](to_device(dominant(stencil27(5), dtype=dtype)))
    for count in (1, 2, 3, 4, 9):
        check_columns(M, columns(125, count, dtype), backend, to_device)


@pytest.mark.parametrize(
    "pattern", [star(500), sp.eye_array(40), sp.csr_matrix(np.ones((90, 90)))], ids=["star", "diagonal", "dense"]
)
def test_columns_on_every_kind_of_row(pattern, backend, to_device):
    A = spd(pattern)
    for M in (MulticolorSGS(to_device(A)), ILU0(to_device(A))):
        check_columns(M, columns(A.shape[0], 7), backend, to_device)


@pytest.mark.parametrize(
    ("block_size", "dtype"), [(2, np.float64), (2, np.complex128), (3, np.float32), (8, np.float64)]
)
def test_columns_with_blocks_of_unknowns(block_size, dtype, backend, to_device):
    A = to_device(dominant(stencil27(6), dtype=dtype))
    for M in (
        MulticolorGS(A, "ecl_gc", sweep="forward", omega=0.9, block_size=block_size),
        MulticolorSGS(A, "ecl_gc", omega=1.3, sweeps=2, block_size=block_size),
    ):
        for count in (3, 5):  # passes for 3, 4 and 1, or for 2 and 1
            check_columns(M, columns(216, count, dtype), backend, to_device)


def test_columns_with_blocks_stored_in_single_precision(backend, to_device):
    M = MulticolorSGS(to_device(dominant(stencil27(6))), "ecl_gc", dtype=np.float32, block_size=3)
    check_columns(M, columns(216, 2), backend, to_device)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_adjoint_with_blocks_of_unknowns(dtype, backend, to_device):
    M = MulticolorSGS(to_device(dominant(stencil27(4), dtype=dtype)), block_size=2)
    matrix = backend.to_host(M @ backend.xp.eye(64, dtype=dtype))
    np.testing.assert_allclose(backend.to_host(M.H @ backend.xp.eye(64, dtype=dtype)), matrix.conj().T, atol=1e-13)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=4), data=st.data())
def test_any_number_in_any_order_and_layout(counts, data, backend, to_device):
    """What one application leaves behind does not disturb the next one."""
    M = MulticolorSGS(to_device(spd(grid5(7))))
    for count in counts:
        R = columns(49, 2 * count)[:, ::2]
        layout = data.draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray, lambda R: R]))
        expected = np.column_stack([backend.to_host(M @ to_device(R[:, c].copy())) for c in range(count)] or [R])
        before = layout(R)
        R = to_device(layout(R))
        np.testing.assert_array_equal(backend.to_host(M.matmat(R)), expected)
        np.testing.assert_array_equal(backend.to_host(R), before)


@pytest.mark.parametrize(
    "make", [*KINDS.values(), lambda A: MulticolorSGS(A, "ecl_gc", block_size=2)], ids=[*KINDS, "nodes"]
)
def test_update_reaches_all_of_them(make, backend, to_device):
    A, B = dominant(stencil27(4), 1), dominant(stencil27(4), 2)
    M, R = make(to_device(A)), to_device(columns(64, 4))
    before = backend.to_host(M @ R)
    M.update(to_device(B))
    after = backend.to_host(M @ R)
    np.testing.assert_array_equal(after, backend.to_host(make(to_device(B)) @ R))
    assert abs(after - before).max() > 1e-3


def test_transposed_and_adjoint(backend, to_device):
    R = to_device(columns(64, 6, np.complex128))
    M = MulticolorGS(to_device(dominant(stencil27(4), dtype=np.complex128)), sweep="forward")
    matrix = backend.to_host(M @ backend.xp.eye(64))
    for product, expected in ((M.H @ R, matrix.conj().T), (M.T @ R, matrix.T), (M.rmatmat(R), matrix.conj().T)):
        np.testing.assert_allclose(backend.to_host(product), expected @ backend.to_host(R), atol=1e-13)


@pytest.mark.parametrize(("dtype", "result"), [(np.float32, np.complex64), (np.float64, np.complex128)])
def test_complex_vectors_are_two_real_ones(dtype, result, backend, to_device):
    M = MulticolorSGS(to_device(spd(grid5(6), dtype=dtype)))
    R = columns(36, 3, np.complex128).astype(result)
    Z = backend.to_host(M @ to_device(R))
    assert Z.dtype == result
    for part in ("real", "imag"):
        alone = M @ to_device(np.ascontiguousarray(getattr(R, part)))
        np.testing.assert_array_equal(getattr(Z, part), backend.to_host(alone))
    assert (M @ to_device(R[:, 0])).shape == (36,)


@pytest.mark.parametrize(("block_size", "count"), [(1, 3), (2, 4), (3, 2)])
def test_an_application_of_several_can_be_enqueued(block_size, count, backend, to_device):
    """As a solver of the caller does."""
    M, R = MulticolorSGS(to_device(spd(grid5(6))), block_size=block_size), to_device(columns(36, count))
    expected, Z = M @ R, backend.xp.empty_like(R)
    M.enqueue(M.new_state(count), R, Z)
    np.testing.assert_array_equal(backend.to_host(Z), backend.to_host(expected))


@pytest.mark.gpu
def test_numpy_vectors_with_sweeps_on_the_gpu():
    A, R = spd(stencil27(6)), columns(216, 6)
    Z = MulticolorSGS(A, "ecl_gc", device="gpu") @ R
    assert isinstance(Z, np.ndarray)
    np.testing.assert_allclose(Z, MulticolorSGS(A, "ecl_gc") @ R, rtol=1e-12)
    complex_R = columns(216, 2, np.complex128)
    np.testing.assert_allclose(
        MulticolorSGS(A, "ecl_gc", device="gpu") @ complex_R, MulticolorSGS(A, "ecl_gc") @ complex_R, rtol=1e-12
    )


def test_nothing_keeps_sweeps_alive(to_device):
    """No cycle of references: what is no longer used frees its memory at once, without a collection."""
    M = MulticolorSGS(to_device(spd(grid5(4))), "jp")
    M @ to_device(np.ones((16, 2)))
    M @ to_device(np.ones(16))
    with M.workspace(2) as own:
        sweeps = weakref.ref(own.state.sweeps[0].substitution)
    del own
    gc.disable()
    try:
        del M
        assert sweeps() is None
    finally:
        gc.enable()
