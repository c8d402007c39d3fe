"""What was tested on which GPU, with a hash of every source file, written to a JSON file.

    python tests/gpu_record.py tests/gpu-record.json           # all tests for a GPU, by several processes
    python tests/gpu_record.py --check tests/gpu-record.json   # which sources have changed since; no GPU needed

All tests run twice: with launches that block, so that an error is reported where it occurs, and with launches that do
not, as users have them: whatever lacks an order on the GPU can be seen then only.

Much of the time goes into compiling, by NVRTC and Numba, so more processes help although they share a GPU. As a pytest
plugin this module lets them take tests in turns and note what has run. So a run that was cut off goes on where it was,
but for modules of tests that have changed since; if a source has changed, or what several modules share, it begins
anew.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
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
from mcprecond.studies.whole_files import write_whole

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "mcprecond"
RECORD = TESTS / "gpu-record.json"
#: Holds the outcomes of the tests that have run so far, in one file for each unit of tests. The files are in folders by
#: the hash of the sources and by the way of launching kernels.
PROGRESS = TESTS / ".gpu-progress"
FORMAT = 3  # of the record; before, hashes were also of imports and of what Numba compiles for the CPU
WAYS = {"blocking": {"CUDA_LAUNCH_BLOCKING": "1"}, "free-running": {"CUDA_LAUNCH_BLOCKING": "0"}}
OUTCOMES = ("passed", "failed", "skipped", "error")


#: The tests run in PER_GPU processes for each GPU, and in at most MOST processes in total. Most processes compile
#: kernels while another one uses the GPU. With more than MOST processes each test takes longer, however many cores the
#: machine has.
PER_GPU, MOST = 14, 28
THREADS = 2  # of each process: with one for each processor the loops of all are in each other's way
THREAD_VARIABLES = ("MCPRECOND_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
LONG = 20.0  # seconds: the tests of a function that takes longer are shared out one by one


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--claims", metavar="FOLDER", help="share the tests with the processes that are given this folder")
    parser.addoption("--progress", metavar="FOLDER", help="skip what is noted there, and note what has run")


def units_of(items: list[pytest.Item], seconds: dict[str, float]) -> dict[str, list[pytest.Item]]:
    """What a process takes at a time, the longest first: a test function with all its parameters, or one test of a
    function that takes longer than `LONG` and sets nothing up for all its tests. `seconds` are those of functions, as
    the last record has them.
    """
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        function = f"{item.path.name}::{item.originalname}"
        is_long = seconds.get(function, 0.0) > LONG and not shares_its_setup(item)
        units.setdefault(f"{item.path.name}::{item.name}" if is_long else function, []).append(item)

    def work(unit: str) -> float:
        return seconds.get(function_of(unit), 0.1 * len(units[unit]))

    return {unit: units[unit] for unit in sorted(units, key=work, reverse=True)}


def shares_its_setup(item: pytest.Item) -> bool:
    """Whether a test uses a fixture that is set up once for its module."""
    definitions = item._fixtureinfo.name2fixturedefs.values()
    return any(definition[-1].scope == "module" for definition in definitions)


def function_of(unit: str) -> str:
    """The module and the function of a unit."""
    return re.split(r"[\[ ]", unit)[0]


def last_record() -> dict[str, Any]:
    """The record that is committed."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


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
    found = units_of(session.items, last_record().get("seconds", {}))
    hash_of = {path: digest_of(path) for path in {items[0].path for items in found.values()}}
    units = {f"{unit} {hash_of[items[0].path]}": items for unit, items in found.items()}
    Path(claims, "units.json").write_text(json.dumps(list(units)))
    for unit, items in units.items():
        if file_of(progress, unit).exists() or not claimed(claims, unit):
            continue
        before, started = counts(), time.perf_counter()
        for item, following in zip(items, [*items[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        ran = {"counts": counts() - before, "seconds": time.perf_counter() - started}
        file_of(progress, unit).write_text(json.dumps(ran))
    return True


def run_all(progress: Path) -> tuple[dict[str, dict[str, int]], dict[str, float]]:
    """Run the tests for a GPU in each of the ways; return the counts, and the seconds of functions that take one."""
    counts, seconds = {}, Counter()
    for way, variables in WAYS.items():
        (noted := progress / way).mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as claims:
            found, took = run_once(Path(claims), noted, variables)
        counts[way] = {outcome: found[outcome] for outcome in OUTCOMES}
        print(way, counts[way], flush=True)
        seconds |= took  # the larger of both
    return counts, {function: round(took) for function, took in sorted(seconds.items()) if took >= 1}


def run_once(claims: Path, progress: Path, variables: dict[str, str]) -> tuple[Counter[str], Counter[str]]:
    """Run them in several processes with these variables of the environment, print what each says; see `total`."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "gpu_record", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile", "gpu", "--durations", "8", "--claims", str(claims), "--progress", str(progress)]
    command.append(str(TESTS))
    paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(THREADS))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    environment |= variables
    gpus = visible_gpus()
    running = {}
    for k in range(min(PER_GPU * len(gpus), MOST)):
        # All see all GPUs, for tests of several, but each another one first.
        first = k % len(gpus)
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[first:] + gpus[:first])
        log = claims / f"{k}.txt"
        with log.open("w") as output:
            streams = {"stdout": output, "stderr": subprocess.STDOUT}
            # In a group of its own, to which `timeout` sends nothing.
            running[subprocess.Popen(command, env=environment, process_group=0, **streams)] = log
    try:
        while running:
            time.sleep(0.2)
            for process in [process for process in running if process.poll() is not None]:
                print(running.pop(process).read_text(), flush=True)
    finally:  # when it is cut off, pytest still says what has failed
        for process in running:
            process.send_signal(signal.SIGINT)
        for process, log in running.items():
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
            print(log.read_text(), flush=True)
    return total(claims, progress)


def total(claims: Path, progress: Path) -> tuple[Counter[str], Counter[str]]:
    """The counts of all units, and the seconds of each function. A unit that no process has come to the end of is an
    error.
    """
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    if not (claims / "units.json").exists():
        return Counter(error=1), seconds
    for unit in json.loads((claims / "units.json").read_text()):
        path = file_of(progress, unit)
        ran = json.loads(path.read_text()) if path.exists() else {"counts": {"error": 1}, "seconds": 0.0}
        counts += Counter(ran["counts"])
        seconds[function_of(unit)] += ran["seconds"]
    return counts, seconds


def folder_for(sources: str) -> Path:
    """Where the progress of runs on these sources is noted: what passed before. That on others is forgotten."""
    folder = PROGRESS / sources
    for other in PROGRESS.glob("*"):
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*/*"):
        ran = json.loads(path.read_text() or '{"counts": {}}')  # empty where it was cut off just then
        if ran["counts"].keys() != {"passed"}:  # what was skipped may run where there are more GPUs
            path.unlink()
    return folder


def visible_gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES would call the GPUs that are there."""
    import cupy

    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return chosen.split(",") if chosen else [str(k) for k in range(cupy.cuda.runtime.getDeviceCount())]


def record(counts: dict[str, dict[str, int]], seconds: dict[str, float]) -> dict[str, object]:
    """The record of a run with these counts by way and these seconds of functions."""
    return {
        "format": FORMAT,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "gpu": gpu(),
        "counts": counts,
        "seconds": seconds,
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


def cut_off(*_: object) -> None:
    """Stop once, although `timeout` sends its signal twice."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    sys.exit("cut off; the next run goes on from here")


def main(path: Path) -> None:
    from mcprecond.backends import gpu_problem

    if problem := gpu_problem():
        raise SystemExit(f"the tests for a GPU need one: {problem}")
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, cut_off)
    shared = {name: digest for name, digest in hashes(TESTS).items() if not Path(name).name.startswith("test_")}
    sources = hashlib.sha256(json.dumps([hashes(PACKAGE), shared]).encode()).hexdigest()
    counts, seconds = run_all(folder_for(sources))
    with write_whole(path) as part:
        part.write_text(json.dumps(record(counts, seconds), indent=1) + "\n")
    raise SystemExit(any(found["failed"] or found["error"] for found in counts.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="run nothing; say which sources have changed since")
    arguments = parser.parse_args()
    if arguments.check:
        sys.exit(not check(arguments.file))
    main(arguments.file)
