"""Timing and the record around it, shared by all benchmarks."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from cases import SEED
from unaffected import settled

from mcprecond.backends import Backend
from mcprecond.solvers.eisenstat import EisenstatIteration
from mcprecond.solvers.iteration import ROUNDING
from mcprecond.studies.measure import provenance
from mcprecond.studies.whole_files import write_whole

RESULTS = Path(__file__).with_name("results")


class Times(float):
    """The median of times, which knows their quartiles: `save` writes these beside it.

    A sum has the sums of the quartiles, which are at least as far apart as those of the sums.
    """

    quartiles: tuple[float, float]
    repeats: int

    def __new__(cls, times: list[float]) -> Times:
        self = super().__new__(cls, statistics.median(times))
        first, _, third = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
        self.quartiles, self.repeats = (first, third), len(times)
        return self

    def __add__(self, other: float) -> Times:
        found = Times([float(self) + float(other)])
        theirs = other if isinstance(other, Times) else Times([other])
        found.quartiles = self.quartiles[0] + theirs.quartiles[0], self.quartiles[1] + theirs.quartiles[1]
        found.repeats = min(self.repeats, theirs.repeats) if isinstance(other, Times) else self.repeats
        return found

    __radd__ = __add__


def application(M: Any, b: Any, z: Any) -> Callable[[], None]:
    """A function that puts M b into z: it launches kernels and allocates nothing."""
    state = M.new_state(*b.shape[1:])
    return lambda: M.enqueue(state, b, z)


def begin_endless(A: Any, M: Any, b: Any, backend: Backend) -> EisenstatIteration:
    """CG in Eisenstat's form that no residual ends, so that each of its steps is a whole iteration."""
    iteration = EisenstatIteration(A, M, backend)
    iteration.load(b, None)
    iteration.scalars[ROUNDING] = 0  # else it ends at the rounding of the first residual
    iteration.start(0.0, 10**9, float(backend.xp.linalg.norm(b)), is_zero=True)
    return iteration


def wall_ms(function: Callable[[], Any], synchronize: Callable[[], None], repeats: int = 10) -> Times:
    """Median wall time of a call, device work included, after one call to warm up."""
    function()
    return Times([_once_ms(function, synchronize) for _ in range(repeats)])


def _once_ms(function: Callable[[], Any], synchronize: Callable[[], None]) -> float:
    synchronize()
    started = time.perf_counter()
    function()
    synchronize()
    return 1e3 * (time.perf_counter() - started)


def timed_row(
    function: Callable[[], Any], synchronize: Callable[[], None], repeats: int = 10, enough: float = 1.0
) -> dict[str, Any]:
    """Median, quartiles and range of the wall times of a warm call, device work included: `repeats` calls, or fewer but
    at least two where they add up to more seconds than are enough.
    """
    times: list[float] = []
    while len(times) < 2 or (len(times) < repeats and sum(times) < 1e3 * enough):
        times.append(_once_ms(function, synchronize))
    return _row(times)


SETTLING = 0.2  # seconds


def timed_in_turns(
    functions: dict[str, Callable[[], Any]],
    repeats: int,
    backend: Backend,
    *,
    small: bool = False,
) -> dict[str, dict[str, Any]]:
    """The same for several warm calls that take turns, so that what else runs on the machine meets all of them.

    On a CPU there is a pause before each call, because the threads of other libraries keep their processors busy for a
    while after a loop. There is none if problems are `small`, which is meant for trying a script.
    """
    pause = 0 if small or backend.name == "gpu" else SETTLING
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            time.sleep(pause)
            times[name].append(_once_ms(function, backend.synchronize))
    return {name: _row(found) for name, found in times.items()}


def _row(times: list[float]) -> dict[str, Any]:
    return {"ms": Times(times), "spread_ms": max(times) - min(times)}


def graph_ms(function: Callable[[], Any], calls: int = 10, repeats: int = 10) -> Times:
    """Median device time of a call that only launches kernels: so many of them in a captured graph, replayed."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        for _ in range(calls):
            function()
        graph = stream.end_capture()
        times = []
        for _ in range(repeats + 1):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            graph.launch()
            end.record()
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(start, end) / calls)
    return Times(times[1:])


def queued_ms(function: Callable[[], Any], calls: int = 20, repeats: int = 10) -> Times:
    """Median device time of a library call, which may not be capturable: so many of them wait in the stream behind a
    pause, then run back to back, without what the host needs to launch them.

    Raises
    ------
    ValueError
        If the call waits for the device.
    """
    import cupy

    pause = cupy.RawKernel(PAUSE, "pause")
    function()
    cupy.cuda.Device().synchronize()
    started = time.perf_counter()
    for _ in range(calls):
        function()
    to_queue = time.perf_counter() - started
    longest, times = 10 * to_queue, []
    while len(times) < repeats:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        cupy.cuda.Device().synchronize()
        pause((1,), (1,), (np.int64(1.5 * to_queue * CYCLES_PER_SECOND),))
        start.record()
        for _ in range(calls):
            function()
        end.record()
        queued_in_time = not start.done
        end.synchronize()
        if queued_in_time:
            times.append(cupy.cuda.get_elapsed_time(start, end) / calls)
        elif to_queue > longest:
            raise ValueError("the call waits for the device, so that none can be queued behind a pause")
        else:
            to_queue *= 1.5
    return Times(times)


CYCLES_PER_SECOND = 2e9  # at most, so a pause is not shorter than meant
PAUSE = """
extern "C" __global__ void pause(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}
"""


#: Rooms of the package whose code a result depends on.
COLORING = ("backends", "matrix", "numbering", "linalg", "coloring", "problems")
SOLVING = (*COLORING, "ordering", "storage", "sweeps", "tuning", "preconditioners", "solvers")
MULTIGRID = (*SOLVING, "multigrid", "systems", "interop")


def record(
    name: str, device: str, cases: list[dict[str, Any]], rooms: tuple[str, ...] = SOLVING, **facts: Any
) -> dict[str, Any]:
    """The JSON document of a run, with hashes of the kernel sets and of all other code in these rooms."""
    made = provenance(device == "gpu")
    made["code"] = {part: digest for part, digest in made["code"].items() if part.split("/")[0] in rooms}
    return {"benchmark": name, **made, **facts, "cases": cases}


def parser_of(doc: str | None, *, device: bool = True, repeats: int = 5) -> argparse.ArgumentParser:
    """The arguments that benchmarks have in common, with a device as the first one if there is a choice."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if device:
        parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("--small", action="store_true", help="small problems, to try the script")
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--resume", action="store_true", help="leave out what the same code has measured here")
    parser.add_argument("--output", type=Path, help="in place of a file of benchmarks/results")
    return parser


def measure_each(
    benchmark: str,
    arguments: argparse.Namespace,
    cases: Mapping[str, Callable[[], dict[str, Any]]],
    rooms: tuple[str, ...] = SOLVING,
    *,
    on: str | None = None,
    peers: tuple[str, ...] = (),
    **facts: Any,
) -> None:
    """Measure the cases of a benchmark and write its file anew after each, so that a run that is cut off leaves what it
    had. Other cases stay in the file if a run like this one has measured them.

    `on` is the device that works, if that is not the one that is asked about. `peers` are packages whose versions are
    recorded, too.
    """
    device = getattr(arguments, "device", "cpu")
    path = arguments.output or RESULTS / f"{benchmark}-{device}{'-small' * arguments.small}.json"

    def document() -> dict[str, Any]:
        made = record(benchmark, on or device, [], rooms, seed=SEED, small=arguments.small, **facts)
        return made | {"versions": made["versions"] | {name: version(name) for name in peers}}

    done = kept(path, document(), [] if arguments.resume else list(cases))
    for name, measure in cases.items():
        if any(case["name"] == name for case in done):
            continue
        done.append({"name": name} | measure())
        print(done[-1], flush=True)
        save(document() | {"cases": done}, path)


def kept(path: Path, document: dict[str, Any], names: list[str]) -> list[dict[str, Any]]:
    """The cases of a file but those named, if a run like this one has written it: with the same code and versions, on
    the same machine, with the same facts.
    """
    if not path.exists():
        return []
    before = json.loads(path.read_text())
    if settled(before.get("code") or {}) != settled(document["code"]):
        return []
    differ = {"date", "command", "others", "commit", "cases", "code"}
    if any(before.get(key) != _rounded(value) for key, value in document.items() if key not in differ):
        return []
    return [case for case in before["cases"] if case["name"] not in names]


def save(document: dict[str, Any], path: Path) -> None:
    """Write a run; numbers rounded to four significant digits, which is more than a timing has.

    Beside a median `x` stand `x_quartiles`, the first and the third, and `x_repeats`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_whole(path) as part:
        part.write_text(json.dumps(_rounded(document), indent=1) + "\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        found = {}
        for key, item in value.items():
            found[key] = _rounded(item)
            if isinstance(item, Times):
                found |= {f"{key}_quartiles": _rounded(item.quartiles), f"{key}_repeats": item.repeats}
        return found
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
