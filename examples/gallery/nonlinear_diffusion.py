"""FENL: nonlinear diffusion on a cube of finite elements, by Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from mcprecond import MulticolorSGS, pcg, problems
from mcprecond.problems.devices import on, to_host

SIZES = {"test": 6, "shown": 40, "timed": 40}
BESIDE = "SciPy's CG with Jacobi's preconditioner"
NEWTON, RTOL = 1e-8, 1e-6


def prepare(size: int) -> dict[str, Any]:
    """The problem: elements along an edge of the cube."""
    return {"problem": problems.fenl(size)}


# shown in the docs
def solve(problem: dict[str, Any], device: str = "cpu") -> np.ndarray:
    """Newton's method: the coloring is found once, and each step gives new values to the sweeps."""
    M = None

    def step(J: Any, r: Any) -> Any:
        nonlocal M
        J, r = on(device, J, r)
        if M is None:
            M = MulticolorSGS(J)
        else:
            M.update(J)
        return to_host(pcg(J, r, M=M, rtol=RTOL).x)

    return newton(problem["problem"], step)


# end
def by_default(problem: dict[str, Any]) -> np.ndarray:
    """SciPy's CG with Jacobi's preconditioner."""

    def step(J: Any, r: Any) -> Any:
        M = sp.csr_array(sp.diags_array(1 / J.diagonal()))
        return scipy.sparse.linalg.cg(J, r, M=M, rtol=RTOL)[0]

    return newton(problem["problem"], step)


def newton(problem: Any, step: Any) -> np.ndarray:
    """The temperatures where the residual is small, by steps that solve with the Jacobian."""
    T = problem.initial()
    first = r = problem.residual(T)
    while np.linalg.norm(r) > NEWTON * np.linalg.norm(first):
        T = T - step(problem.jacobian(T), r)
        r = problem.residual(T)
    return T


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """That of the temperatures, relative to the largest one."""
    return float(abs(ours - theirs).max() / abs(theirs).max())


def draw(figure: Any, problem: dict[str, Any], found: np.ndarray) -> None:
    """The temperature in a vertical section of the cube."""
    n = round(len(found) ** (1 / 3))
    axes = figure.add_subplot()
    shown = axes.contourf(found.reshape(n, n, n)[:, n // 2], 20, cmap="inferno")
    axes.set(aspect="equal", xticks=[], yticks=[])
    figure.colorbar(shown, label="temperature")


if __name__ == "__main__":
    from mcprecond.studies.plots import save_picture

    shown = prepare(SIZES["shown"])
    save_picture("nonlinear_diffusion.png", draw, shown, solve(shown))
