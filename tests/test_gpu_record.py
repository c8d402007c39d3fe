"""The record of a GPU run says what ran, where, and on which sources."""

from __future__ import annotations

import hashlib
import json
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


def test_shares_are_all_tests_once(monkeypatch):
    monkeypatch.setattr(gpu_record, "LARGE", 8)
    monkeypatch.setattr(gpu_record, "ONE_BY_ONE", {"f"})
    tests = [
        SimpleNamespace(path=Path(module), originalname=f"test_{k % 3}", name=f"test_{k}", number=k)
        for module, count in zip("abcdef", (9, 2, 1, 4, 4, 3), strict=True)
        for k in range(count)
    ]
    shares = []
    for k in range(3):
        share = list(tests)
        gpu_record.pytest_collection_modifyitems(SimpleNamespace(getoption={"--share": f"{k}/3"}.get), share)
        shares.append(share)
    of_all = [(test.path, test.number) for share in shares for test in share]
    assert sorted(of_all) == [(test.path, test.number) for test in tests]
    assert [len(share) for share in shares] == [8, 8, 7]
    parts = {module: sum(any(test.path == Path(module) for test in share) for share in shares) for module in "abcdef"}
    # The large one is in parts, and the one that goes test by test.
    assert {module for module, count in parts.items() if count > 1} == {"a", "f"}


def test_without_a_gpu_it_is_said_in_one_line(monkeypatch):
    import mcprecond.backends

    monkeypatch.setattr(mcprecond.backends, "gpu_problem", lambda: "none is there")
    with pytest.raises(SystemExit, match="the tests for a GPU need one: none is there"):
        gpu_record.main("record.json")
