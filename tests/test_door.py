"""No public entry follows row offsets or indices that are not those of a matrix: it says what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, spd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mcprecond
from mcprecond import ILU0, ColorBlocks, MulticolorDILU, MulticolorGS, MulticolorSGS, color, pcg, smooth, studies
from mcprecond.matrix import PatternChangedError, admit_matrix
from mcprecond.ordering import in_best_order
from mcprecond.storage import NodeBlocks

N = 36
COLORS = np.arange(N, dtype=np.int32)


def good(to_device):
    return to_device(grid5(6))


ENTRANCES = {
    "color": lambda A, good: color(A),
    "is_valid": lambda A, good: color(good, "greedy").is_valid(A),
    "in_best_order": lambda A, good: in_best_order(A, color(good, "eb")),
    "a coloring": lambda A, good: MulticolorSGS(A, color(good, "greedy")),
    "colors": lambda A, good: MulticolorSGS(A, color(good, "greedy").colors),
    "ColorBlocks": lambda A, good: ColorBlocks(A),
    "NodeBlocks": lambda A, good: NodeBlocks(A, block_size=2),
    "MulticolorGS": lambda A, good: MulticolorGS(A, sweep="forward"),
    "auto": lambda A, good: MulticolorSGS(A, "auto"),
    "block_size": lambda A, good: MulticolorSGS(A, block_size=3),
    "MulticolorDILU": lambda A, good: MulticolorDILU(A),
    "ILU0": lambda A, good: ILU0(A),
    "ILU0 natural": lambda A, good: ILU0(A, ordering="natural"),
    "smooth": lambda A, good: smooth(A, good.diagonal(), good.diagonal()),
    "pcg": lambda A, good: pcg(A, good.diagonal()),
    "pcg with SGS": lambda A, good: pcg(A, good.diagonal(), M=MulticolorSGS(good)),
    "pcg with M": lambda A, good: pcg(good, good.diagonal(), M=A),
    "update": lambda A, good: MulticolorSGS(good).update(A),
    "update DILU": lambda A, good: MulticolorDILU(good).update(A),
    "update ILU0": lambda A, good: ILU0(good).update(A),
    "update of blocks": lambda A, good: MulticolorSGS(good, block_size=2).update(A),
    "update ColorBlocks": lambda A, good: ColorBlocks(good).update(A),
    "advise": lambda A, good: studies.advise(A),
}
BROKEN = {
    "first": lambda A: A.indptr.__setitem__(0, 1),
    "negative": lambda A: A.indptr.__setitem__(3, -5),
    "falls": lambda A: A.indptr.__setitem__(7, 170),
    "last": lambda A: A.indptr.__setitem__(-1, A.indices.size + 1000),
    "far": lambda A: A.indptr.__setitem__(slice(5, None), 2**31 - 1),
    "below": lambda A: A.indices.__setitem__(11, -1),
    "far below": lambda A: A.indices.__setitem__(0, -(2**31)),
    "behind": lambda A: A.indices.__setitem__(20, N),
    "far behind": lambda A: A.indices.__setitem__(-1, 2**31 - 1),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("broken", BROKEN)
def test_broken_rows(entrance, broken, to_device):
    A = good(to_device)
    BROKEN[broken](A)
    name = "M" if entrance == "pcg with M" else "A"
    with pytest.raises(ValueError, match=rf"^{name}(\.indptr must rise from 0| has an entry in row \d+, column -?\d+)"):
        ENTRANCES[entrance](A, good(to_device))


WIDE = {
    "a column behind 2^32": lambda A: A.indices.__setitem__(5, A.indices[5] + 2**32),
    "a column below": lambda A: A.indices.__setitem__(5, A.indices[5] - 2**32),
    "an offset behind 2^32": lambda A: A.indptr.__setitem__(5, A.indptr[5] + 2**32),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("broken", WIDE)
def test_indices_of_64_bits_are_not_cut(entrance, broken):
    """What remains of them in 32 bits would be the right ones."""
    A = grid5(6)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    WIDE[broken](A)
    with pytest.raises(ValueError, match=r"^[AM](\.indptr must rise from 0| has an entry in row \d+, column -?\d+)"):
        ENTRANCES[entrance](A, grid5(6))


FORMATS = {
    "csc offsets": (sp.csc_matrix, lambda A: A.indptr.__setitem__(3, 10**6)),
    "csc indices": (sp.csc_matrix, lambda A: A.indices.__setitem__(3, N)),
    "bsr offsets": (lambda A: sp.bsr_matrix(A, blocksize=(2, 2)), lambda A: A.indptr.__setitem__(0, 2)),
    "bsr indices": (lambda A: sp.bsr_matrix(A, blocksize=(2, 2)), lambda A: A.indices.__setitem__(1, N // 2)),
    "coo rows": (sp.coo_matrix, lambda A: A.row.__setitem__(3, N)),
    "coo columns": (sp.coo_matrix, lambda A: A.col.__setitem__(3, -1)),
}


@pytest.mark.parametrize("broken", FORMATS)
def test_broken_matrices_of_other_formats(broken):
    """SciPy would read outside of their arrays to convert them."""
    convert, breaks = FORMATS[broken]
    A = convert(grid5(6))
    breaks(A)
    for entrance in ("color", "MulticolorSGS", "pcg", "update"):
        with pytest.raises(ValueError, match=r"^A\.(indptr|indices|row)"):
            ENTRANCES.get(entrance, lambda A, good: MulticolorSGS(A))(A, grid5(6))


def test_arrays_of_other_lengths_and_types():
    for change, error in (
        (lambda A: setattr(A, "indptr", A.indptr[:-1]), ValueError),
        (lambda A: setattr(A, "indices", A.indices[:-1]), ValueError),
        (lambda A: setattr(A, "data", A.data[:-1]), ValueError),
        (lambda A: setattr(A, "indices", A.indices.astype(float)), TypeError),
        (lambda A: setattr(A, "indptr", A.indptr.astype(float)), TypeError),
    ):
        A = grid5(6)
        change(A)
        for entrance in ("color", "pcg", "update"):
            with pytest.raises(error, match=r"A\.ind"):
                ENTRANCES[entrance](A, grid5(6))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    part=st.sampled_from(["indptr", "indices"]),
    place=st.integers(0, 10**6),
    number=st.integers(-(2**31), 2**31 - 1),
    entrance=st.sampled_from(sorted(ENTRANCES)),
)
def test_one_wrong_number(to_device, part, place, number, entrance):
    """Whatever stands there: the entrance works for what is a matrix, perhaps another one, and refuses all others."""
    A = good(to_device)
    array = getattr(A, part)
    array[place % len(array)] = number
    host = sp.csr_matrix((N, N))
    host.data, host.indices, host.indptr = (
        np.ones(A.indices.size),
        *(np.asarray(_host(v)) for v in (A.indices, A.indptr)),
    )
    rows = np.diff(host.indptr)
    is_matrix = host.indptr[0] == 0 and (rows >= 0).all() and host.indptr[-1] <= len(host.indices)
    used = host.indices[: host.indptr[-1]] if is_matrix else host.indices
    if is_matrix and (used >= 0).all() and (used < N).all():
        assert admit_matrix(A).shape == (N, N)
        return
    with pytest.raises(ValueError, match=r"^[AM](\.indptr must rise from 0| has an entry in row \d+, column -?\d+)"):
        ENTRANCES[entrance](A, good(to_device))


def _host(array):
    return array if isinstance(array, np.ndarray) else array.get()


def test_storage_behind_the_last_row_is_nobodys(backend, to_device):
    """A matrix whose arrays are longer than its rows need, with anything in what is left."""
    A = grid5(6)
    data, indices = np.append(A.data, [np.nan, 3.0]), np.append(A.indices, [-7, 10**6]).astype(np.int32)
    longer = good(to_device)
    longer.data, longer.indices = backend.xp.asarray(data), backend.xp.asarray(indices)
    b = backend.xp.ones(N)
    M, expected = MulticolorSGS(longer, "greedy"), MulticolorSGS(to_device(A), "greedy")
    np.testing.assert_array_equal(backend.to_host(M @ b), backend.to_host(expected @ b))
    M.update(longer)
    for left, right in (
        (pcg(longer, b, M=M), pcg(to_device(A), b, M=expected)),
        (pcg(longer, b), pcg(to_device(A), b)),
    ):
        np.testing.assert_array_equal(backend.to_host(left.x), backend.to_host(right.x))


def test_the_callers_arrays_are_as_before(to_device):
    rows, columns = np.array([0, 0, 2, 1, 1, 1, 2]), np.array([1, 0, 2, 1, 0, 1, 2])
    A = to_device(sp.csr_matrix(grid5(6)))
    B = sp.coo_matrix((np.arange(1.0, 8), (rows, columns)), shape=(3, 3)).tocsr()
    B.indices, B.data = np.array([1, 0, 1, 0, 2][: len(B.indices)], np.int32), B.data
    B.has_sorted_indices = B.has_canonical_format = False
    for matrix in (A, to_device(B)):
        before = [_host(part).copy() for part in (matrix.data, matrix.indices, matrix.indptr)]
        n = matrix.shape[0]
        diagonal = matrix.copy().diagonal()  # of which CuPy sorts the rows
        for build in (MulticolorSGS, MulticolorDILU, ILU0):
            build(matrix).update(matrix)
        color(matrix)
        pcg(matrix, diagonal, maxiter=3)
        assert n == matrix.shape[0]
        for part, old in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
            np.testing.assert_array_equal(_host(part), old)


def test_flags_that_lie_are_not_trusted():
    """SciPy keeps in mind that rows were sorted once."""
    A = spd(grid5(4))
    assert A.has_canonical_format
    row = slice(A.indptr[5], A.indptr[6])
    A.indices[row], A.data[row] = A.indices[row][::-1].copy(), A.data[row][::-1].copy()
    expected = sp.csr_matrix((A.data, A.indices, A.indptr), shape=A.shape).toarray()
    for build in (MulticolorSGS, MulticolorDILU, ILU0):
        M = build(A, coloring="greedy")
        fresh = build(sp.csr_matrix(expected), coloring="greedy")
        np.testing.assert_allclose(M @ np.ones(16), fresh @ np.ones(16), rtol=1e-13)


@pytest.mark.parametrize(
    "build", [MulticolorSGS, MulticolorDILU, ILU0, lambda A: MulticolorSGS(A, block_size=2), ColorBlocks]
)
def test_another_pattern_has_an_error_of_its_own(build, to_device):
    """So that a caller can build a new object, and goes on with the old one otherwise."""
    A, other = grid5(6), grid5(6).tolil()
    M = build(to_device(A))
    other[4, 30] = other[30, 4] = 0.5
    with pytest.raises(PatternChangedError, match=r"A has another pattern than before in rows? 4"):
        M.update(to_device(other.tocsr()))
    for bad, error in (
        (grid5(5), ValueError),
        (grid5(6) * np.nan, ValueError),
        (grid5(6).astype(np.float32), ValueError),
    ):
        with pytest.raises(error) as raised:
            M.update(to_device(sp.csr_matrix(bad)))
        assert not isinstance(raised.value, PatternChangedError)
    assert issubclass(mcprecond.PatternChangedError, ValueError)


def test_colorings_that_do_not_fit(backend, to_device):
    A = good(to_device)
    coloring = color(A, "greedy")
    for colors in (coloring.colors + 5, coloring.colors - 3):
        with pytest.raises(ValueError, match=r"coloring has colors outside of 0\.\.1"):
            in_best_order(A, mcprecond.Coloring(colors, coloring.sizes, "user"))
    with pytest.raises(TypeError, match="coloring must be a Coloring"):
        in_best_order(A, "greedy")
    assert MulticolorSGS(to_device(sp.csr_matrix((0, 0))), []).n_colors == 0


def test_an_unsymmetric_matrix_is_named_when_cg_fails(backend, to_device):
    rng = np.random.default_rng(0)
    A = sp.csr_matrix(grid5(12) + sp.diags_array(rng.uniform(-1, 1, 143) * 2, offsets=1, shape=(144, 144)))
    result = pcg(to_device(A), backend.xp.ones(144), rtol=1e-12, maxiter=60)
    assert not result.converged and result.reason.name == "UNSYMMETRIC_A" and "not symmetric" in repr(result)
    skew = sp.csr_matrix(grid5(12))
    skew.data *= 1 + 4e-16 * rng.integers(-1, 2, skew.nnz)  # by rounding only
    assert abs(skew - skew.T).max() > 0
    assert pcg(to_device(skew), backend.xp.ones(144), rtol=1e-12, maxiter=3).reason.name == "MAX_ITERATIONS"
