"""docs/colorings.md and its pictures: what colorings cost and find, beside csrcolor and what the papers print.

A section is there if the run that it shows is.
"""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean
from typing import Any

from report import opponents
from report.noise import Range, verdict
from report.noise import mean as mean_of
from report.pictures import over_size, picture, plain_ticks
from report.results import MARKS, PAPERS, RESULTS, Document, origin, runs
from report.studies import of_methods_alone
from report.tables import by_name, mean, render

RUNS = ["coloring-gpu", "coloring-steps", "coloring-rounds", "coloring-scaling-gpu", "coloring-cpu"]
#: What the authors' own codes took, and the name of ours for each that several papers compare with.
AUTHORS, THEIR_NAMES = "colorings", {"csrcolor": "csrcolor", "chen_wlc": "chengc"}

Case = dict[str, Any]

TABLE_II_ROWS = ["csrcolor", "vb", "eb", "greedy"]
WITHOUT_SHORTCUTS = "ecl_gc, no shortcut"
#: Methods in the right half of the performance profile: the fastest of each kind.
OF_EACH_KIND = ["csrcolor", "eb", "vb_bit", "sirg", "chen_wlc", "ecl_gc", "jp natural", "is_minmax", "cc"]
TRADE_OFF_ON = ["fenl_100", "delaunay20", "rgg20", "rmat20"]


def load(results: Path = RESULTS) -> dict[str, Document]:
    """The runs that exist, by name."""
    studies = [paper["study"] for paper in PAPERS["compared"].values()]
    alone = {name: of_methods_alone(run) for name, run in runs(studies, results / "studies").items()}
    return runs(RUNS, results) | runs([AUTHORS], results / "opponents") | alone


def page(documents: dict[str, Document]) -> str:
    """The whole page, in Markdown."""
    sections = {"gpu": on_a_gpu, "steps": steps, "rounds": rounds, "scaling": scaling, "cpu": on_a_cpu}
    found = {
        name: section(documents[run]) if run in documents else None
        for run, (name, section) in zip(RUNS, sections.items(), strict=True)
    }
    if found["gpu"]:
        found["gpu"]["compared"] = {method: compared(method, documents) for method in PAPERS["compared"]}
    return render("colorings.md", **found)


def on_a_gpu(document: Document) -> dict[str, Any]:
    cases = document["cases"]
    names, rows = [case["name"] for case in cases], names_of(cases)
    compared = [row for row in rows if row != "csrcolor"]
    relations = {
        relation["sentence"]: held(cases, relation)
        for relation in PAPERS["relations"]
        if together(cases, [relation["above"], relation["below"]])
    }
    return {
        "origin": origin(document),
        "graphs": graphs(cases),
        "times": by_name("method", names, {r: [cell(case["methods"].get(r)) for case in cases] for r in rows}),
        "ratios": by_name(
            "method",
            [*names, "geometric mean"],
            {row: [*(ratio([case], row) for case in cases), ratio(cases, row)] for row in compared},
        ),
        "asked": asked(cases),
        "table_ii": table_ii(cases),
        "table_iii": table_iii(cases),
        "table_5": table_5(cases),
        "relations": by_name("relation", ["asked", "found", "holds"], relations),
    }


def asked(cases: list[Case]) -> str | None:
    """What was asked for and what was found, where all of it was run."""
    marks = MARKS["colorings"]
    cases = [case for case in together(cases, ["csrcolor", "eb", "ecl_gc", "jp natural"]) if case["name"] in marked()]
    if not cases:
        return None
    cells: dict[str, list[str]] = {what: [] for what in marks}
    for case in cases:
        methods = case["methods"]
        most = methods["ecl_gc"]["colors"] + 1
        few = [row for name, row in methods.items() if name != "csrcolor" and row["colors"] <= most]
        fastest = min(few, key=lambda row: row["ms"])
        beside = Range.of(methods["csrcolor"])
        found = {"fastest with one color more than ecl_gc at most": Range.of(fastest) / beside}
        for name in ("eb", "ecl_gc", "jp natural"):
            found[f"{name}, ms"] = Range.of(methods[name])
            found[f"{name}, time relative to csrcolor"] = found[f"{name}, ms"] / beside
            found[f"{name}, colors"] = Range.of(methods[name], "colors")
        for what, limits in marks.items():
            if (limit := limits.get(case["name"])) is None:
                cells[what].append("")
                continue
            holds = verdict(found[what], limit, at_most=True)
            cells[what].append(f"{found[what].found:.3g} (at most {limit:g}): {holds}")
    return by_name("", [case["name"] for case in cases], cells)


def marked() -> set[str]:
    """The graphs for which a bound was set."""
    return {name for limits in MARKS["colorings"].values() for name in limits}


def table_ii(cases: list[Case]) -> str:
    """Deveci et al., Table II: colors."""
    compared = together(cases, TABLE_II_ROWS)
    found = {case["name"]: [case["methods"][row]["colors"] for row in TABLE_II_ROWS] for case in compared}
    found["geometric mean"] = [mean(list(column)) for column in zip(*found.values(), strict=True)]
    theirs = {name: PAPERS["table_ii"].get(name, {}) for name in found}
    return by_name(
        "graph",
        [*TABLE_II_ROWS, "in the paper", "cuSPARSE", "VB", "EB", "first-fit"],
        {
            name: [
                *map(count, row),
                theirs[name].get("graph", ""),
                *(count(theirs[name].get(method)) for method in TABLE_II_ROWS),
            ]
            for name, row in found.items()
        },
    )


def table_iii(cases: list[Case]) -> dict[str, Any]:
    """Deveci et al., Table III: geometric means of times; Figure 3: performance profiles."""
    paper = PAPERS["table_iii"]
    rows = [row for row in paper if together(cases, [row])]
    compared = together(cases, rows)
    means = {row: mean([case["methods"][row]["ms"] for case in compared]) for row in rows}
    cells = {
        "here, ms": [ms(means[row]) for row in rows],
        "here, relative to csrcolor": [f"{means[row] / means['csrcolor']:.2f}" for row in rows],
        "paper, s": [f"{paper[row]:.2f}" for row in rows],
        "paper, relative to csrcolor": [f"{paper[row] / paper['csrcolor']:.2f}" for row in rows],
    }
    return {"table": by_name("", rows, cells), "graphs": len(compared)}


def table_5(cases: list[Case]) -> str | None:
    """Alabandi et al., Table 5: what the shortcuts save."""
    paper = PAPERS["table_5"]
    rows = [column["row"] for column in paper.values()]
    compared = together(cases, [WITHOUT_SHORTCUTS, *rows])
    if not compared:
        return None

    def speedups(some: list[Case]) -> list[str]:
        return [f"{gain(some, WITHOUT_SHORTCUTS, row, 'ms'):.2f}" for row in rows]

    cells = {case["name"]: speedups([case]) for case in compared} | {"geometric mean": speedups(compared)}
    cells["paper, Titan V"] = [column["paper"] for column in paper.values()]
    return by_name("graph", list(paper), cells)


def compared(method: str, documents: dict[str, Document]) -> str:
    """A method beside csrcolor and Chen et al.: ours, the authors' own, in both schedules, and in the paper."""
    paper = PAPERS["compared"][method]
    cases = together(documents[RUNS[0]]["cases"], [method])

    def cells(some: list[Case], name: str = method) -> list[str]:
        faster = [(other, name, "ms") for other in paper["over"]]
        fewer = [(name, other, "colors") for other in paper["colors"]]
        return [f"{gain(some, *what):.2f}" if together(some, [*what[:2]]) else "" for what in (*faster, *fewer)]

    rows = {case["name"]: cells([case]) for case in cases} | {f"geometric mean of these {len(cases)}": cells(cases)}
    theirs = of_the_authors(THEIR_NAMES | {method: paper["code"]}, documents)
    theirs = [case for case in theirs if case["name"] in rows]
    if theirs:
        rows[f"geometric mean of {len(theirs)}, the authors' own codes"] = cells(theirs)
        same = {case["name"] for case in theirs}
        rows["the same graphs, ours"] = cells([case for case in cases if case["name"] in same])
    studied = of_a_study(documents.get(paper["study"]))
    for schedule, name in paper["schedules"].items():
        if any(found := cells(studied, name)):
            rows[f"geometric mean of {len(together(studied, [name]))} of a study, {schedule}"] = found
    for where, printed in paper["paper"].items():
        rows[where] = [printed[what].get(other, "") for what in ("over", "colors") for other in paper[what]]
    columns = [*(f"over {other}" for other in paper["over"]), *(f"colors / {other}" for other in paper["colors"])]
    return by_name("graph", columns, rows)


def of_the_authors(codes: dict[str, str], documents: dict[str, Document]) -> list[Case]:
    """Their run as ours: graphs with what these codes took there, under names of ours."""
    if AUTHORS not in documents:
        return []
    cases = []
    for graph, lines in opponents.lines_of(documents[AUTHORS]).items():
        rows = {name: opponents.best_by(lines, code) for name, code in codes.items()}
        cases.append({"name": graph, "methods": {name: row for name, row in rows.items() if row}})
    return together(cases, ["csrcolor"])


def of_a_study(document: Document | None) -> list[Case]:
    """A study as a run of colorings."""
    cases: dict[str, Case] = {}
    for row in document["cases"] if document else []:
        if row["verified"]:
            case = cases.setdefault(row["matrix"], {"name": row["matrix"], "methods": {}})
            case["methods"][row["method"]] = {"ms": 1e3 * row["seconds"], "colors": row["colors"]}
    return list(cases.values())


def steps(document: Document) -> dict[str, Any]:
    """Alabandi et al., Table 4: the parallelism that the shortcuts add."""
    rows = {}
    for case in document["cases"]:
        without, shortened, vertices = case["steps"], case["steps_with_shortcuts"], case["vertices"]
        ours = [f"{without:,}", f"{shortened:,}", f"{vertices / without:,.0f}", f"{vertices / shortened:,.0f}"]
        paper = PAPERS["table_4"].get(case["name"])
        theirs = ["", "", "", ""]
        if paper:
            theirs = [paper["graph"], count(paper["without"]), count(paper["with"])]
            theirs.append(f"{paper['without'] / paper['with']:.2f}")
        rows[case["name"]] = [*ours, f"{without / shortened:.2f}", *theirs]
    average = fmean(case["steps"] / case["steps_with_shortcuts"] for case in document["cases"])
    printed = PAPERS["table_4_mean"]
    theirs = [f"their {printed['graphs']} graphs", "", "", f"{printed['ratio']}"]
    rows["arithmetic mean"] = ["", "", "", "", f"{average:.2f}", *theirs]
    pair = ["steps", "with shortcuts"]
    return {
        "table": by_name(
            "graph", [*pair, "vertices a step", "with shortcuts", "ratio", "in the paper", *pair, "ratio"], rows
        ),
        "ways": ways(document["cases"]),
        "drawn": document["cases"][drawn_steps(document["cases"])]["name"],
    }


def ways(cases: list[Case]) -> str:
    """Alabandi et al., Figure 8: how vertices got their colors, in percent."""
    columns = {"at first": "at_first", "by shortcuts": "by_shortcut", "conventionally": "conventionally"}
    shares = {case["name"]: [100 * case[key] / case["vertices"] for key in columns.values()] for case in cases}
    shares["mean"] = [sum(column) / len(cases) for column in zip(*shares.values(), strict=True)]
    cells = {name: [f"{share:.1f}" for share in row] for name, row in shares.items()}
    cells["paper, mean"] = [f"{PAPERS['figure_8'][key]:.1f}" for key in columns.values()]
    return by_name("% of the vertices", list(columns), cells)


def drawn_steps(cases: list[Case]) -> int:
    """The number of the case with the most steps: it shows best what shortcuts do."""
    return max(range(len(cases)), key=lambda k: cases[k]["steps"])


def rounds(document: Document) -> dict[str, Any]:
    """Deveci et al., Sections IV-C and IV-D: rounds by chunk size and by rule."""
    cases = document["cases"]
    columns = [(row["resolution"], row["chunk_size"]) for row in cases[0]["rounds"]]
    found = {case["name"]: {(row["resolution"], row["chunk_size"]): row for row in case["rounds"]} for case in cases}

    def tabled(key: str) -> str:
        cells = {name: [f"{rows[column][key]:,}" for column in columns] for name, rows in found.items()}
        means = [mean([rows[column][key] for rows in found.values()]) for column in columns]
        cells["geometric mean"] = [f"{value:,.1f}" for value in means]
        return by_name(key, [f"{chunk}, by {rule}" for rule, chunk in columns], cells)

    def fewer(slow: tuple[str, int], fast: tuple[str, int]) -> str:
        ratio = mean([rows[fast]["rounds"] / rows[slow]["rounds"] for rows in found.values()])
        return f"{100 * (1 - ratio):.0f}%"

    return {
        "threads": f"{document['threads']:,}",
        "rounds": tabled("rounds"),
        "colors": tabled("colors"),
        "chunks": fewer(("index", 1), ("index", 8)),
        "paper": PAPERS["chunks"]["fewer_rounds"],
        "by_degree": fewer(("index", 8), ("degree", 8)),
        "more": [name for name, rows in found.items() if rows["index", 8]["rounds"] > rows["index", 2]["rounds"]],
    }


def scaling(document: Document) -> dict[str, Any]:
    """Osama et al., Figure 3, and Deveci et al., Figure 4."""
    tables = {}
    for family, title in (("rgg", "Random geometric graphs"), ("rmat", "R-MAT graphs")):
        cases = [case for case in document["cases"] if case["family"] == family]
        if not cases:
            continue
        rows = names_of(cases)
        found = {
            f"2^{case['scale']}": [f"{case['entries']:,}", *(cell(case["methods"].get(row)) for row in rows)]
            for case in cases
        }
        first, last = cases[0], cases[-1]
        found["growth"] = [
            f"{last['entries'] / first['entries']:.0f}",
            *(f"{last['methods'][row]['ms'] / first['methods'][row]['ms']:.1f}" for row in rows),
        ]
        tables[title] = by_name("vertices", ["entries", *rows], found)
    return {"origin": origin(document), "tables": tables}


def on_a_cpu(document: Document) -> dict[str, Any]:
    cases = document["cases"]
    rows = names_of(cases)
    timed = [row for row in rows if row != "PyAMG JP"]
    times = {
        case["name"]: [
            f"{case['load']:.1f}",
            f"{case['vertices']:,}",
            f"{case['entries']:,}",
            ms(case["pattern_ms"]),
            *(cell(case["methods"].get(row)) for row in rows),
        ]
        for case in cases
    }
    ratios = {case["name"]: [ratio([case], row, "PyAMG JP") for row in timed] for case in cases}
    return {
        "origin": origin(document),
        "threads": document["machine"]["threads"],
        "times": by_name("graph", ["load", "vertices", "entries", "pattern, ms", *rows], times),
        "ratios": by_name("graph", timed, ratios),
    }


def graphs(cases: list[Case]) -> str:
    columns = ["vertices", "entries", "largest degree", "pattern, ms"]
    sizes = ("vertices", "entries", "max_degree")
    return by_name(
        "graph", columns, {case["name"]: [*(f"{case[k]:,}" for k in sizes), ms(case["pattern_ms"])] for case in cases}
    )


def names_of(cases: list[Case]) -> list[str]:
    """Every method of a run, in order of appearance."""
    return list(dict.fromkeys(row for case in cases for row in case["methods"]))


def together(cases: list[Case], rows: list[str]) -> list[Case]:
    """The cases in which all of these methods ran."""
    return [case for case in cases if all(row in case["methods"] for row in rows)]


def gain(cases: list[Case], slow: str, fast: str, what: str) -> float:
    """The geometric mean of a ratio, over the cases that have both."""
    return mean([c["methods"][slow][what] / c["methods"][fast][what] for c in together(cases, [slow, fast])])


def held(cases: list[Case], relation: dict[str, Any]) -> list[str]:
    """What is found of a relation, and whether it holds."""
    above, below, what = relation["above"], relation["below"], relation["of"]
    compared = [case["methods"] for case in together(cases, [above, below])]
    found = mean_of([Range.of(rows[above], what) / Range.of(rows[below], what) for rows in compared])
    return [f"at least {relation['least']:g}", f"{found.found:.2f}", verdict(found, relation["least"])]


def ratio(cases: list[Case], row: str, base: str = "csrcolor") -> str:
    """The time relative to that of another method, in the geometric mean; empty where a time is missing."""
    if len(together(cases, [row, base])) < len(cases):
        return ""
    return f"{gain(cases, row, base, 'ms'):.2f}"


def cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not run"
    return f"{ms(row['ms'])} / {row['colors']}"


def ms(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def count(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}".removesuffix(".0")


def draw(documents: dict[str, Document], folder: Path) -> None:
    """The pictures of the runs that exist."""
    pictures = {"trade-off": ("coloring-gpu", draw_trade_off), "profile": ("coloring-gpu", draw_profile)}
    pictures |= {"scaling": ("coloring-scaling-gpu", draw_scaling), "steps": ("coloring-steps", draw_steps)}
    for name, (run, drawn) in pictures.items():
        if run in documents:
            with picture(folder / f"colorings-{name}.svg", salt="colorings"):
                drawn(documents[run]["cases"])


def draw_trade_off(cases: list[Case]) -> Any:
    """A panel per graph, one legend for all."""
    import matplotlib.pyplot as plt

    from mcprecond.studies import plots

    shown = [case for case in cases if case["name"] in TRADE_OFF_ON]
    methods = [row for row in names_of(cases) if "," not in row]  # shortcuts change no color
    figure, panels = plt.subplots(1, len(shown), figsize=(3 * len(shown), 5.5), squeeze=False, layout="constrained")
    for case, ax in zip(shown, panels[0], strict=True):
        plots.time_against_colors(as_table([case], methods), ax).set(title=case["name"])
        plain_ticks(ax.xaxis)
    return with_one_legend(figure, 7)


def draw_profile(cases: list[Case]) -> Any:
    """The methods of the paper on the left, one or two of each kind on the right."""
    import matplotlib.pyplot as plt

    from mcprecond.studies import plots

    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for ax, methods in zip(panels, (PAPERS["table_iii"], OF_EACH_KIND), strict=True):
        plots.performance_profile(as_table(cases, [m for m in methods if together(cases, [m])]), ax)
    return figure


def draw_scaling(cases: list[Case]) -> Any:
    """For each family time and colors over the number of vertices."""
    import matplotlib.pyplot as plt

    methods = names_of(cases)
    families = list(dict.fromkeys(case["family"] for case in cases))
    figure, panels = plt.subplots(
        len(families), 2, figsize=(8, 3.2 * len(families)), squeeze=False, layout="constrained"
    )
    for family, (times, colors) in zip(families, panels, strict=True):
        rows = as_table([case for case in cases if case["family"] == family], methods).rows
        over_size(rows, "seconds", times).set(title=family)
        over_size(rows, "colors", colors).set(title=family)
        plain_ticks(colors.yaxis)
    return with_one_legend(figure, 6)


def draw_steps(cases: list[Case]) -> Any:
    """Alabandi et al., Figure 6: how many vertices each step colors."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
    case = cases[drawn_steps(cases)]
    for key, label, look in (("colored", "no shortcuts", "--"), ("colored_with_shortcuts", "both shortcuts", "-")):
        ax.plot(range(1, len(case[key]) + 1), case[key], look, label=label)
    ax.set(xlabel="step", ylabel="vertices colored", xscale="log", yscale="log", title=case["name"])
    ax.legend(frameon=False)
    return figure


def with_one_legend(figure: Any, columns: int) -> Any:
    for ax in figure.axes:
        ax.get_legend().remove()
    entries = {label: line for ax in figure.axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns, frameon=False)
    return figure


def as_table(cases: list[Case], methods: list[str]) -> Any:
    """The rows that studies.plots draws; a method that was not run is not verified."""
    from mcprecond.studies import Table

    rows = []
    for case in cases:
        for method in methods:
            row = case["methods"].get(method, {"ms": math.inf, "colors": None})
            rows.append(
                {
                    "matrix": case["name"],
                    "vertices": case["vertices"],
                    "method": method,
                    "seconds": row["ms"] / 1e3,
                    "colors": row["colors"],
                    "verified": method in case["methods"],
                }
            )
    return Table(rows)
