"""Poisson image blending: a part of one image in another, without a seam."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from skimage import data, transform

from mcprecond import SmoothedAggregation, pcg
from mcprecond.problems.devices import on, to_host

SIZES = {"test": 40, "shown": 256, "timed": 900}
BESIDE = "SciPy's direct solver"
RTOL = 1e-6


def prepare(size: int) -> dict[str, Any]:
    """A target, a source of the same size, and the pixels that are taken from the source."""
    target = transform.resize(data.coffee(), (size, size * 3 // 2), anti_aliasing=True)
    source = transform.resize(data.chelsea(), target.shape[:2], anti_aliasing=True)
    y, x = np.mgrid[-1 : 1 : target.shape[0] * 1j, -1 : 1 : target.shape[1] * 1j]
    return {"target": target, "source": source, "inside": np.hypot(x / 0.7, y / 0.8) < 1}


def system(problem: dict[str, Any]) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Poisson's equation inside, with the gradients of the source and the target's colors at the boundary."""
    inside = problem["inside"]
    lines = [sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)) for n in inside.shape]
    L = sp.csr_array(sp.kronsum(lines[1], lines[0]))
    free = np.flatnonzero(inside)
    difference = (problem["source"] - problem["target"]).reshape(-1, 3)
    return L[free][:, free], (L @ (difference * 1.0))[free], free


# shown in the docs
def solve(problem: dict[str, Any], device: str = "cpu") -> np.ndarray:
    """Correct the target by what has the source's gradients, and is zero at the boundary: for three colors at once."""
    A, B, free = system(problem)
    A, B = on(device, A, B)
    blended = problem["target"].reshape(-1, 3).copy()
    blended[free] += to_host(pcg(A, B, M=SmoothedAggregation(A), rtol=RTOL).x)
    return np.clip(blended, 0, 1).reshape(problem["target"].shape)


# end
def by_default(problem: dict[str, Any]) -> np.ndarray:
    """What is done in most places: SciPy's direct solver."""
    A, B, free = system(problem)
    blended = problem["target"].reshape(-1, 3).copy()
    blended[free] += scipy.sparse.linalg.splu(sp.csc_array(A)).solve(B)
    return np.clip(blended, 0, 1).reshape(problem["target"].shape)


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of a color."""
    return float(abs(ours - theirs).max())


def draw(figure: Any, problem: dict[str, Any], found: np.ndarray) -> None:
    """Pasted, and blended."""
    pasted = np.where(problem["inside"][..., None], problem["source"], problem["target"])
    for panel, title, image in zip(figure.subplots(1, 2), ("pasted", "blended"), (pasted, found), strict=True):
        panel.imshow(image)
        panel.set_title(title)
        panel.set_axis_off()


if __name__ == "__main__":
    from mcprecond.studies.plots import save_picture

    shown = prepare(SIZES["shown"])
    save_picture("image_blending.png", draw, shown, solve(shown))
