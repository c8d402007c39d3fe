"""Conjugate gradients on several systems with one matrix at once: each step serves all columns.

Vectors have the shape (n, k), in C order. Each column is a system with its own control block, whose scalars decide when
it stops; from then on it does not change. The host treats a column as `Iteration` treats a single system: with the same
attributes, units, starts and restarts.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mcprecond.backends import Backend, KernelSet, compile_loop, compile_part, compile_row
from mcprecond.linalg.columns import row_products
from mcprecond.linalg.csr import Csr
from mcprecond.linalg.operator import Operator
from mcprecond.linalg.powers import exponent_of
from mcprecond.solvers.cg import ConjugateGradients
from mcprecond.solvers.iteration import (
    ALPHA,
    BETA,
    EXHAUSTED,
    HISTORY,
    RR,
    RUNNING,
    RZ,
    SCALARS,
    STATE,
    UNIT,
    Iteration,
    end_iteration,
    inner,
    is_finite,
    take_pAp,
    take_rz,
    wide,
)
from mcprecond.solvers.result import ColumnsResult, SolveResult, worst

KERNELS = KernelSet(__file__, "OFFSET VALUE LONG_ROWS=0")

CONTROL = 4  # integers of a control block
WORDS = CONTROL + SCALARS + 3 * HISTORY
CUDA_CONSTANTS = {"CONTROL": CONTROL, "SCALARS": SCALARS, "WORDS": WORDS}
#: On the CPU the rows are cut into at most so many parts of at least so many rows, whose sums are added up in order.
MOST_PARTS, ROWS_OF_PART = 256, 256
ROWS_AT_ONCE = 16


class Column(ConjugateGradients):
    """One of the systems, as the host knows it. `control` and `scalars` are on the host.

    The vectors of a column are views of the arrays for all systems. `ColumnsIteration` finds the residuals and makes
    the first directions of all systems at once, before and after this class decides.
    """

    def __init__(self, of: ColumnsIteration, number: int) -> None:
        self._of, self.number = weakref.proxy(of), number
        self.backend, self.n, self.dtype = of.backend, of.n, of.dtype
        self.near, self.near_of_r = of.near, of.near_of_r
        self.b, self.x, self.r = (v[:, number] for v in (of.b, of.x, of.r))
        self._exponent_of_M = of.exponent_of_M
        block = of.host[number]
        self.control, self.scalars = block[:CONTROL], block[CONTROL : CONTROL + SCALARS].view(np.float64)
        self._fetch_control_block = lambda: block
        self._state = self.state = EXHAUSTED
        self.control[STATE] = EXHAUSTED  # so that its residual is found
        self.count = self.shift = self.home = self.breakdowns = 0
        self.residuals, self.true_residual_norm = [], math.inf
        self._forget_target()
        self.best, self.best_norm, self.largest_norm, self.guess = None, math.inf, math.inf, None

    def part_of(self, v: Any) -> Any:
        return None if v is None else v[:, self.number]

    def dot(self, a: Any) -> float:
        return float(self._of.squares(self.backend.xp.ascontiguousarray(a)[:, None])[0])

    @property
    def A(self) -> Csr:  # type: ignore[override]
        return self._of.A

    def measure_residual(self) -> None:
        """See `Iteration`; r'r of all columns has been computed together."""
        self._measure_found_residual()

    def find_residual(self, accurately: bool = False) -> None:
        """See `Iteration`; unless `accurately`, the residuals of all columns are computed together."""
        if accurately:
            x, b, r = (self.backend.xp.ascontiguousarray(v) for v in (self.x, self.b, self.r))
            self._residual(x, b, r, accurately)
            self.r[...] = r
        else:
            self._of.find_residual()

    def replace_iterate(self, x: Any) -> None:
        super().replace_iterate(x)
        self.find_residual()

    def begin(self) -> None:
        """See `Iteration`; all columns that have to begin do so together."""
        self.scalars[RZ] = 0


class ColumnsIteration(Iteration):
    """Algorithm 9.1 of Saad on k systems, with any M: an `Operator` and a state of it for k columns, or None for the
    identity. See `ConjugateGradients`, which is the method for one system.
    """

    A: Csr

    def __init__(self, A: Csr, backend: Backend, k: int, M: Operator | None = None, state: Any = None) -> None:
        super().__init__(A, backend)
        xp, dtype = backend.xp, A.dtype
        self.k, self._of_A = k, A.new_state(k)
        self.run = backend.kernels(KERNELS, **A.macros_of_columns, LONG_ROWS=A.own_macros["LONG_ROWS"])
        self.b, self.x, self.r, self.p, self.q = (xp.empty((self.n, k), dtype) for _ in range(5))
        self.z = self.r if M is None else xp.empty((self.n, k), dtype)
        self.exponent_of_M = 0 if M is None else M.exponent
        self._take_preconditioner(M, state)
        self._blocks = xp.empty((k, WORDS), np.int64)
        self._fetch_blocks = backend.fetcher(self._blocks)
        self._first = backend.to_host(self._first_block)
        partials = xp.empty(max(MOST_PARTS, backend.resident_warps) * k)
        self._sums = partials, xp.zeros(1, np.int32)
        #: The control blocks as the host has last read or written them.
        self.host = np.tile(self._first, (k, 1))
        self.columns: list[Column] = []

    def load(self, b: Any, x0: Any) -> None:
        """Begin a solve: take right-hand sides and initial guesses, zero for None."""
        self.b[...] = b
        if x0 is None:
            self.x.fill(0)
        else:
            self.x[...] = x0
        self.host[...] = self._first
        self.columns = [Column(self, number) for number in range(self.k)]
        for column in self.columns:
            column.guess = None if x0 is None else x0[:, column.number]

    @property
    def systems(self) -> Sequence[Iteration]:
        return self.columns

    def stop(self, systems: Sequence[Iteration], state: int) -> None:
        """See `Iteration`: on the device, too, where the others go on."""
        for column in systems:
            column._go_to(EXHAUSTED)
            column.state = state
        self._write()

    def find_residuals(self) -> None:
        self.find_residual()

    @property
    def count(self) -> int:  # type: ignore[override]
        """The most iterations of any column."""
        return max(column.count for column in self.columns)

    def solution(self) -> Any:
        return self.backend.xp.stack([column.solution() for column in self.columns], axis=1)

    def iterate(self) -> Any:
        return self.x

    def _in_own_order(self, v: Any) -> Any:
        return v

    def squares(self, v: Any) -> Any:
        """The squares of the norms of columns, on the host."""
        squares = self.backend.xp.zeros(v.shape[1])
        self.run.square(v.size, v.shape[1], v, squares, *self._sums)
        return self.backend.to_host(squares)

    def find_residual(self, accurately: bool = False) -> None:
        """See `Iteration`: of the columns that have stopped; each `Column` finds an accurate one alone."""
        self._write()
        self.run.residual(
            self.x.size,
            self.k,
            *self.A.arrays(self._of_A),
            self.x,
            self.b,
            self.r,
            self._blocks,
            *self._sums,
        )
        self.host[...] = self._fetch_blocks()

    def _write(self) -> None:
        """Copy the decisions of the host to the device, which is idle."""
        self._blocks.view(np.float64)[...] = self.backend.xp.asarray(self.host.view(np.float64))

    def begin_together(self) -> None:
        """See `Iteration`: the columns that the host has let run."""
        beginning = [column for column in self.columns if column.state == RUNNING]
        if beginning and self.M is not None and self.exponent_of_M is None:
            self.M.enqueue(self._of_M, self.r, self.z)
            number, xp = beginning[0].number, self.backend.xp
            self.exponent_of_M = exponent_of(self.z[:, number], xp) - exponent_of(self.r[:, number], xp)
            for column in beginning:
                column._choose_unit_of_z(self.exponent_of_M)
        self._write()
        if self.M is None:
            self.run.find_beta(self.r.size, self.k, self.r, self.z, self._blocks, *self._sums)

    def _step(self) -> None:
        run, size, k, blocks, sums = self.run, self.r.size, self.k, self._blocks, self._sums
        if self.M is not None:
            self.M.enqueue(self._of_M, self.r, self.z)
            run.find_beta(size, k, self.r, self.z, blocks, *sums)
            if not self.M.linear:
                run.find_flexible_beta(size, k, self.q, self.z, blocks, *sums)
        run.change_direction(size, k, self.z, self.p, blocks)
        run.multiply(size, k, *self.A.arrays(self._of_A), self.p, self.q, blocks, *sums)
        run.advance(size, k, self.p, self.q, self.x, self.r, int(self.M is not None), blocks, *sums)

    @property
    def _states(self) -> Any:
        return self._blocks[:, STATE]

    def read_state(self) -> int:
        """See `Iteration`; the state is RUNNING as long as any column runs."""
        self.host[...] = self._fetch_blocks()
        goes_on = False
        for column in self.columns:
            if column.state == RUNNING:
                was_read = int(column.control[STATE])
                column.state = column.read_state()
                goes_on |= column.state == RUNNING != was_read
        if goes_on:
            self._write()
        return RUNNING if any(column.state == RUNNING for column in self.columns) else EXHAUSTED

    def begin(self) -> None:
        self.begin_together()


def join_columns(
    results: Sequence[SolveResult[Any]], backend: Backend, setup_seconds: float, solve_seconds: float
) -> ColumnsResult[Any]:
    """The results of all columns as one."""
    residuals = np.full((max(len(result.residuals) for result in results), len(results)), np.nan)
    for column, result in enumerate(results):
        residuals[: len(result.residuals), column] = result.residuals
    X = backend.xp.stack([result.x for result in results], axis=1)
    details = [f"column {column}: {result.detail}" for column, result in enumerate(results) if result.detail]
    return ColumnsResult(
        x=X,
        reason=worst([result.reason for result in results]),
        iterations=np.array([result.iterations for result in results]),
        residuals=residuals,
        residual_norm=np.array([result.residual_norm for result in results]),
        setup_seconds=setup_seconds,
        solve_seconds=solve_seconds,
        cycles=None if results[0].cycles is None else np.array([result.cycles for result in results]),  # type: ignore[arg-type]
        detail=details[0] if details else "",
        method=results[0].method,
        norm_of_b=np.array([result.norm_of_b for result in results]),
        error_iterations=np.array([result.error_iterations for result in results]),
        columns=tuple(replace(result, x=x) for result, x in zip(results, X.T, strict=True)),
    )


# On the CPU. A control block is a row of `blocks`. Loops go through ROWS_AT_ONCE rows of a vector at a time, beside a
# pattern: an array of the same length that has for each number the scalar of its column. LLVM vectorizes such loops.


@compile_part
def scalars_of(blocks, c):
    """The scalars of a column."""
    return blocks[c, CONTROL : CONTROL + SCALARS].view(np.float64)


@compile_part
def history_of(blocks, c):
    """The residuals of a column."""
    return blocks[c, CONTROL + SCALARS :].view(np.float64)


@compile_part
def running(blocks):
    """The pattern of whether columns are running."""
    return np.array([blocks[e % len(blocks), STATE] == RUNNING for e in range(ROWS_AT_ONCE * len(blocks))])


@compile_part
def pattern(blocks, slot, v):
    """The pattern of a scalar, in the dtype of a vector."""
    repeated = np.empty(ROWS_AT_ONCE * len(blocks), v.dtype)
    for e in range(len(repeated)):
        repeated[e] = v.dtype.type(scalars_of(blocks, e % len(blocks))[slot])
    return repeated


@compile_part
def parts_of(n, k, partials):
    """Room for the sums of each part of the rows."""
    parts = min(MOST_PARTS, n // ROWS_OF_PART + 1)
    return partials[: parts * k].reshape(parts, k)


@compile_row
def rows_of_part(part, parts, n):
    """The first row of a part, and the first row of the next part."""
    return part * n // parts, (part + 1) * n // parts


@compile_part
def fold(numbers, sums):
    """The sums of a pattern by column."""
    k = len(sums)
    sums[:] = 0
    for e in range(len(numbers)):
        sums[e % k] += numbers[e]


@compile_part
def total_of(sums, c):
    """The sum of a column over all parts."""
    total = 0.0
    for part in range(len(sums)):
        total += sums[part, c]
    return total


@KERNELS.strided
def multiply(size, k, indptr, indices, values, p, q, blocks, partials, arrivals):
    """Q = A P, and alpha from p'q."""
    sums = parts_of(len(p), k, partials)
    multiply_rows(0, len(sums), indptr, indices, values, p, q, sums)
    for c in range(k):
        if blocks[c, STATE] == RUNNING:
            take_pAp(total_of(sums, c), blocks[c], scalars_of(blocks, c))


@compile_loop(grain=1)
def multiply_rows(first, end, indptr, indices, values, p, q, sums):
    """The rows of some parts of `multiply`."""
    n, k = p.shape
    for part in range(first, end):
        begin, stop = rows_of_part(part, len(sums), n)
        for i in range(begin, stop):
            row_products(indptr[i], indptr[i + 1], indices, values, p, q, i)
        add_products(
            p[begin:stop].reshape(-1), q[begin:stop].reshape(-1), np.ones(ROWS_AT_ONCE * k, q.dtype), sums[part]
        )


@compile_part
def add_products(a, b, unit, sums):
    """The inner products of the columns of a and of b, where b is in its units."""
    length = len(unit)
    products = np.zeros(length)
    for first in range(0, len(a), length):
        rows_of_a, rows_of_b = a[first : first + length], b[first : first + length]
        for e in range(len(rows_of_a)):
            products[e] += inner(rows_of_a[e], unit[e] * rows_of_b[e])
    fold(products, sums)


@KERNELS.strided
def advance(size, k, p, q, x, r, is_preconditioned, blocks, partials, arrivals):
    """X += alpha P, R -= alpha Q, and r'r; without M, beta from that."""
    sums, flat = parts_of(len(x), k, partials), (p.reshape(-1), q.reshape(-1), x.reshape(-1), r.reshape(-1))
    advance_rows(0, len(sums), running(blocks), pattern(blocks, ALPHA, r), *flat, sums)
    for c in range(k):
        if blocks[c, STATE] == RUNNING:
            rr, scalars = total_of(sums, c), scalars_of(blocks, c)
            end_iteration(rr, blocks[c], scalars, history_of(blocks, c))
            if not is_preconditioned:
                take_rz(rr * scalars[UNIT], blocks[c], scalars)


@compile_loop(grain=1)
def advance_rows(first, end, runs, alpha, p, q, x, r, sums):
    """The rows of some parts of `advance`."""
    parts, k = sums.shape
    for part in range(first, end):
        begin, stop = rows_of_part(part, parts, len(x) // k)
        squares = np.zeros(len(runs))
        for base in range(begin * k, stop * k, len(runs)):
            next_base = min(base + len(runs), stop * k)
            advance_numbers(
                runs, alpha, p[base:next_base], q[base:next_base], x[base:next_base], r[base:next_base], squares
            )
        fold(squares, sums[part])


@compile_row
def advance_numbers(runs, alpha, p, q, x, r, squares):
    """The numbers of a few rows."""
    for e in range(len(x)):
        moved, rest = x[e] + alpha[e] * p[e], r[e] - alpha[e] * q[e]
        x[e] = moved if runs[e] else x[e]
        r[e] = rest if runs[e] else r[e]
        squares[e] += inner(rest, rest)


@KERNELS.strided
def find_beta(size, k, r, z, blocks, partials, arrivals):
    """Beta from r'z, with z in its unit."""
    sums = parts_of(len(r), k, partials)
    multiply_numbers(0, len(sums), pattern(blocks, UNIT, z), r, z, sums)
    for c in range(k):
        if blocks[c, STATE] == RUNNING:
            take_rz(total_of(sums, c), blocks[c], scalars_of(blocks, c))


@compile_loop(grain=1)
def multiply_numbers(first, end, unit, a, b, sums):
    """The inner products of a and b, where b is in its units, for some parts of the rows."""
    for part in range(first, end):
        begin, stop = rows_of_part(part, len(sums), len(a))
        add_products(a[begin:stop].reshape(-1), b[begin:stop].reshape(-1), unit, sums[part])


@KERNELS.strided
def find_flexible_beta(size, k, q, z, blocks, partials, arrivals):
    """Beta of flexible CG, from q'z and the usual one."""
    sums = parts_of(len(q), k, partials)
    multiply_numbers(0, len(sums), pattern(blocks, UNIT, z), q, z, sums)
    for c in range(k):
        qz, scalars = total_of(sums, c), scalars_of(blocks, c)
        has_q = blocks[c, STATE] == RUNNING and scalars[BETA] != 0  # there is none before the first product
        if has_q and is_finite(qz, blocks[c]):
            scalars[BETA] *= -scalars[ALPHA] * qz / scalars[RZ]


@KERNELS.strided
def change_direction(size, k, z, p, blocks):
    """P = Z + beta P, with Z in its unit."""
    turn_rows(
        0, len(p), running(blocks), pattern(blocks, BETA, p), pattern(blocks, UNIT, p), z.reshape(-1), p.reshape(-1)
    )


@compile_loop
def turn_rows(first, end, runs, beta, unit, z, p):
    """The rows of `change_direction`."""
    k = len(runs) // ROWS_AT_ONCE
    for base in range(first * k, end * k, len(runs)):
        next_base = min(base + len(runs), end * k)
        turn_numbers(runs, beta, unit, z[base:next_base], p[base:next_base])


@compile_row
def turn_numbers(runs, beta, unit, z, p):
    """The numbers of a few rows. At first there is no p."""
    for e in range(len(p)):
        alone = unit[e] * z[e]
        turned = alone + beta[e] * p[e]
        value = alone if beta[e] == 0 else turned
        p[e] = value if runs[e] else p[e]


@KERNELS.strided
def residual(size, k, indptr, indices, values, x, b, r, blocks, partials, arrivals):
    """R = B - A X and r'r, both summed in double precision, for the columns that have stopped."""
    stopped, sums = np.flatnonzero(blocks[:, STATE] != RUNNING), parts_of(len(x), k, partials)
    residual_rows(0, len(sums), stopped, indptr, indices, values, x, b, r, sums)
    for c in stopped:
        scalars_of(blocks, c)[RR] = total_of(sums, c)


@compile_loop(grain=1)
def residual_rows(first, end, stopped, indptr, indices, values, x, b, r, sums):
    """The rows of some parts of `residual`."""
    for part in range(first, end):
        sums[part] = 0
        begin, stop = rows_of_part(part, len(sums), len(x))
        for i in range(begin, stop):
            for c in stopped:
                total = wide(x.dtype.type(0))
                for e in range(indptr[i], indptr[i + 1]):
                    total += wide(values[e]) * x[indices[e], c]
                rest = b[i, c] - total
                r[i, c] = rest
                sums[part, c] += inner(rest, rest)


@KERNELS.strided
def square(size, k, v, squares, partials, arrivals):
    """The squares of the norms of all columns."""
    sums = parts_of(len(v), k, partials)
    multiply_numbers(0, len(sums), np.ones(ROWS_AT_ONCE * k, v.dtype), v, v, sums)
    for c in range(k):
        squares[c] = total_of(sums, c)
