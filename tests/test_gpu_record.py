"""The record of a GPU run says what ran, where, and on which sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gpu_record
import pytest

from mcprecond.studies.sources import digest_of

TESTS = Path(__file__).parent
TWO_DEVICES = 2  # tests that skip where there is one GPU only


def test_record_holds_counts_and_hashes(monkeypatch):
    monkeypatch.setattr(gpu_record, "gpu", lambda: {"name": "a GPU"})
    counts = {"blocking": {"passed": 3, "failed": 1}, "free-running": {"passed": 4, "failed": 0}}
    record = gpu_record.record(counts)
    assert record["gpu"] == {"name": "a GPU"} and record["counts"] == counts
    source = TESTS.parent / "mcprecond" / "coloring" / "published" / "eb.cu"
    assert record["files"]["coloring/published/eb.cu"] == digest_of(source)
    assert "__init__.py" in record["files"]
    assert gpu_record.changed_since(record) == []


def test_committed_record_is_of_a_clean_run():
    record = json.loads((TESTS / "gpu-record.json").read_text())
    of_ways = record["counts"].values() if record.get("format") == gpu_record.FORMAT else [record["counts"]]
    for counts in of_ways:
        assert counts["passed"] > 300
        assert counts["failed"] == counts["error"] == 0
        assert counts["skipped"] == (TWO_DEVICES if record["gpu"].get("devices") == 1 else 0)


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


def test_a_record_in_the_first_format_cannot_be_compared(tmp_path, capsys):
    (path := tmp_path / "record.json").write_text(json.dumps({"counts": {"passed": 3}, "files": {"a.py": "0" * 64}}))
    assert not gpu_record.check(path)
    assert "has format 1" in capsys.readouterr().out


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
    everything = sorted((test.path, test.number) for unit in units.values() for test in unit)
    assert everything == [(test.path, test.number) for test in tests]
    assert all(len({test.path for test in unit}) == 1 for unit in units.values())
    # The large one is in parts, and the one that goes test by test.
    parts = {module: sum(unit[0].path == Path(module) for unit in units.values()) for module in "abcdef"}
    assert parts == {"a": 3, "b": 1, "c": 1, "d": 1, "e": 1, "f": 3}
    assert next(iter(units)) == "c::"


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
        return sorted(process.wait() for process in running), gpu_record.total(claims, progress)

    return run, progress


def test_every_test_runs_in_one_of_the_processes(run_two):
    run, progress = run_two
    assert run("claims") == ([0, 1], {"passed": 3, "failed": 1})
    assert len(list(progress.iterdir())) == 3


def file_of(progress, text):
    """That of the unit in whose name a text is."""
    units = json.loads((progress.with_name("claims") / "units.json").read_text())
    return gpu_record.file_of(progress, next(unit for unit in units if text in unit))


def test_a_run_goes_on_where_it_was_cut_off(run_two):
    """What has passed is not run again, what is missing is, and what nobody came to the end of is an error."""
    run, progress = run_two
    run("claims")
    file_of(progress, "test_a").unlink()
    assert gpu_record.total(progress.with_name("claims"), progress) == {"passed": 2, "failed": 1, "error": 1}
    assert run("others") == ([0, 0], {"passed": 3, "failed": 1})


def test_only_modules_that_have_changed_are_run_again(run_two):
    run, progress = run_two
    run("claims")
    file_of(progress, "test_a").write_text('{"passed": 10}')  # tells whether it stays
    (progress.with_name("tests") / "test_module.py").write_text("def test_c(): pass\ndef test_d(): pass\n")
    assert run("others") == ([0, 0], {"passed": 13})


def test_a_module_has_changed_if_one_that_it_imports_has(tmp_path):
    texts = {"test_a": "from test_b import b\n", "test_b": "import test_c\n", "test_c": "c = 1\n", "test_d": "d = 1\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)

    def behind() -> list[dict[str, str]]:
        return [gpu_record.tests_behind(tmp_path / f"{name}.py") for name in texts]

    before = behind()
    assert [list(found) for found in before] == [
        ["test_a.py", "test_b.py", "test_c.py"],
        ["test_b.py", "test_c.py"],
        ["test_c.py"],
        ["test_d.py"],
    ]
    (tmp_path / "test_c.py").write_text("c = 2\n")
    assert [now != then for now, then in zip(behind(), before, strict=True)] == [True, True, True, False]


def test_only_what_has_passed_on_these_sources_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_record, "PROGRESS", tmp_path)
    (tmp_path / "old").mkdir()
    (folder := tmp_path / "new" / "blocking").mkdir(parents=True)
    (folder / "good").write_text('{"passed": 2}')
    (folder / "bad").write_text('{"passed": 2, "failed": 1}')
    (folder / "skipped").write_text('{"passed": 2, "skipped": 1}')
    (folder / "cut").touch()
    assert gpu_record.folder_for("new") == folder.parent
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert [path.name for path in folder.iterdir()] == ["good"]


def test_without_a_gpu_it_is_said_in_one_line(monkeypatch):
    import mcprecond.backends

    monkeypatch.setattr(mcprecond.backends, "gpu_problem", lambda: "none is there")
    with pytest.raises(SystemExit, match="the tests for a GPU need one: none is there"):
        gpu_record.main(Path("record.json"))


def test_all_run_with_launches_that_block_and_then_without(tmp_path, monkeypatch):
    """Each way goes on by itself where it was cut off."""
    (tests := tmp_path / "tests").mkdir()
    (tests / "conftest.py").write_text(
        "import hypothesis\n"
        "hypothesis.settings.register_profile('gpu', deadline=None)\n"
        "def pytest_configure(config): config.addinivalue_line('markers', 'gpu: a test')\n"
    )
    (tests / "test_module.py").write_text(
        "import os, pytest\n"
        "blocking = os.environ['CUDA_LAUNCH_BLOCKING'] == '1'\n"
        "@pytest.mark.gpu\n"
        "def test_order(): assert blocking\n"
        "@pytest.mark.gpu\n"
        "def test_other(): pass\n"
        "def test_without_a_gpu(): assert False\n"
    )
    monkeypatch.setattr(gpu_record, "TESTS", tests)
    monkeypatch.setattr(gpu_record, "PER_GPU", 1)
    monkeypatch.setattr(gpu_record, "visible_gpus", lambda: ["0"])
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    (progress := tmp_path / "progress").mkdir()
    clean, order_fails = ({"passed": 2 - k, "failed": k, "skipped": 0, "error": 0} for k in (0, 1))
    assert gpu_record.run_all(progress) == {"blocking": clean, "free-running": order_fails}
    (noted,) = (progress / "blocking").iterdir()
    noted.write_text('{"passed": 10}')  # tells that it is not run again
    for path in (progress / "free-running").iterdir():
        path.unlink()
    assert gpu_record.run_all(progress) == {"blocking": clean | {"passed": 10}, "free-running": order_fails}
