"""PCG with symmetric Gauss-Seidel or DILU in Eisenstat's form: one pass over the matrix per iteration.

In the order of the colors let A = L + D + U and M = (T + L) inv(T) (T + U) with a diagonal T: T = D for symmetric
Gauss-Seidel, T = D / w for SSOR (whose constant factor does not matter to CG), the pivots for DILU. With V = inv(T) U,
which the color blocks store, up to a factor w, and q = (I + V) p and t = p,

    A t = T q + L t + (D - T) t,
    inv(T + L) A t = t + s,    s = inv(T + L) (T q - (2 T - D) t),

so one sweep over V gives t from q, and one over L gives both the product A t, which the residual needs, and the
transformed residual's direction w = t + s. CG runs on rho = inv(T + L) r with the weight T, where z = T rho: its
iterates x and its scalars are those of PCG with M, and q is the direction that rho and beta give. An iteration is three
kernels: the two sweeps, and one that advances all vectors.

The first color has no entries in L. Where T = D in its rows, A t = T q and w = q there, number by number. So, with r
and rho as they are at the start, in every later iteration r and rho are `LEFT` times these, and q is `STEP` times rho:
two numbers that follow alpha and beta. (If another residual replaces r while the direction is kept, `go_on`, then q in
these rows is the multiple of the new rho that comes nearest to it.) These vectors are not touched again, their share of
each inner product is known, and the sweep over V finds s = V t together with t. x is found from the other colors when
it is asked for. On a grid of two colors this saves two fifths of the reads and writes of vectors.

For complex Hermitian A the same holds with conjugated inner products: D and T are real, so U* = L makes inv(T + L) the
adjoint of inv(T + U), and t*A t = q*T w, r*z = rho*T rho.

Eisenstat: Efficient Implementation of a Class of Preconditioned Conjugate Gradient Methods, SIAM J. Sci. Stat. Comput.
2, 1981.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, backend_of, compile_inlined, compile_loop, compile_part
from mcprecond.backends.determinism import is_same_on_all_gpus
from mcprecond.linalg.csr import Csr
from mcprecond.preconditioners.colored import Colored
from mcprecond.solvers.iteration import (
    ALPHA,
    BETA,
    ITERATION,
    RUNNING,
    RZ,
    SCALARS,
    SHARED,
    STATE,
    Iteration,
    end_iteration,
    inner,
    take_first_rz,
    take_pAp,
    take_rz,
)
from mcprecond.storage.layouts import LAYOUT_CHOICES
from mcprecond.sweeps.relaxation import store_sentinel
from mcprecond.sweeps.triangular import block_products, node_products

KERNELS = KernelSet(__file__, f"OFFSET VALUE STORED BLOCK_SIZE=1 PRODUCTS_APART=0 {LAYOUT_CHOICES} (LANES)")

# Scalars of the rows of the first color, which are kept apart: the factor by which r and rho have changed there since
# the start, the factor from rho to q, and the rows' share of r'r and r'z at the start.
LEFT, STEP, FIRST_RR, FIRST_RZ = range(SHARED, SCALARS)
CUDA_CONSTANTS = {"LEFT": LEFT, "STEP": STEP, "FIRST_RR": FIRST_RR, "FIRST_RZ": FIRST_RZ}


def eisenstat_incompatibility(csr: Any, M: Any) -> str | None:
    """Say why the form does not fit A and M, or return None if it does, provided that M was built from A."""
    if not isinstance(M, Colored):
        return "M is no preconditioner of this package with the triangles of A"
    if M.eisenstat_incompatibility:
        return M.eisenstat_incompatibility
    if M.backend is not backend_of(csr.data) or not M.captures:
        return "M is on another device than A"
    if M.dtype != csr.dtype:
        return "M has another dtype than A"
    return None


class EisenstatIteration(Iteration):
    """CG on the transformed system; all vectors in the order of the colors, and in the dtype that M is stored in."""

    is_symmetric = is_cg = True

    def __init__(self, csr: Any, M: Colored, backend: Backend) -> None:
        dtype = M.blocks.lower.values.dtype
        A = Csr(csr, backend, dtype=dtype, longest_row=M.blocks.longest_row, exponent=M.blocks.exponent)
        super().__init__(A, backend)
        xp, blocks, offset = backend.xp, M.blocks, M.blocks.lower.indptr.dtype
        # A sweep has a sum for each of its warps. How many there are depends on the GPU, and a long row belongs to the
        # warp which ends last. Where the order of the sum is to be fixed, the products of each slice are left apart,
        # and another kernel adds them up.
        apart = bool(backend.resident_warps) and (is_same_on_all_gpus() or bool(blocks.macros.get("CUT_ROWS")))
        macros = {**blocks.macros, "OFFSET": offset, "VALUE": dtype, "STORED": dtype, "PRODUCTS_APART": int(apart)}
        self.products = xp.empty(blocks.vector_shape[0] if apart else 0)
        self.sweep, self.vector = backend.kernels(KERNELS, LANES=32, **macros), backend.kernels(KERNELS, **macros)
        self.blocks, self.slices = blocks, blocks.schedule()
        self.lower, self.upper = blocks.lower.rows, blocks.upper.rows
        shape = blocks.vector_shape
        T, Tinv, self.omega = M.splitting
        self.T, self.Tinv, self.diagonal, self.dinv = (
            part.astype(dtype, copy=False) for part in (T, Tinv, blocks.diagonal, blocks.dinv)
        )
        # Rows and slices of the first color, if its rows have no lower entries, T = D there, and other colors follow;
        # see the docstring of the module.
        rows = int(blocks.free_rows[0])
        apart = M.keeps_diagonal and 0 < rows < len(blocks.perm)
        self.first_rows, first = (rows, int(blocks.color_slices[1])) if apart else (0, 0)
        n_slices, slices, beside = self.slices
        self.first_slices = (first, slices, beside)
        self.others = (n_slices - first, slices[first:], beside)
        self.b, self.x, self.r, self.q, self.At = (xp.empty(shape, dtype) for _ in range(5))
        self._awaited = xp.empty((2, *shape), dtype)  # one store for both
        self.rho, self.t = self._awaited
        # t and s side by side: the forward sweep needs the t and the s of a neighbor.
        self.ts = xp.empty((shape[0], 2, *shape[1:]), dtype)

    def _in_own_order(self, v: Any) -> Any:
        return v.reshape(self.x.shape)[self.blocks.perm]

    def complete(self) -> None:
        """Find x in the rows of the first color. Launches a kernel only."""
        self.sweep.solve_first(
            *self.first_slices,
            *self.upper,
            self.dinv,
            self.omega,
            self.b,
            self.r,
            self.x,
            self.control,
            self.scalars,
        )

    def iterate(self) -> Any:
        self.complete()
        return self.x[self.blocks.inverse].reshape(-1)

    def direction(self) -> Any:
        """See `Iteration`: t."""
        return self.ts[self.blocks.inverse, 0].reshape(-1)

    def find_residual(self, accurately: bool = False) -> None:
        """See `Iteration`; the residual is computed in the order of A, with the values of A."""
        b = self.b[self.blocks.inverse].reshape(-1)
        residual = self.backend.xp.empty_like(b)
        self._residual(self.iterate(), b, residual, accurately)
        self.scalars[LEFT : LEFT + 1].fill(1)
        self.r[...] = residual.reshape(self.r.shape)[self.blocks.perm]

    def begin(self) -> None:
        """See `Iteration`: rho = inv(T + L) r; the first sweep makes q of it."""
        self._transform(keeps=0)

    def go_on(self) -> None:
        """Go on with x = 0, after b and r were replaced by another residual, which is about the last one: the direction
        is kept, unless the scalar r'z is 0. Launches kernels only.
        """
        self._transform(keeps=1)

    def _transform(self, keeps: int) -> None:
        """Find rho, and q and scalars from rho, with or without the old direction."""
        store_sentinel(self._awaited)
        self.sweep.solve_lower(*self.slices, *self.lower, self.Tinv, self.r, self.rho)
        self.vector.begin_all(len(self.rho), self.first_rows, keeps, self.T, self.r, self.rho, self.q, *self.reduction)

    def _step(self) -> None:
        rows = self.first_rows
        self.sweep.sweep_back(
            *self.slices,
            *self.upper,
            rows,
            self.dinv,
            self.omega,
            self.rho,
            self.q,
            self.t,
            self.ts,
            self.control,
            self.scalars,
        )
        self.sweep.sweep_forward(
            *self.others,
            *self.lower,
            self.first_slices[0],
            self.T,
            self.Tinv,
            self.diagonal,
            self.q,
            self.ts,
            self.At,
            self.products,
            *self.reduction,
        )
        if self.products.size:
            n_slices, slices, _ = self.others
            self.vector.find_alpha(n_slices, slices, self.products, *self.reduction)
        self.vector.advance_all(
            len(self.t) - rows, rows, self.ts, self.At, self.T, self.x, self.r, self.rho, self.t, *self.reduction
        )


# The functions below run on the CPU. With nodes of several unknowns, vectors have one dimension more. Numba knows the
# number of dimensions when it compiles, and leaves out the branches for the other number.


@compile_loop(offsets="indptr", values="values")
def solve_lower_rows(first, end, indptr, columns, values, Tinv, r, rho):
    """The rows of one color."""
    if rho.ndim == 1:
        for i in range(first, end):
            total = rho.dtype.type(0)
            for k in range(indptr[i], indptr[i + 1]):
                total += values[k] * rho[columns[k]]
            rho[i] = (r[i] - total) * Tinv[i]
    else:
        sums = np.empty((1, rho.shape[1]), rho.dtype)
        for i in range(first, end):
            node_products(i, 0, indptr, columns, values, rho, sums, 0)
            for p in range(rho.shape[1]):
                sums[0, p] = r[i, p] - sums[0, p]
            block_products(Tinv, i, sums, 0, 0, rho, i)


@KERNELS.resident
def solve_lower(n_slices, slices, sums, indptr, columns, values, Tinv, r, rho):
    """rho = inv(T + L) r."""
    for c in range(n_slices):
        solve_lower_rows(slices[c], slices[c + 1], indptr, columns, values, Tinv, r, rho)


@compile_loop(offsets="indptr", values="values")
def sweep_back_rows(first, end, apart, indptr, columns, values, dinv, omega, rho, beta, step, q, t, ts):
    """The rows of one color; those of the first color are kept apart where T = D there."""
    if t.ndim == 1:
        for i in range(first, end):
            total = t.dtype.type(0)
            for k in range(indptr[i], indptr[i + 1]):
                total += values[k] * t[columns[k]]
            if apart:
                ts[i, 1] = omega * total
                ts[i, 0] = step * rho[i] - ts[i, 1]
            else:
                q[i] = rho[i] + beta * q[i]
                t[i] = q[i] - omega * total
                ts[i, 0] = t[i]
    else:
        sums = np.empty((2, t.shape[1]), t.dtype)
        for i in range(first, end):
            node_products(i, 0, indptr, columns, values, t, sums, 0)
            block_products(dinv, i, sums, 0, 0, sums, 1)
            for p in range(t.shape[1]):
                V_t = omega * sums[1, p]
                if apart:
                    ts[i, 1, p] = V_t
                    ts[i, 0, p] = step * rho[i, p] - V_t
                else:
                    q[i, p] = rho[i, p] + beta * q[i, p]
                    t[i, p] = q[i, p] - V_t
                    ts[i, 0, p] = t[i, p]


@KERNELS.resident
def sweep_back(
    n_slices, slices, sums, indptr, columns, values, first_rows, dinv, omega, rho, q, t, ts, control, scalars
):
    """q = rho + beta q and t = inv(I + V) q; in CUDA, s becomes empty. In the first rows, s as well."""
    if control[STATE] != RUNNING:
        return
    beta, step, omega = t.dtype.type(scalars[BETA]), t.dtype.type(scalars[STEP]), dinv.dtype.type(omega)
    for c in range(n_slices - 1, -1, -1):
        apart = c == 0 and first_rows > 0
        sweep_back_rows(
            slices[c], slices[c + 1], apart, indptr, columns, values, dinv, omega, rho, beta, step, q, t, ts
        )


@compile_inlined
def products_with_both(i, indptr, columns, values, ts, found):
    """Compute found_0 = sum_j L_ij t_j and found_1 = sum_j L_ij s_j, as `node_products` does."""
    b = ts.shape[2]
    if b == 3:
        rows_with_both(i, 0, 1, 2, 3, indptr, columns, values, ts, found)
    else:
        for p in range(0, b, 3):
            rows_with_both(i, p, min(p + 1, b - 1), min(p + 2, b - 1), b, indptr, columns, values, ts, found)


@compile_inlined
def rows_with_both(i, p, p2, p3, b, indptr, columns, values, ts, found):
    """Compute numbers p, p2 and p3 of found_0 and found_1, for which the blocks are read once."""
    t1 = t2 = t3 = s1 = s2 = s3 = ts.dtype.type(0)
    for k in range(indptr[i], indptr[i + 1]):
        for q in range(b):
            t, s = ts[columns[k], 0, q], ts[columns[k], 1, q]
            t1, s1 = t1 + values[k, p, q] * t, s1 + values[k, p, q] * s
            t2, s2 = t2 + values[k, p2, q] * t, s2 + values[k, p2, q] * s
            t3, s3 = t3 + values[k, p3, q] * t, s3 + values[k, p3, q] * s
    found[0, p], found[0, p2], found[0, p3] = t1, t2, t3
    found[1, p], found[1, p2], found[1, p3] = s1, s2, s3


@compile_loop(offsets="indptr", values="values")
def sweep_forward_rows(first, end, indptr, columns, values, T, Tinv, diagonal, q, ts, At):
    """The rows of one color, and their share of q'T w."""
    product = 0.0
    if q.ndim == 1:
        for i in range(first, end):
            L_t, L_s = ts.dtype.type(0), ts.dtype.type(0)
            for k in range(indptr[i], indptr[i + 1]):
                L_t += values[k] * ts[columns[k], 0]
                L_s += values[k] * ts[columns[k], 1]
            t, T_q = ts[i, 0], T[i] * q[i]
            s = (T_q - (T[i] + T[i] - diagonal[i]) * t - L_s) * Tinv[i]
            ts[i, 1] = s
            At[i] = T_q + L_t + (diagonal[i] - T[i]) * t
            product += inner(T_q, t + s)
    else:
        t, s = ts[:, 0], ts[:, 1]
        # The first five rows of `sums` hold L t, L s, T q, T t and D t. The last one holds the vector by which Tinv is
        # multiplied.
        sums = np.empty((6, q.shape[1]), q.dtype)
        L_t, L_s, T_q, T_t, D_t = sums[0], sums[1], sums[2], sums[3], sums[4]
        for i in range(first, end):
            products_with_both(i, indptr, columns, values, ts, sums)
            block_products(T, i, q, i, 0, sums, 2)
            block_products(T, i, t, i, 0, sums, 3)
            block_products(diagonal, i, t, i, 0, sums, 4)
            for p in range(q.shape[1]):
                sums[5, p] = T_q[p] - (T_t[p] + T_t[p] - D_t[p]) - L_s[p]
                At[i, p] = T_q[p] + L_t[p] + (D_t[p] - T_t[p])
            block_products(Tinv, i, sums, 5, 0, s, i)
            for p in range(q.shape[1]):
                product += inner(T_q[p], t[i, p] + s[i, p])
    return product


@KERNELS.resident
def sweep_forward(
    n_slices,
    slices,
    sums,
    indptr,
    columns,
    values,
    first,
    T,
    Tinv,
    diagonal,
    q,
    ts,
    At,
    products,
    control,
    scalars,
    history,
):
    """s = inv(T + L) (T q - (2 T - D) t), A t, and q'T w, which alpha follows from, from slice number `first` on. In
    CUDA the products of each slice may be left apart.
    """
    if control[STATE] != RUNNING:
        return
    product = 0.0
    for c in range(n_slices):
        product += sweep_forward_rows(slices[c], slices[c + 1], indptr, columns, values, T, Tinv, diagonal, q, ts, At)
    take_product(product, control, scalars)


@compile_part
def take_product(product, control, scalars):
    """alpha from the other rows' share of p'A p, and the new factor of the rows of the first color."""
    step = scalars[STEP]
    take_pAp(product + step**2 * scalars[FIRST_RZ], control, scalars)
    if control[STATE] == RUNNING:
        scalars[LEFT] -= scalars[ALPHA] * step


@KERNELS.strided
def find_alpha(n_slices, slices, products, control, scalars, history):
    """The end of `sweep_forward` where the products of each slice are left apart, at the first row of the slice."""
    if control[STATE] == RUNNING:
        take_product(products[slices[:n_slices]].sum(), control, scalars)


@KERNELS.strided
def begin_all(n, first_rows, keeps, T, r, rho, q, control, scalars, history):
    """r'r and r'rho of the first rows, and z'rho; q = 0, unless the direction is kept."""
    if control[STATE] != RUNNING:
        return
    first_rr, first_rz, rz = begin_rows(0, n, first_rows, keeps, T, r, rho, q)
    beta = of_first = 0.0
    if keeps and scalars[RZ] > 0:
        left, change = scalars[LEFT], rz / scalars[RZ]
        beta = scalars[BETA] * change
        if first_rz > 0:
            of_first = (scalars[STEP] - left) * left * scalars[FIRST_RZ] / first_rz * change
    scalars[FIRST_RR], scalars[FIRST_RZ] = first_rr, first_rz
    scalars[LEFT] = np.float64(first_rz > 0)
    scalars[STEP] = scalars[LEFT] + of_first
    take_first_rz(rz, control, scalars)
    scalars[BETA] = beta


@compile_loop(grain=NUMBERS)
def begin_rows(first, end, first_rows, keeps, T, r, rho, q):
    """The rows of `begin_all`."""
    first_rr, first_rz, rz = 0.0, 0.0, 0.0
    if r.ndim == 1:
        for i in range(first, end):
            if i < first_rows:
                first_rr += inner(r[i], r[i])
                first_rz += inner(r[i], rho[i])
            rz += inner(T[i] * rho[i], rho[i])
            if not keeps:
                q[i] = 0
    else:
        T_rho = np.empty((1, r.shape[1]), r.dtype)
        for i in range(first, end):
            block_products(T, i, rho, i, 0, T_rho, 0)
            for p in range(r.shape[1]):
                if i < first_rows:
                    first_rr += inner(r[i, p], r[i, p])
                    first_rz += inner(r[i, p], rho[i, p])
                rz += inner(T_rho[0, p], rho[i, p])
                if not keeps:
                    q[i, p] = 0
    return first_rr, first_rz, rz


@KERNELS.strided
def advance_all(n, first_rows, ts, At, T, x, r, rho, t, control, scalars, history):
    """x += alpha t, r -= alpha A t, rho -= alpha w, r'r and z'rho, but for the first rows; in CUDA, t becomes empty."""
    if control[STATE] != RUNNING:
        return
    alpha = r.dtype.type(scalars[ALPHA])
    rr, rz = advance_rows(first_rows, first_rows + n, alpha, ts, At, T, x, r, rho)
    left = scalars[LEFT]
    end_iteration(rr + left**2 * scalars[FIRST_RR], control, scalars, history)
    take_rz(rz + left**2 * scalars[FIRST_RZ], control, scalars)
    scalars[STEP] = left + scalars[BETA] * scalars[STEP]


@compile_loop(grain=NUMBERS)
def advance_rows(first, end, alpha, ts, At, T, x, r, rho):
    """The rows of `advance_all`."""
    rr, rz = 0.0, 0.0
    if r.ndim == 1:
        for i in range(first, end):
            x[i] += alpha * ts[i, 0]
            r[i] -= alpha * At[i]
            rho[i] -= alpha * (ts[i, 0] + ts[i, 1])
            rr += inner(r[i], r[i])
            rz += inner(T[i] * rho[i], rho[i])
    else:
        T_rho = np.empty((1, r.shape[1]), r.dtype)
        for i in range(first, end):
            for p in range(r.shape[1]):
                x[i, p] += alpha * ts[i, 0, p]
                r[i, p] -= alpha * At[i, p]
                rho[i, p] -= alpha * (ts[i, 0, p] + ts[i, 1, p])
                rr += inner(r[i, p], r[i, p])
            block_products(T, i, rho, i, 0, T_rho, 0)
            for p in range(r.shape[1]):
                rz += inner(T_rho[0, p], rho[i, p])
    return rr, rz


@compile_loop(offsets="indptr", values="values")
def solve_first_rows(first, end, indptr, columns, values, dinv, omega, b, r, left, x):
    """The rows of the first color."""
    if x.ndim == 1:
        for i in range(first, end):
            total = x.dtype.type(0)
            for k in range(indptr[i], indptr[i + 1]):
                total += values[k] * x[columns[k]]
            x[i] = omega * ((b[i] - left * r[i]) * dinv[i] - total)
    else:
        sums = np.empty((2, x.shape[1]), x.dtype)
        for i in range(first, end):
            node_products(i, 0, indptr, columns, values, x, sums, 0)
            for p in range(x.shape[1]):
                sums[0, p] = b[i, p] - left * r[i, p] - sums[0, p]
            block_products(dinv, i, sums, 0, 0, sums, 1)
            for p in range(x.shape[1]):
                x[i, p] = omega * sums[1, p]


@KERNELS.resident
def solve_first(n_slices, slices, sums, indptr, columns, values, dinv, omega, b, r, x, control, scalars):
    """x = inv(T) (b - left r) - V x in the slices of the first color, unless nothing has changed since r was found."""
    if control[ITERATION] and scalars[LEFT] != 1:
        left, omega = x.dtype.type(scalars[LEFT]), dinv.dtype.type(omega)
        solve_first_rows(0, slices[n_slices], indptr, columns, values, dinv, omega, b, r, left, x)
