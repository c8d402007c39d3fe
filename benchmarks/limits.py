"""What limits a sweep: the profiler's counters for the two kernels of an application, on a GPU with Nsight Compute.

    python benchmarks/limits.py

runs itself under `ncu` once per matrix and writes benchmarks/results/limits-gpu.json (or where --output says). Times
under the profiler are not those of a run: the clock is fixed and caches are flushed. The shares are what counts.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from measure import RESULTS, record, save
from sweeps import CASES, COLORINGS, SEED

#: What the record calls a counter, and what the profiler does; shares are in percent of the peak.
COUNTERS = {
    "microseconds": "gpu__time_duration.sum",
    "dram_share": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_share": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_share": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue_share": "sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
    "l1_hits": "l1tex__t_sector_hit_rate.pct",
    "l2_hits": "lts__t_sector_hit_rate.pct",
    "warps_active": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "dram_megabytes": "dram__bytes.sum",
}
KERNELS = ("substitute", "back_substitute")
MEGABYTES = {"byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}
MICROSECONDS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}


def variants(name: str) -> list[dict[str, Any]]:
    """The applications that are profiled on a matrix."""
    blocks = [{"block_size": 3}] if name.startswith("elasticity") else [{"dtype": "float32"}]
    return [{"coloring": coloring} | options for coloring in COLORINGS for options in ({}, *blocks)]


def apply_all(name: str) -> None:
    """What runs under the profiler: each application once, after one that is not profiled."""
    import cupy

    from mcprecond import MulticolorSGS

    A = CASES[name](False, "gpu")
    r = cupy.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    for variant in variants(name):
        others = {key: value for key, value in variant.items() if key != "coloring"}
        M, z = MulticolorSGS(A, COLORINGS[variant["coloring"]], **others), cupy.empty_like(r)
        M.enqueue(r, z)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.start()
        M.enqueue(r, z)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.stop()


def profile(name: str) -> list[dict[str, Any]]:
    """The counters of each variant, one row per kernel."""
    command = ["ncu", "--csv", "--profile-from-start", "off", "--metrics", ",".join(COUNTERS.values()), sys.executable]
    run = subprocess.run([*command, __file__, "--apply", name], capture_output=True, text=True)
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
    rows = [launch for launch in launches.values() if launch["kernel"] in KERNELS]
    pairs = variants(name)
    if len(rows) != 2 * len(pairs):
        raise RuntimeError(f"the profiler saw {len(rows)} sweeps, not {2 * len(pairs)}:\n{output}")
    return [pairs[k // 2] | row for k, row in enumerate(rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--apply", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=RESULTS / "limits-gpu.json")
    arguments = parser.parse_args()
    if arguments.apply:
        apply_all(arguments.apply)
        return
    cases = []
    for name in arguments.cases:
        cases.append({"name": name, "sweeps": profile(name)})
        print(name, *cases[-1]["sweeps"], sep="\n", flush=True)
        save(record("limits", "gpu", cases, seed=SEED), arguments.output)


if __name__ == "__main__":
    main()
