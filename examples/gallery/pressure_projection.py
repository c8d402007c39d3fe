"""A lid that drives a flow: a projection onto flows without sources in each of 200 time steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from mcprecond import PCG, SmoothedAggregation
from mcprecond.problems.devices import library, on, to_host

#: Cells along an edge.
SIZES = {"test": 16, "shown": 96, "timed": 128}
BESIDE = "SciPy's CG"
STEPS, REYNOLDS, RTOL = 200, 400.0, 1e-5


def prepare(size: int) -> dict[str, Any]:
    """The matrix of the pressure, which has no boundary values: any constant may be added."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(size, size)).tolil()
    line[0, 0] = line[-1, -1] = 1.0
    return {"n": size, "A": sp.csr_array(sp.kronsum(line, line)) * float(size**2)}


# shown in the docs
def solve(problem: dict[str, Any], device: str = "cpu") -> tuple[Any, Any]:
    """One setup for all steps: `PCG` keeps the hierarchy, its memory and, on a GPU, the captured iterations."""
    A = on(device, problem["A"])
    solver = PCG(A, SmoothedAggregation(A), nullspace="constant")
    return flow(problem["n"], lambda b, p: solver.solve(b, x0=p, rtol=RTOL).x, library(device))


# end
def by_default(problem: dict[str, Any]) -> tuple[Any, Any]:
    """SciPy's CG, from the pressure of the step before."""
    A = problem["A"]
    return flow(problem["n"], lambda b, p: scipy.sparse.linalg.cg(A, b, x0=p, rtol=RTOL)[0], np)


def flow(n: int, pressure: Any, xp: Any) -> tuple[Any, Any]:
    """The velocities at the edges of cells after all steps, by Chorin's projection on a staggered grid."""
    h, u, v, p = 1 / n, xp.zeros((n, n + 1)), xp.zeros((n + 1, n)), xp.zeros(n * n)
    dt = min(0.25 * REYNOLDS * h**2, 0.5 * h)
    for _ in range(STEPS):
        u, v = advanced(u, v, h, dt, 1.0, xp), advanced(v.T, u.T, h, dt, 0.0, xp).T
        sources = (xp.diff(u, axis=1) + xp.diff(v, axis=0)) / h
        p = pressure(-sources.ravel() / dt, p)
        field = p.reshape(n, n)
        u[:, 1:-1] -= dt * xp.diff(field, axis=1) / h
        v[1:-1] -= dt * xp.diff(field, axis=0) / h
    return u, v


def advanced(u: Any, v: Any, h: float, dt: float, lid: float, xp: Any) -> Any:
    """One velocity after a step of advection and diffusion, with `lid` at the top and nothing at the other walls."""
    wide = xp.concatenate((-u[:1], u, 2 * lid - u[-1:]))
    inner = wide[1:-1, 1:-1]
    across = (v[:-1, :-1] + v[:-1, 1:] + v[1:, :-1] + v[1:, 1:]) / 4
    along, upward = (wide[1:-1, 2:] - wide[1:-1, :-2]) / (2 * h), (wide[2:, 1:-1] - wide[:-2, 1:-1]) / (2 * h)
    spread = wide[1:-1, 2:] + wide[1:-1, :-2] + wide[2:, 1:-1] + wide[:-2, 1:-1] - 4 * inner
    new = u.copy()
    new[:, 1:-1] += dt * (spread / (REYNOLDS * h**2) - inner * along - across * upward)
    return new


def difference(ours: tuple[Any, Any], theirs: tuple[Any, Any]) -> float:
    """That of the velocities."""
    return max(float(abs(to_host(a) - b).max()) for a, b in zip(ours, theirs, strict=True))


def draw(figure: Any, problem: dict[str, Any], found: tuple[Any, Any]) -> None:
    """Streamlines over the speed."""
    u, v = (found[0][:, 1:] + found[0][:, :-1]) / 2, (found[1][1:] + found[1][:-1]) / 2
    at = (np.arange(problem["n"]) + 0.5) / problem["n"]
    axes = figure.add_subplot()
    shown = axes.imshow(np.hypot(u, v), origin="lower", extent=(0, 1, 0, 1), cmap="viridis")
    axes.streamplot(at, at, u, v, color="white", linewidth=0.5, density=1.2, arrowsize=0.6)
    axes.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
    figure.colorbar(shown, label="speed")


if __name__ == "__main__":
    from mcprecond.studies.plots import save_picture

    shown = prepare(SIZES["shown"])
    save_picture("pressure_projection.png", draw, shown, solve(shown))
