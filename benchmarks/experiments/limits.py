"""What limits a sweep: the profiler's counters for the kernels of an application, on a GPU with Nsight Compute.

    python benchmarks/experiments/limits.py

runs itself under `ncu` once per matrix and writes benchmarks/results/limits-gpu.json (or where --output says):
symmetric Gauss-Seidel as it is, with values of four bytes or in blocks, and for four right-hand sides; and the
factorization of ILU(0). Times under the profiler are not those of a run: the clock is fixed and caches are flushed.
The shares are what counts.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))  # where the benchmarks are

from cases import MATRICES, SEED
from measure import RESULTS, application, record, save
from sweeps import CASES, COLORINGS

from mcprecond import ILU0, MulticolorSGS

#: What the record calls a counter, and what the profiler does; shares are in percent of the peak.
COUNTERS = {
    "microseconds": "gpu__time_duration.sum",
    "dram_share": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_share": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "link_share": "lts__ltcfabric2ltc_cycles_active.avg.pct_of_peak_sustained_elapsed",  # between the halves of L2
    "l1_share": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue_share": "sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
    "l1_hits": "l1tex__t_sector_hit_rate.pct",
    "l2_hits": "lts__t_sector_hit_rate.pct",
    "warps_active": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "dram_megabytes": "dram__bytes.sum",
    "l1_megabytes": "l1tex__m_xbar2l1tex_read_bytes.sum",  # that L2 sends to L1
}
APPLICATION = ["substitute", "back_substitute"]
FACTORIZATION = ["factorize"]
MEGABYTES = {"byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}
MICROSECONDS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}


def variants(name: str) -> list[dict[str, Any]]:
    """The options of what is profiled on a matrix."""
    other: dict[str, Any] = {"block_size": 3} if name.startswith("elasticity") else {"dtype": "float32"}
    options: list[dict[str, Any]] = [{}, other, {"columns": 4}, {"ilu": True}]
    return [{"coloring": coloring} | chosen for coloring in COLORINGS for chosen in options]


def kernels_of(variant: dict[str, Any]) -> list[str]:
    """Which kernels are profiled, in the order of their launches."""
    return FACTORIZATION if "ilu" in variant else APPLICATION


def work_on(A: Any, coloring: str, columns: int = 1, ilu: bool = False, **options: Any) -> Callable[[], None]:
    """A function that applies or factorizes once."""
    import cupy

    if ilu:
        return partial(ILU0(A, coloring=COLORINGS[coloring]).update, A)
    M = MulticolorSGS(A, COLORINGS[coloring], **options)
    r = cupy.asarray(np.random.default_rng(SEED).uniform(-1, 1, (A.shape[0], columns)))
    return application(M, r, cupy.empty_like(r))


def run_all(name: str) -> None:
    """What runs under the profiler: each once, after a time that is not profiled."""
    import cupy

    A = MATRICES[name](False, "gpu")
    for variant in variants(name):
        work = work_on(A, **variant)
        work()
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.start()
        work()
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.stop()


def profile(name: str) -> list[dict[str, Any]]:
    """The counters of each variant, one row per kernel."""
    command = ["ncu", "--csv", "--profile-from-start", "off", "--metrics", ",".join(COUNTERS.values())]
    command += ["-k", f"regex:^({'|'.join(APPLICATION + FACTORIZATION)})$", sys.executable, __file__, "--run", name]
    run = subprocess.run(command, capture_output=True, text=True)
    output = run.stdout
    if run.returncode != 0:
        raise RuntimeError(f"the profiler failed:\n{output}{run.stderr}")
    lines = output.splitlines()
    table = list(csv.DictReader(lines[next(k for k, line in enumerate(lines) if line.startswith('"ID"')) :]))
    launches: dict[str, dict[str, Any]] = {}
    for row in table:
        launch = launches.setdefault(row["ID"], {"kernel": row["Kernel Name"].split("(")[0]})
        value, unit = float(row["Metric Value"].replace(",", "")), row["Metric Unit"]
        short = next(short for short, counter in COUNTERS.items() if counter == row["Metric Name"])
        launch[short] = value * MEGABYTES.get(unit, 1) * MICROSECONDS.get(unit, 1)
    expected = [(variant, kernel) for variant in variants(name) for kernel in kernels_of(variant)]
    seen = [launch["kernel"] for launch in launches.values()]
    if seen != [kernel for _, kernel in expected]:
        raise RuntimeError(f"the profiler saw {seen}:\n{output}")
    return [variant | launch for (variant, _), launch in zip(expected, launches.values(), strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--run", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=RESULTS / "limits-gpu.json")
    arguments = parser.parse_args()
    if arguments.run:
        run_all(arguments.run)
        return
    cases = []
    for name in arguments.cases:
        cases.append({"name": name, "sweeps": profile(name)})
        print(name, *cases[-1]["sweeps"], sep="\n", flush=True)
        save(record("limits", "gpu", cases, seed=SEED), arguments.output)


if __name__ == "__main__":
    main()
