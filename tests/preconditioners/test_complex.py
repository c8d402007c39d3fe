"""Complex matrices: transposed and adjoint are two things, Hermitian stays Hermitian, CG in both forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from factors import applied, check
from graphs import dominant, grid5, patterns, random_values, spd, stencil27
from hypothesis import HealthCheck, given, settings
from reference.dilu import dense
from reference.gauss_seidel import swept

from mcprecond import ILU0, ColorBlocks, MulticolorDILU, MulticolorGS, MulticolorSGS, pcg

KINDS = {
    "forward": lambda A, **options: MulticolorGS(A, sweep="forward", omega=0.9, **options),
    "sgs": MulticolorSGS,
    "ssor": lambda A, **options: MulticolorSGS(A, omega=1.3, sweeps=2, **options),
    "dilu": MulticolorDILU,
    "ilu": ILU0,
}
GRID = sp.csr_matrix(grid5(9) + sp.diags_array([1.0], offsets=[3], shape=(81, 81)))


def vector(n: int, seed: int = 0) -> np.ndarray:
    return random_values(np.random.default_rng(seed), n, np.complex128)


@pytest.mark.parametrize("kind", KINDS)
def test_transposed_and_adjoint(kind, backend, to_device):
    M = KINDS[kind](to_device(dominant(GRID, dtype=np.complex128)))
    matrix, r = applied(M, backend), to_device(vector(81))
    assert abs(matrix.imag).max() > 1e-3
    np.testing.assert_allclose(applied(M.T, backend), matrix.T, atol=1e-14)
    np.testing.assert_allclose(applied(M.H, backend), matrix.conj().T, atol=1e-14)
    np.testing.assert_allclose(backend.to_host(M.rmatvec(r)), matrix.conj().T @ backend.to_host(r), atol=1e-13)


@pytest.mark.parametrize("kind", ["sgs", "ssor", "dilu", "ilu"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(pattern=patterns())
def test_hermitian_positive_definite_for_such_matrices(kind, backend, to_device, pattern):
    matrix = applied(KINDS[kind](to_device(spd(pattern, dtype=np.complex128))), backend)
    np.testing.assert_allclose(matrix, matrix.conj().T, atol=1e-13)
    assert np.linalg.eigvalsh(matrix).min() > 0


@pytest.mark.parametrize("ordering", ["color", "natural"])
def test_factors_of_ilu0(ordering, backend, to_device):
    A = dominant(stencil27(4), dtype=np.complex128)
    check(A, backend, to_device, ordering, None if ordering == "color" else np.arange(64))


def test_dilu_equals_its_formula(backend, to_device):
    A = dominant(stencil27(4), dtype=np.complex128)
    M = MulticolorDILU(to_device(A))
    np.testing.assert_allclose(applied(M, backend) @ dense(A, backend.to_host(M.blocks.perm)), np.eye(64), atol=1e-12)


@pytest.mark.parametrize("kind", ["dilu", "ilu"])
def test_pivots_are_shifted_along_the_real_axis(kind, backend, to_device):
    A = sp.csr_matrix(np.array([[4.0, 2j], [-2j, 1.0]]))
    with pytest.raises(ValueError, match="pivot of row 1 of A is zero"):
        KINDS[kind](to_device(A), coloring=to_device(np.array([0, 1])), pivot="raise")
    M = KINDS[kind](to_device(A), coloring=to_device(np.array([0, 1])), pivot="shift")
    np.testing.assert_array_equal(M.shifted.rows, [1])
    np.testing.assert_allclose(M.shifted.amounts, [2.0])


def test_smooth(backend, to_device):
    A = spd(stencil27(4), dtype=np.complex128)
    M = MulticolorGS(to_device(A), "ecl_gc", sweep="symmetric", omega=1.2)
    x, b, perm = vector(64), vector(64, 1), backend.to_host(M.blocks.perm)
    expected = swept(A.toarray(), swept(A.toarray(), x, b, perm, 1.2), b, perm[::-1], 1.2)
    np.testing.assert_allclose(backend.to_host(M.smooth(to_device(x), to_device(b))), expected, atol=1e-14)


@pytest.mark.parametrize("kind", ["sgs", "dilu"])
def test_eisenstat_form_has_the_iterates_of_the_plain_form(kind, backend, to_device):
    A, b = to_device(spd(stencil27(7), dtype=np.complex128)), to_device(vector(343))
    M = KINDS[kind](A, coloring="ecl_gc")
    iterates: dict[str, list[np.ndarray]] = {"plain": [], "eisenstat": []}
    for form, seen in iterates.items():
        result = pcg(
            A, b, M=M, rtol=1e-9, form=form, callback=lambda x, seen=seen: seen.append(backend.to_host(x).copy())
        )
        assert result.converged
    assert abs(len(iterates["plain"]) - len(iterates["eisenstat"])) <= 1
    for plain, eisenstat in zip(*iterates.values(), strict=False):
        np.testing.assert_allclose(eisenstat, plain, atol=1e-9)


def test_a_hermitian_system_converges_as_its_real_form(backend, to_device):
    """CG on A + iB and on [[A, -B], [B, A]] has the same residuals."""
    A = spd(grid5(12), dtype=np.complex128)
    real = sp.csr_matrix(sp.block_array([[A.real, -A.imag], [A.imag, A.real]]))
    b = vector(144)
    residuals = [
        pcg(to_device(matrix), to_device(right), rtol=1e-6).residuals
        for matrix, right in ((A, b), (real, np.r_[b.real, b.imag]))
    ]
    np.testing.assert_allclose(*residuals, rtol=1e-6)


def test_matrix_that_is_not_hermitian_breaks_down_honestly(backend, to_device):
    A = sp.csr_matrix(sp.diags_array(np.exp(1j * np.linspace(0, 3, 50))))
    result = pcg(to_device(A), backend.xp.ones(50, np.complex128), maxiter=200)
    assert not result.converged and result.residual_norm > 1e-5


def test_blocks_tell_the_imaginary_parts_apart(to_device):
    A = spd(grid5(6), dtype=np.complex128)
    blocks = ColorBlocks(to_device(A))
    assert blocks.compared_with(to_device(A))() and not blocks.compared_with(to_device(A.conj()))()


def test_real_and_complex_are_not_mixed(backend, to_device):
    A, H = to_device(grid5(5)), to_device(spd(grid5(5), dtype=np.complex128))
    with pytest.raises(TypeError, match="dtype must be complex64 or complex128, got 'float32'"):
        MulticolorSGS(H, dtype="float32")
    with pytest.raises(TypeError, match="dtype must be float32 or float64, got 'complex64'"):
        MulticolorSGS(A, dtype="complex64")
    with pytest.raises(TypeError, match="M holds complex128 and A float64"):
        pcg(A, backend.xp.ones(25), M=MulticolorSGS(H))
    with pytest.raises(ValueError, match="zero or missing diagonal entry in row 0"):
        MulticolorSGS(to_device(sp.csr_matrix(([1j, 1j], ([0, 1], [1, 0])), shape=(2, 2))))


def test_a_value_that_is_not_finite_is_named(to_device):
    A = spd(grid5(5), dtype=np.complex128)
    A.data[A.indptr[7]] = complex(0, np.nan)
    with pytest.raises(ValueError, match=r"A holds nanj in row 7, column 2"):
        MulticolorSGS(to_device(A))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_devices_agree(kind):
    from mcprecond.backends import get_backend

    gpu = get_backend("gpu")
    A, r = dominant(stencil27(12), dtype=np.complex128), vector(1728)
    expected = KINDS[kind](A, coloring="ecl_gc") @ r
    there = KINDS[kind](gpu.sparse.csr_matrix(A), coloring="ecl_gc") @ gpu.xp.asarray(r)
    np.testing.assert_allclose(gpu.to_host(there), expected, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(KINDS[kind](A, coloring="ecl_gc", device="gpu") @ r, expected, rtol=1e-10, atol=1e-14)
