"""Hard systems: large conditions, bad scales, guesses far off, single precision. Both forms of pcg end alike."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, pcg
from mcprecond.solvers import Reason

#: Beyond this, times the unit of rounding, A may as well be singular or indefinite: what breaks first is chance.
WORST_CONDITION = 1e-3


def hard_matrix(rng: np.random.Generator) -> sp.csr_matrix:
    """Symmetric positive definite, with a condition of up to 1e15 or so."""
    n = int(rng.integers(5, 60))
    kind = rng.integers(4)
    if kind == 0:
        A = grid5(int(rng.integers(3, 9)))
    elif kind == 1:
        B = sp.random_array((n, n), density=min(1, 3 / n), rng=rng, data_sampler=lambda size: rng.standard_normal(size))
        A = B.T @ B + 10 ** rng.uniform(-15, 0) * sp.eye_array(n)
    elif kind == 2:
        Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
        A = (Q * np.logspace(0, -rng.uniform(0, 15), n)) @ Q.T
    else:
        c = 10 ** rng.uniform(-8, 8, n)
        A = sp.diags_array([-c[1:], np.append(c[1:], 0) + c, -c[1:]], offsets=[-1, 0, 1])
    if rng.random() < 0.5:
        D = sp.diags_array(10 ** rng.uniform(-rng.uniform(0, 6), rng.uniform(0, 6), A.shape[0]))
        A = D @ sp.csr_matrix(A) @ D
    A = sp.csr_matrix(A)
    return sp.csr_matrix((A + A.T) / 2)


def hard_system(seed: int):
    """A, b, a guess or None, and a tolerance; None if the precision is not one for this matrix."""
    rng = np.random.default_rng(seed)
    dtype = np.float32 if rng.random() < 0.4 else np.float64
    A = hard_matrix(rng).astype(dtype)
    if np.linalg.cond(A.toarray().astype(float)) * np.finfo(dtype).eps > WORST_CONDITION:
        return None
    x = rng.uniform(-1, 1, A.shape[0])
    guess = None
    if rng.random() < 0.4:
        guess = (rng.uniform(-1, 1, A.shape[0]) * 10 ** rng.uniform(0, 6)).astype(dtype)
    rtol = 10 ** rng.uniform(-13 if dtype is np.float64 else -6, -3)
    return A, (A.astype(float) @ x).astype(dtype), guess, rtol


KINDS = [MulticolorSGS, lambda A: MulticolorSGS(A, omega=1.4), MulticolorDILU, lambda A: ILU0(A, coloring="greedy")]


@pytest.mark.parametrize("part", range(4))
def test_both_forms_end_alike(part, backend, to_device):
    compared = 0
    for seed in range(50 * part, 50 * (part + 1)):
        if (system := hard_system(seed)) is None:
            continue
        A, b, guess, rtol = system
        on_device, x0 = to_device(A), None if guess is None else to_device(guess)
        M = KINDS[seed % len(KINDS)](on_device)
        if M.eisenstat_incompatibility:
            continue
        plain, eisenstat = (
            pcg(on_device, to_device(b), x0, M=M, rtol=rtol, form=form) for form in ("plain", "eisenstat")
        )
        assert plain.reason is eisenstat.reason, f"seed {seed}"
        if plain.reason is Reason.CONVERGED:
            for result in (plain, eisenstat):
                exact = A.astype(np.longdouble) @ backend.to_host(result.x).astype(np.longdouble)
                rounding = 10 * np.finfo(A.dtype).eps * np.linalg.norm(exact)
                assert np.linalg.norm(b - exact) <= 1.01 * rtol * np.linalg.norm(b) + rounding, f"seed {seed}"
        compared += 1
    assert compared > 10


def test_pivots_far_above_the_diagonal_are_not_for_eisenstats_form(backend, to_device):
    """A row whose diagonal entry is tiny beside the others, and its pivot not: the product with A would cancel."""
    A = grid5(8).tolil()
    A[9, 9] = 1e-20
    A = to_device(A.tocsr())
    b, (i, j) = backend.xp.ones(64), np.divmod(np.arange(64), 8)
    M = MulticolorDILU(A, (i + j) % 2, pivot="shift")  # nothing comes before row 9
    assert len(M.shifted.rows) and "cancel" in M.eisenstat_incompatibility
    with pytest.raises(ValueError, match="does not fit M: shifted pivots are more than 16 times as large"):
        pcg(A, b, M=M, form="eisenstat")
    auto, plain = pcg(A, b, M=M, maxiter=20), pcg(A, b, M=M, maxiter=20, form="plain")
    np.testing.assert_array_equal(auto.residuals, plain.residuals)
