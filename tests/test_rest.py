"""Some colors only, and the rest by l1-Jacobi: the dense formulas, definiteness, convergence, and what "auto" keeps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import DTYPES, grid5, patterns, random_values, spd, star, stencil27
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcprecond import ColorBlocks, MulticolorDILU, MulticolorGS, MulticolorSGS, color, pcg, problems, smooth
from mcprecond.matrix import admitted
from mcprecond.ordering.largest import by_size, shares_of_rest
from mcprecond.sweeps.relaxation import Relaxation
from mcprecond.tuning import least_time
from mcprecond.tuning.cost_model import MEASURED
from mcprecond.tuning.least_time import MOST_SLOWER, colors_to_keep, slowdowns

ACCURACY = dict(zip(DTYPES, (2e-5, 1e-12, 2e-5, 1e-12), strict=True))


def applied(M, backend) -> np.ndarray:
    """The dense matrix of an operator."""
    return backend.to_host(M @ backend.xp.eye(M.shape[0], dtype=M.dtype))


def laplacian(graph, shift: float) -> sp.csr_matrix:
    """The Laplacian of a graph, with a multiple of the identity added."""
    weights = abs(sp.csr_array(graph)) - sp.diags_array(abs(graph.diagonal()))
    return sp.csr_matrix(sp.diags_array(weights.sum(axis=1) + shift) - weights)


def power_law(n: int, seed: int) -> sp.csr_matrix:
    """Ends of edges drawn with probabilities that fall with the numbers of the vertices."""
    rng, chances = np.random.default_rng(seed), np.arange(1.0, n + 1) ** -0.8
    i, j = rng.choice(n, (2, 6 * n), p=chances / chances.sum())
    one_way = sp.coo_matrix((np.ones(len(i)), (i, j)), shape=(n, n))
    return sp.csr_matrix(((one_way + one_way.T) > 0).astype(float))


def with_hubs(n: int, hubs: int, seed: int, dtype: type = np.float64) -> sp.csr_matrix:
    """Sparse random rows, and hubs that are all neighbors of each other and of half of the others."""
    rng = np.random.default_rng(seed)
    pattern = sp.random_array((n, n), density=2 / n, rng=rng).toarray() != 0
    pattern[:hubs] |= rng.uniform(size=(hubs, n)) < 0.5
    pattern[:hubs, :hubs] = True
    return spd(sp.csr_matrix(pattern.astype(float)), seed, dtype)


def barely_definite(pattern: sp.sparray, seed: int, dtype: type) -> np.ndarray:
    """A Hermitian positive definite matrix on a pattern that is far from dominated by its diagonal."""
    rng = np.random.default_rng(seed)
    half = sp.triu(pattern, 1).tocsr().astype(complex)
    half.data = random_values(rng, half.nnz, dtype) * 10.0 ** rng.uniform(-2, 2, half.nnz)
    A = (half + half.conj().T).toarray()
    A = A.real if np.dtype(dtype).kind != "c" else A
    scale = 10.0 ** rng.uniform(-2, 2, len(A))
    A = A * scale[:, None] * scale
    least = np.linalg.eigvalsh(A / np.outer(scale, scale))[0]
    return (A + np.diag(scale**2 * (1e-3 - min(least, 0)))).astype(dtype)


def parts(A: np.ndarray, M, backend) -> tuple[np.ndarray, ...]:
    """L, D', U and E, in the order of A, by definition: from the colors alone."""
    colors = backend.to_host(M.coloring.colors)
    kept = np.sort(by_size(M.coloring)[: M.n_colors])
    block = np.full(M.coloring.n_colors, M.n_colors)
    block[kept] = np.arange(M.n_colors)
    block = block[colors]
    own = np.diag(np.diag(A))
    in_rest = np.outer(block == M.n_colors, block == M.n_colors)
    among = np.where(in_rest, A - own, 0)
    sums = (abs(among).sum(axis=0) + abs(among).sum(axis=1)) / 2
    more = np.diag(sums * np.diag(A) / abs(np.diag(A)))
    L, U = (np.where(sign * np.subtract.outer(block, block) > 0, A, 0) for sign in (1, -1))
    return L, own + more, U, among - more


def inverse_of(A: np.ndarray, M, backend, sweep: str, omega: float) -> np.ndarray:
    """inv(M) of one sweep from zero."""
    L, D, U, _ = parts(A, M, backend)
    lower, upper = np.linalg.inv(D + omega * L), np.linalg.inv(D + omega * U)
    return {
        "forward": omega * lower,
        "backward": omega * upper,
        "symmetric": omega * (2 - omega) * upper @ D @ lower,
    }[sweep]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sweep", ["forward", "backward", "symmetric"])
@pytest.mark.parametrize("omega", [1.0, 1.4])
def test_equals_the_dense_formula(omega, sweep, dtype, backend, to_device):
    A = with_hubs(150, 12, 0, dtype)
    M = MulticolorGS(to_device(A), "greedy", sweep=sweep, omega=omega, max_colors=4)
    assert M.n_colors == 4 < M.coloring.n_colors == color(A, "greedy").n_colors
    expected = inverse_of(A.toarray(), M, backend, sweep, omega)
    np.testing.assert_allclose(applied(M, backend), expected, atol=ACCURACY[dtype] * abs(expected).max())


@pytest.mark.parametrize("columns", [1, 3, 4])
@pytest.mark.parametrize("sweep", ["forward", "backward", "symmetric"])
def test_several_sweeps_are_the_stationary_iteration(sweep, columns, backend, to_device):
    A = with_hubs(120, 10, 1)
    once, thrice = (
        MulticolorGS(to_device(A), "ecl_gc", sweep=sweep, omega=1.1, sweeps=k, max_colors=3) for k in (1, 3)
    )
    one, dense, z = applied(once, backend), A.toarray(), np.zeros(A.shape)
    for _ in range(3):
        z = z + one @ (np.eye(len(dense)) - dense @ z)
    r = np.random.default_rng(0).uniform(-1, 1, (120, columns))
    np.testing.assert_allclose(backend.to_host(thrice @ to_device(r)), z @ r, atol=1e-13)
    x = np.random.default_rng(1).uniform(-1, 1, 120)
    smoothed = once.smooth(to_device(x), to_device(r[:, 0].copy()))
    np.testing.assert_allclose(backend.to_host(smoothed), x + one @ (r[:, 0] - dense @ x), atol=1e-13)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), sweep=st.sampled_from(["forward", "backward", "symmetric"]), seed=st.integers(0, 9))
def test_smoothing_any_x_is_a_correction_of_it(backend, to_device, pattern, sweep, seed):
    """One sweep from x is x + inv(M) (b - A x), with E x on the right-hand side; where x solves, nothing changes."""
    A, rng = spd(pattern, seed), np.random.default_rng(seed)
    M = MulticolorGS(to_device(A), "greedy", sweep=sweep, max_colors=1)
    dense, (x, b) = A.toarray(), rng.uniform(-1, 1, (2, A.shape[0]))
    smoothed = backend.to_host(M.smooth(to_device(x), to_device(b)))
    np.testing.assert_allclose(smoothed, x + inverse_of(dense, M, backend, sweep, 1.0) @ (b - A @ x), atol=1e-12)
    np.testing.assert_allclose(backend.to_host(M.smooth(to_device(x), to_device(A @ x))), x, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_the_rest_that_overflow_are_refused(dtype, to_device):
    """Every value is finite, and so is every pivot of A; the pivots of the rest are not."""
    A = sp.csr_matrix(np.ones((6, 6), dtype))
    M = MulticolorSGS(to_device(A), "greedy", max_colors=1)
    before = M @ to_device(np.ones(6, dtype))
    A.data[:] = np.finfo(dtype).max / 2
    with pytest.raises(ValueError, match=f"in row 1 of A add up to more than {np.dtype(dtype)} has room for; scale A"):
        M.update(to_device(A))
    A.data[:] = 1
    M.update(to_device(A))
    assert (M @ to_device(np.ones(6, dtype)) == before).all()


@pytest.mark.parametrize("exponent", [-600, 600])
def test_units_beyond_single_precision_are_in_range(exponent, backend, to_device):
    A = with_hubs(20, 5, 1)
    plain, other = (MulticolorSGS(to_device(unit * A), "greedy", max_colors=2) for unit in (1.0, 2.0**exponent))
    expected = 2.0**-exponent * applied(plain, backend)
    np.testing.assert_allclose(applied(other, backend), expected, rtol=0, atol=1e-12 * abs(expected).max())


def test_residual_of_an_iterate(backend, to_device):
    A = with_hubs(120, 10, 1)
    M = MulticolorGS(to_device(A), "greedy", max_colors=3)
    x, b, r = (backend.xp.empty(120) for _ in range(3))
    b[:] = to_device(np.random.default_rng(0).uniform(-1, 1, 120))
    iterate = Relaxation(M.blocks).start_from_zero(b, x, "forward")
    iterate.residual(b, r)
    np.testing.assert_allclose(*(backend.to_host(v) for v in (r, b - to_device(A) @ x)), atol=1e-14)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=patterns(),
    max_colors=st.integers(1, 4),
    omega=st.sampled_from([0.3, 1.0, 1.8]),
    dtype=st.sampled_from([np.float64, np.complex128]),
    seed=st.integers(0, 3),
)
def test_positive_definite_and_convergent(backend, to_device, pattern, max_colors, omega, dtype, seed):
    """Signs, phases and sizes are any: M is positive definite, and so is M - A, so that 0 < inv(M) A <= 1."""
    dense = barely_definite(pattern, seed, dtype)
    M = MulticolorSGS(to_device(sp.csr_matrix(dense)), "greedy", max_colors=max_colors, omega=omega)
    inverse = applied(M, backend)
    np.testing.assert_allclose(inverse, inverse.conj().T, atol=1e-11 * abs(inverse).max())
    root = np.linalg.cholesky(dense)
    spectrum = np.linalg.eigvalsh(root.conj().T @ inverse @ root)
    assert spectrum[0] > 0 and spectrum[-1] < 1 + 1e-9


@pytest.mark.parametrize("sweep", ["forward", "symmetric"])
def test_transpose_of_an_unsymmetric_matrix(sweep, backend, to_device):
    rng = np.random.default_rng(3)
    A = sp.csr_matrix(sp.random_array((60, 60), density=0.2, rng=rng) - 8 * sp.eye_array(60))
    M = MulticolorGS(to_device(A), "greedy", sweep=sweep, omega=0.9, max_colors=3)
    dense = applied(M, backend)
    np.testing.assert_allclose(dense, inverse_of(A.toarray(), M, backend, sweep, 0.9), atol=1e-14)
    np.testing.assert_allclose(applied(M.T, backend), dense.T, atol=1e-14)
    assert M.T.n_colors == 3


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_update_equals_a_new_preconditioner(dtype, backend, to_device):
    A, B = (with_hubs(150, 12, seed=1, dtype=dtype) for _ in range(2))
    B.data *= np.random.default_rng(5).uniform(1, 2, B.nnz)
    M = MulticolorSGS(to_device(A), "greedy", max_colors=4)
    applied(M, backend)  # so that a captured application exists
    M.update(to_device(B))
    new = MulticolorSGS(to_device(B), "greedy", max_colors=4)
    np.testing.assert_array_equal(applied(M, backend), applied(new, backend))
    np.testing.assert_allclose(
        backend.to_host(M.blocks.permuted().toarray()),
        B.toarray()[np.ix_(*2 * (backend.to_host(M.blocks.perm),))],
        rtol=1e-13,
        atol=1e-13,
    )
    kept = applied(M, backend)
    bad = B.copy()
    bad.data[-1] = np.inf
    with pytest.raises(ValueError, match="holds"):
        M.update(to_device(bad))
    np.testing.assert_array_equal(applied(M, backend), kept)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), toggled=st.integers(0, 10**6), max_colors=st.integers(1, 3))
def test_update_names_the_first_row_of_another_pattern(to_device, pattern, toggled, max_colors):
    n = pattern.shape[0]
    blocks = ColorBlocks(to_device(pattern), "greedy", max_colors=max_colors)
    other = pattern.toarray() != 0
    other[divmod(toggled % n**2, n)] ^= True
    with pytest.raises(ValueError, match=f"another pattern than before in row {toggled % n**2 // n}; build"):
        blocks.update(to_device(sp.csr_matrix(other.astype(pattern.dtype))))


def test_rows_in_pieces(backend, to_device):
    """On a GPU rows with so many entries are split and swept in pieces."""
    A = with_hubs(2600, 8, 2)
    M, on_host = (MulticolorSGS(matrix, "greedy", max_colors=3) for matrix in (to_device(A), A))
    assert M.n_colors == 3 < M.coloring.n_colors - 1
    r = np.random.default_rng(0).uniform(-1, 1, 2600)
    L, D, U, _ = parts(A.toarray(), M, backend)
    expected = np.linalg.solve(D + U, D @ np.linalg.solve(D + L, r))
    for operator, vector in ((M, to_device(r)), (on_host, r)):
        np.testing.assert_allclose(backend.to_host(operator @ vector), expected, atol=1e-12)


def test_float32_storage(backend, to_device):
    A = to_device(with_hubs(150, 12, 0))
    exact, rounded = (MulticolorSGS(A, "greedy", max_colors=4, dtype=dtype) for dtype in (None, "float32"))
    assert 0 < abs(applied(exact, backend) - applied(rounded, backend)).max() < 1e-5
    assert rounded.nbytes < exact.nbytes


def test_pcg_takes_the_plain_form(backend, to_device):
    A = to_device(with_hubs(150, 12, 0))
    b = A @ backend.xp.ones(150)
    M = MulticolorSGS(A, "greedy", max_colors=4)
    result = pcg(A, b, M=M, rtol=1e-8)
    assert result.converged and float(abs(result.x - 1).max()) < 1e-6
    with pytest.raises(ValueError, match="form='eisenstat' does not fit M: M keeps 4 colors only, and drops entries"):
        pcg(A, b, M=M, form="eisenstat")


def test_what_it_says(to_device):
    A = to_device(with_hubs(150, 12, 0))
    M = MulticolorSGS(A, "greedy", max_colors=4)
    rest = len(M.blocks.rest.rows)
    assert rest == M.coloring.sizes.sum() - np.sort(M.coloring.sizes)[-4:].sum()
    assert f"4 colors by greedy of {M.coloring.n_colors}, and {rest} further rows by l1-Jacobi" in repr(M)
    assert M.coloring.is_valid(A) and M.nbytes > M.blocks.rest.nbytes > 0


def test_pickled_with_its_rest():
    A = with_hubs(150, 12, 0)
    M = MulticolorSGS(A, "greedy", max_colors=4)
    copy = pickle.loads(pickle.dumps(M))
    copy.update(2 * A)
    np.testing.assert_allclose(2 * (copy @ np.ones(150)), M @ np.ones(150), rtol=1e-14)


@pytest.mark.parametrize("left_over", [0, 1])
def test_nothing_changes_where_no_two_colors_are_left(left_over, backend, to_device):
    A = to_device(spd(stencil27(4)))
    full = MulticolorSGS(A, "greedy")
    M = MulticolorSGS(A, "greedy", max_colors=full.n_colors - left_over)
    assert M.blocks.rest is None and M.n_colors == full.n_colors
    np.testing.assert_array_equal(applied(M, backend), applied(full, backend))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_colors": 0}, ValueError, "max_colors must be at least 1, got 0"),
        ({"max_colors": 2.5}, TypeError, "max_colors must be an integer"),
        ({"max_colors": 2, "block_size": 2}, ValueError, "max_colors goes with points only, got block_size 2"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        MulticolorSGS(grid5(4), **arguments)


# What "auto" keeps. On a CPU tiny colors cost nothing, so that it keeps all of them; so the speeds of a GPU are taken.


@pytest.fixture
def speeds_of_a_gpu(monkeypatch):
    monkeypatch.setattr(least_time, "speeds_of", lambda backend: MEASURED["gpu"])


def graph_families():
    for scale in (10, 13):
        for seed in range(3):
            yield pytest.param(problems.graphs.rmat(scale, seed=seed), id=f"rmat-{scale}-{seed}")
    for n in (1000, 10_000):
        yield pytest.param(power_law(n, seed=n), id=f"power-law-{n}")


@pytest.mark.parametrize("shift", [1e-2, 1.0])
@pytest.mark.parametrize("graph", list(graph_families()))
def test_hubs_need_few_colors_and_hardly_more_iterations(graph, shift, speeds_of_a_gpu):
    A = laplacian(graph, shift)
    M = MulticolorSGS(A)
    full = MulticolorSGS(A, M.choice.method)
    assert M.n_colors == M.choice.max_colors < 0.7 * full.n_colors and M.coloring.n_colors == full.n_colors
    assert f"only the {M.n_colors} largest colors are kept" in M.choice.reason
    b = np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    iterations, of_full = (pcg(A, b, M=operator, rtol=1e-8).iterations for operator in (M, full))
    assert iterations <= 1.3 * of_full + 1


@pytest.mark.parametrize("A", [grid5(30), stencil27(9), spd(star(500))], ids=["grid", "stencil", "star"])
def test_no_hubs_or_few_colors(A, speeds_of_a_gpu):
    M = MulticolorSGS(A)
    assert M.choice.max_colors is None and M.blocks.rest is None and "kept" not in M.choice.reason


def test_other_choices_keep_all_colors(speeds_of_a_gpu):
    A = laplacian(problems.graphs.rmat(11), 1.0)
    for M in (MulticolorSGS(A, "greedy"), MulticolorDILU(A), MulticolorSGS(A, max_colors=A.shape[0])):
        assert M.blocks.rest is None and M.n_colors == M.coloring.n_colors
    assert MulticolorSGS(A, max_colors=5).n_colors == 5
    x, b = np.zeros(A.shape[0]), np.ones(A.shape[0])
    M = MulticolorGS(A, sweep="forward")
    assert M.blocks.rest is not None
    np.testing.assert_array_equal(smooth(A, x, b), M.smooth(x, b))


def test_a_cpu_does_not_wait_for_tiny_colors():
    A = admitted(laplacian(problems.graphs.rmat(12), 1.0))
    coloring = color(A.csr, "greedy")
    assert colors_to_keep(A, coloring, MEASURED["cpu"]) is None
    kept = colors_to_keep(A, coloring, MEASURED["gpu"])
    assert kept is not None and slowdowns(A, coloring)[kept] <= MOST_SLOWER


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns())
def test_share_of_the_rest(to_device, pattern):
    A = to_device(spd(pattern))
    coloring = color(A, "greedy")
    shares, colors = shares_of_rest(admitted(A), coloring), np.asarray(color(spd(pattern), "greedy").colors)
    entries = sp.coo_matrix(spd(pattern))
    rank = np.argsort(by_size(coloring))[colors]
    for k, (rows, share) in enumerate(zip(*shares, strict=True)):
        among = (rank[entries.row] >= k) & (rank[entries.col] >= k) & (entries.row != entries.col)
        assert share == among.sum() / max(entries.nnz, 1) and rows == (rank >= k).mean()
