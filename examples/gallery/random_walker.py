"""Segmentation of an image by a random walker: coins, and what is between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from skimage import data, filters, segmentation, transform

from mcprecond import SmoothedAggregation, pcg
from mcprecond.problems.devices import on, to_host

#: Rows of the image: in a test, in the picture, and where times are measured.
SIZES = {"test": 60, "shown": 303, "timed": 303}
BESIDE = "scikit-image's default, CG with Jacobi's preconditioner"
BETA, RTOL = 400.0, 1e-5  # scikit-image divides beta by ten times the deviation of the image


def prepare(size: int) -> dict[str, Any]:
    """The image, and seeds where it is much brighter or darker than around."""
    image = transform.resize(data.coins(), (size, size * 384 // 303), order=1, anti_aliasing=True)
    brighter = image - filters.gaussian(image, size / 6)
    return {"image": image, "seeds": np.where(brighter > 0.2, 1, np.where(brighter < -0.08, 2, 0))}


# shown in the docs
def system(problem: dict[str, Any], beta: float = BETA, least: float = 1e-6) -> tuple[sp.csr_array, np.ndarray]:
    """The Laplacian on the pixels that are no seeds, and the right-hand side that the seeds make."""
    image, seeds = problem["image"], problem["seeds"].ravel()
    number = np.arange(image.size).reshape(image.shape)
    i, j = (np.concatenate([part.ravel() for part in parts]) for parts in zip(*neighbors(number), strict=True))
    weights = np.exp(-beta * (image.ravel()[i] - image.ravel()[j]) ** 2 / (10 * image.std())) + least
    W = sp.coo_array((weights, (i, j)), shape=(image.size,) * 2)
    L = sp.csr_array(sp.diags_array((W + W.T).sum(axis=1)) - W - W.T)
    free = np.flatnonzero(seeds == 0)
    return L[free][:, free], -(L[free] @ (seeds == 1).astype(float))


def solve(problem: dict[str, Any], device: str = "cpu") -> np.ndarray:
    """The probability that a walker from a pixel meets the first kind of seed before the second."""
    A, b = on(device, *system(problem))
    return on_image(problem, to_host(pcg(A, b, M=SmoothedAggregation(A), rtol=RTOL).x))


def on_image(problem: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """The probabilities on all pixels, by those on the pixels that are no seeds."""
    probability = (problem["seeds"] == 1).astype(float)
    probability[problem["seeds"] == 0] = x
    return probability


# end
def neighbors(number: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of pixels beside each other."""
    return [(number[:, 1:], number[:, :-1]), (number[1:], number[:-1])]


def by_default(problem: dict[str, Any]) -> np.ndarray:
    """What scikit-image does: CG with Jacobi's preconditioner."""
    found = segmentation.random_walker(
        problem["image"], problem["seeds"], beta=BETA, mode="cg_j", tol=RTOL, return_full_prob=True
    )
    return np.asarray(found[0])


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The share of pixels that are segmented differently."""
    return float(((ours > 0.5) != (theirs > 0.5)).mean())


def draw(figure: Any, problem: dict[str, Any], found: np.ndarray) -> None:
    """Seeds, and the boundaries of the segments."""
    left, right = figure.subplots(1, 2)
    left.imshow(problem["image"], cmap="gray")
    left.imshow(np.ma.masked_equal(problem["seeds"], 0), cmap="autumn", alpha=0.6)
    left.set_title("seeds")
    right.imshow(problem["image"], cmap="gray")
    right.contour(found, [0.5], colors="#d95f02", linewidths=1)
    right.set_title("segments")
    for panel in (left, right):
        panel.set_axis_off()


if __name__ == "__main__":
    from mcprecond.studies.plots import save_picture

    shown = prepare(SIZES["shown"])
    save_picture("random_walker.png", draw, shown, solve(shown))
