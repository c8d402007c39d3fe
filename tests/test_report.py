"""README is what benchmarks/results says, other pages can be written, and every name in their data is one of ours."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from mcprecond import COLORINGS
from report import PAGES


@pytest.fixture
def report():
    import report

    return report


@pytest.mark.parametrize("name", PAGES)
def test_page_can_be_written_with_its_pictures(report, name, tmp_path):
    """README is what it would be; git ignores the other pages, which `python -m report` writes."""
    module, page = report.page_module(name), PAGES[name]
    found = module.load()
    text = module.page(found)
    if name == report.README:
        assert page.read_text() == text, "run `make readme`"
    else:
        assert page.relative_to(report.ROOT).as_posix() in (report.ROOT / ".gitignore").read_text().split()
    drawn = re.findall(r"\]\(([^)]*)\.svg\)", text)
    if hasattr(module, "draw"):
        module.draw(found, tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {path.rpartition("/")[2] for path in drawn}


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_to_what_is_committed(report, file):
    """GitHub shows these files, but does not build the pages."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (report.ROOT / file).read_text())
    assert links and not {report.ROOT / link for link in links} & {*PAGES.values()} - {PAGES[report.README]}
    assert all((report.ROOT / link).exists() for link in links)


def test_figures_name_version_card_and_date_and_no_change_of_the_code(pages):
    """What is stale is for maintainers: `python -m report --stale` says it."""
    from report.results import measured, origin

    document = {"machine": {"gpu": "a GPU", "cpu": "a CPU"}, "versions": {"mcprecond": "1.2", "numpy": "3.4"}}
    document |= {"date": "2026-11-24T08:00", "cases": [{"ms": 1, "ms_quartiles": [1, 1]}]}
    assert measured(document) == "mcprecond 1.2, a GPU, 2026-11-24"
    assert origin(document) == "**mcprecond 1.2, a GPU, 2026-11-24**, with numpy 3.4."
    for page in [*PAGES.values(), *pages]:
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


def test_no_figure_of_a_measurement_is_typed(pages):
    """In pages and templates, but for code and what it prints, and for decisions, which have figures of their day."""
    from report import ROOT

    by_hand = {page for page in pages if "decisions" not in page.parts} - {*PAGES.values()}
    found = []
    for page in [*by_hand, *(ROOT / "report" / "templates").glob("*.md")]:
        prose = re.sub(r"^```.*?^```|\{\{.*?\}\}", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        found += [f"{page.relative_to(ROOT)}: {hit[0]}" for hit in FIGURE.finditer(prose)]
    readme = (ROOT / "README.md").read_text()
    prose = readme.split("<!-- begin: summary -->")[0] + readme.split("<!-- end: summary -->")[1]
    found += [f"README.md: {hit[0]}" for hit in FIGURE.finditer(prose)]
    assert not found, "show what a file of results says, by a template of the report"
    assert FIGURE.search("a tenth less") and FIGURE.search("takes 0.4 ms") and FIGURE.search("5% less")


def test_what_was_watched_has_its_day_and_is_shown(pages):
    from report.watched import WATCHED

    for name, entries in WATCHED.items():
        page = PAGES[name].read_text()
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
    from report import ROOT
    from report.results import MARKS, PAPERS

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


def test_where_tables_and_figures_are_exists(report, pages):
    from benchmarks.papers.studies import STUDIES
    from report import DOCS
    from report.results import PAPERS

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
    from report import DOCS

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


def test_paths_on_the_map_exist(pages):
    from report import ROOT

    paths = re.findall(r"`(\w+/[\w./]+)`", PAGES["map"].read_text())
    assert len(paths) > 100 and [path for path in paths if not (ROOT / path).exists()] == []


def test_a_name_that_leads_nowhere_is_refused(report):
    from report.map import defining, load

    with pytest.raises(LookupError, match=r"MulticolorXYZ of report/map.toml is defined in no module"):
        defining("MulticolorXYZ", load())
