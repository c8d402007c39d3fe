"""Write docs/colorings.md and its pictures from benchmarks/results; figures are never typed by hand.

A section is there if the run that it shows is: coloring-gpu.json, coloring-steps.json, coloring-scaling-gpu.json,
coloring-cpu.json. What the papers print is typed, with the place where it stands.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE, IMAGES = ROOT / "benchmarks" / "results", ROOT / "docs" / "colorings.md", ROOT / "docs" / "images"
RUNS = ["coloring-gpu", "coloring-steps", "coloring-scaling-gpu", "coloring-cpu"]

Document = dict[str, Any]
Case = dict[str, Any]

#: What the papers and our goals say: sentence, row in the numerator, row in the denominator, of what, least ratio.
RELATIONS = [
    ("eb is at least 3 times faster than csrcolor (Deveci et al.: 1.49)", "csrcolor", "eb", "ms", 3.0),
    ("eb needs at least 4 times fewer colors than csrcolor (Deveci et al.: 4.12)", "csrcolor", "eb", "colors", 4.0),
    ("sirg is at least 3.4 times faster than csrcolor (Sistla, Nandivada: 3.42)", "csrcolor", "sirg", "ms", 3.4),
    ("ecl_gc is at least 2.6 times faster than jp in the same order (Alabandi et al.)", "jp ldf", "ecl_gc", "ms", 2.6),
    ("is_minmax is at least 1.3 times faster than jpl (Osama et al.)", "jpl", "is_minmax", "ms", 1.3),
    ("eb with a prefix sum is faster than with an atomic counter (Deveci et al.)", "eb atomic", "eb", "ms", 1.0),
    ("vb_bit is faster than vb (Deveci et al.)", "vb", "vb_bit", "ms", 1.0),
]
#: Deveci et al., Table II, and Table V for FENL: colors of cuSPARSE, VB and EB on a K20X, and of serial first-fit.
TABLE_II = {
    "fenl_50": ("Fenl_50 (Table V)", [64, None, 17.2, None]),
    "fenl_100": ("Fenl_100 (Table V)", [64, None, 18, None]),
    "fenl_180": ("Fenl_180 (Table V)", [74, None, 18, None]),
    "rgg20": ("rgg_n_2_24_s0", [64.0, 24.8, 24.8, 23]),
    "rmat20": ("kron_g500-logn21", [3465.0, 832.2, 645.6, 602]),
    "elasticity48": ("Queen_4147", [128.0, 49.8, 44.0, 39]),
    "road22": ("europe_osm", [32.0, 6.0, 6.0, 5]),
    "geometric mean": ("their ten graphs", [366.03, 118.96, 109.08, 102.58]),
}
TABLE_II_ROWS = ["csrcolor", "vb", "eb", "greedy"]
#: Deveci et al., Table III: geometric means of seconds on a K20X.
TABLE_III = {
    "csrcolor": 0.79, "vb": 3.38, "vb ef": 2.96, "vb_bit": 2.84, "vb_bit ef": 1.92, "eb atomic": 0.73, "eb": 0.53,
}  # fmt: skip
#: Alabandi et al., Table 4: steps without and with shortcuts.
TABLE_4 = {
    "grid2d_1024": ("2d-2e20.sym", 14, 12),
    "delaunay20": ("delaunay_n24", 25, 17),
    "rmat16": ("rmat16.sym", 188, 30),
    "rmat20": ("rmat22.sym", 644, 52),
    "random20": ("r4-2e23.sym", 30, 17),
    "road22": ("europe_osm", 13, 11),
}
TABLE_5_ROWS = {"shortcut 1": "ecl_gc, shortcut 1", "shortcut 2": "ecl_gc, shortcut 2", "both": "ecl_gc"}
WITHOUT_SHORTCUTS = "ecl_gc, no shortcut"
#: Sistla, Nandivada, Sections 6.1 and 6.2: what SIRG is compared with, and the geometric means of its speedups.
SIRG_OVER = {"csrcolor": "3.42", "chen_topo": "", "chen_wlc": "1.76", "chen_pq": "", "rig": "10.37"}
#: What was asked for, at most: on which graph what value, by what `asked` finds.
ASKED_ON = (
    "fenl_50", "fenl_100", "fenl_180", "grid2d_1024", "delaunay20", "rgg20", "rmat20", "mycielskian15", "elasticity48",
    "rmat22",
)  # fmt: skip
ASKED: dict[str, list[float | None]] = {
    "eb, time relative to csrcolor": [0.5, 0.3, 0.3, 0.25, 0.3, 0.4, 0.06, 0.03, 0.8, 0.1],
    "ecl_gc, time relative to csrcolor": [0.15, 0.27, 0.43, 0.04, 0.075, 0.15, 0.085, 0.075, 0.75, 0.13],
    "fastest with one color more than ecl_gc at most": [0.12, 0.15, 0.12, 0.035, 0.07, 0.13, 0.05, 0.03, 0.5, 0.09],
    "eb, colors": [19, 19, 19, 5, 8, 20, 170, 16, 48, 240],
    "ecl_gc, colors": [19, 19, 19, 5, 6, 18, 115, 16, 44, 170],
    "jp natural, ms": [0.6, 3, 12, 2, None, None, None, None, 6, None],
    "jp natural, colors": [8, 8, 8, 2, None, None, None, None, 24, None],
}
#: Methods in the right half of the performance profile: the fastest of each kind.
OF_EACH_KIND = ["csrcolor", "eb", "vb_bit", "sirg", "chen_wlc", "ecl_gc", "jp natural", "is_minmax", "cc"]
TRADE_OFF_ON = ["fenl_100", "delaunay20", "rgg20", "rmat20"]


def main() -> None:
    documents = load(RESULTS)
    PAGE.write_text(page(documents))
    draw(documents, IMAGES)


def load(results: Path) -> dict[str, Document]:
    """The runs that exist, by name."""
    paths = {name: results / f"{name}.json" for name in RUNS}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def page(documents: dict[str, Document]) -> str:
    """The whole page, in Markdown."""
    sections = {
        "coloring-gpu": on_a_gpu, "coloring-steps": steps, "coloring-scaling-gpu": scaling, "coloring-cpu": on_a_cpu,
    }  # fmt: skip
    lines = [
        "# Colorings",
        "",
        "Written by `tools/colorings.py` from the runs in `benchmarks/results`. No figure of ours was typed; those of "
        "the papers were, with the place where they stand. The papers' graphs are not here: beside each of theirs "
        "stands one that is generated, of the same kind and often smaller, so compare ratios, not times.",
        "",
    ]
    for name, section in sections.items():
        if name in documents:
            lines += section(documents[name])
    return "\n".join(lines)


def on_a_gpu(document: Document) -> list[str]:
    cases = document["cases"]
    rows = names_of(cases)
    return [
        "## On a GPU",
        "",
        f"From `coloring-gpu.json`, which `python benchmarks/coloring.py gpu` makes. {origin(document)} Medians of "
        "wall times of the method alone, on a graph that is on the device; cuSPARSE's csrcolor gets the same matrix in "
        "the same run. Every coloring was checked. *Pattern* is the check for symmetry and order that `color` makes "
        "first.",
        "",
        *graphs_table(cases),
        "### Time in ms / colors",
        "",
        *table(
            "method",
            [case["name"] for case in cases],
            {row: [cell(case["methods"].get(row)) for case in cases] for row in rows},
        ),
        "### Time relative to csrcolor",
        "",
        *table(
            "method",
            [*(case["name"] for case in cases), "geometric mean"],
            {row: [*(ratio([case], row) for case in cases), ratio(cases, row)] for row in rows if row != "csrcolor"},
        ),
        "### Time against colors",
        "",
        "As in Figure 2 of Osama et al. (2019): below is faster, left has fewer colors. There as here, an independent "
        "set per color is quick to find and costs colors.",
        "",
        "![Time against colors of every method on four graphs](images/colorings-trade-off.svg)",
        "",
        *asked(cases),
        *table_ii(cases),
        *table_iii(cases),
        *table_5(cases),
        *sirg(cases),
        "### Do the papers' relations hold here?",
        "",
        "Geometric means over the graphs above.",
        "",
        *table(
            "relation",
            ["found", "holds"],
            {sentence: verdict(cases, *rest) for sentence, *rest in RELATIONS if together(cases, rest[:2])},
        ),
    ]


def asked(cases: list[Case]) -> list[str]:
    """What was asked for and what was found, where all of it was run."""
    cases = [case for case in together(cases, ["csrcolor", "eb", "ecl_gc", "jp natural"]) if case["name"] in ASKED_ON]
    if not cases:
        return []
    cells: dict[str, list[str]] = {what: [] for what in ASKED}
    for case in cases:
        methods = case["methods"]
        most = methods["ecl_gc"]["colors"] + 1
        few = [row for name, row in methods.items() if name != "csrcolor" and row["colors"] <= most]
        found = {
            "fastest with one color more than ecl_gc at most": min(row["ms"] for row in few) / methods["csrcolor"]["ms"]
        }
        for name in ("eb", "ecl_gc", "jp natural"):
            found[f"{name}, time relative to csrcolor"] = methods[name]["ms"] / methods["csrcolor"]["ms"]
            found[f"{name}, colors"], found[f"{name}, ms"] = methods[name]["colors"], methods[name]["ms"]
        for what, limits in ASKED.items():
            limit = limits[ASKED_ON.index(case["name"])]
            holds = limit is not None and found[what] <= limit
            cells[what].append(
                "" if limit is None else f"{found[what]:.3g} (at most {limit:g}): {'yes' if holds else 'no'}"
            )
    return [
        "### Asked and found",
        "",
        "What this package set out to reach. [The log](performance.md) says what was tried where a bound is missed.",
        "",
        *table("", [case["name"] for case in cases], cells),
    ]


def table_ii(cases: list[Case]) -> list[str]:
    """Deveci et al., Table II: colors."""
    compared = together(cases, TABLE_II_ROWS)
    found = {case["name"]: [case["methods"][row]["colors"] for row in TABLE_II_ROWS] for case in compared}
    found["geometric mean"] = [mean(list(column)) for column in zip(*found.values(), strict=True)]
    empty = ("", [None] * 4)
    return [
        "### Colors: Table II of Deveci et al. (2016)",
        "",
        *table(
            "graph",
            [*TABLE_II_ROWS, "in the paper", "cuSPARSE", "VB", "EB", "first-fit"],
            {
                name: [*map(count, row), TABLE_II.get(name, empty)[0], *map(count, TABLE_II.get(name, empty)[1])]
                for name, row in found.items()
            },
        ),
        "On meshes and on random geometric graphs the figures agree, for csrcolor too, though a decade of hardware "
        "lies between. On grids serial first-fit in row order finds the least that is possible, which speculation does "
        "not, as its threads meet the vertices in no order. The means differ because the graphs do: two of theirs, "
        "web and actors, contain cliques of thousands, for which every method has to pay.",
        "",
    ]


def table_iii(cases: list[Case]) -> list[str]:
    """Deveci et al., Table III: geometric means of times; Figure 3: performance profiles."""
    rows = [row for row in TABLE_III if together(cases, [row])]
    compared = together(cases, rows)
    means = {row: mean([case["methods"][row]["ms"] for case in compared]) for row in rows}
    lines = [
        "### Times: Table III and Figure 3 of Deveci et al. (2016)",
        "",
        f'Geometric means over {len(compared)} graphs here, over ten there (K20X). "ef" is edge filtering.',
        "",
        *table(
            "",
            rows,
            {
                "here, ms": [ms(means[row]) for row in rows],
                "here, relative to csrcolor": [f"{means[row] / means['csrcolor']:.2f}" for row in rows],
                "paper, s": [f"{TABLE_III[row]:.2f}" for row in rows],
                "paper, relative to csrcolor": [f"{TABLE_III[row] / TABLE_III['csrcolor']:.2f}" for row in rows],
            },
        ),
        "In the paper a round is several launches; here all rounds run inside one kernel. eb goes "
        "through its first round by rows, so few edges are left for the lists of later ones, and how these are made "
        "hardly matters. Rows of very different length (R-MAT, Mycielski) cost the "
        "vertex-based methods most there, as a whole vertex is the smallest piece of their work; here a warp or a "
        "block shares a long row. Half of our graphs are grids, meshes and their like, and fewer of theirs.",
        "",
        "![Performance profiles](images/colorings-profile.svg)",
        "",
        "On the left the methods of the paper with their variants, on the right one or two of each kind.",
        "",
    ]
    return lines


def table_5(cases: list[Case]) -> list[str]:
    """Alabandi et al., Table 5: what the shortcuts save."""
    compared = together(cases, [WITHOUT_SHORTCUTS, *TABLE_5_ROWS.values()])
    if not compared:
        return []

    def speedups(some: list[Case]) -> list[str]:
        return [f"{gain(some, WITHOUT_SHORTCUTS, row, 'ms'):.2f}" for row in TABLE_5_ROWS.values()]

    return [
        "### Speedups by shortcuts: Table 5 of Alabandi et al. (2020)",
        "",
        "Of ecl_gc over itself without shortcuts.",
        "",
        *table(
            "graph",
            list(TABLE_5_ROWS),
            {case["name"]: speedups([case]) for case in compared}
            | {"geometric mean": speedups(compared), "paper, Titan V": ["over 2.5", "a few percent", "2.63"]},
        ),
        "The paper's gains lie between 1.03 and 70, the largest on a Kronecker graph; they grow with the degrees, as "
        "what a shortcut saves is waiting for many neighbors. Here vertices are visited roughly by priority, with "
        "shortcuts or without, so that many find all colored that they would have to wait for.",
        "",
    ]


def sirg(cases: list[Case]) -> list[str]:
    """Sistla, Nandivada, Section 6: SIRG beside csrcolor, Chen et al. and RIG."""
    others = [row for row in SIRG_OVER if together(cases, [row])]
    compared, rows = together(cases, ["sirg", *others]), {}
    for name, some in [*((case["name"], [case]) for case in compared), ("geometric mean", compared)]:
        faster = [f"{gain(some, row, 'sirg', 'ms'):.2f}" for row in others]
        fewer = [f"{gain(some, 'sirg', row, 'colors'):.2f}" for row in ("csrcolor", "chen_wlc")]
        rows[name] = [*faster, *fewer]
    rows["paper, P100"] = [*(SIRG_OVER[row] for row in others), "0.23", "below 1.06"]
    return [
        "### SIRG: Figures 6 and 7 of Sistla and Nandivada",
        "",
        "How many times faster sirg is than each of the others, and its colors relative to two of them. The paper's "
        "RIG ran on 40 cores of a CPU, ours on the same GPU; which of Chen's codes it took, it does not say.",
        "",
        *table("graph", [*(f"over {row}" for row in others), "colors / csrcolor", "colors / chen_wlc"], rows),
        "Colors compare as in the paper, but for the Mycielskian, where all vertices get their first colors at once. "
        "Times are farther apart, since a thread per vertex is not what runs here: several threads share a row, blocks "
        "one of thousands of entries, and first colors are given in stretches that know of each other. csrcolor is "
        "that of a newer library, and Chen's methods run in one kernel and without the palette of fixed size that "
        "slowed them down there.",
        "",
    ]


def steps(document: Document) -> list[str]:
    """Alabandi et al., Table 4: the parallelism that the shortcuts add."""
    rows = {}
    for case in document["cases"]:
        without, shortened = case["steps"], case["steps_with_shortcuts"]
        theirs, *published = TABLE_4.get(case["name"], ("", None, None))
        gains = f"{published[0] / published[1]:.2f}" if theirs else ""
        rows[case["name"]] = [
            f"{without:,}", f"{shortened:,}", f"{case['vertices'] / without:,.0f}",
            f"{case['vertices'] / shortened:,.0f}", f"{without / shortened:.2f}", theirs, *map(count, published), gains,
        ]  # fmt: skip
    return [
        "## Steps with and without shortcuts: Table 4 of Alabandi et al. (2020)",
        "",
        "From `coloring-steps.json`, which `python benchmarks/coloring_steps.py` makes: the steps of a machine of "
        "unlimited width, and the vertices per step. It depends on no machine and was asserted to give the same colors "
        "both ways.",
        "",
        *table(
            "graph",
            [
                "steps", "with shortcuts", "vertices a step", "with shortcuts", "ratio",
                "in the paper", "steps", "with shortcuts", "ratio",
            ],
            rows,
        ),
        "Where degrees are low and alike the shortcuts save little, in the paper as here. R-MAT graphs gain most; "
        "theirs come from another generator, with smaller largest degrees. We count with exact sets of possible "
        "colors, the paper's code with ranges from degree 32 on.",
        "",
    ]  # fmt: skip


def scaling(document: Document) -> list[str]:
    """Osama et al., Figure 3, and Deveci et al., Figure 4."""
    lines = [
        "## Growing graphs: Figure 3 of Osama et al. (2019), Figure 4 of Deveci et al. (2016)",
        "",
        "From `coloring-scaling-gpu.json`, which `python benchmarks/coloring_scaling.py gpu` makes. "
        f"{origin(document)} Time in ms / colors.",
        "",
    ]
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
        lines += [f"### {title}", "", *table("vertices", ["entries", *rows], found)]
    return [
        *lines,
        "The last row of each table is how many times larger the largest graph is than the smallest, in entries and in "
        "times. The papers show curves and print no figures. Theirs are flat or fall per edge (Deveci et al.: all but "
        "VB), since a larger graph fills the device better; so do ours while a graph is small.",
        "",
        "![Time and colors on growing graphs](images/colorings-scaling.svg)",
        "",
    ]


def on_a_cpu(document: Document) -> list[str]:
    cases = document["cases"]
    rows = names_of(cases)
    timed = [row for row in rows if row != "PyAMG JP"]
    return [
        "## On a CPU",
        "",
        f"From `coloring-cpu.json`, which `python benchmarks/coloring_cpu.py` makes. {origin(document)} "
        f"{document['machine']['threads']} threads for our methods but greedy, which is serial, as are PyAMG "
        "(compiled) and NetworkX (pure Python, so it gets small graphs only). Time in ms / colors, every coloring "
        f"checked. *Load* is that of the machine before the graph: what else ran then; OpenMP's wait policy: "
        f"{document['wait_policy']}. *Pattern* is what `color` "
        "adds to check a matrix.",
        "",
        *table(
            "graph",
            ["load", "vertices", "entries", "pattern, ms", *rows],
            {
                case["name"]: [
                    f"{case['load']:.1f}", f"{case['vertices']:,}", f"{case['entries']:,}", ms(case["pattern_ms"]),
                    *(cell(case["methods"].get(row)) for row in rows),
                ]
                for case in cases
            },
        ),
        "Times relative to PyAMG's JP:",
        "",
        *table(
            "graph",
            timed,
            {case["name"]: [ratio([case], row, "PyAMG JP") for row in timed] for case in cases},
        ),
    ]  # fmt: skip


def origin(document: Document) -> str:
    """Machine, date, versions."""
    machine = document["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    return f"{machine['gpu'] or machine['cpu']}, {document['date'][:10]}, {versions}."


def graphs_table(cases: list[Case]) -> list[str]:
    return table(
        "graph",
        ["vertices", "entries", "largest degree", "pattern, ms"],
        {
            c["name"]: [*(f"{c[k]:,}" for k in ("vertices", "entries", "max_degree")), ms(c["pattern_ms"])]
            for c in cases
        },
    )


def table(corner: str, columns: list[str], rows: dict[str, list[str]]) -> list[str]:
    """A Markdown table and an empty line."""
    lines = [[corner, *columns], ["---", *("---:" for _ in columns)], *([name, *cells] for name, cells in rows.items())]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def names_of(cases: list[Case]) -> list[str]:
    """Every method of a run, in order of appearance."""
    return list(dict.fromkeys(row for case in cases for row in case["methods"]))


def together(cases: list[Case], rows: list[str]) -> list[Case]:
    """The cases in which all of these methods ran."""
    return [case for case in cases if all(row in case["methods"] for row in rows)]


def gain(cases: list[Case], slow: str, fast: str, what: str) -> float:
    """The geometric mean of a ratio, over the cases that have both."""
    return mean([c["methods"][slow][what] / c["methods"][fast][what] for c in together(cases, [slow, fast])])


def verdict(cases: list[Case], slow: str, fast: str, what: str, least: float) -> list[str]:
    found = gain(cases, slow, fast, what)
    return [f"{found:.2f}", "yes" if found >= least else "no"]


def ratio(cases: list[Case], row: str, base: str = "csrcolor") -> str:
    """The time relative to that of another method, in the geometric mean; empty where a time is missing."""
    if len(together(cases, [row, base])) < len(cases):
        return ""
    return f"{gain(cases, row, base, 'ms'):.2f}"


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not run"
    return f"{ms(row['ms'])} / {row['colors']}"


def ms(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def count(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}".removesuffix(".0")


def draw(documents: dict[str, Document], folder: Path) -> None:
    """The pictures of the runs that exist: in black, with markers and dashes, the same for the same figures."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    pictures = {"trade-off": ("coloring-gpu", draw_trade_off), "profile": ("coloring-gpu", draw_profile)}
    pictures |= {"scaling": ("coloring-scaling-gpu", draw_scaling)}
    folder.mkdir(parents=True, exist_ok=True)
    style = {"svg.hashsalt": "colorings", "font.size": 9, "axes.prop_cycle": plt.cycler(color=["black"])}
    for name, (run, drawn) in pictures.items():
        if run in documents:
            with plt.rc_context(style):
                figure = drawn(documents[run]["cases"])
                figure.savefig(folder / f"colorings-{name}.svg", metadata={"Date": None})
                plt.close(figure)


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
    for ax, methods in zip(panels, (TABLE_III, OF_EACH_KIND), strict=True):
        plots.performance_profile(as_table(cases, [m for m in methods if together(cases, [m])]), ax)
    return figure


def draw_scaling(cases: list[Case]) -> Any:
    """For each family time and colors over the number of vertices."""
    import matplotlib.pyplot as plt

    from mcprecond.studies import plots

    methods = names_of(cases)
    families = list(dict.fromkeys(case["family"] for case in cases))
    figure, panels = plt.subplots(
        len(families), 2, figsize=(8, 3.2 * len(families)), squeeze=False, layout="constrained"
    )
    for family, (times, colors) in zip(families, panels, strict=True):
        rows = as_table([case for case in cases if case["family"] == family], methods)
        plots.scaling(rows, times).set(title=family)
        counts = type(rows)([row | {"seconds": row["colors"]} for row in rows.rows])
        plots.scaling(counts, colors).set(title=family, ylabel="colors")
        plain_ticks(colors.yaxis)
    return with_one_legend(figure, 6)


def plain_ticks(axis: Any) -> None:
    """Colors as 1, 2, 5, 10, ..."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


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
            rows.append({
                "matrix": case["name"], "vertices": case["vertices"], "method": method, "seconds": row["ms"] / 1e3,
                "colors": row["colors"], "verified": method in case["methods"],
            })  # fmt: skip
    return Table(rows)


if __name__ == "__main__":
    main()
