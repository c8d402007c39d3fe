"""FENL: a nonlinear advection-diffusion problem on the unit cube, solved by Newton's method.

Find T with T = 1 at z = 0, T = 2 at z = 1, natural conditions elsewhere, and for all test functions phi

    integral of  k grad phi . grad T + phi T^2 + phi a . grad T  =  0,

on n x n x n trilinear hexahedra with 2 x 2 x 2 Gauss points. Every node sums up its own row over the elements around it,
so assembly needs neither a coloring nor atomics and gives the same numbers in every run. All elements are equal cubes:
what does not depend on T is one 8 x 8 matrix.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import prange

from mcprecond.backends import Backend, KernelSet, compile_part, get_backend
from mcprecond.backends.inputs import vector

KERNELS = KernelSet(__file__)

T_BOTTOM, T_TOP = 1.0, 2.0
# The exact solution without advection is (A1 z + B1)^-2, with this diffusivity.
B1 = T_BOTTOM**-0.5
A1 = T_TOP**-0.5 - B1
DIFFUSIVITY = 1 / (6 * A1**2)


@dataclass(frozen=True)
class NewtonStep:
    """One step of Newton's method.

    Attributes
    ----------
    residual : float
        ``||R||`` after the step, relative to the initial guess.
    linear_info : int
        What the linear solver returned as info; 0 if it converged.
    iterations : int or None
        Of the linear solver, if its result says so.
    seconds : float
        Wall time of the step: Jacobian, linear solve, new residual.
    """

    residual: float
    linear_info: int
    iterations: int | None
    seconds: float


def fenl(n: int, *, advection: float | tuple[float, float, float] = 0.0, device: str = "cpu") -> FENL:
    """Set up FENL on n x n x n elements.

    Parameters
    ----------
    n : int
        Elements per edge; there are (n + 1)^3 unknowns.
    advection : float or three floats
        The vector a; a single number stands for (a, a, a). Not zero makes the Jacobian unsymmetric.
    device : {"cpu", "gpu"}
        Where to assemble; vectors and Jacobians live there.

    Returns
    -------
    FENL

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or there is no GPU.

    Examples
    --------
    >>> from mcprecond import problems
    >>> problem = problems.fenl(4)
    >>> T, steps = problem.solve()
    >>> float(abs(T - problem.exact()).max()) < 1e-3
    True
    """
    if not isinstance(n, int | np.integer) or isinstance(n, bool):
        raise TypeError(f"n must be an integer, got {n!r}")
    if n < 1:
        raise ValueError(f"n must be positive, got {n}")
    try:
        a = np.broadcast_to(np.asarray(advection, dtype=float), 3)
    except (TypeError, ValueError):
        raise ValueError(f"advection must be a number or three numbers, got {advection!r}") from None
    if not np.isfinite(a).all():
        raise ValueError(f"advection must be finite, got {advection!r}")
    backend = get_backend(device)
    if device == "gpu" and 27 * (n + 1) ** 3 >= 2**31:
        raise ValueError(f"n = {n} gives 2^31 entries or more, which CuPy's CSR matrices do not hold; take a smaller n")
    return FENL(int(n), (float(a[0]), float(a[1]), float(a[2])), backend)


@dataclass(frozen=True)
class FENL:
    """The discrete problem: residual, Jacobian and Newton's method. Made by `fenl`.

    Nodes are numbered x first, then y, then z. All vectors are float64 of shape (unknowns,) on the device.

    Attributes
    ----------
    n : int
        Elements per edge.
    advection : tuple of three floats
    backend : Backend
    """

    n: int
    advection: tuple[float, float, float]
    backend: Backend

    @property
    def unknowns(self) -> int:
        """(n + 1)^3."""
        return (self.n + 1) ** 3

    @property
    def coordinates(self) -> Any:
        """The nodes, shape (unknowns, 3), float64."""
        xp = self.backend.xp
        line = xp.linspace(0.0, 1.0, self.n + 1)
        z, y, x = xp.meshgrid(line, line, line, indexing="ij")
        return xp.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)

    def exact(self) -> Any:
        """Return the exact solution at the nodes.

        Raises
        ------
        ValueError
            With advection, where no closed form is known.
        """
        if any(self.advection):
            raise ValueError("advection is not zero; the exact solution is known without advection only")
        return (A1 * self.coordinates[:, 2] + B1) ** -2.0

    def initial(self) -> Any:
        """Return the initial guess: the prescribed values on two faces, zero elsewhere."""
        T = self.backend.xp.zeros(self.unknowns)
        face = (self.n + 1) ** 2
        T[:face] = T_BOTTOM
        T[-face:] = T_TOP
        return T

    def residual(self, T: Any) -> Any:
        """Return R(T); at a node with a prescribed value, T minus that value."""
        T = self._checked(T)
        R = self.backend.xp.empty(self.unknowns)
        run = self.backend.kernels(KERNELS, OFFSET=np.int32)
        run.assemble_residual(self.unknowns, self.n, *self._tables, T, R)
        return R

    def jacobian(self, T: Any) -> Any:
        """Return dR/dT as a CSR matrix with the 27-point pattern, zeros included.

        Prescribed values are eliminated symmetrically: unit rows, zero columns. The index arrays are shared by all
        Jacobians of this object.
        """
        T = self._checked(T)
        indptr, indices = self._pattern
        values = self.backend.xp.empty(len(indices))
        run = self.backend.kernels(KERNELS, OFFSET=indptr.dtype)
        run.assemble_jacobian(self.unknowns, self.n, indptr, *self._tables, T, values)
        matrix = self.backend.sparse.csr_matrix((values, indices, indptr), shape=(self.unknowns, self.unknowns))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix

    def solve(
        self,
        linear_solver: Callable[[Any, Any], Any] | None = None,
        *,
        rtol: float = 1e-7,
        max_steps: int = 10,
        callback: Callable[[NewtonStep], None] | None = None,
    ) -> tuple[Any, list[NewtonStep]]:
        """Solve R(T) = 0 by Newton's method from `initial`.

        Parameters
        ----------
        linear_solver : function of a matrix and a vector, optional
            ``linear_solver(J, rhs)`` returns ``(x, info)``, as SciPy's and CuPy's solvers and `pcg` do. By default the
            library's cg, or bicgstab with advection, to 1e-7 within 2000 iterations.
        rtol : float
            Stop when ``||R||`` has fallen by this factor.
        max_steps : int
            Stop after so many steps in any case; the last entry of the record tells whether `rtol` was met.
        callback : function of a NewtonStep, optional
            Called after every step.

        Returns
        -------
        T : array, shape (unknowns,)
        steps : list of NewtonStep

        Raises
        ------
        RuntimeError
            If the linear solver returns NaN or infinity.
        """
        linear_solver = linear_solver or self._library_solver
        T = self.initial()
        R = self.residual(T)
        first = self._norm(R)
        steps: list[NewtonStep] = []
        while len(steps) < max_steps and not (steps and steps[-1].residual <= rtol):
            started = time.perf_counter()
            result = linear_solver(self.jacobian(T), -R)
            update, info = result
            T = T + update
            if not math.isfinite(self._norm(T)):
                raise RuntimeError(f"the linear solver returned NaN or infinity in Newton step {len(steps) + 1}")
            R = self.residual(T)
            residual = self._norm(R) / first
            seconds = time.perf_counter() - started
            steps.append(NewtonStep(residual, int(info), getattr(result, "iterations", None), seconds))
            if callback:
                callback(steps[-1])
        return T, steps

    def _library_solver(self, J: Any, rhs: Any) -> tuple[Any, int]:
        linalg = self.backend.linalg
        if not any(self.advection):
            tolerance = {"rtol" if self.backend.name == "cpu" else "tol": 1e-7}
            return linalg.cg(J, rhs, maxiter=2000, **tolerance)
        if self.backend.name == "cpu":
            return linalg.bicgstab(J, rhs, rtol=1e-7, maxiter=2000)
        return linalg.gmres(J, rhs, tol=1e-7, maxiter=2000)

    def _norm(self, v: Any) -> float:
        return float(self.backend.xp.linalg.norm(v))

    def _checked(self, T: Any) -> Any:
        return vector(T, self.unknowns, self.backend, np.float64, "T")

    @functools.cached_property
    def _tables(self) -> tuple[Any, Any, float]:
        """The T-independent element matrix (8, 8), the shape functions (Gauss point, node), and a point's weight."""
        xp, h = self.backend.xp, 1 / self.n
        shape, gradients = _shape_functions()
        stiffness = np.einsum("gad,gbd->ab", gradients, gradients) / 8
        transport = np.einsum("ga,gbd,d->ab", shape, gradients, np.array(self.advection)) / 8
        constant = DIFFUSIVITY * h * stiffness + h**2 * transport
        return xp.asarray(constant), xp.asarray(shape), h**3 / 8

    @functools.cached_property
    def _pattern(self) -> tuple[Any, Any]:
        """Row offsets and sorted columns of the 27-point pattern."""
        xp, side = self.backend.xp, self.n + 1
        per_axis = xp.full(side, 3, np.int64)
        per_axis[0] -= 1
        per_axis[-1] -= 1
        counts = (per_axis[:, None, None] * per_axis[:, None] * per_axis).ravel()
        offset = np.int32 if int(counts.sum()) < 2**31 else np.int64
        indptr = xp.zeros(self.unknowns + 1, offset)
        indptr[1:] = xp.cumsum(counts)
        indices = xp.empty(int(indptr[-1]), np.int32)
        self.backend.kernels(KERNELS, OFFSET=offset).list_neighbors(self.unknowns, self.n, indptr, indices)
        return indptr, indices


def _shape_functions() -> tuple[np.ndarray, np.ndarray]:
    """Trilinear shape functions (8, 8) and reference gradients (8, 8, 3) at the Gauss points of the unit cube.

    Node and point b lie at (b & 1, b >> 1 & 1, b >> 2) in x, y and z.
    """
    points = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3)
    bits = np.arange(8)[:, None] >> np.arange(3) & 1
    position = points[bits]  # Gauss point, axis
    factor = np.where(bits[None], position[:, None], 1 - position[:, None])  # point, node, axis
    slope = np.where(bits, 1.0, -1.0)
    gradients = np.stack([slope[:, d] * np.delete(factor, d, axis=2).prod(axis=2) for d in range(3)], axis=2)
    return factor.prod(axis=2), gradients


@compile_part
def prescribed(k, n):
    """Whether the nodes of layer k have prescribed values."""
    return k == 0 or k == n


@compile_part
def gauss_values(corner, side, shape, T, at_gauss):
    """T at the Gauss points of the element whose node 0 is `corner`."""
    for g in range(8):
        value = 0.0
        for b in range(8):
            value += shape[g, b] * T[corner + (b & 1) + side * ((b >> 1 & 1) + side * (b >> 2))]
        at_gauss[g] = value


@compile_part
def corner_of(v, a, n):
    """Node 0 of the element in which v is node a; -1 outside of the domain."""
    side = n + 1
    i, j, k = v % side - (a & 1), v // side % side - (a >> 1 & 1), v // side // side - (a >> 2)
    if min(i, j, k) < 0 or max(i, j, k) >= n:
        return -1
    return i + side * (j + side * k)


@KERNELS.twin
def list_neighbors(nodes, n, indptr, indices):
    """The columns of each row, sorted."""
    side = n + 1
    for v in prange(nodes):
        i, j, k = v % side, v // side % side, v // side // side
        place = indptr[v]
        for z in range(max(k - 1, 0), min(k + 1, n) + 1):
            for y in range(max(j - 1, 0), min(j + 1, n) + 1):
                for x in range(max(i - 1, 0), min(i + 1, n) + 1):
                    indices[place] = x + side * (y + side * z)
                    place += 1


@KERNELS.twin
def assemble_residual(nodes, n, constant, shape, weight, T, R):
    """R at each node: its share of up to eight elements."""
    side = n + 1
    for v in prange(nodes):
        k = v // side // side
        if prescribed(k, n):
            R[v] = T[v] - (T_BOTTOM if k == 0 else T_TOP)
            continue
        at_gauss = np.empty(8)
        total = 0.0
        for a in range(8):
            corner = corner_of(v, a, n)
            if corner < 0:
                continue
            gauss_values(corner, side, shape, T, at_gauss)
            for b in range(8):
                total += constant[a, b] * T[corner + (b & 1) + side * ((b >> 1 & 1) + side * (b >> 2))]
            for g in range(8):
                total += weight * shape[g, a] * at_gauss[g] * at_gauss[g]
        R[v] = total


@KERNELS.twin
def assemble_jacobian(nodes, n, indptr, constant, shape, weight, T, values):
    """The row of each node: first its 27 possible neighbors, then those that exist, in the order of the pattern."""
    side = n + 1
    for v in prange(nodes):
        i, j, k = v % side, v // side % side, v // side // side
        at_gauss, row = np.empty(8), np.zeros(27)
        for a in range(8):
            corner = corner_of(v, a, n)
            if corner < 0 or prescribed(k, n):
                continue
            gauss_values(corner, side, shape, T, at_gauss)
            for b in range(8):
                entry = constant[a, b]
                for g in range(8):
                    entry += 2 * weight * shape[g, a] * shape[g, b] * at_gauss[g]
                # The neighbor is b - a away on each axis.
                across = (b & 1) - (a & 1) + 3 * ((b >> 1 & 1) - (a >> 1 & 1)) + 9 * ((b >> 2) - (a >> 2))
                row[13 + across] += entry
        if prescribed(k, n):
            row[13] = 1.0
        place = indptr[v]
        for z in range(max(k - 1, 0), min(k + 1, n) + 1):
            for y in range(max(j - 1, 0), min(j + 1, n) + 1):
                for x in range(max(i - 1, 0), min(i + 1, n) + 1):
                    kept = z == k or not prescribed(z, n)
                    values[place] = row[13 + x - i + 3 * (y - j) + 9 * (z - k)] if kept else 0.0
                    place += 1
