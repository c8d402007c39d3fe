"""Every page of the report is what benchmarks/results says, and every name in its data is one of the package."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from mcprecond import COLORINGS


@pytest.fixture
def report():
    import report

    return report


def test_pages_are_current(report):
    stale = []
    for name in report.PAGES:
        module = report.page_module(name)
        if module.PAGE.read_text() != module.page(module.load()):
            stale.append(name)
    assert not stale, "run `make readme`"


def test_figures_name_version_card_and_date_and_no_change_of_the_code(report):
    """What is stale is for maintainers: `python -m report --stale` says it."""
    from report.results import DOCS, ROOT, measured, origin

    document = {"machine": {"gpu": "a GPU", "cpu": "a CPU"}, "versions": {"mcprecond": "1.2", "numpy": "3.4"}}
    document |= {"date": "2026-11-24T08:00", "cases": [{"ms": 1, "ms_quartiles": [1, 1]}]}
    assert measured(document) == "mcprecond 1.2, a GPU, 2026-11-24"
    assert origin(document) == "**mcprecond 1.2, a GPU, 2026-11-24**, with numpy 3.4."
    for page in [ROOT / "README.md", *(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]:
        assert "older code" not in page.read_text() and "has changed since" not in page.read_text()


def test_results_of_code_that_has_changed_are_listed(report, tmp_path):
    """Which they are is no failure: `python -m report --stale` says it."""
    from mcprecond.studies.sources import code
    from report.results import RESULTS, changed, stale

    documents = {
        "today": {"code": code()},
        "yesterday": {"code": code() | {"storage/split": "0"}},
        "gone": {"code": {"storage/old": "0"}},
        "one hash": {"code": "0"},
        "none": {},
        "theirs": {"benchmark": "opponents"},
    }
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    assert stale(tmp_path) == [
        "gone.json: storage/old",
        "none.json: no hashes of kernel sets",
        "one hash.json: no hashes of kernel sets",
        "yesterday.json: storage/split",
    ]
    assert all(line.split(":")[0].endswith(".json") for line in stale(RESULTS))
    assert changed({"code": code()}) == []


def test_what_is_within_the_noise_is_not_decided():
    from report.noise import noise, of_mean, slower, verdict

    assert noise({"ms": 2.0, "ms_quartiles": [1.9, 2.1]}) == pytest.approx(0.3)
    assert noise({"ms": 2.0, "spread_ms": 1.0}) == noise({"seconds": 1.0, "spread": 0.5}, "seconds") == 0.75
    columns = {"seconds": 2.0, "seconds_first_quartile": 1.9, "seconds_third_quartile": 2.1}
    assert noise(columns | {"spread": 9.0}, "seconds") == pytest.approx(0.3)
    assert noise({"ms": 2.0}) == noise({"colors": 7, "spread_ms": 1.0}, "colors") == 0
    assert of_mean([0.3, 0.4]) == pytest.approx(0.5) and of_mean([0.3, 0.4], 5) == pytest.approx(0.1)
    for found, least, most in ((0.8, "no", "yes"), (0.95, *["not decided"] * 2), (1.05, *["not decided"] * 2)):
        assert (verdict(found, 1, 0.1), verdict(found, 1, 0.1, at_most=True)) == (least, most)
    assert verdict(1.2, 1, 0.1) == "yes" and verdict(1.2, 1, 0.1, at_most=True) == "no"
    fast, close, slow = ({"setup": {"ms": 1.0}, "solve": {"ms": ms, "spread_ms": 0.3}} for ms in (1.0, 1.2, 2.0))
    assert slower(slow, fast) and not slower(close, fast) and not slower(fast, fast)
    assert slower({"total_ms": 1.01}, {"total_ms": 1.0}) and not slower({"total_ms": 1.0}, {"total_ms": 1.0})
    assert verdict(1, 1, 0) == verdict(1, 1, 0, at_most=True) == "yes"


def test_a_busy_machine_is_marked():
    from report.results import busy

    assert "other processes used 1.5 of its 2 processors" in busy({"machine": {"cores": 2}, "others": 1.5})
    for others, cores in ((0.2, 2), (1.5, 64), (None, 2)):
        assert busy({"machine": {"cores": cores}, "others": others}) == ""


#: What a measurement looks like: a time, a share, or one relative to another.
FIGURE = re.compile(
    r"\d\s?(?:ms|µs|ns|%|percent|GB/s|times (?:as (?:long|fast)|faster|longer))\b|\d%"
    r"|(?:third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|twelfth|twentieth)s? "
    r"(?:less|more|longer|faster|of the (?:time|iterations))"
    r"|\bpercent (?:less|more|longer|faster)"
)


def test_no_figure_of_a_measurement_is_typed(report):
    """In pages and templates, but for code and what it prints, and for decisions, which have figures of their day."""
    from report.results import DOCS, ROOT

    written = {report.page_module(name).PAGE for name in report.PAGES}
    pages = [page for page in DOCS.rglob("*.md") if not {"_build", "generated", "decisions"} & set(page.parts)]
    pages += (ROOT / "report" / "templates").glob("*.md")
    found = []
    for page in {*pages} - written:
        prose = re.sub(r"^```.*?^```|\{\{.*?\}\}", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        found += [f"{page.relative_to(ROOT)}: {hit[0]}" for hit in FIGURE.finditer(prose)]
    readme = (ROOT / "README.md").read_text()
    by_hand = [readme.split("<!-- begin: summary -->")[0], readme.split("<!-- end: summary -->")[1]]
    found += [f"README.md: {hit[0]}" for part in by_hand for hit in FIGURE.finditer(part)]
    assert not found, "show what a file of results says, by a template of the report"
    assert FIGURE.search("a tenth less") and FIGURE.search("takes 0.4 ms") and FIGURE.search("5% less")


def test_what_was_watched_has_its_day_and_is_shown(report):
    from report.watched import WATCHED

    for name, entries in WATCHED.items():
        page = report.page_module(name).PAGE.read_text()
        for entry in entries.values():
            assert entry.keys() == {"what", "where", "found", "date", "commit"}
            assert entry["found"] in page and str(entry["date"]) in page and f"`{entry['commit']}`" in page


def test_a_page_that_is_not_there_is_refused():
    run = subprocess.run([sys.executable, "-m", "report", "colouring"], capture_output=True, text=True, check=False)
    assert run.returncode == 2 and "no page colouring; there are readme, fenl, solves, colorings" in run.stderr


def test_names_in_the_papers_figures_are_ours(report):
    from report.results import PAPERS

    def methods(*names):
        return {name.split(",")[0].split()[0] for name in names} - {"csrcolor", "graph"}

    named = methods(*(name for row in PAPERS["table_ii"].values() for name in row), *PAPERS["table_iii"])
    named |= methods(*PAPERS["sirg"]["over"], *(column["row"] for column in PAPERS["table_5"].values()))
    named |= methods(*(relation[side] for relation in PAPERS["relations"] for side in ("above", "below")))
    assert named <= COLORINGS.keys()


def test_graphs_and_matrices_of_figures_and_marks_are_cases(report, monkeypatch):
    from report.results import MARKS, PAPERS, ROOT

    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from cases import GRAPHS, MATRICES

    graphs = {name for limits in MARKS["colorings"].values() for name in limits} | set(PAPERS["table_4"])
    assert graphs | set(PAPERS["table_ii"]) <= {*GRAPHS, "geometric mean"}
    assert {name for limits in MARKS["sweeps"].values() for name in limits} <= {*MATRICES, "bound"}


ROMAN = {"I": 1, "II": 2, "III": 3, "IV": 4, "V": 5}


def numbers(item):
    """The kinds and numbers that an item names: "Figures 1-3, Table II" are four."""
    found = set()
    for kind, words in re.findall(r"(Figure|Table)s? ([^A-Z]*[IVX]*)", item):
        for first, _, last in re.findall(r"(\d+|[IVX]+)(-(\d+))?", words):
            one = ROMAN.get(first) or int(first)
            found |= {(kind, k) for k in range(one, int(last or one) + 1)}
    return found


def test_every_table_and_figure_of_the_papers_is_listed_once(report):
    from report.results import PAPERS

    printed = {"deveci": (4, 5), "sistla": (10, 0), "alabandi": (15, 5), "naumov": (7, 0), "osama": (3, 2)}
    for paper, (figures, tables) in printed.items():
        listed = [number for shown in PAPERS["shown"] if shown["paper"] == paper for number in numbers(shown["item"])]
        every = [("Figure", k + 1) for k in range(figures)] + [("Table", k + 1) for k in range(tables)]
        assert sorted(listed) == every


def test_where_tables_and_figures_are_exists(report):
    from benchmarks.papers.studies import STUDIES
    from report.results import DOCS, PAPERS

    for shown in PAPERS["shown"]:
        assert shown["reproduced"] in ("yes", "in part", "no")
        assert shown.get("study", "table-v") in STUDIES
        assert "where" not in shown or (DOCS / shown["where"]).exists()
        assert shown["reproduced"] == "no" or "where" in shown or "study" in shown
        for name in shown.get("results", []):
            study = re.fullmatch(r"studies/(.*)-[cg]pu.json", name)
            assert study[1] in STUDIES if study else (report.results.RESULTS / name).exists()


def test_what_was_not_run_is_said(report):
    from report.papers import names_in, waiting

    found = {"a.json": names_in({"cases": [{"matrix": "rmat_20", "method": "eb"}]})}
    assert waiting({"results": ["a.json"], "missing": ["eb", "rmat_20"]}, found) == []
    (said,) = waiting({"results": ["a.json", "b.json"], "missing": ["eb", "rmat_24"]}, found)
    assert said == "*Code is there, not yet run: `b.json`, `rmat_24`.*"


def test_every_decision_has_a_result_a_day_and_a_verdict(report):
    """And what was kept says where its code is; test_docs.py finds the files."""
    from report.results import DOCS

    head = "| Trial | Result | Day | Verdict | Code |\n| --- | --- | --- | --- | --- |\n"
    pages = [page for page in (DOCS / "development" / "decisions").glob("*.md") if page.name != "index.md"]
    index = (DOCS / "development" / "decisions" / "index.md").read_text()
    assert pages and not [page.name for page in pages if f"({page.name})" not in index]
    for page in pages:
        text = page.read_text()
        tables = [table.split("\n\n")[0].strip() for table in text.split(head)[1:]]
        rows = [row for table in tables for row in table.split("\n")]
        assert rows and sum(line.startswith("|") for line in text.split("\n")) == len(rows) + 2 * len(tables)
        for row in rows:
            cells = [cell.strip() for cell in row.strip("|").split("|")]
            assert len(cells) == 5 and all(cells[:4]), f"{page.name}: {row}"
            assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", day) for day in cells[2].split(", ")), f"{page.name}: {row}"
            assert "kept" in cells[3] or cells[3].startswith("dropped"), f"{page.name}: {row}"


def test_paths_on_the_map_exist(report):
    from report import map as map_of_the_package
    from report.results import ROOT

    paths = re.findall(r"`(\w+/[\w./]+)`", map_of_the_package.PAGE.read_text())
    assert len(paths) > 100 and [path for path in paths if not (ROOT / path).exists()] == []


def test_a_name_that_leads_nowhere_is_refused(report):
    from report.map import defining, load

    with pytest.raises(LookupError, match=r"MulticolorXYZ of report/map.toml is defined in no module"):
        defining("MulticolorXYZ", load())
