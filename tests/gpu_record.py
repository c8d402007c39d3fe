"""What was tested on which GPU, with a hash of every source file, written to a JSON file.

    python tests/gpu_record.py tests/gpu-record.json           # all tests for a GPU, by several processes
    python tests/gpu_record.py --check tests/gpu-record.json   # which sources have changed since; no GPU needed

All tests run twice: with launches that block, so that an error is reported where it occurs, and with launches that do
not, as users have them: whatever lacks an order on the GPU can be seen then only.

Much of the time goes into compiling, by NVRTC and Numba, so more processes help although they share a GPU; where there
are more GPUs, each has as many. As a pytest plugin this module lets them take tests in turns and note what has run. So
a run that was cut off goes on where it was, but for modules of tests that have changed since; if a source has changed,
or what several modules share, it begins anew.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mcprecond.studies.sources import digest_of, hashes
from mcprecond.studies.whole_files import written_whole

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "mcprecond"
PROGRESS = (
    TESTS / ".gpu-progress"
)  # a file for each unit of tests that has run, in a folder for the sources' hash and for the way
FORMAT = 3  # of the record; before, hashes were also of imports and of what Numba compiles for the CPU
WAYS = {"blocking": {"CUDA_LAUNCH_BLOCKING": "1"}, "free-running": {"CUDA_LAUNCH_BLOCKING": "0"}}
OUTCOMES = ("passed", "failed", "skipped", "error")


PER_GPU = 14  # processes: most compile while another computes
THREADS = 2  # of each process: with one for each processor the loops of all are in each other's way
LARGE = 200  # tests
# A test of that function, or in that module, takes as long as so many others, since it compiles functions for the CPU.
SLOW = {
    "test_deterministic_methods_agree_on_both_devices": 15,
    "test_docs.py": 40,
    "test_advice.py": 10,
    "test_multigrid.py": 5,
    "test_choice.py": 10,
    "test_dia.py": 3,
    "test_ilu.py": 2,
}
ONE_BY_ONE = {"test_docs.py"}  # each of its tests is work enough to be shared out by itself


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--claims", metavar="FOLDER", help="share the tests with the processes that are given this folder")
    parser.addoption("--progress", metavar="FOLDER", help="skip what is noted there, and note what has run")


def units_of(items: list[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """What a process takes at a time, the most work first: a module, which needs the same kernels, or one test function
    with all its parameters where a module is large; but each page is by itself.
    """
    of_module = Counter(item.path for item in items)
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        function = item.originalname if of_module[item.path] > LARGE else ""
        name = item.name if item.path.name in ONE_BY_ONE else function
        units.setdefault(f"{item.path.name}::{name}", []).append(item)

    def work(unit: str) -> int:
        return sum(SLOW.get(item.originalname, SLOW.get(item.path.name, 1)) for item in units[unit])

    return {unit: units[unit] for unit in sorted(units, key=work, reverse=True)}


def file_of(folder: str | Path, unit: str) -> Path:
    """That of a unit in a folder."""
    return Path(folder, hashlib.sha256(unit.encode()).hexdigest()[:20])


def claimed(claims: str, unit: str) -> bool:
    """Whether this process is the first to ask for the unit."""
    try:
        file_of(claims, unit).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run one unit after another of those that have not run and that no other process has claimed."""
    claims, progress = (session.config.getoption(name) for name in ("--claims", "--progress"))
    if claims is None:
        return None
    stats = session.config.pluginmanager.get_plugin("terminalreporter").stats

    def counts() -> Counter[str]:
        return Counter({outcome: len(stats.get(outcome, [])) for outcome in OUTCOMES})

    # With the hash of the module: when it changes, its units have not run.
    units = {f"{unit} {digest_of(items[0].path)}": items for unit, items in units_of(session.items).items()}
    Path(claims, "units.json").write_text(json.dumps(list(units)))
    for unit, items in units.items():
        if file_of(progress, unit).exists() or not claimed(claims, unit):
            continue
        before = counts()
        for item, following in zip(items, [*items[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        file_of(progress, unit).write_text(json.dumps(counts() - before))
    return True


def run_all(progress: Path) -> dict[str, dict[str, int]]:
    """Run the tests for a GPU in each of the ways; return the counts."""
    counts = {}
    for way, variables in WAYS.items():
        (noted := progress / way).mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as claims:
            found = run_once(Path(claims), noted, variables)
        counts[way] = {outcome: found[outcome] for outcome in OUTCOMES}
        print(way, counts[way], flush=True)
    return counts


def run_once(claims: Path, progress: Path, variables: dict[str, str]) -> Counter[str]:
    """Run them in several processes with these variables of the environment, print what each says, and count."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "gpu_record", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile", "gpu", "--durations", "8", "--claims", str(claims), "--progress", str(progress)]
    command.append(str(TESTS))
    paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"MCPRECOND_NUM_THREADS": str(THREADS)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    environment |= variables
    gpus = visible_gpus()
    running = {}
    for k in range(PER_GPU * len(gpus)):
        # All see all GPUs, for tests of several, but each another one first.
        first = k % len(gpus)
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[first:] + gpus[:first])
        log = claims / f"{k}.txt"
        with log.open("w") as output:
            running[subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)] = log
    try:
        while running:
            time.sleep(0.2)
            for process in [process for process in running if process.poll() is not None]:
                print(running.pop(process).read_text(), flush=True)
    finally:
        for process in running:
            process.terminate()
    return total(claims, progress)


def total(claims: Path, progress: Path) -> Counter[str]:
    """The counts of all units; one that no process has come to the end of is an error."""
    if not (claims / "units.json").exists():
        return Counter(error=1)
    counts: Counter[str] = Counter()
    for unit in json.loads((claims / "units.json").read_text()):
        path = file_of(progress, unit)
        counts += Counter(json.loads(path.read_text())) if path.exists() else Counter(error=1)
    return counts


def folder_for(sources: str) -> Path:
    """Where the progress of runs on these sources is noted: what passed before. That on others is forgotten."""
    folder = PROGRESS / sources
    for other in PROGRESS.glob("*"):
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*/*"):
        counts = json.loads(path.read_text() or "{}")  # empty where it was cut off just then
        if counts.keys() != {"passed"}:  # what was skipped may run where there are more GPUs
            path.unlink()
    return folder


def visible_gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES would call the GPUs that are there."""
    import cupy

    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return chosen.split(",") if chosen else [str(k) for k in range(cupy.cuda.runtime.getDeviceCount())]


def record(counts: dict[str, dict[str, int]]) -> dict[str, object]:
    """The record of a run with these counts by way."""
    return {
        "format": FORMAT,
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


def changed_since(record: dict[str, Any]) -> list[str]:
    """Which sources are others than those that the tests ran on, a line each."""
    if record.get("format", 1) != FORMAT:
        found = (
            f"the record has format {record.get('format', 1)}, and its hashes cannot be compared with those of format"
        )
        return [f"{found} {FORMAT}: `make test-gpu` writes it anew"]
    then, now = record["files"], hashes(PACKAGE)
    changed = [f"changed: {name}" for name in sorted(then.keys() & now.keys()) if then[name] != now[name]]
    changed += [f"new: {name}" for name in sorted(now.keys() - then.keys())]
    return changed + [f"gone: {name}" for name in sorted(then.keys() - now.keys())]


def check(path: Path) -> bool:
    """Say whether the record is of the sources as they are."""
    changed = changed_since(json.loads(path.read_text()))
    print("\n".join(changed) if changed else f"{path.name} is of these sources")
    return not changed


def main(path: Path) -> None:
    from mcprecond.backends import gpu_problem

    if problem := gpu_problem():
        raise SystemExit(f"the tests for a GPU need one: {problem}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("cut off; the next run goes on from here"))
    shared = {name: digest for name, digest in hashes(TESTS).items() if not Path(name).name.startswith("test_")}
    sources = hashlib.sha256(json.dumps([hashes(PACKAGE), shared]).encode()).hexdigest()
    counts = run_all(folder_for(sources))
    with written_whole(path) as part:
        part.write_text(json.dumps(record(counts), indent=1) + "\n")
    raise SystemExit(any(found["failed"] or found["error"] for found in counts.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="run nothing; say which sources have changed since")
    arguments = parser.parse_args()
    if arguments.check:
        sys.exit(not check(arguments.file))
    main(arguments.file)
