"""pytest plugin: write what was tested on which GPU, with a hash of every source file, to a JSON file."""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "mcprecond"
OUTCOMES = ("passed", "failed", "skipped", "error")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu-record", metavar="FILE", help="write a record of this run on a GPU to FILE")


def pytest_configure(config: pytest.Config) -> None:
    from mcprecond.backends import gpu_problem

    if config.getoption("--gpu-record") and (problem := gpu_problem()):
        raise pytest.UsageError(f"--gpu-record needs a GPU: {problem}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    path = config.getoption("--gpu-record")
    if path:
        counts = {outcome: len(terminalreporter.stats.get(outcome, [])) for outcome in OUTCOMES}
        Path(path).write_text(json.dumps(record(counts), indent=1) + "\n")


def record(counts: dict[str, int]) -> dict[str, object]:
    """The record of a run with these counts."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "gpu": gpu(),
        "counts": counts,
        "files": hashes(PACKAGE),
    }


def gpu() -> dict[str, str]:
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    return {
        "name": properties["name"].decode(),
        "compute capability": f"{properties['major']}.{properties['minor']}",
        "cupy": cupy.__version__,
        "cuda": str(cupy.cuda.runtime.runtimeGetVersion()),
        "driver": str(cupy.cuda.runtime.driverGetVersion()),
    }


def hashes(package: Path) -> dict[str, str]:
    """SHA-256 of every source file, by its path inside the package."""
    sources = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".cu", ".cuh"))
    return {path.relative_to(package).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in sources}
