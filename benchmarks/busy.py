"""Solves on the CPU while every core is busy with something else, beside solves that have the cores to themselves.

    python benchmarks/busy.py            # a 5-point grid of 200^2 rows and fenl_50, 20 solves each
    python benchmarks/busy.py --small

writes benchmarks/results/busy-cpu.json (or where --output says). A solve is SGS and pcg to a relative residual of 1e-8,
with the setup done before. The script starts a process for each core that does nothing but spin, solves, ends them, and
solves again idle; the two take turns, in blocks of solves, so that what else runs on the machine meets both. How many
other processes run before each block is recorded: an idle block counts as idle only where it is near zero.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cases import SEED
from measure import RESULTS, Times, record, save

from mcprecond import MulticolorSGS, pcg
from mcprecond.backends.threads import allowed_cpus
from mcprecond.problems import fenl
from mcprecond.problems.graphs import grid2d

BLOCKS = 4
RTOL = 1e-8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solves", type=int, default=20, help="idle, and as many busy")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS / "busy-cpu.json")
    arguments = parser.parse_args()
    small = arguments.small
    problem = fenl(5 if small else 50)
    matrices = {
        "grid2d_20" if small else "poisson2d_200": grid2d(20 if small else 200),
        "fenl_5" if small else "fenl_50": problem.jacobian(problem.initial()),
    }
    settings = {
        name: os.environ.get(name) for name in ("MCPRECOND_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
    }
    cases: list[dict[str, Any]] = []
    for name, A in matrices.items():
        cases.append({"name": name, "rows": A.shape[0], "entries": int(A.nnz)} | measured(A, arguments.solves))
        print(cases[-1], flush=True)
        facts = {"seed": SEED, "small": small, "spinning": allowed_cpus(), "environment": settings}
        save(record("busy-cpu", "cpu", cases, **facts), arguments.output)


def measured(A: Any, solves: int) -> dict[str, Any]:
    """Solve in blocks, idle and busy in turns."""
    b = A @ np.random.default_rng(SEED).standard_normal(A.shape[0])
    M = MulticolorSGS(A)
    pcg(A, b, rtol=RTOL, M=M)
    times: dict[str, list[float]] = {"idle": [], "busy": []}
    load: dict[str, list[float]] = {"idle": [], "busy": []}
    for block in np.array_split(np.arange(solves), min(BLOCKS, solves)):
        for state in times:
            with spinning(allowed_cpus() if state == "busy" else 0):
                load[state].append(running())
                for _ in block:
                    started = time.perf_counter()
                    result = pcg(A, b, rtol=RTOL, M=M)
                    times[state].append(time.perf_counter() - started)
    found = {
        state: {
            "ms": Times([1e3 * seconds for seconds in taken]),
            "largest_ms": 1e3 * max(taken),
            "others_running": load[state],
        }
        for state, taken in times.items()
    }
    median = statistics.median(times["idle"])
    ratios = {"median": statistics.median(times["busy"]) / median, "largest": max(times["busy"]) / median}
    return found | {"iterations": result.iterations, "ratios_to_the_idle_median": ratios}


def running() -> float:
    """How many processes other than this one run at this moment: the mean of ten looks in half a second."""
    found = []
    for _ in range(10):
        time.sleep(0.05)
        found.append(int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]) - 1)
    return statistics.mean(found)


@contextlib.contextmanager
def spinning(processes: int) -> Iterator[None]:
    """So many processes that spin, until the block ends."""
    # They are spawned: a fork of this process would have its threads' locks, but not its threads.
    context = multiprocessing.get_context("spawn")
    ready = context.Semaphore(0)
    started = [context.Process(target=spin, args=(ready,), daemon=True) for _ in range(processes)]
    try:
        for process in started:
            process.start()
        for _ in started:
            ready.acquire()
        yield
    finally:
        for process in started:
            process.terminate()
            process.join()


def spin(ready: Any) -> None:
    ready.release()
    while True:
        pass


if __name__ == "__main__":
    main()
