"""Small systems of the kinds that users of sparse solvers report: what makes each of them hard is what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from graphs import grid5, slivers
from scipy.special import roots_jacobi


class System(NamedTuple):
    """A system, and what is to be said of it.

    Attributes
    ----------
    A, b : array
    says : tuple of str
        What the reason and the detail, or the error, have to say. Empty if the system is to be solved.
    accuracy : float
        How far the solution may be off where the tolerance is 1e-10, relative to the exact one: both without their
        parts in the null space, and in units that make the diagonal of A one.
    options : dict
        Further arguments.
    """

    A: Any
    b: Any
    says: tuple[str, ...] = ()
    accuracy: float = 1e-6
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


def numbers(n, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, n)


def laplacian_of(edges, weights, n):
    """The Laplacian of a graph with weights."""
    i, j = np.array(edges).T
    W = sp.coo_array((weights, (i, j)), shape=(n, n)).tocsr()
    W = W + W.T
    return sp.csr_matrix(sp.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W)


def edges_of_grid(n):
    nodes = np.arange(n * n).reshape(n, n)
    ends = (nodes[:, :-1], nodes[:, 1:]), (nodes[:-1], nodes[1:])
    return np.concatenate([np.stack([first.ravel(), last.ravel()], axis=1) for first, last in ends])


def fix(A, rows):
    """Fixed values, in rows and columns."""
    keep = np.ones(A.shape[0])
    keep[rows] = 0
    D = sp.diags_array(keep)
    return sp.csr_matrix(D @ A @ D + sp.diags_array(1 - keep))


def free_grid(n, seed=None):
    """The Laplacian of a grid without a fixed value."""
    edges = edges_of_grid(n)
    weights = np.ones(len(edges)) if seed is None else np.random.default_rng(seed).uniform(0.5, 2, len(edges))
    return laplacian_of(edges, weights, n * n)


def two_units(ratio, n=14):
    """Displacements and pressures, or metres and pascals: two unknowns of a node, with equations of other sizes."""
    one, coupling = grid5(n), 0.04 * sp.eye_array(n * n)
    A = sp.block_array([[one, coupling], [coupling.T, one]], format="csr")
    order = np.arange(2 * n * n).reshape(2, -1).T.ravel()  # node by node
    scales = sp.diags_array(np.tile([1.0, ratio], n * n))
    return sp.csr_matrix(scales @ A[order][:, order] @ scales)


def two_units_system(ratio, **more):
    A = two_units(ratio)
    return System(A, A @ (numbers(A.shape[0]) / np.sqrt(A.diagonal())), **more)


def network(closed, n=15):
    """A network of resistors, some of which are switches of almost no impedance, with one node at earth."""
    edges = edges_of_grid(n)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(edges))
    weights[::7] = closed
    A = laplacian_of(edges, weights, n * n).tolil()
    A[0, 0] += 1
    return sp.csr_matrix(A)


def nodal_analysis(switches, n=8):
    """A network with closed switches, whose currents are unknowns: rows with zeros on the diagonal."""
    G = laplacian_of(edges_of_grid(n), np.ones(2 * n * (n - 1)), n * n) + sp.diags_array(np.eye(n * n)[0])
    B = sp.lil_matrix((n * n, len(switches)))
    for k, (i, j) in enumerate(switches):
        B[i, k], B[j, k] = 1, -1
    return sp.csr_matrix(sp.block_array([[G, B], [B.T, None]], format="csr"))


def curl(n):
    """The curl of edge elements on a cube of n^3 cells, and the gradients of its nodes."""
    D, node, cell = sp.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(n, n + 1)), sp.eye_array(n + 1), sp.eye_array(n)

    def cube(*factors):
        return sp.kron(sp.kron(factors[0], factors[1], "csr"), factors[2], "csr")

    rows = [
        [None, -cube(node, cell, D), cube(node, D, cell)],
        [cube(cell, node, D), None, -cube(D, node, cell)],
        [-cube(cell, D, node), cube(D, cell, node), None],
    ]
    gradient = sp.vstack([cube(D, node, node), cube(node, D, node), cube(node, node, D)])
    return sp.csr_matrix(sp.block_array(rows)), sp.csr_matrix(gradient)


def edge_elements(mass, n=5):
    C, _ = curl(n)
    return sp.csr_matrix(C.T @ C + mass * sp.eye_array(C.shape[1]))


def bilinear(of_element, nx, ny, block, density):
    """Elements of four nodes on nx x ny cells, each times its density."""
    nodes = np.arange((nx + 1) * (ny + 1)).reshape(ny + 1, nx + 1)
    corners = np.stack([nodes[:-1, :-1], nodes[:-1, 1:], nodes[1:, 1:], nodes[1:, :-1]], axis=-1).reshape(-1, 4)
    unknowns = (block * corners[:, :, None] + np.arange(block)).reshape(len(corners), -1)
    rows, columns = np.broadcast_arrays(unknowns[:, :, None], unknowns[:, None, :])
    values = density.ravel()[:, None, None] * of_element
    A = sp.coo_matrix((values.ravel(), (rows.ravel(), columns.ravel())), shape=2 * (block * nodes.size,)).tocsr()
    A.eliminate_zeros()
    return A


def plane_stress(poisson=0.3):
    """The stiffness of a square element of four nodes, with Young's modulus 1."""
    at, signs = np.array([-1, 1]) / np.sqrt(3), np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    law = np.array([[1, poisson, 0], [poisson, 1, 0], [0, 0, (1 - poisson) / 2]]) / (1 - poisson**2)
    K = np.zeros((8, 8))
    for x in at:
        for y in at:
            gradients = np.stack([signs[:, 0] * (1 + signs[:, 1] * y), signs[:, 1] * (1 + signs[:, 0] * x)]) / 2
            B = np.zeros((3, 8))
            B[0, 0::2], B[1, 1::2] = gradients
            B[2, 0::2], B[2, 1::2] = gradients[1], gradients[0]
            K += B.T @ law @ B / 4
    return K


def body_with_a_void(stiffness, nx=16, ny=12, *, island=False):
    """A plate that is held at its left side, with a hole of a stiffness that may be zero; a part may float in it."""
    density = np.ones((ny, nx))
    density[3:9, 5:12] = stiffness
    if island:
        density[5:7, 7:10] = 1
    held = (2 * np.arange(0, (nx + 1) * (ny + 1), nx + 1)[:, None] + [0, 1]).ravel()
    return fix(bilinear(plane_stress(), nx, ny, 2, density), held)


def load_at_the_corner(A):
    b = np.zeros(A.shape[0])
    b[-1] = -1
    return b


def cavity(n=24, stretch=2.0):
    """The pressure in a closed cavity, by volumes that become thin towards the walls: no value is fixed."""
    half = stretch ** np.arange(n // 2)
    widths = np.concatenate([half, half[::-1]]) / half.sum() / 2
    between = 2 / (widths[1:] + widths[:-1])
    line = laplacian_of([(k, k + 1) for k in range(n - 1)], between, n)
    size = sp.diags_array(widths)
    return sp.csr_matrix(sp.kron(line, size, "csr") + sp.kron(size, line, "csr"))


def with_dense_rows(n=20, rows=3):
    """A few unknowns that are coupled to almost all of the others, as a rigid body or a reservoir is."""
    rng, N = np.random.default_rng(0), n * n
    C = sp.csr_matrix(np.where(rng.random((rows, N)) < 0.97, rng.uniform(-1, 0, (rows, N)), 0))
    of_rows = np.asarray(abs(C).sum(axis=1)).ravel() + 1
    of_columns = np.asarray(abs(C).sum(axis=0)).ravel()
    return sp.csr_matrix(sp.block_array([[grid5(n) + sp.diags_array(of_columns), C.T], [C, sp.diags_array(of_rows)]]))


def periodic_cube(n=9, apart=1):
    """Differences of points that lie so far apart; where n and this have a common divisor, the points fall apart."""
    line = sp.diags_array([-1.0, -1.0, 2.0, -1.0, -1.0], offsets=[apart - n, -apart, 0, apart, n - apart], shape=(n, n))
    eye = sp.eye_array(n)
    return sp.csr_matrix(
        sp.kron(sp.kron(line, eye), eye) + sp.kron(sp.kron(eye, line), eye) + sp.kron(eye, sp.kron(eye, line))
    )


def spectral_elements(degree=8, elements=3):
    """Legendre's polynomials at Lobatto's points on a square, without a fixed value."""
    x = np.concatenate([[-1], roots_jacobi(degree - 1, 1, 1)[0], [1]])
    V = np.polynomial.legendre.legvander(x, degree)
    D = np.stack([np.polynomial.legendre.legval(x, np.polynomial.legendre.legder(c)) for c in np.eye(degree + 1)], 1)
    D = D @ np.linalg.inv(V)
    w = 2 / (degree * (degree + 1) * V[:, degree] ** 2)
    n = degree * elements + 1
    K, M = np.zeros((n, n)), np.zeros(n)
    for e in range(elements):
        at = slice(e * degree, (e + 1) * degree + 1)
        K[at, at] += D.T @ (w[:, None] * D)
        M[at] += w
    return sp.csr_matrix(sp.kron(sp.csr_matrix(K), sp.diags_array(M)) + sp.kron(sp.diags_array(M), sp.csr_matrix(K)))


def heat(t, n=500, stretch=50.0):
    """A step of the heat method on triangles that are slivers, some of them with angles of almost 180 degrees."""
    L = slivers(n, stretch=stretch)
    return sp.csr_matrix(sp.eye_array(L.shape[0]) / n + t * L)


def surface(n=400, stretch=50.0):
    """The Laplacian of such triangles without a fixed value, whose rows sum to zero."""
    L = slivers(n, stretch=stretch, hull=True).tocsr()
    off = sp.csr_matrix(L - sp.diags_array(L.diagonal()))
    return sp.csr_matrix(off - sp.diags_array(np.asarray(off.sum(axis=1)).ravel()))


def stokes(n=12, *, fixed):
    """Velocities and pressures on a staggered grid with walls: the pressure is known up to a constant, or fixed."""
    D = sp.diags_array([1.0, -1.0], offsets=[0, -1], shape=(n, n - 1))
    eye, line = sp.eye_array(n), sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    inner = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n - 1, n - 1))
    one = sp.kron(eye, inner) + sp.kron(line, sp.eye_array(n - 1))
    other = sp.kron(inner, eye) + sp.kron(sp.eye_array(n - 1), line)
    B = sp.hstack([sp.kron(eye, D), sp.kron(D, eye)])
    A = sp.csr_matrix(sp.block_array([[sp.block_diag([one, other]), B.T], [B, None]]))
    return fix(A, [A.shape[0] - 1]) if fixed else A


def with_zero_rows(A, at):
    """The same equations, and a row and a column that are zero."""
    n = A.shape[0]
    P = sp.eye_array(n + 1).tocsr()[:, np.delete(np.arange(n + 1), at)]
    return sp.csr_matrix(P @ A @ P.T)


def fitting(A, **more):
    """A system with a solution."""
    return System(A, A @ numbers(A.shape[0]), **more)


SINGULAR, ZERO = "A is singular", "drop the row, or put 1 there"
CONSTANT, DETECT = 'nullspace="constant"', 'nullspace="detect"'


def islands(fixed):
    parts = [free_grid(8, seed) for seed in range(4)]
    return sp.block_diag([fix(part, [5]) if k in fixed else part for k, part in enumerate(parts)], format="csr")


def wind(n=20):
    """Diffusion and upwind fluxes in a closed cavity: columns sum to zero, rows do not, and A is not symmetric."""
    blow = sp.diags_array([-1.0, 1.0], offsets=[-1, 0], shape=(n, n)).tolil()
    blow[n - 1, n - 1] = 0
    return sp.csr_matrix(free_grid(n) + sp.kron(sp.eye_array(n), blow))


KINDS: dict[str, Callable[[], System]] = {
    "two units, 1e3": lambda: two_units_system(1e3),
    "two units, 1e6": lambda: two_units_system(1e6),
    "two units, 1e-9": lambda: two_units_system(1e-9),
    "switches, 1e6": lambda: fitting(network(1e6), accuracy=1e-3),
    "switches, 1e10": lambda: System(network(1e10), numbers(225), ("raise rtol", "scale the equations")),
    "switches of no impedance": lambda: System(
        sp.csr_matrix(np.array([[np.inf, -np.inf], [-np.inf, np.inf]])), np.ones(2), ("A holds inf", "row 0")
    ),
    "switches as unknowns": lambda: System(nodal_analysis([(3, 12), (20, 37)]), numbers(66)),
    "two switches side by side, fitting": lambda: fitting(nodal_analysis([(3, 12), (3, 12)])),
    "two switches side by side": lambda: System(nodal_analysis([(3, 12), (3, 12)]), numbers(66), ("singular",)),
    "edge elements": lambda: fitting(edge_elements(1.0)),
    "edge elements, little mass": lambda: fitting(edge_elements(1e-6), accuracy=1e-3),
    "edge elements, fitting": lambda: fitting(edge_elements(0.0)),
    "edge elements, not fitting": lambda: System(edge_elements(0.0), numbers(540), ("singular",)),
    "edge elements, not fitting, constant": lambda: System(
        edge_elements(0.0),
        numbers(540),
        ("the null space of A is larger than the one that was given",),
        options={"nullspace": "constant"},
    ),
    "islands, each with one fixed": lambda: System(islands({0, 1, 2, 3}), numbers(256)),
    "islands, one fixed, fitting": lambda: fitting(islands({1})),
    "islands, one fixed": lambda: System(islands({1}), numbers(256), (SINGULAR, "3 of the", "row 0", DETECT)),
    "islands, detected": lambda: System(islands({1}), numbers(256), options={"nullspace": "detect"}),
    "voids, 1e-9": lambda: System(body_with_a_void(1e-9), load_at_the_corner(body_with_a_void(1e-9)), accuracy=1e-4),
    "voids of nothing": lambda: System(body_with_a_void(0.0), load_at_the_corner(body_with_a_void(0.0))),
    "voids with a part that floats": lambda: System(
        body_with_a_void(0.0, island=True), load_at_the_corner(body_with_a_void(0.0))
    ),
    "voids with a load on a part that floats": lambda: System(
        body_with_a_void(0.0, island=True),
        numbers(442) * (body_with_a_void(0.0, island=True).diagonal() > 0),
        (SINGULAR,),
    ),
    "voids with a load on a part that floats, detected": lambda: System(
        body_with_a_void(0.0, island=True),
        numbers(442),
        ("the null space of A is larger than the one that was given",),
        options={"nullspace": "detect"},
    ),
    "voids with a load": lambda: System(body_with_a_void(0.0), np.ones(442), ("row 148", ZERO)),
    "voids with a load, detected": lambda: System(body_with_a_void(0.0), np.ones(442), options={"nullspace": "detect"}),
    "cavity": lambda: System(cavity(), numbers(576), (SINGULAR, CONSTANT)),
    "cavity, fitting": lambda: fitting(cavity(), accuracy=1e-4),
    "cavity, constant": lambda: System(cavity(), numbers(576), options={"nullspace": "constant"}, accuracy=1e-4),
    "cavity, one fixed": lambda: fitting(fix(cavity(), [100]), accuracy=1e-4),
    "nearly dense rows": lambda: fitting(with_dense_rows()),
    "periodic cube": lambda: System(periodic_cube(), numbers(729), (SINGULAR, CONSTANT)),
    "periodic cube, detected": lambda: System(periodic_cube(), numbers(729), options={"nullspace": "detect"}),
    "periodic cube, falling apart": lambda: System(
        periodic_cube(8, 2), numbers(512), (SINGULAR, "8 of the 8 connected components", "row 0", DETECT)
    ),
    "periodic cube, falling apart, detected": lambda: System(
        periodic_cube(8, 2), numbers(512), options={"nullspace": "detect"}
    ),
    "periodic cube, fitting": lambda: fitting(periodic_cube()),
    "spectral elements": lambda: System(spectral_elements(), numbers(625), (SINGULAR, CONSTANT)),
    "spectral elements, detected": lambda: System(spectral_elements(), numbers(625), options={"nullspace": "detect"}),
    "spectral elements, fixed": lambda: fitting(fix(spectral_elements(), np.arange(25))),
    "slivers, one step": lambda: System(heat(1e-3), np.eye(heat(1e-3).shape[0])[7], accuracy=1e-4),
    "slivers, a long step": lambda: System(heat(1e3), np.eye(heat(1e3).shape[0])[7], accuracy=1e-3),
    "slivers, distances": lambda: System(surface(), numbers(surface().shape[0]), (SINGULAR, CONSTANT)),
    "slivers, distances, constant": lambda: System(
        surface(), numbers(surface().shape[0]), options={"nullspace": "constant"}, accuracy=1e-4
    ),
    "saddle point": lambda: fitting(stokes(fixed=True)),
    "saddle point, fitting": lambda: fitting(stokes(fixed=False)),
    "saddle point, not fitting": lambda: System(stokes(fixed=False), np.ones(408), ("singular",)),
    "zero row": lambda: System(with_zero_rows(grid5(15), 40), np.ones(226), ("row 40", ZERO)),
    "zero row, fitting": lambda: fitting(with_zero_rows(grid5(15), 40)),
    "zero row, detected": lambda: System(with_zero_rows(grid5(15), 40), np.ones(226), options={"nullspace": "detect"}),
    "zero row, unsymmetric": lambda: System(with_zero_rows(wind(), 40), np.ones(401), ("row 40", ZERO)),
    "wind in a cavity": lambda: System(wind(), numbers(400), ("singular",)),
    "wind in a cavity, fitting": lambda: fitting(wind()),
}
