"""Whether results have the same bits in every run, on every GPU and with any number of threads, and what that costs.

    python benchmarks/determinism.py cpu
    python benchmarks/determinism.py gpu           # on an H100, then on an H200: the file has both
    python benchmarks/determinism.py cpu --digests --small

With --digests it prints the digests of each result as JSON, those of all repeats that differ, and nothing is measured.
Else it writes benchmarks/results/determinism-cpu.json or determinism-gpu.json: digests at the level "gpu_to_gpu", and
the times of solves with it and without it, which take turns.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cases import SEED, SOLVED
from measure import MULTIGRID, RESULTS, record, save, timed_in_turns

import mcprecond
from mcprecond import COLORINGS, ILU0, MulticolorDILU, MulticolorGS, MulticolorSGS, SmoothedAggregation
from mcprecond.backends import backend_of, get_backend

#: The matrices that results are computed of, large enough for threads to share the work, with their sizes.
FULL, SMALL = {"fenl_50": 50, "rmat_18": 15}, {"fenl_50": 24, "rmat_18": 12}
#: What is timed: solves that take long enough for a few percent to show.
TIMED = ("fenl_100", "elasticity48", "grid2d_1024", "circuit1259", "p1_delaunay")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("names", nargs="*", default=list(TIMED), metavar="NAME", help=", ".join(SOLVED))
    parser.add_argument("--digests", action="store_true", help="print digests")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    device, small = arguments.device, arguments.small
    if arguments.digests:
        print(json.dumps(digests(device, small, arguments.repeats)))
        return
    with mcprecond.deterministic("gpu_to_gpu"):
        found = digests(device, small, 1)
    document = record("determinism", device, [], MULTIGRID, seed=SEED, small=small)
    cases = [timed(name, SOLVED[name](small, device), arguments.repeats) for name in arguments.names]
    run = {"name": document["machine"]["gpu"] or document["machine"]["cpu"], "version": mcprecond.__version__}
    run |= {key: document[key] for key in ("date", "commit")} | {"digests": found, "solves": cases}
    path = arguments.output or RESULTS / f"determinism-{device}.json"
    before = json.loads(path.read_text())["cases"] if path.exists() else []
    document["cases"] = [case for case in before if case["name"] != run["name"]] + [run]
    save(document, path)
    print(json.dumps(cases))


def timed(name: str, A: Any, repeats: int) -> dict[str, Any]:
    """Solves with the level and without it."""
    backend = backend_of(A)
    b = right_hand_side(A)
    ways: dict[str, Callable[[], Any]] = {}
    for M in (MulticolorSGS, SmoothedAggregation):
        ways[f"{M.__name__} default"] = mcprecond.PCG(A, M(A)).solve
        with mcprecond.deterministic("gpu_to_gpu"):
            ways[f"{M.__name__} gpu_to_gpu"] = mcprecond.PCG(A, M(A)).solve

    def calling(way: str) -> Callable[[], Any]:
        def call() -> Any:
            with mcprecond.deterministic("gpu_to_gpu" if way.endswith("gpu_to_gpu") else None):
                return ways[way](b, rtol=1e-8)

        return call

    calls = {way: calling(way) for way in ways}
    iterations = {way: int(call().iterations) for way, call in calls.items()}
    found = timed_in_turns(calls, repeats, backend)
    return {"name": name, "ways": {way: row | {"iterations": iterations[way]} for way, row in found.items()}}


def right_hand_side(A: Any, columns: int | None = None) -> Any:
    """A random one."""
    shape = A.shape[0] if columns is None else (A.shape[0], columns)
    numbers = np.random.default_rng(SEED).uniform(-1, 1, shape)
    return backend_of(A).xp.asarray(numbers.astype(A.dtype))


def digests(device: str, small: bool, repeats: int) -> dict[str, list[str]]:
    """The digests of the bits of each result, by what computes it: one, if they are the same in all repeats. On a GPU
    each repeat has a stream of its own.
    """
    found: dict[str, set[str]] = {}
    for _ in range(repeats):
        with stream_of(device):
            for name, results in computed(device, small):
                found.setdefault(name, set()).add(digest(device, results))
    return {name: sorted(different) for name, different in found.items()}


def stream_of(device: str) -> AbstractContextManager[Any]:
    """A new stream; nothing on the CPU."""
    return nullcontext() if device == "cpu" else get_backend(device).xp.cuda.Stream(non_blocking=True)


def digest(device: str, results: Any) -> str:
    """Of arrays and numbers."""
    found = hashlib.sha256()
    for result in results:
        host = get_backend(device).to_host(result) if hasattr(result, "shape") else np.asarray(result)
        found.update(np.ascontiguousarray(host).tobytes())
    return found.hexdigest()[:16]


#: What is applied to a vector, by name.
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "GS": MulticolorGS,
    "SGS": MulticolorSGS,
    "SGS greedy": partial(MulticolorSGS, coloring="greedy"),
    "SGS two sweeps": partial(MulticolorSGS, sweeps=2, omega=1.2),
    "DILU": MulticolorDILU,
    "ILU0 colors": partial(ILU0, ordering="color"),
    "ILU0 row order": partial(ILU0, ordering="natural"),
    "multigrid": SmoothedAggregation,
    "multigrid SGS": partial(SmoothedAggregation, smoother="gauss_seidel"),
    "multigrid K": partial(SmoothedAggregation, cycle="K"),
}
#: Those that have Eisenstat's form on every matrix.
WITH_FORMS = ("SGS greedy", "DILU")


def computed(device: str, small: bool) -> Iterator[tuple[str, Iterable[Any]]]:
    """Every kind of result of the package, with its name: colorings, operators and solutions."""
    sizes = SMALL if small else FULL
    for name, size in sizes.items():
        A = SOLVED[name].make(size, device)
        for method, known in COLORINGS.items():
            if known.deterministic:
                yield f"color {method} {name}", [mcprecond.color(A, method).colors]
        yield f"color auto {name}", [mcprecond.color(A).colors]
        yield f"color recolor {name}", [mcprecond.color(A, "jp", recolor=2).colors]
        yield f"color distance 2 {name}", [mcprecond.color(A, "greedy", distance=2).colors]
        for dtype in ("float64", "float32", "complex128"):
            own = A.astype(dtype)
            for what, build in OPERATORS.items():
                M, r = build(own), right_hand_side(own)
                z = M @ r
                M.update(own * 2)
                yield f"{what} {name} {dtype}", [z, M @ r]
        b = right_hand_side(A)
        for M in (None, "auto"):
            yield f"pcg {M} {name}", solution(mcprecond.pcg(A, b, M=M))
        for what, build in OPERATORS.items():
            if what == "GS":
                continue
            for form in ("plain", "eisenstat") if what in WITH_FORMS else ("plain",):
                yield f"pcg {what} {form} {name}", solution(mcprecond.pcg(A, b, M=build(A), form=form))
            yield f"pcg {what} columns {name}", [mcprecond.pcg(A, right_hand_side(A, 3), M=build(A)).x]
        for solver in (mcprecond.bicgstab, mcprecond.gmres):
            yield f"{solver.__name__} {name}", solution(solver(A, b, M=ILU0(A)))
    singular = neumann(SOLVED["grid2d_300"].make(100 if small else 300, device))
    c, M = right_hand_side(singular), SmoothedAggregation(singular)
    yield "pcg nullspace", solution(mcprecond.pcg(singular, c, M=M, nullspace="constant"))
    yield "multigrid solve", solution(M.solve(c - c.mean(), maxiter=5, rtol=1e-8))


def neumann(A: Any) -> Any:
    """A matrix with the rows' sums taken off the diagonal, which leaves constants in its null space."""
    sparse = backend_of(A).sparse
    return sparse.csr_matrix(A - sparse.diags(A @ backend_of(A).xp.ones(A.shape[0])))


def solution(result: Any) -> Iterable[Any]:
    """x and the norms of the residuals."""
    return result.x, result.residuals


if __name__ == "__main__":
    main()
