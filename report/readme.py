"""What README shows of the results: a chart, and a small table for each run.

The baseline is our own CG, without a preconditioner or with Jacobi, whichever is faster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.noise import slower, total_ms
from report.pictures import picture
from report.results import IMAGES, RESULTS, ROOT, Document, busy, measured, place, runs
from report.tables import number, render, replaced, table

PAGE, PICTURE = ROOT / "README.md", "race.svg"
LIBRARY = {"library CG": "library", "library Jacobi": "library"}
#: What is compared: a file of results, the list of its solvers, and those that are shown by the names they get. Of two
#: that get the same name the faster is shown.
RACES: dict[str, tuple[str, dict[str, str]]] = {
    "ilu-gpu": (
        "factorizations",
        {
            "plain CG": "CG",
            "Jacobi": "Jacobi",
            "SGS color": "SGS",
            "DILU color": "DILU",
            "ILU0 color": "ILU(0)",
            "ILU0 natural": "ILU(0), row order",
        },
    ),
    "multigrid-gpu": ("solvers", LIBRARY | {"CG": "CG", "Jacobi": "Jacobi", "SGS": "SGS", "multigrid": "multigrid"}),
    "multigrid-cpu": (
        "solvers",
        LIBRARY | {"CG": "CG", "Jacobi": "Jacobi", "SGS": "SGS", "multigrid": "multigrid", "PyAMG": "PyAMG"},
    ),
}
BASELINES = ("CG", "Jacobi")
COLORS = {
    "library": "0.75",
    "CG": "0.55",
    "Jacobi": "#c9b458",
    "SGS": "#1b9e77",
    "multigrid": "#d95f02",
    "DILU": "#66a61e",
    "ILU(0)": "#7570b3",
    "ILU(0), row order": "#bdb9dd",
    "PyAMG": "#e6ab92",
}

Races = dict[str, Document]
Row = dict[str, Any]


def load(results: Path = RESULTS) -> Races:
    """The runs that exist, by the names of their files."""
    return runs(list(RACES), results)


def page(races: Races) -> str:
    """README as it is, with its summary replaced."""
    return replaced(PAGE.read_text(), "summary", summary(races))


def summary(races: Races) -> str:
    """The part between the markers, in Markdown."""
    path = (IMAGES / PICTURE).relative_to(ROOT).as_posix()
    shown = [
        {
            "measured": measured(run),
            "notes": busy(run),
            "table": table_of(name, run),
        }
        for name, run in races.items()
    ]
    library = any("library" in totals(name, case) for name, run in races.items() for case in run["cases"])
    return render("readme.md", picture=path, races=shown, library=library)


def table_of(name: str, document: Document) -> str:
    """A line for each problem: milliseconds of setup and solve, and iterations; in bold the fastest, and
    what is not slower beyond the noise.
    """
    cases, rows = [totals(name, case) for case in document["cases"]], []
    labels = [label for label in dict.fromkeys(RACES[name][1].values()) if any(label in found for found in cases)]
    for case, found in zip(document["cases"], cases, strict=True):
        best = min(found.values(), key=total_ms)
        cells = {label: f"{number(total_ms(row))} ({row['iterations']:,})" for label, row in found.items()}
        cells |= {label: f"**{cells[label]}**" for label, row in found.items() if not slower(row, best)}
        rows.append([f"{case['name']}, {case['unknowns']:,}", *(cells.get(label, "") for label in labels)])
    return table(["ms with setup (iterations)", *labels], rows)


def totals(name: str, case: Document) -> dict[str, Row]:
    """The rows of the solvers that are shown."""
    kind, shown = RACES[name]
    found: dict[str, Row] = {}
    for row in case[kind]:
        if row["name"] in shown:
            label = shown[row["name"]]
            found[label] = min(found.get(label, row), row, key=total_ms)
    return found


def baseline(found: dict[str, Row]) -> str:
    """The faster of our solvers that need no coloring and no factorization, where both were run."""
    return min((label for label in BASELINES if label in found), key=lambda label: total_ms(found[label]))


def draw(races: Races, folder: Path) -> None:
    """A panel a run: for each problem a bar a solver, as long as it is faster than the baseline."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    with picture(folder / PICTURE, salt="race") as plt:
        figure, panels = plt.subplots(1, len(races), figsize=(9, 4.2), layout="constrained", squeeze=False)
        handles = {}
        for panel, (name, document) in zip(panels[0], races.items(), strict=True):
            y, ticks = 0.0, []
            for case in document["cases"]:
                cells = totals(name, case)
                first, base = y, baseline(cells)
                for label, row in cells.items():
                    times = total_ms(cells[base]) / total_ms(row)
                    bar = panel.barh(y, times - 1, 0.9, left=1, color=COLORS[label])
                    if label == base:
                        panel.plot([1], [y], marker="D", color=COLORS[label], linestyle="none")
                    handles.setdefault(label, bar[0])
                    style = {"va": "center", "ha": "left" if times >= 1 else "right", "fontsize": 7}
                    shown = "" if label == base else f"{times:.2g}"
                    offset = 3 if times >= 1 else -3, 0
                    panel.annotate(shown, (times, y), offset, textcoords="offset points", **style)
                    y += 1
                ticks.append(((first + y - 1) / 2, case["name"]))
                y += 1
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            panel.xaxis.set_minor_formatter(NullFormatter())
            low, high = panel.get_xlim()
            panel.set_xlim(low / 1.5, high * 1.5)
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=12))
            panel.axvline(1, color="0.3", linewidth=0.8)
            panel.set(yticks=[at for at, _ in ticks], yticklabels=[label for _, label in ticks], title=place(document))
            panel.set_xlabel("times faster than our CG, plain\nor with Jacobi, setup included")
            panel.invert_yaxis()
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)
