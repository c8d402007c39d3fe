"""Bundle adjustment: where an airplane took its pictures, and what is on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from mcprecond import PCG, MulticolorSGS
from mcprecond.problems.devices import on, to_host

#: Cameras along an edge of the square that is flown over.
SIZES = {"test": 5, "shown": 16, "timed": 24}
BESIDE = "SciPy's direct solver in each step"
STEPS, NOISE, DAMPING, RTOL, SEED = 5, 1e-4, 1e-4, 1e-8, 0


def prepare(size: int) -> dict[str, Any]:
    """Cameras in rows look down on hills. Each sees the points below it, and where these are is known roughly."""
    rng = np.random.default_rng(SEED)
    ground = rng.uniform(-1, size, (25 * size * size, 2))
    points = np.column_stack([ground, 0.5 * np.sin(ground[:, 0]) * np.cos(ground[:, 1])])
    rows = np.stack(np.meshgrid(np.arange(size), np.arange(size)), axis=-1).reshape(-1, 2)
    places = np.column_stack([rows, np.full(len(rows), 3.0)]) + 0.1 * rng.standard_normal((len(rows), 3))
    turns = Rotation.from_euler("x", np.pi) * Rotation.from_rotvec(0.1 * rng.standard_normal((len(rows), 3)))
    near = KDTree(ground).sparse_distance_matrix(KDTree(places[:, :2]), 1.6, output_type="coo_matrix").tocsr()
    by_two = np.diff(near.indptr) > 1  # a point that one camera sees could be anywhere
    points, seen = points[by_two], near[by_two].tocoo()
    point, camera = seen.row, seen.col
    truth = {"turns": turns, "places": places, "points": points}
    pixels = project(truth, camera, point)[0] + NOISE * rng.standard_normal((len(camera), 2))
    start = {
        "turns": Rotation.from_rotvec(0.02 * rng.standard_normal((len(rows), 3))) * turns,
        "places": places + 0.05 * rng.standard_normal(places.shape),
        "points": points + 0.05 * rng.standard_normal(points.shape),
    }
    return {"start": start, "truth": truth, "camera": camera, "point": point, "pixels": pixels}


def project(scene: dict[str, Any], camera: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where cameras see points, and the derivatives by turns and places of the camera, and by the point's place."""
    R = scene["turns"].as_matrix()[camera]
    x = np.einsum("kij,kj->ki", R, scene["points"][point] - scene["places"][camera])
    inverse = 1 / x[:, 2]
    by_x = np.zeros((len(x), 2, 3))
    by_x[:, 0, 0] = by_x[:, 1, 1] = inverse
    by_x[:, :, 2] = -x[:, :2] * inverse[:, None] ** 2
    cross = np.cross(np.eye(3), x[:, None, :])  # of the axes with x: what x does if the camera turns
    by_point = by_x @ R
    return x[:, :2] * inverse[:, None], np.concatenate([by_x @ cross.transpose(0, 2, 1), -by_point], axis=2), by_point


def blocks(values: np.ndarray, column: np.ndarray, n: int) -> sp.csr_array:
    """A row of blocks for each picture of a point, with one block in it."""
    shape = 2 * len(column), n * values.shape[2]
    return sp.csr_array(sp.bsr_array((values, column, np.arange(len(column) + 1)), shape=shape))


def reduced(scene: dict[str, Any], problem: dict[str, Any]) -> tuple[sp.csr_array, np.ndarray, Any]:
    """The normal equations of a step without the points, which have a block each; and how to find these from a step."""
    camera, point = problem["camera"], problem["point"]
    seen, by_camera, by_point = project(scene, camera, point)
    n, m = len(scene["places"]), len(scene["points"])
    C, P, r = blocks(by_camera, camera, n), blocks(by_point, point, m), (problem["pixels"] - seen).ravel()
    of_points = np.tile(DAMPING * np.eye(3), (m, 1, 1))
    np.add.at(of_points, point, by_point.transpose(0, 2, 1) @ by_point)
    inverse = sp.bsr_array((np.linalg.inv(of_points), np.arange(m), np.arange(m + 1)), shape=(3 * m, 3 * m))
    E = sp.csr_array(C.T @ P)
    S = sp.csr_array(C.T @ C + DAMPING * sp.eye_array(6 * n) - E @ sp.csr_array(inverse) @ E.T)
    return S, C.T @ r - E @ (inverse @ (P.T @ r)), lambda step: inverse @ (P.T @ r - E.T @ step)


def moved(scene: dict[str, Any], step: np.ndarray, of_points: np.ndarray) -> dict[str, Any]:
    """The scene after a step of the cameras and of the points."""
    turn, shift = step.reshape(-1, 6)[:, :3], step.reshape(-1, 6)[:, 3:]
    return {
        "turns": Rotation.from_rotvec(turn) * scene["turns"],
        "places": scene["places"] + shift,
        "points": scene["points"] + of_points.reshape(-1, 3),
    }


# shown in the docs
def solve(problem: dict[str, Any], device: str = "cpu") -> dict[str, Any]:
    """Steps of Levenberg and Marquardt. The pattern of S stays, so the colors of the cameras are found once."""
    scene, solver = problem["start"], None
    for _ in range(STEPS):
        S, g, points_of = reduced(scene, problem)
        S, g = on(device, S, g)
        if solver is None:
            solver = PCG(S, MulticolorSGS(S, block_size=6))  # three angles and three coordinates of each camera
        else:
            solver.update(S)
        step = to_host(solver.solve(g, rtol=RTOL).x)
        scene = moved(scene, step, points_of(step))
    return scene


# end
def by_default(problem: dict[str, Any]) -> dict[str, Any]:
    """The same steps by SciPy's direct solver."""
    scene = problem["start"]
    for _ in range(STEPS):
        S, g, points_of = reduced(scene, problem)
        step = scipy.sparse.linalg.splu(sp.csc_array(S), permc_spec="MMD_AT_PLUS_A").solve(g)
        scene = moved(scene, step, points_of(step))
    return scene


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """That of the cameras' places, relative to their height."""
    return float(abs(ours["places"] - theirs["places"]).max() / 3)


def draw(figure: Any, problem: dict[str, Any], found: dict[str, Any]) -> None:
    """Cameras, and the points on the ground by how far they are from where they should be."""
    panels = figure.subplots(1, 2)
    for axes, title, scene in zip(panels, ("at first", "adjusted"), (problem["start"], found), strict=True):
        off = np.linalg.norm(scene["points"] - problem["truth"]["points"], axis=1)
        points = axes.scatter(*scene["points"][:, :2].T, c=off, s=3, cmap="magma_r", vmin=0, vmax=0.15, rasterized=True)
        axes.plot(*scene["places"][:, :2].T, "^", color="#1b9e77", markersize=4)
        axes.set(aspect="equal", xticks=[], yticks=[], title=title)
    figure.colorbar(points, ax=panels, label="error of a point", location="bottom", shrink=0.5, aspect=40)


if __name__ == "__main__":
    from mcprecond.studies.plots import save_picture

    shown = prepare(SIZES["shown"])
    save_picture("cameras.png", draw, shown, solve(shown))
