"""Whatever the dtypes of A, b, x0 and M are, nothing is lost in silence, and x has the dtype that SciPy gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz import matrices
from fuzz.honesty import solved
from fuzz.trial import FLOATS, Trial
from mcprecond import ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS

OF_VECTORS = (*FLOATS, "int64", "int32", "bool")


def case(t: Trial) -> None:
    t.one_of(mixed, mixed, mixed, far_vectors, storage, subnormal_diagonal)(t)


def promoted(A: Any, *vectors: Any) -> np.dtype:
    """As SciPy's cg promotes A and b, with x0 and a sparse M counted, too; what is no float counts as a double."""
    floats = [v.dtype if v.dtype.kind in "fc" else np.float64 for v in (A, *vectors) if v is not None]
    return np.result_type(*floats)


def vector(t: Trial, n: int, dtype: str, scale: float = 1.0) -> np.ndarray:
    if np.dtype(dtype).kind in "iub":
        return t.rng.integers(-9, 10, n).astype(dtype)
    return (matrices.numbers(t, n, "complex128" if "complex" in dtype else "float64") * scale).astype(dtype)


def mixed(t: Trial) -> None:
    """A, b, x0 and M of any dtypes."""
    dtype = t.one_of(*FLOATS)
    A, dense = matrices.dominant(t, dtype, symmetric=True, most=60, scaled=False)
    n, A = len(dense), A.tocsr()
    b = vector(t, n, t.one_of(*OF_VECTORS))
    x0 = vector(t, n, t.one_of(*OF_VECTORS)) if t.chance(0.4) else None
    rtol = float(t.one_of(1e-3, 1e-6, 1e-10))
    moved, of_M, form = t.put(A), t.one_of(*FLOATS), t.one_of("auto", "auto", "plain")
    M = sparse_or_ours(t, A, moved, of_M)
    t.about(
        b=b.dtype.name, x0=None if x0 is None else x0.dtype.name, M=type(M).__name__, rtol=rtol, form=form, of_M=of_M
    )
    expected = promoted(A, b, x0, M if hasattr(M, "tocsr") else None)
    widens = expected.kind == "c" and A.dtype.kind != "c"
    M_widens = getattr(M, "dtype", A.dtype).kind == "c" and expected.kind != "c"
    try:
        result = solved(t, moved, dense, b, x0, M=M, rtol=rtol, form=form)
    except TypeError as error:
        # To refuse complex vectors for a real A is not to drop anything.
        t.check(widens or M_widens, "dtypes that SciPy takes are refused", message=str(error))
        t.notes["complex refused for a real A"] += 1
        return
    found = t.get(result.x).dtype
    t.check(found == expected, "x has another dtype than its operands promote to", found=found, expected=expected)
    t.check(result.residuals.dtype == np.float64, "residuals are not doubles", found=result.residuals.dtype)
    if n and not result.converged and result.reason.name != "STAGNATED":
        t.check(False, "a dominant system ends otherwise than converged or stagnated", reason=result.reason.name)
    if rtol >= (1e-3 if np.finfo(expected).eps > 1e-10 else 1e-10):
        t.check(result.converged or not n, "a dominant system is not solved", reason=result.reason.name)


def sparse_or_ours(t: Trial, A: Any, moved: Any, of_M: str) -> Any:
    """None, one of ours, stored in either precision, or a sparse matrix or an operator of any dtype."""
    way = t.one_of("none", "sgs", "dilu", "sparse", "operator")
    if way == "none":
        return None
    if way in ("sgs", "dilu"):
        stored = {"c": ("complex64", "complex128"), "f": ("float32", "float64")}[A.dtype.kind]
        kind = MulticolorSGS if way == "sgs" else MulticolorDILU
        return kind(moved, "greedy", dtype=t.one_of(None, *stored))
    d = A.diagonal()  # real, of a Hermitian matrix
    inverse = (1 / d.real).astype(of_M)
    if way == "sparse":
        return t.put(sp.csr_matrix(sp.diags_array(inverse)))
    there = t.put(inverse)
    return t.device.linalg.LinearOperator(A.shape, matvec=lambda r: there * r.reshape(-1), dtype=of_M)


def far_vectors(t: Trial) -> None:
    """b, x0 or a sparse M in doubles that float32 cannot hold, with A in float32."""
    A, dense = matrices.dominant(t, "float32", symmetric=True, most=40, scaled=False)
    n, A = len(dense), A.tocsr()
    far = 10.0 ** t.one_of(-300, -200, -46, -42, 39, 60, 150, 290)
    what = t.one_of("b", "b", "x0", "M")
    if what == "M":
        far = min(max(far, 1e-150), 1e150)  # the squares of its products are to be normal numbers
    b, x0, M = vector(t, n, "float64", far if what == "b" else 1.0), None, None
    if what == "x0":
        x0 = vector(t, n, "float64", far)
    if what == "M":
        M = t.put(sp.csr_matrix(sp.diags_array(far / A.diagonal().astype(float))))
    t.about(far=what, scale=far)
    # x0 beyond the solution's scale need not converge, but has to be told about truly.
    result = solved(t, t.put(A), dense, b, x0, M=M, rtol=1e-5)
    if what == "x0" and far > 1:
        return
    t.check(result.converged or not n, "a dominant system of doubles is not solved", reason=result.reason.name)


def storage(t: Trial) -> None:
    """Triangles in float32 of values that it does not hold."""
    dtype = t.one_of("float64", "complex128")
    A, dense = matrices.dominant(t, dtype, symmetric=True, most=40, scaled=False)
    A = A.tocsr()
    A.sum_duplicates()
    rows = np.repeat(np.arange(len(dense)), np.diff(A.indptr))
    off = np.flatnonzero((rows < A.indices) & (A.data != 0))
    if not len(off):
        return
    k = int(t.one_of(*off[:50]))
    i, j = int(rows[k]), int(A.indices[k])
    far = A.copy()
    pair = ((rows == i) & (A.indices == j)) | ((rows == j) & (A.indices == i))
    far.data[pair] *= t.one_of(1e40, 1e150) / np.abs(A.data[k])
    far.data[rows == A.indices] *= 1.0
    stored = "float32" if dtype == "float64" else "complex64"
    kind = t.one_of(MulticolorSGS, MulticolorGS)
    t.about(kind=kind.__name__, entry=(i, j))
    t.refuses(
        lambda: kind(t.put(far), "greedy", dtype=stored),
        "storage beyond float32",
        naming=(f"row {i}", f"row {j}", f"({i}, {j})", f"({j}, {i})"),
    )
    M = kind(t.put(A), "greedy", dtype=stored)
    r = t.put(np.ones(len(dense), dtype))
    before = t.get(M @ r)
    t.refuses(
        lambda: M.update(t.put(far)),
        "an update beyond float32",
        naming=(f"row {i}", f"row {j}", f"({i}, {j})", f"({j}, {i})"),
    )
    M.update(t.put(A))
    t.equal(M @ r, before, "an update after one that was refused gives another M")


def subnormal_diagonal(t: Trial) -> None:
    """1 / d is infinite for a d that is too small."""
    dtype = t.one_of(*FLOATS)
    A, dense = matrices.dominant(t, dtype, symmetric=True, most=40, scaled=False)
    n, A = len(dense), A.tocsr()
    A.sum_duplicates()
    if not n:
        return
    i = int(t.rng.integers(n))
    info = np.finfo(dtype)
    A.data[(np.repeat(np.arange(n), np.diff(A.indptr)) == i) & (A.indices == i)] = (
        t.one_of(info.smallest_subnormal, info.tiny / 8) * 1.0
    )
    kind = t.one_of(MulticolorSGS, MulticolorDILU, ILU0)
    t.about(kind=kind.__name__, row=i)
    try:
        M = kind(t.put(A), coloring="greedy")
    except (ValueError, TypeError) as error:
        t.check(
            f"row {i}" in str(error) or kind is not MulticolorSGS,
            "the message does not name the row",
            message=str(error),
        )
        return
    z = t.get(M @ t.put(np.full(n, info.tiny, dtype)))
    t.check(np.isfinite(z).all(), "a diagonal without an inverse is taken, and M @ r is not finite")
