"""Every argument of a wrong type or value is refused by TypeError or ValueError, in a message that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.trial import Trial
from mcprecond import (
    COLORINGS,
    ILU0,
    AutoColoring,
    ColorBlocks,
    MulticolorDILU,
    MulticolorGS,
    MulticolorSGS,
    color,
    pcg,
    problems,
    smooth,
)
from mcprecond.problems import graphs
from mcprecond.storage import NodeBlocks

NO_TOLERANCE = ("1", [1.0], 1j, np.complex128(1), {}, np.ones(2), float("nan"))  # None stands for 0
NO_NUMBER = (*NO_TOLERANCE, None)
NO_COUNT = ("1", 1.5, [1], 1j, {}, np.ones(2), float("nan"), -1)
NO_NAME = (3, 1.5, ["eb"], ("eb",), {}, b"eb", "sideways", object())
NO_BOOL = ("no", "yes", "x", 2.5, [True], {}, np.ones(2), "False")
NO_DTYPE = ("int32", "sideways", 5, "float16", "longdouble", np.int8, "S3", [1])
NO_SEED = ("x", 1.5, [1], 1j, {}, np.ones(2))
NO_PATH = (5, 1.5, ["a"], {}, object())

OF_GS = {
    "coloring": (5, None, 1.5, {}, "sideways", object(), b"eb"),
    "omega": (*NO_NUMBER, 0, 2, -1.0, float("inf"), "x", 1 + 0j),
    "sweeps": (*NO_COUNT, 0, None),
    "dtype": NO_DTYPE,
    "block_size": (*NO_COUNT, 0, 9, 5),
    "device": ("tpu", 5, ["cpu"], b"cpu", 1.5),
}
OPTIONS = {
    "eb": {"worklist": (*NO_NAME, None), "resolution": NO_NAME, "tentative": NO_BOOL, "drop_edges": NO_BOOL},
    "ecl_gc": {"shortcut1": NO_BOOL, "shortcut2": NO_BOOL, "order": (*NO_NAME, np.arange(16), [1, 2])},
    "jp": {"order": NO_NAME},
    "greedy": {"order": NO_NAME},
    "ipgc": {"chunk_size": (*NO_COUNT, 0, None), "resolution": (*NO_NAME, None), "worklist": NO_NAME},
    "vb": {
        "chunk_size": (*NO_COUNT, 0, None),
        "resolution": NO_NAME,
        "edge_filtering": NO_BOOL,
        "max_forbid": (*NO_COUNT, 0, None, 1025),
    },
    "vb_bit": {"chunk_size": (*NO_COUNT, 0, None), "resolution": NO_NAME, "edge_filtering": NO_BOOL},
    "sirg": {"resolution": (*NO_NAME, None), "doubling": NO_BOOL, "long_words": NO_BOOL, "palettes": NO_NAME},
    "is_minmax": {"two_sets": NO_BOOL, "atomics": NO_BOOL},
    "cc": {"hashes": (*NO_COUNT, 0, None, 10**6)},
    "is_hash": {"table_size": (*NO_COUNT, 0, None, 64)},
    "graphblas_is": {"engine": NO_NAME},
    "graphblas_mis": {"engine": NO_NAME},
    "graphblas_jp": {"engine": NO_NAME},
}


def table(t: Trial) -> dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]]:
    """Every public callable, with good arguments but for one, and what that one must not be."""
    line = sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(16, 16))
    A = t.put(sp.csr_matrix(line))
    ones, zeros = t.put(np.ones(16)), t.put(np.zeros(16))
    M = MulticolorSGS(A, "greedy")
    of_color: dict[str, tuple[Any, ...]] = {
        "method": (5, None, 1.5, ["eb"], ("eb",), {}, b"eb", "sideways"),
        "distance": (3, 0, "1", 1.5, None, [1], 1j, np.ones(2)),
        "seed": NO_SEED,
        "recolor": (*NO_COUNT, None),
        "balance": NO_BOOL,
        "foo": (1,),
    }
    found: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
        "color": (lambda **k: color(A, **k), of_color),
        "MulticolorGS": (lambda **k: MulticolorGS(A, **k), OF_GS | {"sweep": (3, None, "x", ["forward"], b"forward")}),
        "MulticolorSGS": (lambda **k: MulticolorSGS(A, **k), OF_GS),
        "MulticolorDILU": (
            lambda **k: MulticolorDILU(A, **k),
            {"coloring": OF_GS["coloring"], "pivot": NO_NAME, "dtype": NO_DTYPE, "device": OF_GS["device"]},
        ),
        "ILU0": (
            lambda **k: ILU0(A, **k),
            {"coloring": OF_GS["coloring"], "pivot": NO_NAME, "dtype": NO_DTYPE, "device": OF_GS["device"]}
            | {"ordering": (5, None, 1.5, "x", {}, b"color", object(), [0, 0])},
        ),
        "ColorBlocks": (
            lambda **k: ColorBlocks(A, **k),
            {"coloring": OF_GS["coloring"], "dtype": ("sideways", 5, "int32", "S3", [1]), "divides": NO_BOOL},
        ),
        "NodeBlocks": (
            lambda block_size: NodeBlocks(A, "greedy", block_size=block_size),
            {"block_size": ("1", 1.5, None, [1], 1j, 0, -1, 5)},
        ),
        "pcg": (
            lambda **k: pcg(A, ones, **k),
            {
                "rtol": (*NO_NUMBER, "x", -1.0),
                "atol": (*NO_TOLERANCE, "x", -1.0),
                "maxiter": ("1", 1.5, [1], 1j, {}, -1),
                "callback": (5, "x", [1], {}),
                "form": (3, None, "x", ["plain"]),
                "M": (5, "x", [1], lambda r: r, object(), {}),
                "x0": ("x", 5, ["a"], {}, object()),
            },
        ),
        "pcg with SGS": (
            lambda **k: pcg(A, ones, M=M, **k),
            {"rtol": (*NO_NUMBER, "x"), "atol": (*NO_TOLERANCE, "x"), "callback": (5, "x"), "x0": ("x", 5, object())},
        ),
        "pcg, b": (lambda b: pcg(A, b), {"b": ("x", None, 5, {}, ["a"] * 16, object())}),
        "pcg, A": (lambda A: pcg(A, ones), {"A": ("x", None, 5, {}, [[1.0]], np.ones((16, 15)), object())}),
        "color, A": (lambda A: color(A), {"A": ("x", None, 5, {}, [[1.0]], np.ones((16, 15)), object())}),
        "smooth": (
            lambda **k: smooth(A, **({"x": zeros, "b": ones} | k)),
            {
                "x": ("x", 5, None, object()),
                "b": ("x", 5, None, object()),
                "sweeps": (*NO_COUNT, 0),
                "omega": OF_GS["omega"],
            }
            | {
                "coloring": OF_GS["coloring"],
                "sweep": (3, "x", None),
                "block_size": OF_GS["block_size"],
                "device": OF_GS["device"],
            },
        ),
        "AutoColoring": (
            lambda expected_iterations: MulticolorSGS(A, AutoColoring(expected_iterations)),
            {"expected_iterations": ("x", None, -1, [1], 1j)},
        ),
        "rmat": (
            lambda scale=3, seed=0: graphs.rmat(scale, seed=seed),
            {"scale": ("x", None, -1, 1.5), "seed": ("x", 1.5, [1])},
        ),
        "grid2d": (
            lambda n=3, points=5: graphs.grid2d(n, points),
            {"n": ("x", None, -1, 1.5, 0), "points": ("x", None, 7, [5])},
        ),
        "delaunay": (lambda n=9, seed=0: graphs.delaunay(n, seed), {"n": ("x", None, 2, 1.5), "seed": ("x", 1.5, [1])}),
        "laplacian": (
            lambda shape=(3, 3), points=None, device="cpu": problems.laplacian(shape, points=points, device=device),
            {"shape": (5, "33", (1,), (2, "x"), (0, 3), None), "points": ("x", 4, [5]), "device": ("tpu", 5)},
        ),
        "circuit": (
            lambda n=4, seed=0, device="cpu": problems.circuit(n, seed=seed, device=device),
            {"n": ("x", None, 0, 1.5), "seed": ("x", 1.5, [1]), "device": ("tpu", 5)},
        ),
        "fenl": (
            lambda n=2, advection=0.0, conductivity=1.0, device="cpu": problems.fenl(
                n, advection=advection, conductivity=conductivity, device=device
            ),
            {
                "n": ("x", None, 0, 1.5),
                "advection": ("x", [1.0], None, 1j),
                "conductivity": ("x", -1.0, [1.0]),
                "device": ("tpu", 5),
            },
        ),
        "elasticity": (
            lambda n=2, young=1.0, poisson=0.3: problems.elasticity(n, young=young, poisson=poisson),
            {"n": ("x", None, 0, 1.5), "young": ("x", -1.0, None, 1j), "poisson": ("x", 0.5, -1.0, None, 1j)},
        ),
        "suitesparse": (
            lambda name="a/b", url="http://127.0.0.1:1", cache=None: problems.suitesparse(name, url=url, cache=cache),
            {"url": (None, 5, [1], b"x"), "cache": NO_PATH, "name": (5, None, "a", "a/../b", ["a/b"])},
        ),
        "matrix_market": (lambda path: problems.matrix_market(path), {"path": (*NO_PATH, None)}),
    }
    for method, options in OPTIONS.items():
        found[f"color by {method}"] = (
            lambda method=method, **k: color(A, method, **k),
            options | {"foo": (1,), "seed": NO_SEED},
        )
    for method in COLORINGS.keys() - OPTIONS.keys():
        found[f"color by {method}"] = (lambda method=method, **k: color(A, method, **k), {"foo": (1,), "seed": NO_SEED})
    return found


def case(t: Trial) -> None:
    calls = table(t)
    for _ in range(12):
        name = t.one_of(*calls)
        call, arguments = calls[name]
        argument = t.one_of(*arguments)
        value = arguments[argument][int(t.rng.integers(len(arguments[argument])))]
        t.about(call=name, argument=argument, value=repr(value)[:60])
        t.refuses(lambda call=call, a=argument, v=value: call(**{a: v}), f"{name}({argument})", naming=(argument,))
