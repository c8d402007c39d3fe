"""What was tested on which GPU, with a hash of every source file, written to a JSON file.

    python tests/gpu_record.py tests/gpu-record.json     # all tests for a GPU, shared out among processes

Much of the time goes into compiling kernels and twins, so more processes help although they share a GPU; where there
are more GPUs, each has as many. As a pytest plugin this module lets them take tests in turns and writes their counts.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "mcprecond"
OUTCOMES = ("passed", "failed", "skipped", "error")


PER_GPU = 4  # processes: some compile while another computes; eight take turns on the GPU and are slower
LARGE = 200  # tests
# A test of that function, or in that module, takes as long as so many others, since it compiles twins.
SLOW = {
    "test_deterministic_methods_agree_on_both_devices": 15,
    "test_docs.py": 40, "test_advice.py": 10, "test_choice.py": 10, "test_diagonals.py": 3, "test_ilu.py": 2,
}  # fmt: skip
ONE_BY_ONE = {"test_docs.py"}  # each of its tests is work enough to be shared out by itself


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--counts", metavar="FILE", help="write how many tests passed, failed and so on to FILE")
    parser.addoption("--claims", metavar="FOLDER", help="share the tests with the processes that are given this folder")


def units_of(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """What a process takes at a time, the most work first: a module, which needs the same kernels, or one test function
    with all its parameters where a module is large; but each page is by itself.
    """
    of_module = Counter(item.path for item in items)
    units: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        function = item.originalname if of_module[item.path] > LARGE else ""
        units.setdefault((item.path, item.name if item.path.name in ONE_BY_ONE else function), []).append(item)

    def work(unit: list[pytest.Item]) -> int:
        return sum(SLOW.get(item.originalname, SLOW.get(item.path.name, 1)) for item in unit)

    return sorted(units.values(), key=work, reverse=True)


def claimed(folder: str, number: int) -> bool:
    """Whether this process is the first to ask for unit `number`."""
    try:
        Path(folder, str(number)).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run one unit after another of those that no other process has claimed."""
    folder = session.config.getoption("--claims")
    if folder is None:
        return None
    for number, unit in enumerate(units_of(session.items)):
        if claimed(folder, number):
            for item, following in zip(unit, [*unit[1:], None], strict=True):
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    path = config.getoption("--counts")
    if path:
        counts = {outcome: len(terminalreporter.stats.get(outcome, [])) for outcome in OUTCOMES}
        Path(path).write_text(json.dumps(counts))


def run_all(folder: Path) -> dict[str, int]:
    """Run the tests for a GPU in several processes, print what each says, and return the counts of all."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "gpu_record", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile", "gpu", "--durations", "20"]
    paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    gpus = visible_gpus()
    shares = [folder / f"{k}.json" for k in range(PER_GPU * len(gpus))]
    (claims := folder / "claims").mkdir()
    running = []
    for k, path in enumerate(shares):
        own = ["--claims", str(claims), "--counts", str(path), str(TESTS)]
        # All see all GPUs, for tests of several, but each another one first.
        first = k % len(gpus)
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[first:] + gpus[:first])
        log = path.with_suffix(".txt").open("w")
        running.append(subprocess.Popen([*command, *own], env=environment, stdout=log, stderr=subprocess.STDOUT))
    left = dict(zip(running, shares, strict=True))
    while left:  # told as they end: who stops this run knows about those
        time.sleep(0.2)
        for process in [process for process in left if process.poll() is not None]:
            print(left.pop(process).with_suffix(".txt").read_text(), flush=True)
    counts = [json.loads(path.read_text()) if path.exists() else {"error": 1} for path in shares]
    return {outcome: sum(share.get(outcome, 0) for share in counts) for outcome in OUTCOMES}


def visible_gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES would call the GPUs that are there."""
    import cupy

    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return chosen.split(",") if chosen else [str(k) for k in range(cupy.cuda.runtime.getDeviceCount())]


def record(counts: dict[str, int]) -> dict[str, object]:
    """The record of a run with these counts."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "gpu": gpu(),
        "counts": counts,
        "files": hashes(PACKAGE),
    }


def gpu() -> dict[str, object]:
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    return {
        "name": properties["name"].decode(),
        "devices": cupy.cuda.runtime.getDeviceCount(),
        "compute capability": f"{properties['major']}.{properties['minor']}",
        "cupy": cupy.__version__,
        "cuda": str(cupy.cuda.runtime.runtimeGetVersion()),
        "driver": str(cupy.cuda.runtime.driverGetVersion()),
    }


def hashes(package: Path) -> dict[str, str]:
    """SHA-256 of every source file, by its path inside the package."""
    sources = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".cu", ".cuh"))
    return {path.relative_to(package).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in sources}


def main(path: str) -> None:
    from mcprecond.backends import gpu_problem

    if problem := gpu_problem():
        raise SystemExit(f"the tests for a GPU need one: {problem}")
    with tempfile.TemporaryDirectory() as folder:
        counts = run_all(Path(folder))
    Path(path).write_text(json.dumps(record(counts), indent=1) + "\n")
    print(counts)
    raise SystemExit(bool(counts["failed"] or counts["error"]))


if __name__ == "__main__":
    main(sys.argv[1])
