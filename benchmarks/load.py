"""What many solves do to a process, and to each other.

    python benchmarks/load.py cpu
    python benchmarks/load.py gpu                   # with two GPUs, both
    python benchmarks/load.py gpu vertices          # 2^26 vertices by every coloring

writes benchmarks/results/load-cpu.json or load-gpu.json (or where --output says). Each case is a part:

- memory: setups and solves of changing sizes, one after the other; the memory of the process, that of Python's objects
  and NumPy's arrays, and that of CuPy's pool, after each tenth of them, and their slopes in bytes for each setup.
- threads: as many Python threads as there are, with solves each, of one `PCG` and of their own; all have the bits of a
  solve alone.
- streams: the same on streams of a GPU, and on all GPUs at once.
- vertices: a grid of 2^26 vertices colored by every method; each coloring is proper.
"""

from __future__ import annotations

import argparse
import gc
import resource
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from measure import MULTIGRID, RESULTS, record, save

from mcprecond import COLORINGS, ILU0, PCG, MulticolorSGS, SmoothedAggregation, color, pcg, problems
from mcprecond.backends import backend_of, get_backend

SEED, RTOL = 0, 1e-8
#: Sides of the cubes whose systems are solved, in a random order.
SIDES = (6, 9, 12, 15, 18, 21, 24)
PARTS = ("memory", "threads", "streams", "vertices")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--setups", type=int, default=1000)
    parser.add_argument("--hierarchies", type=int, default=200)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--solves", type=int, default=50)
    parser.add_argument("--scale", type=int, default=26, help="log2 of the vertices")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    device, cases = arguments.device, []

    def keep(case: dict[str, Any]) -> None:
        cases.append(case)
        print(case, flush=True)
        save(record("load", device, cases, MULTIGRID, seed=SEED), arguments.output or RESULTS / f"load-{device}.json")

    if "memory" in arguments.parts:
        for build, count in ((MulticolorSGS, arguments.setups), (ILU0, arguments.setups // 5)):
            keep({"name": f"memory {build.__name__}"} | memory(build, count, device))
        keep({"name": "memory SmoothedAggregation"} | memory(SmoothedAggregation, arguments.hierarchies, device))
    if "threads" in arguments.parts:
        keep({"name": "threads"} | at_once([0] * arguments.threads, arguments.solves, device, streams=False))
    if "streams" in arguments.parts and device == "gpu":
        keep({"name": "streams"} | at_once([0] * 8, arguments.solves, device, streams=True))
        count = get_backend("gpu").xp.cuda.runtime.getDeviceCount()
        if count > 1:
            keep({"name": f"{count} GPUs"} | at_once(list(range(count)) * 4, arguments.solves, device, streams=True))
    if "vertices" in arguments.parts:
        for case in colorings(arguments.scale, device):
            keep(case)


def memory(build: Callable[[Any], Any], count: int, device: str) -> dict[str, Any]:
    """Setups and solves of changing sizes, and the memory that is in use after each tenth of them."""
    systems = [system(side, device) for side in SIDES]
    for A, b in systems:  # so that each kernel has been compiled
        pcg(A, b, M=build(A), rtol=RTOL)
    samples = []
    tracemalloc.start()
    for sides in np.array_split(np.random.default_rng(SEED).integers(len(SIDES), size=count), 10):
        for side in sides:
            A, b = systems[side]
            result = pcg(A, b, M=build(A), rtol=RTOL)
            assert result.converged, result.reason
            del result
        gc.collect()
        samples.append(memory_in_use(device))
    tracemalloc.stop()
    found: dict[str, Any] = {"setups": count}
    for name, bytes_in_use in zip(("process", "python", "pool"), np.array(samples).T, strict=True):
        found |= {f"{name}_bytes": bytes_in_use.tolist(), f"{name}_slope": 10 * slope(bytes_in_use) / count}
    return found


def memory_in_use(device: str) -> tuple[int, int, int]:
    """Bytes of the process on the host, of Python's objects and NumPy's arrays, and of CuPy's pool that are taken."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    pool = 0 if device == "cpu" else int(get_backend("gpu").xp.get_default_memory_pool().used_bytes())
    return resident, tracemalloc.get_traced_memory()[0], pool


def slope(samples: np.ndarray) -> float:
    """By least squares, from the second half of the samples: what is made once is made in the first."""
    later = samples[len(samples) // 2 :]
    return float(np.polyfit(np.arange(len(later)), later, 1)[0])


def system(side: int, device: str) -> tuple[Any, Any]:
    """A Laplacian on a cube, and a random right-hand side."""
    A = problems.laplacian((side,) * 3, device=device)
    return A, backend_of(A).xp.asarray(np.random.default_rng(side).uniform(-1, 1, A.shape[0]))


def at_once(devices: list[int], solves: int, device: str, *, streams: bool) -> dict[str, Any]:
    """A thread for each device that is named, each with so many solves; every solution has the bits of one alone."""
    kinds: list[Callable[[Any], Any]] = [MulticolorSGS, SmoothedAggregation, ILU0]
    to_host = get_backend(device).to_host
    alone = []
    for build in kinds:
        A, b = system(20, device)
        alone.append(to_host(pcg(A, b, M=build(A), rtol=RTOL).x))

    def run(number: int) -> int:
        kind, same = number % len(kinds), 0
        with ExitStack() as stack:
            if device == "gpu":
                cuda = get_backend("gpu").xp.cuda
                stack.enter_context(cuda.Device(devices[number]))
                if streams:
                    stack.enter_context(cuda.Stream(non_blocking=True))
            A, b = system(20, device)
            solver = PCG(A, kinds[kind](A))
            for solve in range(solves):
                result = solver.solve(b, rtol=RTOL) if solve % 2 else pcg(A, b, M=kinds[kind](A), rtol=RTOL)
                same += bool((to_host(result.x) == alone[kind]).all())
        return same

    started = time.perf_counter()
    with ThreadPoolExecutor(len(devices)) as pool:
        same = sum(pool.map(run, range(len(devices))))
    assert same == solves * len(devices), f"{solves * len(devices) - same} solutions have other bits"
    return {"threads": len(devices), "solves": same, "seconds": time.perf_counter() - started}


def colorings(scale: int, device: str) -> Any:
    """Each method on a grid of 2^scale vertices."""
    backend = get_backend(device)
    A = problems.laplacian((2 ** (scale // 2),) * 2, device=device)
    for method in COLORINGS:
        backend.synchronize()
        started = time.perf_counter()
        coloring = color(A, method)
        backend.synchronize()
        seconds = time.perf_counter() - started
        assert coloring.is_valid(A), f"{method} is improper"
        yield {"name": f"vertices {method}", "vertices": A.shape[0], "colors": coloring.n_colors, "seconds": seconds}


if __name__ == "__main__":
    main()
