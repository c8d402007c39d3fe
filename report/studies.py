"""docs/studies.md and its pictures: the experiments of the papers, beside what the papers found."""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mcprecond.coloring import COLORINGS
from report.generic import HELPERS, made, text_of
from report.noise import Range, average, verdict
from report.noise import mean as mean_of
from report.pictures import over_size, picture, plain_ticks
from report.results import PAPERS, RESULTS, Document, origin, runs
from report.tables import TEMPLATES, by_name, mean, number, render, table, yes_or_no

STUDIES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["studies"]

#: The functions that reduce several ratios to one, by their names in studies.toml.
MEANS: dict[str, Callable[[list[Range]], Range]] = {"geometric mean": mean_of, "average": average, "largest": max}

Row = dict[str, Any]
Rows = list[Row]
#: The value of a relation is a ratio, or whether two results are equal, or None if a method or matrix was not run.
Found = Range | bool | None


def load(results: Path = RESULTS / "studies") -> dict[str, Document]:
    """Study -> the document of its run, the GPU's if there are two; small runs are left out."""
    found = runs([f"{study['name']}-{device}" for study in STUDIES for device in ("cpu", "gpu")], results)
    by_study = {name.rsplit("-", 1)[0]: of_methods_alone(document) for name, document in found.items()}
    return {study["name"]: by_study[study["name"]] for study in STUDIES if study["name"] in by_study}


def of_methods_alone(document: Document) -> Document:
    """The same with times of colorings as the papers take them: without the check of the pattern, which other codes do
    not make either.
    """
    return document | {"cases": [of_method_alone(row) for row in document["cases"]]}


def of_method_alone(row: Row) -> Row:
    if row.get("coloring") not in COLORINGS:
        return row
    times = [key for key in row if key == "seconds" or (key.startswith("seconds_") and key.endswith("_quartile"))]
    least = 0.01 * row["seconds"]  # of a graph that is checked in no time the difference is noise
    return row | {key: max(row[key] - row["pattern_seconds"], least) for key in times}


def page(found: dict[str, Document]) -> str:
    """The whole page, in Markdown."""
    studies, relations = [], []
    for study in STUDIES:
        run = None
        if (document := found.get(study["name"])) is not None:
            rows = document["cases"]
            run = {
                "origin": origin(document),
                "picture": f"images/study-{study['name']}.svg" if study["name"] in DRAWN else None,
                "tables": tables_of(study, rows),
                "unverified": [f"{row['matrix']}: {row['method']}" for row in rows if not row["verified"]],
            }
            relations += relations_of(study, [row for row in rows if row["verified"]])
            methods = names(rows, "method")
            study = study | {"differences": TEMPLATES.from_string(study["differences"]).render(methods=methods)}
        studies.append(study | {"run": run})
    header = ["relation", "study", "paper", "asked here", "found here", "holds"]
    return render("studies.md", studies=studies, relations=relations and table(header, relations, names=2))


def relations_of(study: dict[str, Any], rows: Rows) -> list[list[str]]:
    """The lines of a study in the last table, of its verified rows."""
    lines = []
    for relation in study["relations"]:
        found = compared(relation, rows)
        if found is None:
            continue
        if isinstance(found, bool):
            cells = ["the same", "the same" if found else "others", yes_or_no(found)]
        else:
            at_most = "most" in relation
            bound = relation["most"] if at_most else relation.get("least", 1.0)
            asked = f"at {'most' if at_most else 'least'} {bound:g}"
            cells = [asked, f"{found.found:.2f}", verdict(found, bound, at_most=at_most)]
        lines.append([relation["sentence"], study["name"], relation["paper"], *cells])
    return lines


def compared(relation: dict[str, Any], rows: Rows) -> Found:
    """What a relation compares, as studies.toml says."""
    if "computed" in relation:
        return COMPUTED[relation["computed"]](rows)
    if "matrices" in relation:
        return beside(*(range_of(rows, matrix, "in row order", "iterations") for matrix in relation["matrices"]))
    matrices = [name for name in names(rows, "matrix") if name.startswith(tuple(relation.get("on", [""])))]
    if "at" in relation:
        matrices = matrices[:1] if relation["at"] == "first" else matrices[-1:]
    column = relation.get("column", "seconds")
    pairs = [[range_of(rows, matrix, relation[side], column) for side in ("above", "below")] for matrix in matrices]
    ratios = [ratio for pair in pairs if (ratio := beside(*pair))]
    return MEANS[relation.get("of", "geometric mean")](ratios) if ratios else None


# What several studies need.


def names(rows: Rows, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def value(rows: Rows, matrix: str, method: str, column: str) -> Any:
    """A cell of the table, or None."""
    return next((row.get(column) for row in rows if (row["matrix"], row["method"]) == (matrix, method)), None)


def range_of(rows: Rows, matrix: str, method: str, column: str) -> Range | None:
    """The same, with its quartiles."""
    if column == "both":  # a factorization and a solve together
        update, solve = (range_of(rows, matrix, method, f"{part}_seconds") for part in ("update", "application"))
        return update + solve if update and solve else None
    row = next((row for row in rows if (row["matrix"], row["method"]) == (matrix, method)), {})
    return Range.of(row, column) if row.get(column) else None


def beside(above: Range | None, below: Range | None) -> Range | None:
    """Their ratio, where both were run."""
    return above / below if above and below else None


def tables_of(study: dict[str, Any], rows: Rows) -> list[str]:
    """The tables of a study, as studies.toml describes them."""
    made_by = {"means_beside_the_paper": means_beside_the_paper, "throughput": throughput}
    tables = []
    for spec in study["tables"]:
        if isinstance(spec, str):
            tables.append(made_by[spec](rows))
        else:
            tables.append(pivot(rows, *spec) if isinstance(spec, list) else made(spec, SCOPE | {"rows": rows}))
    return [text for text in tables if text]


def pivot(rows: Rows, title: str, cell: str) -> str:
    """A column for each matrix, a row for each method."""
    by_case = {(row["matrix"], row["method"]): text_of(cell, SCOPE | row) for row in rows}
    lines = [{"each": "method in methods", "lines": [["{method}", "{by_case.get((matrix, method), '')}"]]}]
    spec = {"corner": title, "across": "matrix in matrices", "head": "{matrix}", "lines": lines}
    both = {"matrices": names(rows, "matrix"), "methods": names(rows, "method")}
    return made(spec, {"by_case": by_case} | both)


def ms(seconds: float) -> str:
    return number(1e3 * seconds)


# The tables of each study, and the numbers of its relations that are more than a ratio of two methods.


def beside_paper(row: Row, name: str) -> str:
    """A figure, and that of Table V of Deveci et al. in parentheses."""
    theirs = PAPERS["table_v"].get(row["matrix"].removesuffix(" stand-in"), {}).get(row["method"], {})
    return shown(row[name]) + (f" ({shown(theirs[name])})" if name in theirs else "")


def shown(cell: float | None) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) else number(cell)


def means_beside_the_paper(rows: Rows) -> str:
    """Geometric means over all matrices, of the methods that ran on all of them, and the paper's over its ten."""
    colors, seconds = PAPERS["table_ii"]["geometric mean"], PAPERS["table_iii"]
    lines = {}
    for name in dict.fromkeys(["csrcolor", *names(rows, "method")]):
        there = [row for row in rows if row["method"] == name and row["verified"]]
        ours = ["", ""]
        if names(there, "matrix") == names(rows, "matrix"):
            ours = [f"{mean([row['colors'] for row in there]):.1f}", ms(mean([row["seconds"] for row in there]))]
        theirs = [str(printed.get(name.replace("EF", "ef"), "")) for printed in (colors, seconds)]
        if any([*ours, *theirs]):
            lines[name] = [ours[0], theirs[0], ours[1], theirs[1]]
    return by_name("geometric means", ["colors", "paper", "ms", "paper, s"], lines)


def throughput(rows: Rows) -> str:
    """Vertices in a second, with those of ecl_gc on a GPU where it was run."""
    beside = [row for row in rows_of("table-ii-iii-gpu") if row["method"] == "ecl_gc"]
    there = names(rows, "matrix")
    more = [row | {"method": "ecl_gc on a GPU"} for row in beside if row["matrix"] in there]
    return pivot([*rows, *more], "millions per second", "{number(vertices / seconds / 1e6)}")


def rows_of(run: str) -> Rows:
    """The verified rows of a run, none if it does not exist."""
    found = runs([run], RESULTS / "studies")
    return [of_method_alone(row) for document in found.values() for row in document["cases"] if row["verified"]]


def per_edge(rows: Rows, matrix: str, method: str) -> Range | None:
    seconds = range_of(rows, matrix, method, "seconds")
    return seconds and seconds.scale(1 / value(rows, matrix, method, "entries"))


def best_other_to_eb(rows: Rows) -> Found:
    *_, last = names(rows, "matrix")
    others = [per_edge(rows, last, name) for name in ("csrcolor", "cc", "vb", "vb EF", "vb_bit", "vb_bit EF")]
    return beside(min(filter(None, others), default=None), per_edge(rows, last, "eb"))


def eb_growth(rows: Rows) -> Found:
    first, *_, last = names(rows, "matrix")
    return beside(per_edge(rows, first, "eb"), per_edge(rows, last, "eb"))


def vb_growth(rows: Rows) -> Found:
    first, *_, last = names(rows, "matrix")
    return beside(per_edge(rows, last, "vb"), per_edge(rows, first, "vb"))


def peaks_of(rows: Rows, matrix: str) -> list[list[int]]:
    """The most memory that the published schedules of SIRG allocate, if all were measured: Figures 9 and 10."""
    methods = ("published, Opt1", "published, Opt1 and Opt2", "published, palettes of vertices")
    peaks = [value(rows, matrix, method, "peak_bytes") for method in methods]
    return [peaks] if all(peaks) else []


def degrees_and_shortcut_1(rows: Rows) -> Found:
    """The correlation of average degrees and speedups by shortcut 1, also with all speedups at one of their ends."""
    found: dict[float, Range] = {}
    for row in rows:
        if row["method"] == "published baseline":
            shortened = range_of(rows, row["matrix"], "published +SC1", "seconds")
            if speedup := beside(Range.of(row, "seconds"), shortened):
                found[row["entries"] / row["vertices"]] = speedup
    if len(found) < 3:
        return None
    r, *others = [statistics.correlation([*found], ends) for ends in zip(*found.values(), strict=True)]
    return Range(r, min(others), max(others))


def same_colors(rows: Rows) -> Found:
    colors = {(row["matrix"], row["colors"]) for row in rows if row["coloring"] == "ecl_gc"}
    return len(colors) == len(names(rows, "matrix"))


def parts_of(rows: Rows) -> tuple[Rows, Row | None]:
    """The rows whose colors are cut into parts, and the row of those colors."""
    parts = [row for row in rows if row["method"].endswith("parts")]
    return parts, next((row for row in rows if row["method"] == "SGS greedy"), None)


def same_iterations(rows: Rows) -> Found:
    parts, base = parts_of(rows)
    iterations = [row["iterations"] for row in parts]
    return max(iterations) - min(iterations) <= 1 if parts and base else None


def parts_to_whole(rows: Rows) -> Found:
    parts, base = parts_of(rows)
    if not parts or base is None:
        return None
    most = max(parts, key=lambda row: row["colors"])
    return Range.of(most, "application") / Range.of(base, "application")


def growths(rows: Rows, method: str) -> list[float]:
    """How many times more iterations the finest mesh of each family takes than the coarsest one."""
    families: dict[str, list[int]] = {}
    for row in rows:
        if row["method"] == method:
            families.setdefault(row["matrix"].split()[0], []).append(row["iterations"])
    return [counts[-1] / counts[0] for counts in families.values() if len(counts) > 1]


def growth_of_sgs_to_multigrid(rows: Rows) -> Found:
    one_level, levels = growths(rows, "SGS"), growths(rows, "multigrid")
    return Range(*[mean(one_level) / mean(levels)] * 3) if one_level and levels else None


#: What the expressions of studies.toml see.
SCOPE: dict[str, Any] = HELPERS | {
    function.__name__: function for function in (beside_paper, ms, names, peaks_of, shown)
}

COMPUTED: dict[str, Callable[[Rows], Found]] = {
    function.__name__: function
    for function in (
        best_other_to_eb,
        eb_growth,
        vb_growth,
        degrees_and_shortcut_1,
        same_colors,
        same_iterations,
        parts_to_whole,
        growth_of_sgs_to_multigrid,
    )
}


# The pictures.


def in_ms(rows: Rows, column: str = "seconds") -> Rows:
    """The rows with the times of a column, in milliseconds, as their `seconds`: what is drawn."""
    return [row | {"seconds": 1e3 * row[column]} for row in rows]


def draw_ii_iii(rows: Rows, axes: Any) -> None:
    from mcprecond.studies import Table, plots

    kept = ("eb", "eb atomic", "vb", "vb EF", "vb_bit", "vb_bit EF", "cc", "greedy")
    plots.performance_profile(Table([row for row in rows if row["method"] in kept]), axes)


def draw_rmat(rows: Rows, axes: Any) -> None:
    per_edge = [row | {"seconds": row["seconds"] / (row["entries"] / 2e6)} for row in rows]
    over_size(in_ms(per_edge), "seconds", axes)
    axes.set(ylabel="time per million edges [ms]")
    plain_ticks(axes.yaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")


def draw_quality(rows: Rows, axes: Any) -> None:
    from mcprecond.studies import Table, plots

    plots.time_against_colors(Table(in_ms([row for row in rows if row["matrix"].startswith("delaunay")])), axes)
    axes.set(ylabel="time [ms]")
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="x-small")


def draw_effect(rows: Rows, left: Any, right: Any) -> None:
    from mcprecond.studies import Table, plots

    plots.draw_methods(Table(rows), "colors", "iterations", left, linestyle="none")
    most = max(row["iterations"] for row in rows)
    left.set(xscale="log", xlabel="colors", ylabel="iterations", ylim=(0, 1.1 * most))
    left.get_legend().remove()
    plots.time_against_colors(Table(in_ms(rows, "solve_seconds")), right)
    right.set(ylabel="time of the solve [ms]")
    plain_ticks(right.yaxis)
    right.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="x-small")


def draw_multigrid(rows: Rows, left: Any, right: Any) -> None:
    by_family = [row | {"method": f"{row['matrix'].split()[0]}, {row['method']}"} for row in rows]
    over_size(by_family, "iterations", left).set(xlabel="unknowns")
    left.get_legend().remove()
    over_size(in_ms(by_family), "seconds", right)
    right.set(xlabel="unknowns", ylabel="time with setup [ms]")
    plain_ticks(right.yaxis)
    right.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="x-small")


def bars(rows: Rows, axes: Any, column: str, label: str, scale: float = 1.0) -> None:
    """A group for each matrix, a bar for each method, which have colors from light to dark, every other one hatched."""
    from matplotlib import colormaps

    matrices, methods = names(rows, "matrix"), names(rows, "method")
    width = 0.8 / len(methods)
    for k, method in enumerate(methods):
        heights = [scale * (value(rows, matrix, method, column) or math.nan) for matrix in matrices]
        shade = 1 - 0.9 * k / max(len(methods) - 1, 1)
        look = {"facecolor": colormaps["viridis"](shade), "edgecolor": "black" if shade > 0.5 else "white"}
        look["hatch"] = ("", "////")[k % 2]
        places = [i + (k - (len(methods) - 1) / 2) * width for i in range(len(matrices))]
        axes.bar(places, heights, width, linewidth=0.5, label=method, **look)
    axes.set(yscale="log", ylabel=label)
    plain_ticks(axes.yaxis)
    axes.set_xticks(range(len(matrices)), matrices, rotation=20, ha="right")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")


def scaled(rows: Rows, axes: Any) -> None:
    over_size(in_ms(rows), "seconds", axes)
    axes.set(ylabel="time [ms]")
    plain_ticks(axes.yaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")


#: What is drawn of a study, into the Axes of so many panels.
in_bars = partial(bars, column="seconds", scale=1e3)
DRAWN: dict[str, tuple[Callable[..., None], int]] = {
    "table-v": (partial(in_bars, label="time of PCG with setup [ms]"), 1),
    "table-ii-iii": (draw_ii_iii, 1),
    "published-schedules": (partial(in_bars, label="time [ms]"), 1),
    "rmat-scaling": (draw_rmat, 1),
    "sirg-ablation": (partial(in_bars, label="time [ms]"), 1),
    "ecl-shortcuts": (partial(in_bars, label="time [ms]"), 1),
    "level-histogram": (partial(bars, column="levels", label="levels"), 1),
    "rgg-scaling": (scaled, 1),
    "time-quality": (draw_quality, 1),
    "coloring-effect": (draw_effect, 2),
    "multigrid": (draw_multigrid, 2),
}


def draw(found: dict[str, Document], folder: Path) -> None:
    """A picture for each study that was run."""
    for name, (drawn, panels) in DRAWN.items():
        if name in found:
            with picture(folder / f"study-{name}.svg", salt=name) as plt:
                _, axes = plt.subplots(1, panels, squeeze=False, figsize=(7.5, 4), layout="constrained")
                drawn(found[name]["cases"], *axes.flat)
