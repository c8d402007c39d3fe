"""The record of a GPU run says what ran, where, and on which sources."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gpu_record
import pytest

TESTS = Path(gpu_record.__file__).parent
TWO_DEVICES = 3  # tests need a second GPU


def test_committed_record_is_of_a_clean_run():
    record = json.loads((TESTS / "gpu-record.json").read_text())
    of_ways = record["counts"].values() if record.get("format") == gpu_record.FORMAT else [record["counts"]]
    for counts in of_ways:
        assert counts["passed"] > 300
        assert counts["failed"] == counts["error"] == 0
        assert counts["skipped"] <= (TWO_DEVICES if record["gpu"]["devices"] == 1 else 0)


def test_what_has_changed_since_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_record, "PACKAGE", package := tmp_path / "package")
    package.mkdir()
    for name, text in {"a.py": "a = 1\n", "b.cu": "int b = 1;\n", "c.cuh": "int c;\n", "d.txt": "d"}.items():
        (package / name).write_text(text)
    (path := tmp_path / "record.json").write_text(
        json.dumps({"format": gpu_record.FORMAT, "files": gpu_record.hashes(package)})
    )
    (package / "a.py").write_text("# why\na = 1\n")
    assert gpu_record.check(path)
    assert capsys.readouterr().out == "record.json is of these sources\n"
    (package / "a.py").write_text("a = 2\n")
    (package / "c.cuh").rename(package / "e.cuh")
    assert not gpu_record.check(path)
    assert capsys.readouterr().out == "changed: a.py\nnew: e.cuh\ngone: c.cuh\n"


@pytest.fixture
def run_two(tmp_path):
    """Run tests in two processes at the same time; return their exit codes and what is counted in all."""
    (progress := tmp_path / "progress").mkdir()
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_docs.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    (tests / "test_module.py").write_text("def test_c(): pass\ndef test_d(): assert False\n")
    command = [sys.executable, "-m", "pytest", "-p", "gpu_record", "-p", "no:cacheprovider", "--rootdir", str(tests)]

    def run(name: str) -> tuple[list[int], dict[str, int]]:
        (claims := tmp_path / name).mkdir()
        options = ["--claims", str(claims), "--progress", str(progress), str(tests)]
        environment = os.environ | {"PYTHONPATH": str(TESTS)}
        running = [subprocess.Popen([*command, *options], env=environment, stdout=subprocess.DEVNULL) for _ in range(2)]
        return sorted(process.wait() for process in running), gpu_record.total(claims, progress)[0]

    return run, progress


def file_of(progress, text):
    """That of the unit in whose name a text is."""
    units = json.loads((progress.with_name("claims") / "units.json").read_text())
    return gpu_record.file_of(progress, next(unit for unit in units if text in unit))


@pytest.mark.nightly
def test_a_run_goes_on_where_it_was_cut_off(run_two):
    """What has passed is not run again, what is missing is, and what nobody came to the end of is an error."""
    run, progress = run_two
    run("claims")
    file_of(progress, "test_a").unlink()
    assert gpu_record.total(progress.with_name("claims"), progress)[0] == {"passed": 2, "failed": 1, "error": 1}
    assert run("others") == ([0, 0], {"passed": 3, "failed": 1})


def test_the_longest_come_first_and_in_parts():
    def item(function, parameter):
        fixtures = {"run": [SimpleNamespace(scope="module" if function == "test_shares" else "function")]}
        return SimpleNamespace(
            path=Path("test_m.py"),
            originalname=function,
            name=f"{function}[{parameter}]",
            _fixtureinfo=SimpleNamespace(name2fixturedefs=fixtures),
        )

    seconds = {"test_long": 100.0, "test_shares": 90.0, "test_short": 2.0}
    items = [item(name, k) for name in ("test_short", "test_long", "test_new", "test_shares") for k in range(3)]
    units = gpu_record.units_of(items, {f"test_m.py::{name}": took for name, took in seconds.items()})
    of_long = [f"test_m.py::test_long[{k}]" for k in range(3)]
    assert list(units) == [*of_long, "test_m.py::test_shares", "test_m.py::test_short", "test_m.py::test_new"]
    assert [len(units[unit]) for unit in units] == [1, 1, 1, 3, 3, 3]


def test_no_module_of_tests_imports_another():
    """A run goes on behind modules that are as they were, so what several of them share is in other files."""
    importing = re.compile(r"^\s*(?:from|import) test_", re.MULTILINE)
    assert [path.name for path in TESTS.rglob("test_*.py") if importing.search(path.read_text())] == []
