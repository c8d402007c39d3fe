"""README is what benchmarks/results says, the other pages can be written, and no figure of a measurement is typed."""

from __future__ import annotations

import json
import math
import re

import pytest

from report import IMAGES, PAGES, README, ROOT, page_module
from report.generic import HELPERS, made


@pytest.mark.parametrize("name", PAGES)
def test_page_can_be_written_with_its_pictures(name, tmp_path):
    """README is what it would be; git ignores the other pages, which `python -m report` writes."""
    module, page = page_module(name), PAGES[name]
    found = module.load()
    text = module.page(found)
    if name == README:
        assert page.read_text() == text, "run `make readme`"
        assert all((IMAGES / name).exists() for name in module.PICTURES)
    else:
        assert page.relative_to(ROOT).as_posix() in (ROOT / ".gitignore").read_text().split()
    if hasattr(module, "draw"):
        module.draw(found, tmp_path)
    shown = re.findall(r"[(\"][^()\"]*?([^()\"/]+\.svg)[)\"]", text)
    assert {path.name for path in tmp_path.iterdir()} == set(shown)


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_to_what_is_committed(file):
    """GitHub shows these files, but does not build the pages."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / file).read_text())
    assert links and not {ROOT / link for link in links} & {*PAGES.values()} - {PAGES[README]}
    assert all((ROOT / link).exists() for link in links)


#: Matches the result of a measurement: a time, a percentage, or a comparison of two times.
FIGURE = re.compile(
    r"\d\s?(?:ms|µs|ns|%|percent|GB/s|times (?:as (?:long|fast)|faster|longer))\b|\d%"
    r"|(?:third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|twelfth|twentieth)s? "
    r"(?:less|more|longer|faster|of the (?:time|iterations))"
    r"|\bpercent (?:less|more|longer|faster)"
)


def test_no_figure_of_a_measurement_is_typed(pages):
    """In pages and templates, but for code and what it prints, and for decisions, which have figures of their day."""
    by_hand = {page for page in pages if "decisions" not in page.parts} - {*PAGES.values()}
    found = []
    for page in [*by_hand, *(ROOT / "report" / "templates").glob("*.md")]:
        prose = re.sub(r"^```.*?^```|\{\{.*?\}\}", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        found += [f"{page.relative_to(ROOT)}: {hit[0]}" for hit in FIGURE.finditer(prose)]
    readme = (ROOT / "README.md").read_text()
    prose = re.sub(r"<!-- begin: (\w+) -->.*?<!-- end: \1 -->", "", readme, flags=re.DOTALL)
    found += [f"README.md: {hit[0]}" for hit in FIGURE.finditer(prose)]
    assert not found, "show what a file of results says, by a template of the report"
    assert FIGURE.search("a tenth less") and FIGURE.search("takes 0.4 ms") and FIGURE.search("5% less")


def test_code_of_readme_prints_what_it_says_but_for_numbers(capsys):
    text = PAGES[README].read_text()
    code, said = (
        "".join(re.findall(rf"^```{kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)) for kind in ("python", "text")
    )
    exec(code, {})
    said, printed = (re.sub(r"\d[\d.e+-]*", "#", output) for output in (said, capsys.readouterr().out))
    assert said == printed and "time               # s of setup, # s of the solve\n" in said


def test_table_of_readme_has_the_library_solve_and_the_best_of_ours_on_each_machine():
    from report import readme

    def case(name: str, **ms: float) -> dict:
        return {"name": name, "unknowns": 12345, "solvers": [row_of(who, of) for who, of in ms.items()]}

    def row_of(name: str, ms: float) -> dict:
        return {"name": name.replace("_", ", "), "converged": ms > 0} | quartiles(ms)

    first = case("rmat_20", library_Jacobi=9.0, solve=4.0, none=5.0, SGS=3.0, multigrid=0.0, auto=1.0, direct=1.0)
    cases = [case("of no interest", solve=1.0), case("plate", library_Jacobi=0.0, solve=4.0, Jacobi=5.0), first]
    for gpu, head in (("a GPU", "**GPU**, beside CuPy"), (None, "**CPU**, beside SciPy")):
        assert readme.lines_of({"machine": {"gpu": gpu}, "cases": cases}) == [
            [head, "", "", ""],
            ["clamped plane elasticity, 12,345", "not solved", "4.00", "5.00 CG with Jacobi"],
            ["graph with hubs, 12,345", "9.00", "4.00", "3.00 Gauss-Seidel"],
        ]


def test_solve_is_ahead_where_no_other_package_that_solves_takes_less_time():
    from report import readme

    def case(**rows: tuple[float, float, bool]) -> dict:
        return {
            "solvers": [
                {"name": name, "setup_ms": setup, "solve_ms": solve, "converged": converged}
                for name, (setup, solve, converged) in rows.items()
            ]
        }

    ahead = case(solve=(3.0, 1.0, True), quick=(4.5, 0.5, True), wrong=(1.0, 1.0, False))
    behind = case(solve=(3.0, 1.0, True), quick=(0.5, 3.0, True))
    machine = {"cpu": "A CPU", "cores": 2, "threads": 2, "gpu": None}
    found = readme.side({"machine": machine, "cases": [ahead, behind, ahead]})
    assert (found["ahead"], found["systems"]) == (2, 3)


def test_the_rule_has_the_bounds_between_which_it_depends_on_the_matrix():
    """CG wins with 5 and 40 iterations, a preconditioner with 30 and 50; with 20 the difference is within the noise."""
    from report import automatic

    def case(iterations: int, ms: float, SGS: float) -> dict:
        rows = {"Jacobi": quartiles(ms, 0.1), "SGS": quartiles(SGS, 0.1), "none": quartiles(100.0)}
        found = [{"name": name, "converged": True, "iterations": iterations} | row for name, row in rows.items()]
        failed = [{"name": name, "converged": False} for name in ("DILU", "ILU0", "multigrid")]
        return {"solvers": found + failed, "nnz": 2 * automatic.SMALL}

    cases = [case(5, 1.0, 9.0), case(20, 5.0, 5.1), case(30, 6.0, 2.0), case(40, 4.0, 9.0), case(50, 8.0, 3.0)]
    document = {"machine": {"gpu": "one", "cpu": ""}, "date": "2026-11-26", "cases": cases}
    _, _, line, *_, of_sgs, rest = automatic.rule([document]).splitlines()
    assert line == "| one, 2026-11-26 | 2 of 5 matrices | 2 | 30 iterations, or 6.00 ms | 40 iterations, or 4.00 ms |"
    assert automatic.rule([]) == "" and automatic.line_of(document | {"cases": cases[:1]})[3] == ""
    # Of the five systems, CG solves those faster on which it takes 5, 20 or 40 iterations, and SGS the other two.
    # A rule that chooses SGS from 30 iterations on is wrong only for the system with 40. No other threshold is better.
    assert of_sgs.endswith("than Jacobi; if Jacobi takes 30 or more, SGS is")
    times = (6.0 / 2.0) * (4.0 / 9.0) * (8.0 / 3.0)
    assert rest.startswith(f"  {times ** (1 / 3):.2f} times as fast")
    assert automatic.when_sgs_pays([document]).splitlines()[2].startswith("| one, large | 5 | 1.00 | 30 | 4 |")


def test_the_chart_has_the_librarys_cg_others_and_ours_of_the_same_system():
    from report import readme

    def case(name: str, **ms: float) -> dict:
        rows = [{"name": who, "setup": {"ms": 1.0}, "solve": {"ms": of_solve}} for who, of_solve in ms.items()]
        return {"name": name, "unknowns": 1024**2, "solvers": rows}

    library = {"library CG": 3499.0, "library Jacobi": 2999.0}
    ours = library | {"multigrid": 19.0, "PyAMG": 59.0, "PyAMG, forward and backward": 49.0}
    tried = {"kind": "pcg", "params": {"algorithm": "any", "solver": "PCG"}, "status": "success", "setup_ms": 30.0}
    lines = [tried | {"solve_ms": ms} for ms in (10.0, 20.0)]
    found = {
        "multigrid-gpu": {"machine": {"gpu": "one", "cpu": ""}, "cases": [case("poisson2d", **ours)]},
        "multigrid-cpu": {"machine": {"gpu": None, "cpu": "two"}, "cases": [case("poisson2d_1024", **ours)]},
        "amgx-multigrid": {
            "machine": {"gpu": "one"},
            "date": "2026-11-23",
            "cases": [{"name": "grid2d_1024", "lines": lines}],
        },
    }
    on_gpu, on_cpu = readme.headline(found)
    assert on_gpu["times"] == "CuPy's CG takes 3.00 s, PyAMG 50.0 ms, AmgX 40.0 ms and mcprecond 20.0 ms"
    assert on_cpu["times"] == "SciPy's CG takes 3.00 s, PyAMG 50.0 ms and mcprecond 20.0 ms"
    del found["multigrid-cpu"]["cases"][0]
    assert len(readme.headline(found)) == 1


def test_cells_are_expressions_over_the_fields_of_a_run_and_empty_where_one_is_missing():
    cases = [{"name": "a", "rows": [{"name": "x", "ms": 1.5}]}, {"name": "b", "rows": [{"name": "y", "ms": 2.0}]}]
    spec = {"each": "case in cases; row in rows", "columns": [["matrix", "{case.name}"], ["ms", "{number(ms)}"]]}
    assert made(spec, HELPERS | {"cases": cases}).splitlines()[2:] == ["| a | 1.50 |", "| b | 2.00 |"]
    with pytest.raises(ValueError, match="no cell under"):
        made(spec | {"columns": [["colors", "{colors}"]]}, HELPERS | {"cases": cases})
    across = {
        "across": "case in cases",
        "head": "{name}",
        "lines": [{"each": "row in rows", "lines": [["{name}", "{ms}"]]}],
    }
    lines = made(across, HELPERS | {"cases": cases}).splitlines()
    assert lines[0] == "|  | a | b |" and lines[2:] == ["| x | 1.5 |  |", "| y |  | 2.0 |"]


def quartiles(ms: float, width: float = 0.0, repeats: int = 5) -> dict:
    return {"ms": ms, "ms_quartiles": [ms - width, ms + width], "ms_repeats": repeats}


def test_a_relation_is_decided_if_it_holds_for_the_quartiles_as_well():
    from report.noise import Range, fastest, mean, total, verdict

    def both(value: Range) -> tuple[str, str]:
        return verdict(value, 1), verdict(value, 1, at_most=True)

    time, other, undecided = Range.of(quartiles(2.0, 0.2)), Range.of(quartiles(2.3, 0.2)), ("not decided",) * 2
    assert both(time) == ("yes", "no") and both(time.scale(0.25)) == ("no", "yes")
    assert both(time / other) == both(mean([time / other, time.scale(0.5)])) == undecided
    assert time + other == pytest.approx((4.3, 3.9, 4.7))
    assert both(Range.of({"colors": 3}, "colors") / Range.of({"colors": 3}, "colors")) == ("yes", "yes")
    for unknown in (quartiles(9.0, 0.2, 1), {"ms": 9.0}, {"ms": 9.0, "spread_ms": 0.1}):
        assert both(Range.of(unknown)) == both(mean([Range.of(unknown), time])) == undecided
    fast, close, slow = (total({"setup": quartiles(1.0), "solve": quartiles(ms, 0.2)}) for ms in (1.0, 1.2, 2.0))
    assert (fastest(fast, [slow]), fastest(slow, [fast, close])) == ("yes", "no")
    assert fastest(fast, [slow, close]) == fastest(close, [fast]) == "not decided"


def test_no_time_is_from_what_failed():
    from report import opponents

    ran = {"kind": "color", "algo": "x", "ms": 2.0, "colors": 3}
    tried = [ran | {"ms": 1.0, "valid": False}, ran | {"ms": None, "error": "timeout after 8 s"}]
    assert opponents.colored_in([*tried, ran], "x") == "2.00 / 3"
    assert opponents.colored_in(tried[1:], "x") == "timeout"


def test_the_authors_codes_are_compared_on_the_graphs_of_ours_in_their_own_run():
    from report import colorings

    def line(code: str, ms: float) -> dict:
        return {"kind": "color", "algo": code, "ms": ms, "colors": 4}

    ran = [line("csrcolor", 6.0), line("sirg", 2.0)]
    theirs = [{"name": name, "lines": ran} for name in ("fenl_50", "rgg20")]
    ours = [{"name": "fenl_50", "methods": {"csrcolor": line("", 5.0), "sirg": line("", 1.0)}}]
    documents = {"coloring-gpu": {"cases": ours}, "colorings": {"cases": theirs}}
    table = colorings.compared("sirg", documents)
    assert "| geometric mean of these 1 | 5.00 |" in table
    assert "| geometric mean of 1, the authors' own codes | 3.00 |" in table
    assert "own codes" not in colorings.compared("sirg", {"coloring-gpu": {"cases": ours}})
    ours[0]["methods"]["chen_wlc"] = line("", 1.5)  # which is optimized, and SIRG is as published
    ran.append(line("chengc", 8.0))
    assert "| geometric mean of these 1 | 5.00 |  |" in colorings.compared("sirg", documents)
    assert "| geometric mean of 1, the authors' own codes | 3.00 | 4.00 |" in colorings.compared("sirg", documents)


def test_a_relation_of_the_authors_codes_is_one_of_their_run():
    from report import colorings

    def line(code: str, ms: float) -> dict:
        return {"kind": "color", "algo": code, "ms": ms, "colors": 4, "repeats": 5} | bounds(ms)

    def bounds(ms: float) -> dict:
        return {"ms_min": 0.9 * ms, "ms_max": 1.1 * ms, "colors_min": 3, "colors_max": 5}

    ran = [line("csrcolor", 6.0), line("sirg", 1.0), line("chengc", 4.0)]
    told = colorings.relations(
        {"colorings": {"cases": [{"name": name, "lines": ran} for name in ("fenl_50", "rgg20")]}}
    )
    assert {relation["by"] for relation, _ in told} == {"the authors"}
    found = {relation["sentence"]: cells for relation, cells in told}
    (times,) = [cells for sentence, cells in found.items() if "SIRG is faster than their code of Chen" in sentence]
    assert times == ["at least 1.76", f"4.00 ({3.6 / 1.1:.2f} to {4.4 / 0.9:.2f})", "yes"]
    (colors,) = [cells for sentence, cells in found.items() if sentence.startswith("The colors of their code")]
    assert colors == ["at least 0.94", "1.00 (0.60 to 1.67)", "not decided"]


def test_relations_of_studies_are_means_of_the_papers_kind():
    from report import papers, studies

    seconds = {"published baseline": (1.0, 4.0, 4.0), "published +SC1": (1.0, 1.0, 0.5)}
    rows = [
        {"matrix": f"m{k}", "method": method, "entries": 10 * k, "vertices": 1, "seconds": times[k - 1]}
        for method, times in seconds.items()
        for k in (1, 2, 3)
    ]
    relation = {"above": "published baseline", "below": "published +SC1"}
    found = {of: studies.compared(relation | {"of": of}, rows).found for of in ("geometric mean", "average", "largest")}
    assert found == pytest.approx({"geometric mean": 32 ** (1 / 3), "average": 13 / 3, "largest": 8})
    assert studies.degrees_and_shortcut_1(rows).found == pytest.approx(0.9966, abs=1e-4)
    shown = {"results": ["a.json"], "kinds": {"roads": ["road"], "webs": []}}
    assert papers.kinds(shown, {"a.json": {"road_20"}}) == ["Here: roads.", "Not here: webs."]
    assert papers.kinds({"results": []}, {}) == []


def test_the_graph_is_named_that_changes_the_correlation_the_most():
    """Speedups rise with the degrees, but on one graph, "hubs", whose average degree is small."""
    from report import studies

    graphs = {"a": (2, 1.0), "b": (4, 2.0), "hubs": (5, 20.0), "c": (8, 4.0), "d": (100, 50.0 / 8)}
    rows = [
        {"matrix": name, "method": method, "entries": degree, "vertices": 1, "seconds": seconds, "repeats": 1}
        for name, (degree, speedup) in graphs.items()
        for method, seconds in (("published baseline", speedup), ("published +SC1", 1.0))
    ]
    without = [row for row in rows if row["matrix"] != "hubs"]
    assert studies.decisive_graph(rows) == "hubs"
    left = studies.degrees_and_shortcut_1(rows, without="hubs").found
    assert left == studies.degrees_and_shortcut_1(without).found > 0.8
    assert studies.degrees_and_shortcut_1(rows).found < 0.1
    ranks = [studies.degrees_and_shortcut_1(some, of=studies.of_ranks).found for some in (rows, without)]
    assert ranks == pytest.approx([0.7, 1.0])
    (study,) = [study for study in studies.STUDIES if study["name"] == "ecl-shortcuts"]
    said = [cells for cells in studies.relations_of(study, rows) if "correlation" in cells[0] or "the same" in cells[0]]
    assert ["without hubs" in cells[0] for cells in said] == [False, True, False]
    assert studies.relations_of(study, rows[:4]) == [
        cells for cells in studies.relations_of(study, rows[:4]) if "6.2.3" not in cells[0]
    ]


def test_all_methods_are_compared_with_eb_on_the_largest_graph():
    from report import studies

    seconds = {"eb": 3.0, "eb atomic": 1.0, "vb": 6.0, "sirg": 1.5, "ecl_gc": 2.0}
    rows = [
        {"matrix": name, "method": method, "entries": 6, "seconds": most, "repeats": 1}
        for name in ("rmat_8", "rmat_9")
        for method, most in seconds.items()
    ]
    (study,) = [study for study in studies.STUDIES if study["name"] == "rmat-scaling"]
    found = {cells[0].split(",")[0]: cells[-2] for cells in studies.relations_of(study, rows) if "best" in cells[0]}
    assert found == {"largest graph: time of sirg": "0.50", "largest graph: time of vb": "2.00"}


def test_vb_is_compared_with_eb_in_the_library_of_their_authors():
    from report import opponents

    def lines(eb: float, vb: float) -> list[dict]:
        ran = (("COLORING_EB", eb), ("COLORING_VB", vb))
        return [{"kind": "color", "algo": code, "ms": ms, "colors": 4} for code, ms in ran]

    graphs = {"mesh": lines(4.0, 1.0), "grid": lines(9.0, 1.0), "hubs": lines(1.0, 50.0), "torn": lines(1.0, 1.0)[:1]}
    said = "On 2 of 3 graphs VB is 4.00 to 9.00 times (6.00 in the geometric mean) faster than EB"
    other = "EB is 50.0 to 50.0 times (50.0 in the geometric mean) faster than VB on hubs"
    assert opponents.vb_beside_eb(graphs) == f"{said}; {other}"


def test_a_table_of_a_paper_holds_as_far_as_its_relations_do():
    from report import papers

    told = [
        ("a study", "Table II: fewer colors", "yes"),
        ("a study", "Tables III: faster", "no"),
        ("a study", "without a label", "not decided"),
        ("another", "Table II: slower", "no"),
        ("a paper", "Table III", "yes"),
    ]
    verdicts = [papers.Verdict(*one) for one in told]
    shown = {"study": "a study", "paper": "a paper", "item": "Table II"}
    assert papers.held(shown, verdicts) == "in part: 1 of 2"
    assert papers.held(shown | {"item": "Table III"}, verdicts) == "in part: 1 of 3"
    assert papers.held(shown | {"study": "another"}, verdicts) == "no: 0 of 1"
    assert papers.held({"paper": "a paper", "item": "Figure 1"}, verdicts) == ""
    ours = papers.Verdict("a study", "Table II: more", "yes", paper="not given")
    assert papers.held(shown, [*verdicts, ours]) == "in part: 1 of 2"


def test_the_page_of_papers_names_each_relation_and_where_its_file_was_measured(tmp_path):
    from report import papers

    def row(method: str, seconds: float) -> dict:
        times = {"seconds": seconds, "seconds_first_quartile": seconds * 0.99, "seconds_third_quartile": seconds * 1.01}
        return {"matrix": "rmat_8", "method": method, "entries": 4, "repeats": 5, "verified": True, **times}

    machine = {"cpu": "a processor", "cores": 3, "gpu": "a card"}
    document = {"machine": machine, "versions": {"mcprecond": "9.9"}, "date": "2026-01-02T00:00:00"}
    path = tmp_path / "studies" / "rmat-scaling-gpu.json"
    path.parent.mkdir()
    path.write_text(json.dumps(document | {"cases": [row("eb", 1.0), row("vb", 3.0), row("vb EF", 2.0)]}))
    found, there = papers.load(tmp_path), papers.load()
    text = papers.page(there._replace(places=found.places, verdicts=[*there.verdicts, *found.verdicts]))
    best = "largest graph: time of vb EF, the best of all other methods, to EB"
    assert f"| Table IV, Figure 4 | {best} | EB is best | at least 1 | 2.00 (1.96 to 2.04) | yes |" in text
    assert "| `studies/rmat-scaling-gpu.json` | a card | a processor, 3 cores | 9.9 | 2026-01-02 |" in text
    assert papers.place_of(document | {"machine": {"gpu": None}, "versions": {}})["card"] == "none"
    assert papers.load(tmp_path / "nowhere") == ({}, {}, [])


def test_the_automatic_choice_is_compared_with_the_best_that_converged():
    from report import automatic

    def case(name: str, **ms: float) -> dict:
        row = {"stages": ["Jacobi 3"], "converged": True, "ms_repeats": 5}
        times = {solver: row | {"ms": time, "ms_quartiles": [time, time]} for solver, time in ms.items()}
        solvers = [{"name": solver} | times.get(solver, {"converged": False}) for solver in (*automatic.FIXED, "solve")]
        return {"name": name, "solvers": solvers}

    cases = [case("lost", SGS=10.0, multigrid=20.0, solve=40.0), case("won", none=5.0, SGS=8.0, solve=5.0)]
    assert [automatic.multiple(one) for one in cases] == [4.0, 1.0]
    assert [automatic.multiple(one, "SGS") for one in cases] == [1.0, 1.6] and automatic.failures("none", cases) == 1
    described = page_module("solves").described["automatic"]["tables"]["table"]
    lost, won = made(described, page_module("solves").scope | {"cases": cases}).splitlines()[2:]
    assert "| no |" in lost and "| yes |" in won


def test_steps_in_time_are_compared_with_the_best_candidate():
    times = {"SGS": 10.0, "multigrid": 20.0, "auto": 11.0, "auto, anew": 15.0}
    rows = [{"name": name, "converged": True} | quartiles(ms) for name, ms in times.items()]
    rows[2] |= {"first_stages": ["Jacobi 9", "SGS 5"], "last_stages": ["SGS 7"]}
    case = {"name": "a", "solvers": rows, "switch": "SGS to multigrid", "switch_ms": 0.4}
    page = page_module("solves")
    (line,) = made(page.described["steps"]["tables"]["table"], page.scope | {"cases": [case]}).splitlines()[2:]
    assert line == "| a | SGS | 1.10 | 1.50 | Jacobi 9, SGS 5 | SGS 7 | SGS to multigrid | 0.400 |"


def test_loss_is_the_time_lost_against_the_best():
    """On the first matrix "auto" takes 12 ms where 10 would do, on the second it is the best."""
    from report import solves

    def timed(name: str, ms: float, **more) -> dict:
        return {"name": name, "setup": quartiles(1.0), "solve": quartiles(ms - 1), "iterations": 10} | more

    lost = [timed("SGS auto", 12.0, method="greedy"), timed("SGS greedy", 11.0), timed("SGS ecl_gc", 10.0)]
    won = [timed("SGS auto", 10.0, method="greedy"), timed("SGS eb", 20.0), timed("SGS ecl_gc", 40.0)]
    cases = [{"name": name, "solvers": rows} for name, rows in (("lost", lost), ("won", won))]
    assert [solves.quickest(case) for case in cases] == ["ecl_gc", "auto"]
    assert [solves.loss(case) for case in cases] == pytest.approx([0.2, 0.0])
    assert [solves.is_best(case) for case in cases] == ["no", "yes"]
    lost[0]["solve"] = quartiles(11.0, 2.5)
    assert solves.is_best(cases[0]) == "not decided"


def test_the_page_on_errors_says_how_near_the_estimates_come():
    from report.results import runs
    from report.sentences import of_error_estimates

    assert "{{ error_estimates }}" in (ROOT / "docs" / "how-to" / "good-enough.md").read_text()
    said, documents = of_error_estimates(), runs(["error-estimates-cpu", "error-estimates-gpu"])
    assert documents
    for document in documents.values():
        found = document["summaries"]["all"]
        assert f"{found['ended']} of {found['solves']} solves" in said and f"{100 * found['within']:.1f}%" in said


def test_the_page_on_errors_counts_alarms(tmp_path):
    from report.sentences import alarms

    assert "{{ alarms }}" in (ROOT / "docs" / "how-to" / "good-enough.md").read_text()
    kinds = {"alarm": True, "false": False, "missed": False}, {"alarm": False, "false": False, "missed": True}
    cases = [
        {"name": "grid", "solves": [*kinds, {"M": "sgs", "reason": "M refuses A"}]},
        {"name": "smoke", "count": 30, "alarms": 4},
    ]
    machine = {"cpu": "a CPU", "gpu": None, "cores": 2, "threads": 2}
    said = alarms({"cases": cases, "machine": machine, "versions": {"mcprecond": "1"}, "date": "2026-11-28T00:00:00"})
    assert said.startswith("Of 2 solves for 1 matrices") and "1 end as `CONVERGED_IN_RESIDUAL`, and for 0 of" in said
    assert "1 end as `CONVERGED` with" in said and said.endswith("Of 30 solves in the gallery 4 are alarms.")


def test_first_fit_stands_beside_the_deterministic_coloring_of_kokkos_kernels():
    from report.opponents import first_fit

    assert "{{ first_fit }}" in (ROOT / "docs" / "explanation" / "first-fit.md").read_text()
    (fenl,) = [line for line in first_fit().splitlines() if line.startswith("| fenl_100 |")]
    # 701 fronts on 101 points to an edge, and eight colors in all three.
    assert fenl.split(" | ")[1] == "701" and fenl.count("/ 8 |") == 3


def test_the_chart_of_solves_has_the_fastest_of_several_beside_the_librarys_cg_and_none_that_fails():
    from report import automatic

    rows = {"library, Jacobi": quartiles(8.0), "SGS": quartiles(4.0), "SGS, float32": quartiles(2.0)}
    found = [{"name": name, "converged": True} | row for name, row in rows.items()]
    case = {"solvers": [*found, {"name": "multigrid", "converged": False}]}
    assert automatic.beside_library(case, ("SGS", "SGS, float32")) == 4.0
    assert math.isnan(automatic.beside_library(case, ("multigrid",)))
    assert math.isnan(automatic.beside_library({"solvers": found[1:]}, ("SGS",)))


def test_the_gallery_says_where_the_default_is_faster_and_what_was_not_measured_on_a_gpu(tmp_path):
    from report.sentences import of_gallery

    def case(name: str, ours: float, default: float) -> dict:
        times = {"ours": quartiles(1e3 * ours, 100.0), "default": quartiles(1e3 * default, 100.0)}
        return {"name": name, "size": 5, "beside": "SciPy"} | times

    on_gpu, on_cpu = ({"cpu": "CPU", "cores": 2, "gpu": gpu} for gpu in ("a GPU", None))
    cases = [case("slow", 3.0, 2.0), case("fast", 1.0, 2.0), case("close", 2.0, 2.05)]
    for name, machine, shown in (("cpu", on_cpu, cases), ("gpu", on_gpu, cases[:1])):
        document = {"machine": machine, "cases": shown}
        (tmp_path / f"gallery-{name}.json").write_text(json.dumps(document))
    said = of_gallery(tmp_path)
    assert said["slow"].count("by SciPy: **there the default is faster**.") == 2
    assert said["fast"].endswith("2.00 s on the CPU by SciPy. It was not measured on a GPU.")
    assert "which one is faster is not decided" in said["close"]


def test_pages_name_graphs_and_matrices_in_plain_words():
    from report.results import plain
    from report.tables import spelled_out

    assert (
        spelled_out("| rgg20 | rgg_15 | x |") == "| geometric20 | geometric_15 | x |"
        and spelled_out("rgg") == "geometric"
    )
    assert plain("constrained") == "grid with five dense rows" and plain("of another name") == "of another name"
