"""The record of a GPU run says what ran, where, and on which sources."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gpu_record
import pytest

TESTS = Path(__file__).parent
TWO_DEVICES = 2  # tests that skip where there is one GPU only


def test_record_holds_counts_and_hashes(monkeypatch):
    monkeypatch.setattr(gpu_record, "gpu", lambda: {"name": "a GPU"})
    record = gpu_record.record({"passed": 3, "failed": 1})
    assert record["gpu"] == {"name": "a GPU"} and record["counts"] == {"passed": 3, "failed": 1}
    source = TESTS.parent / "mcprecond" / "coloring" / "speculative" / "eb.cu"
    assert record["files"]["coloring/speculative/eb.cu"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert "__init__.py" in record["files"]


def test_committed_record_is_of_a_clean_run():
    record = json.loads((TESTS / "gpu-record.json").read_text())
    assert record["counts"]["passed"] > 300
    assert record["counts"]["failed"] == record["counts"]["error"] == 0
    assert record["counts"]["skipped"] == (TWO_DEVICES if record["gpu"].get("devices") == 1 else 0)


def test_units_are_all_tests_once(monkeypatch):
    monkeypatch.setattr(gpu_record, "LARGE", 8)
    monkeypatch.setattr(gpu_record, "ONE_BY_ONE", {"f"})
    monkeypatch.setattr(gpu_record, "SLOW", {"c": 10})
    tests = [
        SimpleNamespace(path=Path(module), originalname=f"test_{k % 3}", name=f"test_{k}", number=k)
        for module, count in zip("abcdef", (9, 2, 1, 4, 4, 3), strict=True)
        for k in range(count)
    ]
    units = gpu_record.units_of(tests)
    assert sorted((test.path, test.number) for unit in units for test in unit) == [(t.path, t.number) for t in tests]
    assert all(len({test.path for test in unit}) == 1 for unit in units)
    # The large one is in parts, and the one that goes test by test.
    parts = {module: sum(unit[0].path == Path(module) for unit in units) for module in "abcdef"}
    assert parts == {"a": 3, "b": 1, "c": 1, "d": 1, "e": 1, "f": 3}
    assert units[0][0].path == Path("c")


def test_every_test_runs_in_one_of_the_processes(tmp_path):
    """Two of them, at the same time, on a module of tests and a page; and each says how many it ran."""
    (tmp_path / "test_docs.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    (tmp_path / "test_module.py").write_text("def test_c(): pass\ndef test_d(): assert False\n")
    (claims := tmp_path / "claims").mkdir()
    command = [sys.executable, "-m", "pytest", "-p", "gpu_record", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    running = [
        subprocess.Popen(
            [*command, "--claims", str(claims), "--counts", str(tmp_path / f"{k}.json"), str(tmp_path)],
            env=environment, stdout=subprocess.DEVNULL,
        )
        for k in range(2)
    ]  # fmt: skip
    assert 1 in [process.wait() for process in running]
    counts = [json.loads((tmp_path / f"{k}.json").read_text()) for k in range(2)]
    assert sum(count["passed"] for count in counts) == 3 and sum(count["failed"] for count in counts) == 1


def test_without_a_gpu_it_is_said_in_one_line(monkeypatch):
    import mcprecond.backends

    monkeypatch.setattr(mcprecond.backends, "gpu_problem", lambda: "none is there")
    with pytest.raises(SystemExit, match="the tests for a GPU need one: none is there"):
        gpu_record.main("record.json")
