"""DILU: the dense formula, the diagonal of A, equality with ILU(0) without triangles, Eisenstat's form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, grid5, spd, stencil27
from test_ilu import applied, dominant

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, color, pcg, problems


def grid7(n: int) -> sp.csr_matrix:
    """The 7-point pattern on n^3 nodes."""
    line, eye = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n)), sp.eye_array(n)
    return sp.csr_matrix(
        sum(sp.kron(sp.kron(*p[:2]), p[2]) for p in ((line, eye, eye), (eye, line, eye), (eye, eye, line)))
    )


def dense(A, M, backend) -> np.ndarray:
    """M by its formula, in the order of A, with E one after the other."""
    perm = backend.to_host(M.blocks.perm)
    B = A.toarray()[np.ix_(perm, perm)]
    E = np.zeros(len(B), B.dtype)
    for i in range(len(B)):
        E[i] = B[i, i] - (B[i, :i] * B[:i, i] / E[:i]).sum()
    product = (np.diag(E) + np.tril(B, -1)) @ np.diag(1 / E) @ (np.diag(E) + np.triu(B, 1))
    P = np.eye(len(perm))[perm]
    return P.T @ product @ P


@pytest.mark.parametrize("name", [name for name in NAMED if NAMED[name].shape[0]])
def test_equals_the_formula_and_keeps_the_diagonal(name, backend, to_device):
    A = dominant(sp.csr_matrix(NAMED[name])[:150, :150])
    M = MulticolorDILU(to_device(A))
    expected = dense(A, M, backend)
    np.testing.assert_allclose(np.diag(expected), A.diagonal(), rtol=1e-13)
    np.testing.assert_allclose(applied(M, backend) @ expected, np.eye(A.shape[0]), atol=1e-12)
    np.testing.assert_allclose(applied(M.T, backend), applied(M, backend).T, atol=1e-13)
    first = M.blocks.rows_of(0)[0]
    assert M.keeps_diagonal
    np.testing.assert_array_equal(
        backend.to_host(M.splitting[0][:first]), backend.to_host(M.blocks.diagonal[:first])
    )  # fmt: skip


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
        MulticolorDILU(A, colors)
    M = MulticolorDILU(A, colors, pivot="shift")
    np.testing.assert_array_equal(M.shifted.rows, [1])
    np.testing.assert_allclose(M.shifted.amounts, [2.0])
    assert not M.keeps_diagonal


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
