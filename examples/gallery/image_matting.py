"""Image matting: how much of each pixel belongs to the foreground."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymatting
from skimage import data, filters, transform

from mcprecond import ILU0

SIZES = {"test": 48, "shown": 192, "timed": 512}
BESIDE = "PyMatting's default, an incomplete Cholesky factorization with fill-in"
RTOL = 1e-6


def prepare(size: int) -> dict[str, Any]:
    """A disc of one image, with a blurred edge, on another image; and what is known of it, the trimap."""
    front, back = (
        transform.resize(each, (size, size), anti_aliasing=True) for each in (data.astronaut(), data.chelsea())
    )
    y, x = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    radius = np.hypot(x, y) + 0.04 * np.sin(9 * np.arctan2(y, x))
    alpha = filters.gaussian((radius < 0.6).astype(float), size / 40)
    trimap = np.where(radius < 0.5, 1.0, np.where(radius > 0.7, 0.0, 0.5))
    image = alpha[..., None] * front[..., :3] + (1 - alpha[..., None]) * back[..., :3]
    return {"image": np.clip(image, 0, 1), "trimap": trimap}


# shown in the docs
def solve(problem: dict[str, Any]) -> np.ndarray:
    """PyMatting with a preconditioner of this package: it calls a function of the matrix."""
    return pymatting.estimate_alpha_cf(
        problem["image"],
        problem["trimap"],
        preconditioner=lambda A: ILU0(A, ordering="natural"),
        cg_kwargs={"rtol": RTOL},
    )


# end
def by_default(problem: dict[str, Any]) -> np.ndarray:
    """PyMatting with its own preconditioner, an incomplete Cholesky factorization with fill-in."""
    return pymatting.estimate_alpha_cf(problem["image"], problem["trimap"], cg_kwargs={"rtol": RTOL})


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of an opacity."""
    return float(abs(ours - theirs).max())


def draw(figure: Any, problem: dict[str, Any], found: np.ndarray) -> None:
    """The image, the trimap and the matte."""
    images = {"image": problem["image"], "trimap": problem["trimap"], "opacity": found}
    for panel, (title, image) in zip(figure.subplots(1, 3), images.items(), strict=True):
        panel.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1)
        panel.set_title(title)
        panel.set_axis_off()


if __name__ == "__main__":
    from mcprecond.studies.plots import save_picture

    shown = prepare(SIZES["shown"])
    save_picture("image_matting.png", draw, shown, solve(shown))
