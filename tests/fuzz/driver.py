"""Hands cases out to processes, counts what they say, and tells which case a process crashed or hung in."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
#: Seconds that a process works on one category before it is a new process's turn: starting one takes two or three.
BATCH = 30.0
#: Case seeds of a run are `seed` times this and on.
CASES = 10_000_000
CASES_OF_BATCH = 50_000
#: Of each process, unless the caller has said otherwise: two race as more do, and those that wait do not take the time
#: of other processes, which share the cores.
THREADS = {"MCPRECOND_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
#: Failures of one kind that are printed.
PRINTED = 2


@dataclass
class Tally:
    """What was counted of a category. `kinds`: what failed, how often, and the first cases with their facts."""

    cases: int = 0
    checks: int = 0
    failures: int = 0
    seconds: float = 0.0
    notes: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, dict[str, Any]] = field(default_factory=dict)

    def row(self, category: str) -> dict[str, Any]:
        """For a file."""
        counts = {"cases": self.cases, "checks": self.checks, "failures": self.failures, "seconds": self.seconds}
        return {"category": category, **counts, "notes": dict(self.notes), "kinds": self.kinds}


class Run:
    """Cases of some categories on a device, by so many processes at a time."""

    def __init__(
        self,
        device: str,
        shares: dict[str, float],
        seed: int,
        *,
        patience: float = 180.0,
        say: Callable[[str], None] = print,
    ) -> None:
        self.device, self.shares, self.seed, self.patience, self.say = device, shares, seed, patience, say
        self.tallies = {category: Tally() for category in shares}
        self._next = dict.fromkeys(shares, seed * CASES)
        self._given = dict.fromkeys(shares, 0.0)
        self._lock = threading.Lock()
        self._started = time.monotonic()

    def for_seconds(self, seconds: float, workers: int) -> None:
        """Until time is up, each category for its share of it."""
        end = time.monotonic() + seconds
        batch = min(BATCH, max(seconds * workers / (2 * len(self.shares)), 2.0))

        def work() -> None:
            while (left := end - time.monotonic()) > 0.5:
                with self._lock:
                    category = min(self.shares, key=lambda name: self._given[name] / self.shares[name])
                    self._given[category] += batch
                    first = self._next[category]
                    self._next[category] += CASES_OF_BATCH
                self._do([{"category": category, "first": first, "seconds": min(batch, left)}])

        self._together(work, workers)

    def for_cases(self, count: int, first: int | None = None) -> None:
        """So many cases of each category, all by one process as long as nothing happens to it."""
        first = self.seed * CASES if first is None else first
        jobs = [{"category": category, "first": first, "count": count} for category in self.shares]
        self._together(lambda: self._do(jobs), 1)

    @property
    def failures(self) -> int:
        """Of all categories."""
        return sum(tally.failures for tally in self.tallies.values())

    def progress(self) -> str:
        """One line: the time, and cases, checks and failures of each category."""
        counts = [f"{name} {t.cases}/{t.checks}/{t.failures}" for name, t in self.tallies.items() if t.cases]
        checks = sum(t.checks for t in self.tallies.values())
        return (
            f"{time.monotonic() - self._started:4.0f} s {checks:7} checks, {self.failures} failed: {', '.join(counts)}"
        )

    def table(self) -> str:
        """What was counted, a row for each category, and each kind of failure."""
        lines = [f"{'category':10} {'cases':>8} {'checks':>8} {'failed':>7} {'checks/s':>9}  notes"]
        for name, t in self.tallies.items():
            rate = t.checks / t.seconds if t.seconds else 0
            notes = ", ".join(f"{what}: {count}" for what, count in sorted(t.notes.items()))
            lines.append(f"{name:10} {t.cases:8} {t.checks:8} {t.failures:7} {rate:9.0f}  {notes}")
        for name, t in self.tallies.items():
            for what, kind in sorted(t.kinds.items(), key=lambda item: -item[1]["count"]):
                lines.append(f"{name}: {what}: {kind['count']} times, first {kind['repeat']}")
        return "\n".join(lines)

    def _together(self, work: Callable[[], None], workers: int) -> None:
        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        told = time.monotonic()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
                if time.monotonic() - told > 10:
                    told = time.monotonic()
                    self.say(self.progress())

    def _do(self, jobs: list[dict[str, Any]]) -> None:
        """Have jobs done, by another process after each that crashes or hangs."""
        while jobs:
            jobs = self._done(jobs)

    def _done(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Have one process do the jobs, and return those that it did not come to the end of."""
        started = time.monotonic()
        with tempfile.TemporaryFile("w+") as stderr:
            process = _started(self.device, jobs, stderr)
            number, seed = 0, jobs[0]["first"]
            with process.stdout as lines:  # type: ignore[union-attr]
                for event in _events(lines.fileno(), self.patience):
                    if "end" in event:
                        process.wait()
                        return []
                    if "spoiled" in event:
                        process.wait()
                        return _rest(jobs[number:], seed, time.monotonic() - started)
                    if "seed" in event:
                        number, seed = event["job"], event["seed"]
                    else:
                        self._count(jobs[number]["category"], seed, event)
                how = _ended(process)
            stderr.seek(0)
            told = [line for line in stderr.read().splitlines() if line.strip()]
        trace = [without_folders(line.strip()) for line in told if line.lstrip().startswith("File ")][:6] or told[-6:]
        event = {"checks": 0, "notes": {}, "seconds": 0.0, "failed": how, "facts": {"at": trace}}
        self._count(jobs[number]["category"], seed, event)
        return _rest(jobs[number:], seed, time.monotonic() - started)

    def _count(self, category: str, seed: int, event: dict[str, Any]) -> None:
        with self._lock:
            tally = self.tallies[category]
            tally.cases += 1
            tally.checks += event["checks"]
            tally.seconds += event["seconds"]
            tally.notes.update(event["notes"])
            if "failed" not in event:
                return
            tally.failures += 1
            repeat = f"python tests/fuzz --device {self.device} --category {category} --only {seed}"
            kind = tally.kinds.setdefault(event["failed"], {"count": 0, "repeat": repeat, "facts": event["facts"]})
            kind["count"] += 1
            if kind["count"] <= PRINTED:
                facts = ", ".join(f"{name}={value}" for name, value in event["facts"].items())
                self.say(f"{category} {seed}: {event['failed']}\n    {facts}\n    {repeat}")


def _rest(jobs: list[dict[str, Any]], seed: int, seconds: float) -> list[dict[str, Any]]:
    """What is left of jobs after that seed of the first one, and so many seconds."""
    job, *others = jobs
    rest = job | {"first": seed + 1}
    if "count" in job:
        rest["count"] = job["count"] - (rest["first"] - job["first"])
    if "seconds" in job:
        rest["seconds"] = job["seconds"] - seconds
    return [rest] * (rest.get("count", 1) > 0 and rest.get("seconds", 1) > 0) + others


def _started(device: str, jobs: list[dict[str, Any]], stderr: IO[str]) -> subprocess.Popen[str]:
    paths = [str(TESTS), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = THREADS | os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    process = subprocess.Popen(
        [sys.executable, "-m", "fuzz.worker", device],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environment,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(jobs) + "\n")
    process.stdin.close()
    return process


def _events(descriptor: int, patience: float) -> Iterator[dict[str, Any]]:
    """What a process says, until it ends, or says nothing for so long."""
    rest = b""
    while select.select([descriptor], [], [], patience)[0]:
        block = os.read(descriptor, 1 << 16)
        if not block:
            return
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _ended(process: subprocess.Popen[str]) -> str:
    """How a process ended; one that has not is ended, after it has said where it is."""
    try:
        code = process.wait(1.0)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return "hangs"
    return f"crashes: {signal.Signals(-code).name}" if code < 0 else f"ends its process: exit code {code}"


def without_folders(line: str) -> str:
    """A line of a traceback with the last three parts of its path, which do not depend on the machine."""
    return re.sub(r'"[^"]*?((?:[^"/]+/){,2}[^"/]+)"', r'"\1"', line)
