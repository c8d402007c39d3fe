"""Find the conductivity of a plate from temperatures at sensors, by derivatives through the solves.

python examples/fit_coefficient.py docs/images/fit_coefficient.svg

With the name of a file it draws the picture, too, which needs matplotlib.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from mcprecond import MulticolorSGS
from mcprecond.interop.torch import solve

CELLS, PATCHES = 48, 6  # along each side
NOISE = 0.01  # of the temperatures, relative

cell = torch.arange(CELLS**2).reshape(CELLS, CELLS)
row_of_patches = torch.arange(CELLS) // (CELLS // PATCHES)
patch = (PATCHES * row_of_patches[:, None] + row_of_patches).ravel()  # of each cell
sensors = cell[3::6, 3::6].ravel()

# The two cells of each inner face, and the cell of each face on the boundary.
first = torch.cat([cell[:, :-1].ravel(), cell[:-1].ravel()])
second = torch.cat([cell[:, 1:].ravel(), cell[1:].ravel()])
outer = torch.cat([cell[0], cell[-1], cell[:, 0], cell[:, -1]])

# The pattern of the matrix, and where its values go: those of a face in both directions, and the diagonal.
rows, columns = torch.cat([first, second, cell.ravel()]), torch.cat([second, first, cell.ravel()])
order = torch.argsort(rows * cell.numel() + columns)
starts = torch.cat([torch.zeros(1, dtype=torch.int64), rows.bincount().cumsum(0)])
columns = columns[order]


def matrix(logarithms: Any) -> Any:
    """Finite volumes for -div(a grad u) with u = 0 on the boundary; log(a) is given on each patch."""
    a = logarithms.exp()[patch]
    faces = 2 * a[first] * a[second] / (a[first] + a[second])
    diagonal = torch.zeros_like(a)
    for cells, share in ((first, faces), (second, faces), (outer, 2 * a[outer])):
        diagonal = diagonal.index_add(0, cells, share)
    values = torch.cat([-faces, -faces, diagonal])[order]
    return torch.sparse_csr_tensor(starts, columns, values, (CELLS**2, CELLS**2), check_invariants=True)


def sources() -> Any:
    """A source in each quarter of the plate: a batch of four right-hand sides."""
    half = torch.arange(CELLS) // (CELLS // 2)
    quarter = (2 * half[:, None] + half).ravel()
    return torch.nn.functional.one_hot(quarter).double() / CELLS**2


def fit(data: Any, b: Any) -> tuple[Any, list[float]]:
    """The logarithms for which temperatures at the sensors are nearest to data, and the misfits on the way there."""
    logarithms = torch.zeros(PATCHES**2, dtype=torch.float64, requires_grad=True)
    M = MulticolorSGS(matrix(logarithms).detach())
    optimizer = torch.optim.LBFGS([logarithms], max_iter=100, line_search_fn="strong_wolfe")
    misfits = []

    def misfit() -> Any:
        optimizer.zero_grad()
        A = matrix(logarithms)
        M.update(A.detach())  # new values, the same coloring
        u = solve(A, b, M)
        value = (u[sensors] / data - 1).square().mean().sqrt()
        value.backward()
        misfits.append(value.item())
        return value

    optimizer.step(misfit)
    return logarithms.detach(), misfits


def draw(path: str, truth: Any, found: Any, misfits: list[float]) -> None:
    """The coefficient that made the data, the one that was found, and the misfits."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    # A fixed salt and no date: the same picture every time.
    with plt.rc_context({"svg.hashsalt": "fit_coefficient", "font.size": 9}):
        figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained", width_ratios=(1, 1, 1.2))
        look = {"norm": LogNorm(float(truth.exp().min()), float(truth.exp().max())), "origin": "lower"}
        for panel, title, of in zip(panels, ("truth, and the sensors", "found"), (truth, found), strict=False):
            image = panel.imshow(of.exp()[patch].reshape(CELLS, CELLS).numpy(), **look)
            panel.set(xticks=[], yticks=[], title=title)
        panels[0].scatter(sensors % CELLS, sensors // CELLS, s=6, color="white", edgecolor="black", linewidth=0.5)
        figure.colorbar(image, ax=panels[:2], label="conductivity")
        panels[2].semilogy(misfits, color="#1b9e77")
        panels[2].axhline(NOISE, color="0.5", linestyle="--", label="noise")
        panels[2].set(xlabel="evaluation", title="misfit at the sensors, relative")
        panels[2].grid(color="0.9")
        panels[2].legend()
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Make data of a coefficient, find that again, and say how well."""
    random = torch.Generator().manual_seed(0)
    truth, b = torch.randn(PATCHES**2, generator=random, dtype=torch.float64), sources()
    data = solve(matrix(truth), b, MulticolorSGS)[sensors]
    data *= 1 + NOISE * torch.randn(data.shape, generator=random, dtype=torch.float64)
    found, misfits = fit(data, b)
    error = ((found - truth).exp() - 1).abs().max()
    print(f"misfit: {misfits[0]:.0%} at the start, {misfits[-1]:.1%} at the end, with {NOISE:.0%} of noise")
    print(f"conductivity: from {truth.exp().min():.1f} to {truth.exp().max():.1f}, found to {error:.0%} at worst")
    if len(sys.argv) > 1:
        draw(sys.argv[1], truth, found, misfits)


if __name__ == "__main__":
    main()
