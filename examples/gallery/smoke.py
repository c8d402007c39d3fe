"""Unsteady advection and diffusion: smoke in a wind that turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from mcprecond import ILU0, bicgstab
from mcprecond.problems.devices import on, to_host

SIZES = {"test": 24, "shown": 128, "timed": 128}
BESIDE = "SciPy's direct solver in each step"
STEPS, DT, DIFFUSION, RTOL = 30, 0.05, 2e-4, 1e-8


def prepare(size: int) -> dict[str, Any]:
    """A matrix for each step, of the same pattern, and the source of the smoke."""
    y, x = (np.mgrid[0:size, 0:size] + 0.5) / size
    source = (np.hypot(x - 0.5, y - 0.25) < 0.06).astype(float).ravel()
    return {"n": size, "source": source, "matrices": [matrix(size, DT * step) for step in range(STEPS)]}


def matrix(n: int, time: float) -> sp.csr_array:
    """A step of Euler's implicit method: upwind differences of a wind that turns, and diffusion."""
    angle, one = np.pi / 2 + 2.5 * np.sin(2 * time), sp.eye_array(n)
    parts = []
    for speed in (np.sin(angle), np.cos(angle)):
        low, high = n * max(speed, 0.0) + n**2 * DIFFUSION, n * max(-speed, 0.0) + n**2 * DIFFUSION
        parts.append(sp.diags_array([-low, low + high, -high], offsets=[-1, 0, 1], shape=(n, n)))
    return sp.csr_array(sp.eye_array(n * n) + DT * (sp.kron(parts[0], one) + sp.kron(one, parts[1])))


# shown in the docs
def solve(problem: dict[str, Any], device: str = "cpu") -> np.ndarray:
    """The wind turns, the pattern stays: each step updates the factors, and starts from the smoke before."""
    M, smoke = None, on(device, np.zeros(problem["n"] ** 2))
    source = on(device, problem["source"])
    for A in (on(device, each) for each in problem["matrices"]):
        if M is None:
            M = ILU0(A, ordering="color")
        else:
            M.update(A)
        smoke = bicgstab(A, smoke + DT * source, x0=smoke, M=M, rtol=RTOL).x
    return to_host(smoke)


# end
def by_default(problem: dict[str, Any]) -> np.ndarray:
    """SciPy's direct solver in each step."""
    smoke = np.zeros(problem["n"] ** 2)
    for A in problem["matrices"]:
        smoke = scipy.sparse.linalg.spsolve(sp.csc_array(A), smoke + DT * problem["source"])
    return smoke


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """That of the smoke, relative to the most that there is."""
    return float(abs(ours - theirs).max() / theirs.max())


def draw(figure: Any, problem: dict[str, Any], found: np.ndarray) -> None:
    """The smoke after the last step."""
    from matplotlib.patches import Circle

    axes, n = figure.add_subplot(), problem["n"]
    axes.imshow(np.sqrt(np.maximum(found, 0)).reshape(n, n), origin="lower", extent=(0, 1, 0, 1), cmap="bone")
    axes.add_patch(Circle((0.5, 0.25), 0.06, fill=False, color="#d95f02"))
    axes.set(xticks=[], yticks=[])


if __name__ == "__main__":
    from mcprecond.studies.plots import save_picture

    shown = prepare(SIZES["shown"])
    save_picture("smoke.png", draw, shown, solve(shown))
