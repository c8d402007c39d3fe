"""Mutation tests: mutants are changes that compile, and reasons are given for mutants that have survived."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def mutate(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import mutate

    return mutate


def test_mutants_compile_and_differ(mutate):
    file = "mcprecond/coloring/heap.py"
    text = (ROOT / file).read_bytes()
    mutants = list(mutate.mutants_of(file))
    changed = {text[: m.begin] + m.new.encode() + text[m.end :] for m in mutants}
    assert len(changed) == len(mutants) > 20 and text not in changed
    assert len({ast.dump(ast.parse(one)) for one in changed}) == len(changed)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("if a <= 0: b()", ["[<= -> <] 0", "<= [0 -> 1]", "[b() -> pass]"]),
        ("return a and not b", ["a [and -> or] not b", "[not -> ]b"]),
        ("x[1] += a - b", ["[x[1] += a - b -> pass]", "x[[1 -> 0]]", "a [- -> +] b"]),
        ("raise ValueError(1 + 1)", []),
        ('y = f"{1 - 1}"', []),
    ],
)
def test_what_is_mutated(mutate, monkeypatch, tmp_path, line, expected):
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    (tmp_path / "f.py").write_text(f"def f(a, b, x):\n    {line}\n")
    found = [mutant.key for mutant in mutate.mutants_of("f.py")]
    assert len(found) == len(expected)
    assert all(any(part in key for key in found) for part in expected)


def test_tests_of_other_functions_come_first(mutate):
    seconds = {"t::a[1]": 0.1, "t::a[2]": 0.2, "t::b": 0.3, "t::slow": 100.0}
    assert mutate.chosen_tests(list(seconds), seconds) == ["t::a[1]", "t::b"]
    assert mutate.chosen_tests(["t::slow"], seconds) == ["t::slow"]


def test_mutants_are_kept_and_others_are_drawn_for_those_that_are_gone(mutate):
    first = [mutant.key for mutant in mutate.sampled(20, 1)]
    assert len(set(first)) == 20
    again = [mutant.key for mutant in mutate.sampled(20, 2, ["gone.py: [x += 1 -> pass]", *first[1:]])]
    assert len(set(again)) == 20 and set(first[1:]) < set(again) and again != first


def test_the_record_adds_up_and_reasons_are_of_survivors(mutate):
    record = json.loads(mutate.RESULTS.read_text())
    assert sum(sum(counts.values()) for counts in record["rooms"].values()) == record["mutants"] >= 200
    assert len(record["survived"]) == record["survivors"]
    assert sum(survivor["why"] is None for survivor in record["survived"]) == record["unexplained"]
    reasons = tomllib.loads(mutate.REASONS.read_text())["equivalent"]
    assert {s["mutant"]: s["why"] for s in record["survived"] if s["why"]} == reasons
