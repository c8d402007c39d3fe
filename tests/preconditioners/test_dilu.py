"""DILU: the dense formula, the diagonal of A, equality with ILU(0) without triangles, Eisenstat's form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from factors import applied
from graphs import DTYPES, NAMED, dominant, grid5, patterns, random_values, slivers, spd, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.dilu import dense

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, color, pcg, problems
from mcprecond.solvers.result import Reason

KINDS = {
    "dilu": MulticolorDILU,
    "ilu": ILU0,
    "ilu in natural order": lambda A, coloring, **options: ILU0(A, ordering="natural", **options),
}


def grid7(n: int) -> sp.csr_matrix:
    """The 7-point pattern on n^3 nodes."""
    line, eye = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n)), sp.eye_array(n)
    return sp.csr_matrix(
        sum(sp.kron(sp.kron(*p[:2]), p[2]) for p in ((line, eye, eye), (eye, line, eye), (eye, eye, line)))
    )


@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
def test_equals_the_formula_and_keeps_the_diagonal(name, backend, to_device):
    A = dominant(sp.csr_matrix(NAMED[name])[:150, :150])
    M = MulticolorDILU(to_device(A))
    expected = dense(A, backend.to_host(M.blocks.perm))
    np.testing.assert_allclose(np.diag(expected), A.diagonal(), rtol=1e-13)
    np.testing.assert_allclose(applied(M, backend) @ expected, np.eye(A.shape[0]), atol=1e-12)
    np.testing.assert_allclose(applied(M.T, backend), applied(M, backend).T, atol=1e-13)
    first = M.blocks.offsets[1]
    assert M.keeps_diagonal
    np.testing.assert_array_equal(backend.to_host(M.splitting[0][:first]), backend.to_host(M.blocks.diagonal[:first]))


@pytest.mark.parametrize("pattern", [grid5(8), grid7(4)], ids=["5-point", "7-point"])
def test_equals_ilu0_without_triangles(pattern, backend, to_device):
    A = to_device(dominant(pattern))
    coloring = color(A, "ecl_gc")  # first-fit: its colors are the levels, so both are stored in the same slices
    ilu, dilu = ILU0(A, coloring=coloring), MulticolorDILU(A, coloring)
    assert ilu.is_dilu and ilu.nbytes == dilu.nbytes
    np.testing.assert_allclose(applied(ilu, backend), applied(dilu, backend), atol=1e-15)


def test_update(backend, to_device):
    A, B = dominant(stencil27(5), 1), dominant(stencil27(5), 2)
    M = MulticolorDILU(to_device(A), "ecl_gc")
    applied(M, backend)  # so that a captured application exists
    M.update(to_device(B))
    np.testing.assert_allclose(
        applied(M, backend), applied(MulticolorDILU(to_device(B), "ecl_gc"), backend), atol=1e-15
    )


@pytest.mark.parametrize("kind", ["dilu", "ilu"])
def test_eisenstat_form_has_the_iterates_of_the_plain_form(kind, backend, to_device):
    A = to_device(spd(stencil27(7)) if kind == "dilu" else grid5(20))
    b = to_device(np.random.default_rng(0).uniform(-1, 1, A.shape[0]))
    M = MulticolorDILU(A, "ecl_gc") if kind == "dilu" else ILU0(A, coloring="ecl_gc")
    iterates: dict[str, list[np.ndarray]] = {"plain": [], "eisenstat": []}
    results = {
        form: pcg(A, b, M=M, rtol=1e-9, form=form, callback=lambda x, seen=seen: seen.append(backend.to_host(x).copy()))
        for form, seen in iterates.items()
    }
    assert all(result.converged for result in results.values())
    assert abs(results["plain"].iterations - results["eisenstat"].iterations) <= 1
    for plain, eisenstat in zip(*iterates.values(), strict=False):
        np.testing.assert_allclose(eisenstat, plain, atol=1e-9)
    with pytest.raises(ValueError, match=r"ILU\(0\) changes entries off the diagonal"):
        pcg(to_device(spd(stencil27(3))), backend.xp.ones(27), M=ILU0(to_device(spd(stencil27(3)))), form="eisenstat")


def test_close_to_gauss_seidel_and_faster_than_nothing(backend, to_device):
    problem = problems.fenl(10, device=backend.name)
    J = problem.jacobian(problem.exact())
    b = J @ to_device(np.random.default_rng(0).uniform(-1, 1, problem.unknowns))
    Ms = (None, MulticolorSGS(J, "ecl_gc"), MulticolorDILU(J, "ecl_gc"))
    plain, sgs, dilu = (pcg(J, b, M=M, rtol=1e-8).iterations for M in Ms)
    assert dilu < 0.8 * plain and abs(dilu - sgs) <= 2


def test_bad_pivots(to_device):
    with pytest.raises(ValueError, match="A stores no diagonal entry in row 0"):
        MulticolorDILU(to_device(sp.csr_matrix(([1.0, 1.0], ([0, 1], [1, 1])), shape=(2, 2))))
    A = to_device(sp.csr_matrix(np.array([[4.0, 2], [2, 1]])))
    colors = to_device(np.array([0, 1]))
    with pytest.raises(ValueError, match="pivot of row 1 of A is zero"):
        MulticolorDILU(A, colors, pivot="raise")
    M = MulticolorDILU(A, colors, pivot="shift")
    np.testing.assert_array_equal(M.shifted.rows, [1])
    np.testing.assert_allclose(M.shifted.amounts, [2.0])
    assert M.keeps_diagonal  # in the first color


def powers_of_two(A, exponents: np.ndarray) -> sp.csr_matrix:
    """D A D with D of these powers of two: exact where nothing underflows."""
    scaled = sp.csr_matrix(A).copy()
    rows = np.repeat(np.arange(A.shape[0]), np.diff(scaled.indptr))
    scaled.data = np.ldexp(1.0, exponents[rows]).astype(A.dtype) * scaled.data
    scaled.data = scaled.data * np.ldexp(1.0, exponents[scaled.indices]).astype(A.dtype)
    return scaled


def pivots_of(M, backend) -> np.ndarray:
    """The pivots in the order of A."""
    pivots = np.empty(M.shape[0], M.dtype)
    pivots[backend.to_host(M.blocks.perm)] = backend.to_host(M.splitting[0])
    return pivots


@pytest.mark.parametrize("dtype", DTYPES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), data=st.data())
def test_pivots_scale_with_the_matrix(dtype, backend, to_device, pattern, data):
    alike = data.draw(st.booleans())  # or rows and columns by D, which leaves symmetric matrices good ones
    A = dominant(pattern, dtype=dtype) if alike else spd(pattern, dtype=dtype)
    coloring, n = to_device(backend.to_host(color(to_device(A), "ecl_gc").colors)), A.shape[0]
    pivots = pivots_of(MulticolorDILU(to_device(A), coloring), backend)
    # Room for what is smaller than the diagonal; and pivots need inverses.
    most = (-np.finfo(dtype).minexp - 60) // 2
    exponents = np.full(n, data.draw(st.integers(-most, most)))
    if not alike:
        exponents = np.random.default_rng(data.draw(st.integers(0, 9))).integers(-most // 2, most // 2, n)
    M = MulticolorDILU(to_device(powers_of_two(A, exponents)), coloring)
    scales = np.ldexp(1.0, 2 * exponents).astype(dtype)
    np.testing.assert_array_equal(pivots_of(M, backend), scales * pivots)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_what_a_wider_dtype_rounds_is_no_shift(dtype, kind, backend, to_device):
    A, wide = to_device(dominant(stencil27(5), dtype=dtype)), np.result_type(dtype, np.float64)
    M = KINDS[kind](A, coloring="ecl_gc", dtype=wide, pivot="raise")
    assert not len(M.shifted.rows) and M.dtype == dtype
    np.testing.assert_allclose(
        applied(M, backend), applied(KINDS[kind](A, coloring="ecl_gc"), backend), rtol=1e-4, atol=1e-7
    )


@pytest.mark.parametrize("kind", KINDS)
def test_positive_pivots_on_slivers(kind, backend, to_device):
    A = slivers(2000, 8.0, seed=2)
    on_device, n = to_device(A), A.shape[0]
    coloring = to_device(backend.to_host(color(on_device, "ecl_gc").colors))
    unshifted = KINDS[kind](on_device, coloring=coloring, pivot="raise")
    assert (pivots_of(unshifted, backend) < 0.02 * A.diagonal()).any()  # so there is something to do
    M = KINDS[kind](on_device, coloring=coloring)
    pivots = pivots_of(M, backend)
    assert (pivots > 0.02 * A.diagonal()).all()
    check_shifts(A, M, backend)
    b = A @ np.random.default_rng(0).uniform(-1, 1, n)
    sgs, *results = (
        pcg(on_device, to_device(b), M=preconditioner, rtol=1e-8, form=form)
        for preconditioner, form in ((MulticolorSGS(on_device, M.coloring), "auto"), (M, "plain"), (M, "auto"))
    )
    assert all(result.converged and result.iterations <= 1.1 * sgs.iterations for result in results)
    assert abs(results[0].iterations - results[1].iterations) <= 2


def check_shifts(A, M, backend) -> None:
    """`shifted` says how the pivots differ from those that their row would have without a shift."""
    perm, T = backend.to_host(M.blocks.perm), backend.to_host(M.splitting[0])
    B = sp.csr_matrix(M.blocks.permuted() if backend.name == "cpu" else M.blocks.permuted().get())
    L, U = sp.tril(B, -1).tocsr(), sp.triu(B, 1).tocsr()
    subtracted = np.asarray(L.multiply(U.T).multiply(1 / T).sum(axis=1)).ravel()
    diagonal = A.diagonal()[perm]
    amounts = np.zeros(len(T), T.dtype)
    amounts[perm] = T - (diagonal - subtracted)
    large = np.abs(amounts) > 1e-6 * np.abs(A.diagonal())
    listed = np.zeros(len(T), bool)
    listed[M.shifted.rows] = True
    assert listed[large].all()
    np.testing.assert_allclose(M.shifted.amounts, amounts[listed], rtol=1e-6, atol=1e-10 * np.abs(diagonal).max())
    touched = np.zeros(len(T), bool)
    touched[perm] = subtracted != 0
    assert not listed[~touched].any()


@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(pattern=patterns(), seed=st.integers(0, 99), shift=st.sampled_from([1e-1, 1e-3]), complex_=st.booleans())
def test_positive_definite_for_such_matrices(kind, backend, to_device, pattern, seed, shift, complex_):
    rng = np.random.default_rng(seed)
    B = sp.csr_matrix(pattern, copy=True).astype(np.complex128 if complex_ else np.float64)
    B.data = rng.standard_normal(B.nnz) + (1j * rng.standard_normal(B.nnz) if complex_ else 0)
    A = sp.csr_matrix(B.conj().T @ B)
    A = sp.csr_matrix(A + shift * (1 + abs(A.diagonal()).max()) * sp.eye_array(A.shape[0]))
    A = powers_of_two(A, rng.integers(-20, 20, A.shape[0]))
    M = KINDS[kind](to_device(A), coloring="ecl_gc")
    assert M.symmetric
    check_shifts(A, M, backend)
    d = np.sqrt(A.diagonal().real)
    inverse = d[:, None] * applied(M, backend) * d
    np.testing.assert_allclose(inverse, inverse.conj().T, atol=1e-10 * abs(inverse).max())
    assert np.linalg.eigvalsh(inverse).min() > 0
    b = to_device(A @ random_values(rng, A.shape[0], A.dtype))
    for form in ("auto", "plain"):
        assert pcg(to_device(A), b, M=M, rtol=1e-6, form=form).reason is not Reason.INDEFINITE_M


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_default_does_not_shift(kind, backend, to_device):
    unsymmetric, negative = ([[4.0, 2], [4, 2]], [[-4.0, 2], [2, -1]])
    for entries in (unsymmetric, negative):
        A = to_device(sp.csr_matrix(np.array(entries)))
        with pytest.raises(ValueError, match="pivot of row 1 of A is zero, tiny or not finite"):
            KINDS[kind](A, coloring=to_device(np.array([0, 1])))
    # The pivots of an M-matrix may be low.
    line = sp.csr_matrix(
        sp.diags_array([-1.0, np.r_[1.0001, np.full(98, 2.0), 1.0], -1.0], offsets=[-1, 0, 1], shape=(100, 100))
    )
    M = KINDS[kind](to_device(line), coloring=to_device(np.arange(100)))
    assert (pivots_of(M, backend) < 0.02 * line.diagonal()).any() and not len(M.shifted.rows)
    np.testing.assert_allclose(applied(M, backend) @ line.toarray(), np.eye(100), atol=1e-8)


def test_badly_scaled_rows_are_not_shifted(backend, to_device):
    """A pivot may be tiny beside its row where A is D B D."""
    A = powers_of_two(grid5(6), np.where(np.arange(36) % 3, -60, 0))
    M = MulticolorDILU(to_device(A), "ecl_gc")
    assert not len(M.shifted.rows) and pcg(to_device(A), to_device(A @ np.ones(36)), M=M).converged


@pytest.mark.gpu
def test_devices_agree():
    from mcprecond.backends import get_backend

    gpu = get_backend("gpu")
    A = dominant(stencil27(12))
    r = np.random.default_rng(0).uniform(size=A.shape[0])
    expected = MulticolorDILU(A, "ecl_gc") @ r
    on_gpu = MulticolorDILU(gpu.sparse.csr_matrix(A), "ecl_gc") @ gpu.xp.asarray(r)
    np.testing.assert_allclose(gpu.to_host(on_gpu), expected, rtol=1e-11)
    np.testing.assert_allclose(MulticolorDILU(A, "ecl_gc", device="gpu") @ r, expected, rtol=1e-11)
