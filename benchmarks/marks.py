"""The marks that are set for a CPU, each against its opponent in the same run.

    MCPRECOND_NUM_THREADS=2 OMP_NUM_THREADS=2 python benchmarks/marks.py

writes benchmarks/results/marks-cpu.json (or where --output says). Both sides of a ratio are timed in turns, so that
whatever else the machine does meets both; ratios are those of the medians. PyAMG has to be installed.
"""

from __future__ import annotations

import argparse
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse.linalg
from measure import RESULTS, Times, application, record, save

from mcprecond import MulticolorSGS, pcg, problems
from mcprecond.backends.team import get_threads

SEED, RTOL = 0, 1e-8
#: What is asked for.
MARKS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["cpu"]
COLORINGS = {"eb": "eb", "natural": "greedy", "auto": "auto"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--output", type=Path, default=RESULTS / "marks-cpu.json")
    arguments = parser.parse_args()
    cases = [
        *measure_application(12 if arguments.small else 100, arguments.repeats),
        *solve(12 if arguments.small else 50, arguments.repeats),
    ]
    facts = {"seed": SEED, "rtol": RTOL, "threads": get_threads(), "small": arguments.small}
    save(record("marks", "cpu", cases, **facts), arguments.output)


def measure_application(n: int, repeats: int) -> list[dict[str, Any]]:
    """An SGS application beside SciPy's product."""
    A, b = system(n)
    rows = []
    for label, coloring in COLORINGS.items():
        M, z = MulticolorSGS(A, coloring), np.empty_like(b)
        ours, theirs = in_turns([application(M, b, z), lambda: A @ b], repeats)
        name = f"SGS application / SciPy's A @ x, fenl_{n}, {label}"
        rows.append({"name": name, **MARKS["application"], "ratio": ours / theirs, "colors": M.n_colors})
        rows[-1] |= {"ours_ms": ours, "theirs_ms": theirs}
        print(rows[-1], flush=True)
    return rows


def solve(n: int, repeats: int) -> list[dict[str, Any]]:
    """PCG-SGS beside SciPy's cg with one symmetric Gauss-Seidel sweep of PyAMG as M; with and without setting up."""
    from pyamg.relaxation.relaxation import gauss_seidel

    A, b = system(n)
    steps: list[None] = []

    def sweep(r: np.ndarray) -> np.ndarray:
        x = np.zeros_like(r)
        gauss_seidel(A, x, np.ravel(r), iterations=1, sweep="symmetric")
        return x

    opponent = scipy.sparse.linalg.LinearOperator(A.shape, sweep, dtype=A.dtype)

    def with_pyamg(callback: Any = None) -> Any:
        return scipy.sparse.linalg.cg(A, b, M=opponent, rtol=RTOL, callback=callback)[0]

    x = with_pyamg(lambda x: steps.append(None))  # counted once, and timed without
    iterations, rows = len(steps), []
    for label, coloring in COLORINGS.items():
        M = MulticolorSGS(A, coloring)
        result = pcg(A, b, M=M, rtol=RTOL)
        ours, whole, theirs = in_turns(
            [
                lambda: pcg(A, b, M=M, rtol=RTOL),
                lambda: pcg(A, b, M=MulticolorSGS(A, coloring), rtol=RTOL),
                with_pyamg,
            ],
            repeats,
        )
        row = {**MARKS["solve"], "colors": M.n_colors, "iterations": result.iterations}
        row |= {"theirs_ms": theirs, "their_iterations": iterations}
        row["relative_residuals"] = [float(np.linalg.norm(b - A @ v) / np.linalg.norm(b)) for v in (result.x, x)]
        name = f"SciPy's cg with PyAMG's symmetric sweep / pcg with SGS, fenl_{n}, {label}"
        rows.append({"name": name, "ratio": theirs / ours, "ours_ms": ours} | row)
        rows.append({"name": f"{name}, with setup", "ratio": theirs / whole, "ours_ms": whole} | row)
        print(*rows[-2:], sep="\n", flush=True)
    return rows


def system(n: int) -> tuple[Any, np.ndarray]:
    problem = problems.fenl(n)
    A = problem.jacobian(problem.exact())
    return A, A @ np.random.default_rng(SEED).uniform(-1, 1, A.shape[0])


def in_turns(calls: list[Callable[[], Any]], repeats: int) -> list[Times]:
    """Wall times in ms, after one turn to warm up."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats + 1):
        for call, seconds in zip(calls, times, strict=True):
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
    return [Times([1e3 * s for s in seconds[1:]]) for seconds in times]


if __name__ == "__main__":
    main()
