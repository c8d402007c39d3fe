"""docs/studies.md and its pictures: the experiments of the papers, beside what the papers found."""

from __future__ import annotations

import math
import operator
import statistics
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import product
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from mcprecond.coloring import COLORINGS
from mcprecond.studies import Table, plots
from report.generic import HELPERS, MISSING, evaluated_or, made, text_of
from report.noise import Range, average, related
from report.noise import mean as mean_of
from report.pictures import beside_legend, over_size, picture, plain_ticks
from report.results import PAPERS, RESULTS, Document, Row, origin, runs
from report.tables import TEMPLATES, counted, mean, names, number, render, shown, spelled_out, table, yes_or_no

DESCRIBED: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
STUDIES: list[Row] = DESCRIBED["studies"]

#: The functions that reduce several ratios to one, by their names in studies.toml.
MEANS: dict[str, Callable[[list[Range]], Range]] = {"geometric mean": mean_of, "average": average, "largest": max}

#: Figure 4 of Deveci et al. compares EB with these methods. ECL-GC and SIRG were published later.
COMPARED = ("csrcolor", "cc", "vb", "vb EF", "vb_bit", "vb_bit EF")

Rows = list[Row]
Correlation = Callable[[Sequence[float], Sequence[float]], float]


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
            bound = relation.get("most", relation.get("least", 1.0))
            cells = related(found, bound, at_most="most" in relation)
        sentence = text_of(relation["sentence"], SCOPE | {"rows": rows, "matrices": names(rows, "matrix")})
        lines.append([sentence, study["name"], relation["paper"], *cells])
    return lines


def compared(relation: dict[str, Any], rows: Rows) -> Range | bool | None:
    """What a relation compares, as studies.toml says; None if a method or a matrix was not run."""
    matrices = [name for name in names(rows, "matrix") if name.startswith(tuple(relation.get("on", [""])))]
    if "computed" in relation:
        scope = SCOPE | {"rows": rows, "matrices": matrices, "of": partial(range_of, rows)}
        return evaluated_or(relation["computed"], scope, None)
    if "at" in relation:
        matrices = matrices[:1] if relation["at"] == "first" else matrices[-1:]
    methods = relation["above"], relation["below"]
    ratios = ratios_of(rows, matrices, *methods, relation.get("column", "seconds")).values()
    return MEANS[relation.get("of", "geometric mean")]([*ratios]) if ratios else None


# What the expressions of studies.toml see.


def row_of(rows: Rows, matrix: str, method: str) -> Row:
    return next(row for row in rows if (row["matrix"], row["method"]) == (matrix, method))


def range_of(rows: Rows, matrix: str, method: str, column: str = "seconds") -> Range:
    """A quantity of a matrix and a method, or the sum of several, "update_seconds + application_seconds"."""
    row, columns = row_of(rows, matrix, method), column.split(" + ")
    if not all(map(row.get, columns)):
        raise KeyError(column)
    return reduce(operator.add, [Range.of(row, part) for part in columns])


def ratios_of(rows: Rows, matrices: list[str], above: str, below: str, column: str = "seconds") -> dict[str, Range]:
    """Matrix -> a quantity with one method relative to another, where both were run."""
    ratios = {}
    for matrix in matrices:
        with suppress(*MISSING):
            ratios[matrix] = range_of(rows, matrix, above, column) / range_of(rows, matrix, below, column)
    return ratios


def tables_of(study: dict[str, Any], rows: Rows) -> list[str]:
    """The tables of a study, as studies.toml describes them."""
    specs = [DESCRIBED["tables"][spec] if isinstance(spec, str) else spec for spec in study["tables"]]
    found = [pivot(rows, *spec) if isinstance(spec, list) else made(spec, SCOPE | {"rows": rows}) for spec in specs]
    return [text for text in found if text]


def pivot(rows: Rows, title: str, cell: str, more: str = "[]") -> str:
    """A column for each matrix, a row for each method."""
    rows = [*rows, *evaluated_or(more, SCOPE | {"rows": rows}, ())]
    lines = [{"each": "row in rows; _ in range(row.matrix == name)", "lines": [["{row.method}", cell]]}]
    spec = {"corner": title, "across": "name in names(rows, 'matrix')", "head": "{name}", "lines": lines}
    return made(spec, SCOPE | {"rows": rows})


def ms(seconds: float) -> str:
    return number(1e3 * seconds)


def beside_paper(row: Row, name: str) -> str:
    """A figure, and the one in Table V of Deveci et al. in parentheses."""
    theirs = PAPERS["table_v"].get(row["matrix"].removesuffix(" stand-in"), {}).get(row["method"], {})
    return counted(row, name) + (f" ({shown(theirs[name])})" if name in theirs else "")


def on_all(rows: Rows, method: str) -> Rows:
    """The rows of a method that was verified on all matrices."""
    there = [row for row in rows if row["method"] == method and row["verified"]]
    return there if names(there, "matrix") == names(rows, "matrix") else []


def on_a_gpu(rows: Rows, method: str) -> Rows:
    """The rows of a method in the study of Tables II and III on a GPU, of the matrices of these rows."""
    found = runs(["table-ii-iii-gpu"], RESULTS / "studies")
    there = [of_method_alone(row) for document in found.values() for row in document["cases"] if row["verified"]]
    there = [row for row in there if row["method"] == method and row["matrix"] in names(rows, "matrix")]
    return [row | {"method": f"{method} on a GPU"} for row in there]


def per_edge(rows: Rows, matrix: str, method: str) -> Range:
    return range_of(rows, matrix, method).scale(1 / row_of(rows, matrix, method)["entries"])


def best_beside_eb(rows: Rows, matrix: str, others: Sequence[str] | None = None) -> str:
    """The fastest on a graph of some methods, or of all but the variants of EB."""
    there = sorted((row for row in rows if row["matrix"] == matrix), key=lambda row: row["seconds"])
    ordered = names(there, "method")
    return next(name for name in ordered if (name in others if others else not name.startswith("eb")))


def degrees_and_shortcut_1(rows: Rows, *, of: Correlation = statistics.correlation, without: str = "") -> Range | None:
    """The correlation of average degrees and speedups by shortcut 1, also with all speedups at one of their ends; over
    all graphs, or over all but one.
    """
    there = [row for row in rows if row["method"] == "published baseline" and row["matrix"] != without]
    degrees = {row["matrix"]: row["entries"] / row["vertices"] for row in there}
    speedups = ratios_of(rows, [*degrees], "published baseline", "published +SC1")
    if len(speedups) < 3:
        return None
    ends = zip(*speedups.values(), strict=True)
    r, *others = [of([degrees[matrix] for matrix in speedups], end) for end in ends]
    return Range(r, min(others), max(others))


def of_ranks(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's correlation."""
    return float(spearmanr(x, y).statistic)


def decisive_graph(rows: Rows) -> str:
    """The graph without which Pearson's correlation of `degrees_and_shortcut_1` changes the most."""
    r = degrees_and_shortcut_1(rows)
    changes = {}
    for matrix in names(rows, "matrix"):
        there = degrees_and_shortcut_1(rows, without=matrix)
        if r is not None and there is not None:
            changes[matrix] = abs(there.found - r.found)
    if not changes:
        raise KeyError("correlations without a graph")
    return max(changes, key=changes.__getitem__)


def more_colors(rows: Rows, method: str, other: str) -> Range:
    """How many colors more than another method one takes, on the first matrix."""
    more, less = [row_of(rows, rows[0]["matrix"], name)["colors"] for name in (method, other)]
    return Range(*[more - less] * 3)


def growth(rows: Rows, method: str) -> float:
    """How many times more iterations the finest mesh of each family takes than the coarsest one, in the mean."""
    families: dict[str, list[int]] = {}
    for row in rows:
        if row["method"] == method:
            families.setdefault(row["matrix"].split()[0], []).append(row["iterations"])
    return mean([counts[-1] / counts[0] for counts in families.values() if len(counts) > 1])


KNOWN = (
    *(beside_paper, best_beside_eb, counted, decisive_graph, degrees_and_shortcut_1, growth, more_colors, ms, names),
    *(of_ranks, on_a_gpu, on_all, per_edge, range_of, shown),
)
SCOPE: dict[str, Any] = HELPERS | {function.__name__: function for function in KNOWN} | {"COMPARED": COMPARED}


# The pictures.


def in_ms(rows: Rows, column: str = "seconds") -> Table:
    """The rows with the times of a column, in milliseconds, as their `seconds`: what is drawn."""
    return Table([row | {"seconds": 1e3 * row[column]} for row in rows])


def draw_profile(rows: Rows, axes: Any) -> None:
    kept = ("eb", "eb atomic", "vb", "vb EF", "vb_bit", "vb_bit EF", "cc", "greedy")
    plots.performance_profile(Table([row for row in rows if row["method"] in kept]), axes)


def draw_scaled(rows: Rows, axes: Any, label: str = "time [ms]") -> None:
    over_size(in_ms(rows), "seconds", axes)
    beside_legend(axes, label, fontsize="small")


def draw_rmat(rows: Rows, axes: Any) -> None:
    per_million = [row | {"seconds": row["seconds"] / (row["entries"] / 2e6)} for row in rows]
    draw_scaled(per_million, axes, "time per million edges [ms]")


def draw_graphs(rows: Rows, *panels: Any) -> None:
    """Draw time and colors over vertices and over edges, as in the four panels of Figure 3 of Osama et al."""
    table = Table([row | {"edges": row["entries"] / 2} for row in in_ms(rows).rows])
    for panel, (column, size) in zip(panels, product(("seconds", "colors"), ("vertices", "edges")), strict=True):
        over_size(table, column, panel, size).set(ylabel="time [ms]" if column == "seconds" else column)
        plain_ticks(panel.yaxis)
        panel.get_legend().remove()
    beside_legend(panels[1], "time [ms]", fontsize="small")


def draw_quality(rows: Rows, axes: Any) -> None:
    plots.time_against_colors(in_ms([row for row in rows if row["matrix"].startswith("delaunay")]), axes)
    plain_ticks(axes.xaxis)
    beside_legend(axes, "time [ms]", fontsize="x-small")


def draw_effect(rows: Rows, left: Any, right: Any) -> None:
    plots.draw_methods(Table(rows), "colors", "iterations", left, linestyle="none")
    most = max(row["iterations"] for row in rows)
    left.set(xscale="log", xlabel="colors", ylabel="iterations", ylim=(0, 1.1 * most))
    left.get_legend().remove()
    plots.time_against_colors(in_ms(rows, "solve_seconds"), right)
    beside_legend(right, "time of the solve [ms]", fontsize="x-small")


def draw_multigrid(rows: Rows, left: Any, right: Any) -> None:
    rows = [row | {"method": f"{row['matrix'].split()[0]}, {row['method']}"} for row in rows]
    over_size(Table(rows), "iterations", left).set(xlabel="unknowns")
    left.get_legend().remove()
    over_size(in_ms(rows), "seconds", right).set(xlabel="unknowns")
    beside_legend(right, "time with setup [ms]", fontsize="x-small")


def bars(rows: Rows, axes: Any, column: str, label: str, scale: float = 1.0) -> None:
    """A group for each matrix, a bar for each method, which have colors from light to dark, every other one hatched."""
    from matplotlib import colormaps

    matrices, methods = names(rows, "matrix"), names(rows, "method")
    values = {(row["matrix"], row["method"]): row.get(column) for row in rows}
    width = 0.8 / len(methods)
    for k, method in enumerate(methods):
        heights = [scale * (values.get((matrix, method)) or math.nan) for matrix in matrices]
        shade = 1 - 0.9 * k / max(len(methods) - 1, 1)
        look = {"facecolor": colormaps["viridis"](shade), "edgecolor": "black" if shade > 0.5 else "white"}
        look["hatch"] = ("", "////")[k % 2]
        places = [i + (k - (len(methods) - 1) / 2) * width for i in range(len(matrices))]
        axes.bar(places, heights, width, linewidth=0.5, label=method, **look)
    axes.set(yscale="log")
    axes.set_xticks(range(len(matrices)), matrices, rotation=20, ha="right")
    beside_legend(axes, label, fontsize="small")


in_bars = partial(bars, column="seconds", scale=1e3)
#: For each study the function that draws its picture, and the number of panels. There are at most two in a row.
DRAWN: dict[str, tuple[Callable[..., None], int]] = {
    "table-v": (partial(in_bars, label="time of PCG with setup [ms]"), 1),
    "table-ii-iii": (draw_profile, 1),
    "published-schedules": (partial(in_bars, label="time [ms]"), 1),
    "rmat-scaling": (draw_rmat, 1),
    "sirg-ablation": (partial(in_bars, label="time [ms]"), 1),
    "ecl-shortcuts": (partial(in_bars, label="time [ms]"), 1),
    "level-histogram": (partial(bars, column="levels", label="levels"), 1),
    "rgg-scaling": (draw_graphs, 4),
    "time-quality": (draw_quality, 1),
    "coloring-effect": (draw_effect, 2),
    "multigrid": (draw_multigrid, 2),
}


def draw(found: dict[str, Document], folder: Path) -> None:
    """A picture for each study that was run."""
    for name, (drawn, panels) in DRAWN.items():
        if name in found:
            shape, size = (math.ceil(panels / 2), min(panels, 2)), (7.5, 4 * math.ceil(panels / 2))
            with picture(folder / f"study-{name}.svg", *shape, salt=name, figsize=size) as axes:
                drawn([row | {"matrix": spelled_out(row["matrix"])} for row in found[name]["cases"]], *axes.flat)
