"""FENL: nonlinear advection-diffusion on a cube of trilinear hexahedra, with a 27-point Jacobian.

What the kernels assemble does not depend on the number of threads (`assembly.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcprecond.backends import get_backend, offset_type
from mcprecond.backends.arguments import describe
from mcprecond.backends.inputs import vector
from mcprecond.problems.assembly import KERNELS
from mcprecond.problems.graphs.simple import size_of
from mcprecond.solvers import bicgstab, pcg

BOTTOM, TOP = 1.0, 2.0
A1, B1 = TOP**-0.5 - BOTTOM**-0.5, BOTTOM**-0.5
CONDUCTIVITY = 1 / (6 * A1**2)

# Integrals over an element of length one: of φ_i φ_j, φ_i' φ_j' and φ_i φ_j'; and φ_j at the two Gauss points.
MASS = np.array([[2.0, 1.0], [1.0, 2.0]]) / 6
STIFFNESS = np.array([[1.0, -1.0], [-1.0, 1.0]])
DRIFT = np.array([[-0.5, 0.5], [-0.5, 0.5]])
SHAPE = np.array([[1 + 3**-0.5, 1 - 3**-0.5], [1 - 3**-0.5, 1 + 3**-0.5]]) / 2
GAUSS = SHAPE[:, 1]  # where they lie


@dataclass(frozen=True)
class NewtonStep:
    """What one Newton step did.

    Attributes
    ----------
    residual : float
        ||R|| after the step, relative to ||R|| at the initial guess.
    linear_info : int
        What the linear solver reported; 0 for success.
    iterations : int or None
        Of the linear solver, where its result has an attribute of this name.
    seconds : float
        For the Jacobian, the linear solve and the new residual.
    """

    residual: float
    linear_info: int
    iterations: int | None
    seconds: float


class FENL:
    """The discrete problem that `fenl` returns.

    Nodes are numbered x fastest, then y, then z. Vectors are float64 arrays of shape ((n + 1)^3,) on the device.

    Attributes
    ----------
    n : int
        Elements along an edge.
    advection, conductivity : tuple of three floats
        Along x, y and z.
    profile : tuple of three tuples of three floats
        The conductivity at (x, y, z) is that times the product of three polynomials, in x, in y and in z, whose
        coefficients these are, the constant first.
    bubble : tuple of three floats
        See `fenl`.
    backend : Backend
        Of the device; `backend.to_host` makes NumPy arrays of its arrays.
    """

    def __init__(
        self,
        n: int,
        *,
        advection: Any = 0.0,
        conductivity: Any = CONDUCTIVITY,
        profile: Any = (1.0, 0.0, 0.0),
        bubble: Any = 0.0,
        device: str = "cpu",
    ) -> None:
        self.n = size_of(n, "n", 1, 3)
        self.advection = _three_numbers(advection, "advection")
        self.conductivity = _three_numbers(conductivity, "conductivity")
        if min(self.conductivity) <= 0:
            raise ValueError(f"conductivity must be positive in every direction, got {describe(conductivity)}")
        self.profile = _polynomials(profile)
        self.bubble = _three_numbers(bubble, "bubble")
        if max(map(abs, self.bubble)) >= 1:
            raise ValueError(f"bubble must be above -1 and below 1 in every direction, got {describe(bubble)}")
        self.backend = get_backend(device)
        self._run = self.backend.kernels(KERNELS, OFFSET=offset_type((3 * self.n + 1) ** 3))
        self._indptr, self._indices = self._pattern()

        shape = np.kron(SHAPE, np.kron(SHAPE, SHAPE))  # from one dimension to the cube, x fastest
        mass = shape.T[:, :, None] * shape / 4
        edges = np.linspace(0.0, 1.0, self.n + 1)
        widths = 1 / self.n + np.array(self.bubble)[:, None] * np.diff(_bump(edges))
        self._lines = edges + np.array(self.bubble)[:, None] * _bump(edges)
        tables = (self._integrals(widths), widths, shape, mass)
        self._axes, self._widths, self._shape, self._mass = (self.backend.xp.asarray(table) for table in tables)

    @property
    def unknowns(self) -> int:
        """The number of nodes, those with a prescribed value included."""
        return (self.n + 1) ** 3

    @property
    def coordinates(self) -> Any:
        """The nodes' x, y and z: an array of shape (unknowns, 3)."""
        xp = self.backend.xp
        z, y, x = xp.meshgrid(*(xp.asarray(line) for line in self._lines[::-1]), indexing="ij")
        return xp.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)

    def initial(self) -> Any:
        """Return Newton's initial guess: zero, but the prescribed values at z = 0 and z = 1."""
        T = self.backend.xp.zeros(self.unknowns)
        T[: (self.n + 1) ** 2] = BOTTOM
        T[-((self.n + 1) ** 2) :] = TOP
        return T

    def exact(self) -> Any:
        """Return the solution of the continuous problem at the nodes, where it is known.

        Without advection it depends on z alone, if the conductivity does, and so on k(z) along z only. For the default
        it is ``(a1 z + b1)^-2``; for ``k(z) = 2 (2 - z) + c (2 - z)²`` with any c it is ``2 / (2 - z)``, as ``k T' =
        4 / (2 - z) + 2 c`` has the derivative T².

        Raises
        ------
        ValueError
            For other problems: no closed form is known.
        """
        k0, k1, k2 = (self.conductivity[2] * c for c in self.profile[2])
        xp = self.backend.xp
        z = xp.asarray(self._lines[2])
        if any(self.advection):
            raise ValueError(f"no closed form of the solution is known for advection={self.advection}, only for zero")
        if any(polynomial != (1.0, 0.0, 0.0) for polynomial in self.profile[:2]):
            raise ValueError(
                f"no closed form of the solution is known for the profiles {self.profile[:2]} along x and y"
            )
        if np.allclose((k0, k1, k2), (CONDUCTIVITY, 0.0, 0.0), rtol=1e-12, atol=0):
            T = (A1 * z + B1) ** -2
        elif np.allclose((k0, k1), (4 + 4 * k2, -2 - 4 * k2), rtol=1e-12, atol=0):
            T = 2 / (2 - z)
        else:
            raise ValueError(
                f"no closed form of the solution is known for the conductivity {k0:g} + {k1:g} z + {k2:g} z² along z, "
                f"only for {CONDUCTIVITY:.4g} and for 2 (2 - z) + c (2 - z)²"
            )
        return xp.repeat(T, (self.n + 1) ** 2)

    def residual(self, T: Any) -> Any:
        """Return R_i = ∫ k ∇φ_i·∇T + φ_i T² + φ_i a·∇T; T minus its prescribed value at z = 0 and z = 1.

        Parameters
        ----------
        T : array, shape (unknowns,)

        Raises
        ------
        TypeError, ValueError
            If T is on the other device, has another shape, or is not made of finite real numbers.
        """
        return self._residual(self._check(T))

    def jacobian(self, T: Any) -> Any:
        """Return J_ij = ∫ k ∇φ_i·∇φ_j + 2 T φ_i φ_j + φ_i a·∇φ_j, with unit rows and zero columns at z = 0 and z = 1.

        Where T has the prescribed values there, J is the derivative of the residual with respect to all other values.
        It is symmetric if the advection is zero, and then positive definite if T >= 0.

        Parameters
        ----------
        T : array, shape (unknowns,)

        Returns
        -------
        csr_matrix of SciPy or CuPy, shape (unknowns, unknowns)
            Sorted. All up to 27 neighbors of a node are stored, zeros too. The values are new; the pattern is shared by
            all Jacobians of this object, so copy a matrix before changing its pattern in place.

        Raises
        ------
        TypeError, ValueError
            As `residual`.
        """
        return self._jacobian(self._check(T))

    def solve(
        self,
        linear_solver: Callable[[Any, Any], Any] | None = None,
        rtol: float = 1e-7,
        max_steps: int = 10,
        callback: Callable[[NewtonStep], None] | None = None,
    ) -> tuple[Any, list[NewtonStep]]:
        """Solve R(T) = 0 by Newton's method from `initial()`: J δ = -R, T <- T + δ.

        Parameters
        ----------
        linear_solver : callable, optional
            ``linear_solver(J, rhs)`` returns ``(x, info)`` as SciPy's solvers do, or a `SolveResult`. By default
            `pcg` without, and ``bicgstab(M="auto")`` with advection, with rtol=1e-7 and maxiter=2000. A step is taken
            even if the linear solver reports a failure; the record of the step tells.
        rtol : float
            Stop when ||R|| <= rtol ||R_0||.
        max_steps : int
            Stop after so many steps, converged or not.
        callback : callable, optional
            Called with the `NewtonStep` after each step.

        Returns
        -------
        T : array, shape (unknowns,)
        steps : list of NewtonStep
            Newton converged if the residual of the last one is at most rtol.

        Raises
        ------
        RuntimeError
            If a step makes the residual NaN or infinite; names the step.

        Examples
        --------
        >>> from mcprecond import problems
        >>> problem = problems.fenl(8)
        >>> T, steps = problem.solve()
        >>> len(steps)
        3
        >>> print(f"{abs(T - problem.exact()).max():.1e}")
        2.2e-04
        """
        xp = self.backend.xp
        solver = linear_solver or self._krylov
        T = self.initial()
        R = self._residual(T)
        initial_norm = norm = float(xp.linalg.norm(R))
        steps: list[NewtonStep] = []
        while norm > rtol * initial_norm and len(steps) < max_steps:
            start = time.perf_counter()
            result = solver(self._jacobian(T), -R)
            delta, info = result
            T = T + delta
            R = self._residual(T)
            norm = float(xp.linalg.norm(R))
            seconds = time.perf_counter() - start
            if not np.isfinite(norm):
                raise RuntimeError(
                    f"Newton step {len(steps) + 1} made the residual {norm} (linear solver's info: {info}); "
                    "try another linear solver or preconditioner"
                )
            steps.append(NewtonStep(norm / initial_norm, int(info), getattr(result, "iterations", None), seconds))
            if callback is not None:
                callback(steps[-1])
        return T, steps

    def __repr__(self) -> str:
        return f"<FENL of {self.n}^3 elements, advection {self.advection}, on the {self.backend.name}>"

    def _integrals(self, widths: np.ndarray) -> np.ndarray:
        """The tables of assembly.py for each interval of each axis: shape (3, n, 4, 2, 2)."""
        tables = np.empty((3, self.n, 4, 2, 2))
        for d, (h, line) in enumerate(zip(widths[:, :, None, None], self._lines, strict=True)):
            points = line[:-1, None] + h[:, 0] * GAUSS
            # The profile at the two Gauss points of each interval.
            low, high = np.polynomial.polynomial.polyval(points, self.profile[d]).T[:, :, None, None]
            tables[d, :, 0] = h * (low * np.outer(SHAPE[0], SHAPE[0]) + high * np.outer(SHAPE[1], SHAPE[1])) / 2
            tables[d, :, 1] = self.conductivity[d] * (low + high) / 2 * STIFFNESS / h
            tables[d, :, 2] = h * MASS
            tables[d, :, 3] = self.advection[d] * DRIFT
        return tables

    def _pattern(self) -> tuple[Any, Any]:
        xp, m = self.backend.xp, self.n + 1
        nnz = (3 * m - 2) ** 3
        # SciPy and CuPy want both arrays of one dtype, and copy them otherwise.
        dtype = offset_type(nnz)
        along = xp.full(m, 3, dtype)
        along[0] -= 1
        along[-1] -= 1
        indptr = xp.zeros(self.unknowns + 1, dtype)
        indptr[1:] = xp.cumsum((along[:, None, None] * along[:, None] * along).ravel(), dtype=dtype)
        indices = xp.empty(nnz, np.int32)
        self._run.fill_indices(self.unknowns, m, indptr, indices)
        return indptr, indices.astype(dtype, copy=False)

    @property
    def _kinds(self) -> int:
        return 2 if any(self.advection) else 1

    def _check(self, T: Any) -> Any:
        return vector(T, self.unknowns, self.backend, np.float64, "T")

    def _residual(self, T: Any) -> Any:
        R = self.backend.xp.empty(self.unknowns)
        self._run.assemble_residual(
            self.unknowns, self.n + 1, T, self._axes, self._kinds, self._widths, self._shape, BOTTOM, TOP, R
        )
        return R

    def _jacobian(self, T: Any) -> Any:
        values = self.backend.xp.empty(len(self._indices))
        self._run.assemble_jacobian(
            self.unknowns,
            self.n + 1,
            T,
            self._axes,
            self._kinds,
            self._widths,
            self._shape,
            self._mass,
            self._indptr,
            values,
        )
        J = self.backend.sparse.csr_matrix((values, self._indices, self._indptr), shape=(self.unknowns, self.unknowns))
        J.has_canonical_format = True
        return J

    def _krylov(self, J: Any, rhs: Any) -> Any:
        if any(self.advection):
            return bicgstab(J, rhs, rtol=1e-7, maxiter=2000, M="auto")
        return pcg(J, rhs, rtol=1e-7, maxiter=2000)


def fenl(
    n: int,
    *,
    advection: Any = 0.0,
    conductivity: Any = CONDUCTIVITY,
    profile: Any = (1.0, 0.0, 0.0),
    bubble: Any = 0.0,
    device: str = "cpu",
) -> FENL:
    """Discretize ``-∇·(k ∇T) + a·∇T + T² = 0`` on the unit cube by n x n x n trilinear hexahedra.

    T = 1 at z = 0 and T = 2 at z = 1, by symmetric elimination; the other faces are insulated. By default k is constant
    and such that without advection ``T(z) = (a1 z + b1)^-2`` solves the problem, with b1 = 1/√T(0), a1 = 1/√T(1) -
    1/√T(0), k = 1/(6 a1²).

    Parameters
    ----------
    n : int
        Elements along an edge; there are (n + 1)^3 unknowns and (3 n + 1)^3 matrix entries.
    advection : float or three floats
        The vector a; a number stands for (a, a, a). Not zero: the Jacobian is unsymmetric.
    conductivity : float or three floats
        Along x, y and z, positive; a number stands for the same in all three directions.
    profile : three floats, or three times three
        Coefficients of the polynomial c0 + c1 z + c2 z², by which the conductivity is multiplied at height z; or those
        of polynomials in x, in y and in z, whose product it is multiplied by. They have to be positive. Integrated by
        two Gauss points in every direction of an element.
    bubble : float or three floats
        Along x, y and z, between -1 and 1: how much the widths of elements vary. Nodes are at t + bubble sin(2 π t) /
        (2 π) for equidistant t, so that elements at the ends are 1 + bubble times, and those in the middle 1 - bubble
        times as wide as in the mean.
    device : {"cpu", "gpu"}
        Where vectors and matrices live: NumPy and SciPy, or CuPy.

    Returns
    -------
    FENL

    Raises
    ------
    TypeError
        If n is not an integer.
    ValueError
        If n < 1, advection, conductivity or bubble is not one or three finite numbers, profile not three or three
        times three, the conductivity is not positive everywhere, bubble is not between -1 and 1, or the device is
        unknown or missing.

    References
    ----------
    The example FENL of Kokkos in Trilinos, the test problem Fenl_50, _100 and _180 of Deveci, Boman, Devine,
    Rajamanickam: Parallel Graph Coloring for Manycore Architectures, IPDPS 2016.

    Examples
    --------
    >>> from mcprecond import problems
    >>> problem = problems.fenl(4)
    >>> J = problem.jacobian(problem.initial())
    >>> J.shape, J.nnz
    ((125, 125), 2197)

    A conductor that is anisotropic, and with k(z) = (2 - z)(4 - z) along z:

    >>> problem = problems.fenl(8, conductivity=(10.0, 1.0, 1.0), profile=(8.0, -6.0, 1.0))
    >>> T, steps = problem.solve()
    >>> print(f"{abs(T - problem.exact()).max():.1e}")
    2.5e-04

    By default neither the solution nor Newton's right-hand side depends on x and y, and all elements are alike, so that
    CG with Jacobi's preconditioner solves a problem of one dimension. With k = 1 + 3 x, or on a mesh that is not
    uniform, it does not:

    >>> problem = problems.fenl(8, profile=((1, 3, 0), (1, 0, 0), (1, 0, 0)), bubble=0.5)
    >>> T, steps = problem.solve()
    >>> len(steps)
    3
    """
    return FENL(n, advection=advection, conductivity=conductivity, profile=profile, bubble=bubble, device=device)


def _three_numbers(value: Any, name: str, *, one_will_do: bool = True) -> tuple[float, float, float]:
    try:
        a = np.asarray(value)
        a = a.astype(np.float64) if a.dtype.kind in "iuf" else np.array(np.nan)
    except (TypeError, ValueError):  # lists of different lengths
        a = np.array(np.nan)
    if a.shape not in (((), (3,)) if one_will_do else ((3,),)) or not np.isfinite(a).all():
        wanted = "a finite number or three of them" if one_will_do else "three finite numbers"
        raise ValueError(f"{name} must be {wanted}, got {describe(value)}")
    x, y, z = np.broadcast_to(a, 3).tolist()
    return x, y, z


def _polynomials(profile: Any) -> tuple[tuple[float, float, float], ...]:
    """The coefficients of the polynomials along x, y and z. Three numbers alone are those of the polynomial along z."""
    sequences = (list, tuple, np.ndarray)
    of_all_axes = isinstance(profile, sequences) and any(isinstance(c, sequences) for c in profile)
    given = profile if of_all_axes else [(1.0, 0.0, 0.0)] * 2 + [profile]
    if len(given) != 3:
        raise ValueError(f"profile must be three finite numbers, or three times three, got {describe(profile)}")
    polynomials = tuple(_three_numbers(c, "profile", one_will_do=False) for c in given)
    for axis, polynomial in zip("xyz", polynomials, strict=True):
        if _least_on_unit_interval(polynomial) <= 0:
            raise ValueError(
                f"profile must be positive for all {axis} from 0 to 1, which c0 + c1 {axis} + c2 {axis}² is not: "
                f"{describe(profile)}"
            )
    return polynomials


def _bump(t: np.ndarray) -> np.ndarray:
    """The displacements of nodes at t for bubble = 1."""
    return np.sin(2 * np.pi * (t % 1)) / (2 * np.pi)  # with % it is exactly zero at the ends


def _least_on_unit_interval(c: tuple[float, float, float]) -> float:
    """The minimum of c0 + c1 z + c2 z² for z from 0 to 1."""
    at = [0.0, 1.0]
    if c[2] > 0:
        at.append(min(max(-c[1] / (2 * c[2]), 0.0), 1.0))
    return float(np.polynomial.polynomial.polyval(at, c).min())
