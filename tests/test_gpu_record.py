"""The record of a GPU run says what ran, where, and on which sources."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import gpu_record
import pytest

TESTS = Path(__file__).parent
# Date of a committed record -> failures that are known. In this run a page of the documentation called SciPy in a way
# that SciPy 1.18 deprecates; the page was mended when no GPU could be had any more. A later record has to be clean.
KNOWN_FAILURES = {"2026-11-21T09:26:49+00:00": 1}


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
    assert record["counts"]["failed"] == KNOWN_FAILURES.get(record["date"], 0)
    assert record["counts"]["error"] == record["counts"]["skipped"] == 0


def test_without_a_gpu_it_is_said_in_one_line(monkeypatch):
    import mcprecond.backends

    monkeypatch.setattr(mcprecond.backends, "gpu_problem", lambda: "none is there")
    config = SimpleNamespace(getoption={"--gpu-record": "record.json"}.get)
    with pytest.raises(pytest.UsageError, match="--gpu-record needs a GPU: none is there"):
        gpu_record.pytest_configure(config)
