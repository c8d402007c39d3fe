"""Elasticity with quadratic elements: a bracket that bends under a load."""

from __future__ import annotations

from typing import Any

import numpy as np
import skfem
from skfem.models.elasticity import lame_parameters, linear_elasticity

from mcprecond import SmoothedAggregation, pcg
from mcprecond.multigrid import rigid_body_modes
from mcprecond.problems.devices import on, to_host

#: Elements along the height of the bracket.
SIZES = {"test": 2, "shown": 6, "timed": 6}
BESIDE = "scikit-fem's default, SciPy's direct solver"
RTOL = 1e-8


def prepare(size: int) -> dict[str, Any]:
    """A beam with tetrahedra of second order, fixed at one end, and its weight."""
    mesh = skfem.MeshTet.init_tensor(*(np.linspace(0, length, length * size + 1) for length in (4, 1, 1)))
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementTetP2()), intorder=3)
    K = linear_elasticity(*lame_parameters(1.0, 0.3)).assemble(basis)
    weight = skfem.LinearForm(lambda v, w: -1e-3 * v[2]).assemble(basis)
    A, b, x, free = skfem.condense(K, weight, D=basis.get_dofs(lambda x: x[0] == 0))
    return {"A": A, "b": b, "x": x, "free": free, "basis": basis}


# shown in the docs
def solve(problem: dict[str, Any], device: str = "cpu") -> np.ndarray:
    """CG with multigrid, which knows the rigid body modes of all nodes: corners, and middles of edges."""
    A, b = on(device, problem["A"], problem["b"])
    nodes = problem["basis"].doflocs[:, ::3].T  # the three unknowns of a node follow each other
    B = rigid_body_modes(nodes)[problem["free"]]  # without the rows that `condense` has left out
    u = problem["x"].copy()
    u[problem["free"]] = to_host(pcg(A, b, M=SmoothedAggregation(A, B, block_size=3), rtol=RTOL).x)
    return u


# end
def by_default(problem: dict[str, Any]) -> np.ndarray:
    """What scikit-fem does: SciPy's direct solver."""
    return skfem.solve(problem["A"], problem["b"], problem["x"], problem["free"])


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """That of the displacements, relative to the largest one."""
    return float(abs(ours - theirs).max() / abs(theirs).max())


def draw(figure: Any, problem: dict[str, Any], found: np.ndarray) -> None:
    """The surface where it is and where it goes, times a factor that shows it."""
    mesh = problem["basis"].mesh
    moved = found[problem["basis"].nodal_dofs]
    scale = 0.5 / abs(moved).max()
    axes = figure.add_subplot(projection="3d")
    faces = mesh.facets[:, mesh.boundary_facets()].T
    axes.plot_trisurf(*mesh.p, triangles=faces, color="0.9", alpha=0.2, edgecolor="0.8", linewidth=0.2)
    bent = axes.plot_trisurf(*(mesh.p + scale * moved), triangles=faces, cmap="viridis", edgecolor="0.3", linewidth=0.2)
    bent.set_array(np.linalg.norm(moved, axis=0)[faces].mean(axis=1))
    axes.set_box_aspect((4, 1, 1.5), zoom=1.3)
    axes.set_axis_off()


if __name__ == "__main__":
    from mcprecond.studies.plots import save_picture

    shown = prepare(SIZES["shown"])
    save_picture("elasticity.png", draw, shown, solve(shown))
