"""docs/colorings.md says what the runs in benchmarks/results found, and nothing of runs that do not exist."""

from __future__ import annotations

import pytest

SECTIONS = {
    "coloring-gpu": "## On a GPU",
    "coloring-steps": "## Steps with and without shortcuts",
    "coloring-rounds": "## Rounds by chunks and by rule",
    "coloring-scaling-gpu": "## Growing graphs",
    "coloring-cpu": "## On a CPU",
}
STEPS = {
    "name": "rmat16",
    "vertices": 65536,
    "steps": 300,
    "steps_with_shortcuts": 60,
    "at_first": 8192,
    "by_shortcut": 16384,
    "conventionally": 40960,
    "colored": [65536],
    "colored_with_shortcuts": [65536],
}
ROUNDS = [
    {"resolution": resolution, "chunk_size": chunk, "rounds": 40 // chunk, "colors": chunk, "colored_again": 0}
    for resolution in ("index", "degree")
    for chunk in (1, 2, 8)
]
GPU_ROWS = ["csrcolor", "vb", "vb_bit", "eb atomic", "eb", "sirg", "chen_wlc", "greedy"]


@pytest.fixture(scope="module")
def colorings():
    from report import colorings

    return colorings


def run(*cases: dict) -> dict:
    machine = {"gpu": "a GPU", "cpu": "a processor", "threads": 2}
    return {"machine": machine, "versions": {"mcprecond": "1.2"}, "date": "2026-11-21T00:00", "cases": list(cases)}


def case(name: str, rows: list[str], **facts) -> dict:
    size = {"vertices": 1000, "entries": 6000, "max_degree": 9, "pattern_ms": 0.5}
    methods = {row: {"ms": 2.0**-k, "colors": 1024 // 2**k, "rounds": 1} for k, row in enumerate(rows)}
    return {"name": name, **size, "methods": methods, **facts}


@pytest.fixture
def documents() -> dict:
    sizes = [("rgg", 15), ("rgg", 16), ("rmat", 20)]
    growing = [case(f"{f}{s}", ["csrcolor", "eb"], family=f, scale=s, vertices=2**s) for f, s in sizes]
    return {
        "coloring-gpu": run(case("fenl_100", GPU_ROWS), case("rgg20", GPU_ROWS)),
        "coloring-steps": run(STEPS),
        "coloring-rounds": run({"name": "rmat16", "rounds": ROUNDS}) | {"threads": 4096},
        "coloring-scaling-gpu": run(*growing),
        "coloring-cpu": run(case("grid2d20", ["PyAMG JP", "eb"], load=0.5)),
    }


@pytest.mark.parametrize("missing", SECTIONS)
def test_a_run_that_is_missing_hides_its_section_only(colorings, documents, missing):
    everything = colorings.page(documents)
    del documents[missing]
    text = colorings.page(documents)
    for name, title in SECTIONS.items():
        assert title in everything
        assert (title in text) == (name != missing)


def test_tables_show_what_was_measured_beside_what_is_printed(colorings, documents):
    text = colorings.page(documents)
    for line in (
        "| eb | 0.0625 / 64 | 0.0625 / 64 |",
        "| rgg20 | 1,024 | 512 | 64 | 8 | rgg_n_2_24_s0 | 64 | 24.8 | 24.8 | 23 |",
        "| paper, relative to csrcolor | 1.00 | 4.28 | 3.59 | 0.92 | 0.67 |",
        "| rmat16 | 300 | 60 | 218 | 1,092 | 5.00 | rmat16.sym | 188 | 30 | 6.27 |",
        "| grid2d20 | 0.5 | 1,000 | 6,000 | 0.5 | 1 / 1024 | 0.5 / 512 |",
    ):
        assert line + "\n" in text


def test_shortcuts_are_compared_once_they_were_switched(colorings, documents):
    assert "Table 5" not in colorings.page(documents)
    rows = ["ecl_gc, no shortcut", "ecl_gc, shortcut 2", "ecl_gc, shortcut 1", "ecl_gc"]
    for found in documents["coloring-gpu"]["cases"]:
        found["methods"] |= case("", rows)["methods"]
    assert "| rgg20 | 4.00 | 2.00 | 8.00 |\n" in colorings.page(documents)


def test_a_method_that_was_not_run_has_no_mean(colorings, documents):
    del documents["coloring-gpu"]["cases"][0]["methods"]["sirg"]
    text = colorings.page(documents)
    assert "| sirg | not run | 0.0312 / 32 |\n" in text
    assert "| sirg |  | 0.03 |  |\n" in text


def test_pictures_are_the_same_every_time(colorings, documents, tmp_path):
    for name in ("a", "b"):
        colorings.draw(documents, tmp_path / name)
    drawn = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert drawn == [f"colorings-{name}.svg" for name in ("profile", "scaling", "steps", "trade-off")]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in drawn)
