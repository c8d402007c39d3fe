"""Powers of two in A, b and M change exponents and no digit; precision is promoted, never dropped."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, patterns, random_values, spd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, pcg
from mcprecond.solvers import Reason

SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
#: Exponents that leave all entries of A and b, and x, normal numbers with some room around them.
FARTHEST = {np.float32: 50, np.complex64: 50, np.float64: 480, np.complex128: 480}
BUILT = {
    "none": lambda A: None,
    "sparse": lambda A: _inverse_diagonal(A),
    "SGS": lambda A: MulticolorSGS(A, "greedy"),
    "DILU": lambda A: MulticolorDILU(A, "greedy"),
    "ILU0": lambda A: ILU0(A, coloring="greedy"),
    "block SGS": lambda A: MulticolorSGS(A, "greedy", block_size=2),
}


def _inverse_diagonal(A):
    from mcprecond.backends import backend_of

    sparse = backend_of(A).sparse
    return sparse.csr_matrix(sparse.diags(1 / A.diagonal()))


def power(exponent: int, dtype: type) -> np.number:
    return np.dtype(dtype).type(np.ldexp(1.0, exponent))


@SETTINGS
@given(
    pattern=patterns(),
    dtype=st.sampled_from(DTYPES),
    kind=st.sampled_from(sorted(BUILT)),
    of_A=st.integers(-1, 1),
    of_b=st.floats(-1, 1),
    with_guess=st.booleans(),
    form=st.sampled_from(["auto", "plain"]),
    norm=st.sampled_from(["residual", "preconditioned", "energy"]),
)
def test_units_change_no_digit(backend, to_device, pattern, dtype, kind, of_A, of_b, with_guess, form, norm):
    """The history and the solution of s A x = t b are t / s times those of A x = b, to the last digit.

    The error is the same.
    """
    A = spd(sp.kron(pattern, np.ones((2, 2))), dtype=dtype)
    n = A.shape[0]
    b = random_values(np.random.default_rng(0), n, dtype).astype(dtype)
    guess = random_values(np.random.default_rng(1), n, dtype).astype(dtype) if with_guess else None
    a, e = of_A * FARTHEST[dtype] // 2, int(of_b * FARTHEST[dtype])
    rtol = 1e-4 if np.finfo(dtype).bits == 32 else 1e-9

    def solve(exponent_of_A: int, exponent_of_b: int):
        matrix = to_device(sp.csr_matrix(A * power(exponent_of_A, dtype)))
        x0 = None if guess is None else to_device(guess * power(exponent_of_b - exponent_of_A, dtype))
        rhs = to_device(b * power(exponent_of_b, dtype))
        return pcg(matrix, rhs, x0, M=BUILT[kind](matrix), rtol=rtol, form=form, norm=norm)

    plain, scaled = solve(0, 0), solve(a, e)
    assert plain.converged and scaled.reason is plain.reason
    np.testing.assert_array_equal(scaled.residuals, np.ldexp(plain.residuals, e))
    expected = backend.to_host(plain.x) * power(e - a, dtype)
    np.testing.assert_array_equal(backend.to_host(scaled.x), expected)
    np.testing.assert_allclose(scaled.energy_error, plain.energy_error, rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("kind", BUILT)
@pytest.mark.parametrize(("of_A", "of_b"), [(0, -1000), (0, 990), (-960, -960), (900, 900), (-500, 400), (500, -500)])
def test_the_whole_range_of_doubles(kind, of_A, of_b, backend, to_device):
    """Norms of b whose squares are 0 or infinite; matrices of such magnitudes, too."""
    A, b = grid5(12), random_values(np.random.default_rng(0), 144)
    matrix, scaled = to_device(A), to_device(sp.csr_matrix(A * 2.0**of_A))
    for norm in ("residual", "preconditioned", "energy"):
        expected = pcg(matrix, to_device(b), M=BUILT[kind](matrix), rtol=1e-9, norm=norm)
        result = pcg(scaled, to_device(b * 2.0**of_b), M=BUILT[kind](scaled), rtol=1e-9, norm=norm)
        assert result.converged and result.iterations == expected.iterations
        assert result.energy_error == pytest.approx(expected.energy_error, rel=1e-6)
        np.testing.assert_array_equal(backend.to_host(result.x), backend.to_host(expected.x) * 2.0 ** (of_b - of_A))


def test_units_of_M_do_not_matter(backend, to_device):
    A, b = to_device(grid5(10)), to_device(random_values(np.random.default_rng(0), 100))
    M = _inverse_diagonal(A)
    for norm in ("residual", "preconditioned", "energy"):
        expected = pcg(A, b, M=M, rtol=1e-9, norm=norm)
        for exponent in (-700, -200, 300, 800):
            for scaled in (M * 2.0**exponent, backend.linalg.aslinearoperator(M * 2.0**exponent)):
                result = pcg(A, b, M=scaled, rtol=1e-9, norm=norm)
                np.testing.assert_array_equal(backend.to_host(result.x), backend.to_host(expected.x))


def test_a_guess_of_other_units(backend, to_device):
    """What is left of b in the first residual is found again."""
    A, b = to_device(grid5(10)), random_values(np.random.default_rng(0), 100)
    for exponent in (-900, -300, 100, 300):
        guess = to_device(2.0**exponent * random_values(np.random.default_rng(1), 100))
        result = pcg(A, to_device(b), guess, M=MulticolorSGS(A), rtol=1e-9)
        assert result.converged
        assert np.linalg.norm(b - grid5(10) @ backend.to_host(result.x)) <= 1.01e-9 * np.linalg.norm(b)


@pytest.mark.parametrize("kind", ["none", "SGS"])
def test_no_right_hand_side_no_solution(kind, backend, to_device):
    """As in SciPy, whatever the guess is."""
    A = to_device(grid5(10))
    result = pcg(A, backend.xp.zeros(100), to_device(np.arange(100.0)), M=BUILT[kind](A), rtol=0)
    assert result.converged and result.iterations == 0 and result.residual_norm == 0
    assert not backend.to_host(result.x).any()


def test_a_solution_that_underflows_is_not_converged(backend, to_device):
    result = pcg(to_device(1e20 * grid5(10)), to_device(np.full(100, 1e-300)), rtol=1e-9)
    assert result.reason is Reason.STAGNATED
    result = pcg(to_device(1e-200 * grid5(10)), to_device(np.full(100, 1e200)), rtol=1e-9)
    assert result.reason is Reason.NOT_FINITE


FLOATS = [np.float32, np.float64]


@pytest.mark.parametrize("of_A", FLOATS)
@pytest.mark.parametrize("of_b", [*FLOATS, np.int32, np.complex64])
@pytest.mark.parametrize("of_guess", [None, *FLOATS])
@pytest.mark.parametrize("kind", ["none", "SGS", "sparse"])
def test_precision_is_promoted(of_A, of_b, of_guess, kind, backend, to_device):
    """As in SciPy's solvers, where the guess has no say: here it has."""
    A, b = grid5(8).astype(of_A), (100 * random_values(np.random.default_rng(0), 64)).astype(of_b)
    expected = np.result_type(of_A, np.float64 if of_b is np.int32 else of_b, *([of_guess] if of_guess else []))
    matrix, guess = to_device(A), None if of_guess is None else to_device(np.ones(64, of_guess))
    rtol = 1e-5 if np.finfo(expected).bits == 32 else 1e-11
    result = pcg(matrix, to_device(b), guess, M=BUILT[kind](matrix), rtol=rtol)
    assert result.converged and result.x.dtype == expected
    residual = b - A.astype(np.float64) @ backend.to_host(result.x)
    assert np.linalg.norm(residual) <= 1.01 * rtol * np.linalg.norm(b)


def test_a_sparse_M_is_not_rounded(backend, to_device):
    A = to_device(grid5(8).astype(np.float32))
    M = backend.sparse.csr_matrix(backend.sparse.diags(np.full(64, 1 / 3)))
    assert pcg(A, backend.xp.ones(64, np.float32), M=M).x.dtype == np.float64


@pytest.mark.parametrize("exponent", [-1000, -400, 300, 900])
def test_right_hand_sides_that_single_precision_has_no_room_for(exponent, backend, to_device):
    A, b = grid5(8).astype(np.float32), 2.0**exponent * random_values(np.random.default_rng(0), 64)
    M = MulticolorSGS(to_device(A), "greedy")
    result = pcg(to_device(A), to_device(b), M=M, rtol=1e-10)
    assert result.converged
    unit = 2.0**-exponent
    np.testing.assert_allclose(A @ (unit * backend.to_host(result.x)), unit * b, atol=1e-9)
    one, other = M @ to_device(b), M @ to_device(unit * b)
    assert one.dtype == np.float64
    np.testing.assert_array_equal(unit * backend.to_host(one), backend.to_host(other))


def test_a_residual_in_single_precision_is_measured_in_double(backend, to_device):
    A, b = grid5(20).astype(np.float32), random_values(np.random.default_rng(0), 400).astype(np.float32)
    matrix = to_device(A)
    for form in ("plain", "eisenstat"):
        result = pcg(matrix, to_device(b), M=MulticolorSGS(matrix), rtol=1e-10, form=form)
        assert result.reason is Reason.STAGNATED
        residual = b.astype(float) - A.astype(float) @ backend.to_host(result.x).astype(float)
        np.testing.assert_allclose(result.residual_norm, np.linalg.norm(residual), rtol=1e-6)


@pytest.mark.parametrize("block_size", [1, 2])
@pytest.mark.parametrize(("value", "row"), [(1e39, 2), (-1e300, 7), (1e-50, 5), (1e-39, 5)])
def test_values_that_short_storage_has_no_room_for(value, row, block_size, to_device):
    A = spd(grid5(4))
    good = to_device(A.copy())
    M = MulticolorSGS(good, "greedy", dtype="float32", block_size=block_size)
    before = M @ good.diagonal()
    A.data[A.indptr[row]] = value
    message = rf"A holds {value} in row {row}, column {A.indices[A.indptr[row]]}, which float32 has no room for"
    for attempt in (lambda bad: MulticolorSGS(bad, dtype="float32", block_size=block_size), M.update):
        with pytest.raises(ValueError, match=message.replace("+", r"\+")):
            attempt(to_device(A))
    assert bool((M @ good.diagonal() == before).all())


@pytest.mark.parametrize("kind", [MulticolorSGS, lambda A: MulticolorSGS(A, dtype="float32")])
def test_a_diagonal_that_cannot_be_inverted(kind, to_device):
    A = sp.csr_matrix(sp.diags_array(np.array([1.0, 1e-310, 1.0])))
    with pytest.raises(ValueError, match=r"row 1"):
        kind(to_device(A))


def test_rows_that_cannot_be_divided(to_device):
    A = sp.csr_matrix(np.array([[1e-200, 1e200], [0.0, 1.0]]))
    with pytest.raises(ValueError, match=r"row 0 of A, divided by its diagonal entry, overflows"):
        MulticolorSGS(to_device(A), [0, 1])
