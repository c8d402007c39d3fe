"""Sphinx: the pages of this folder, and a reference whose names are read from the package."""

import base64
import contextlib
import html
import inspect
import io
import json
import os
import shutil
import sys
from enum import EnumType
from pathlib import Path

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

import mcprecond
import mcprecond.interop.arrays  # the top level does not import these
import mcprecond.interop.jax
import mcprecond.interop.petsc
import mcprecond.interop.pyamg
import mcprecond.interop.torch
from mcprecond import cli
from mcprecond.tuning.cost_model import MEASURED
from report import automatic, opponents, sentences
from report.results import measured, runs
from report.tables import by_name

project = "mcprecond"
author = copyright = "The mcprecond developers"
version = release = mcprecond.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
exclude_patterns = ["_build", "_templates", "explanation/generated"]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # "eb" is a string
myst_heading_anchors = 3
myst_enable_extensions = ["deflist", "substitution"]
myst_substitutions = {f"gallery_{name}": sentence for name, sentence in sentences.of_gallery().items()}
myst_substitutions["determinism"] = sentences.of_determinism()
myst_substitutions["error_estimates"] = sentences.of_error_estimates()
myst_substitutions["alarms"] = sentences.of_alarms()
myst_substitutions["first_fit"] = opponents.first_fit()
myst_substitutions["when_sgs_pays"] = automatic.when_sgs_pays(list(runs(automatic.FILES).values()))

autodoc_typehints = "none"  # the docstrings say more than Any
numpydoc_show_class_members = False  # the template of classes does
numpydoc_class_members_toctree = False
autosummary_ignore_module_all = False
autosummary_imported_members = True
# Where file names know no case, these pages would be one.
autosummary_filename_map = {"mcprecond.Coloring": "mcprecond.Coloring_", "mcprecond.problems.FENL": "mcprecond.FENL_"}


def data_of(module):
    """Return the public names of a module that are neither functions nor classes, with the comments above them."""
    names = {name: getattr(module, name) for name in module.__all__ if not name.startswith("__")}
    values = {n: v for n, v in names.items() if not (inspect.isroutine(v) or inspect.isclass(v) or inspect.ismodule(v))}
    return {name: comment_on(name, value) for name, value in values.items()}


def comment_on(name, value):
    """Return the documentation comment of a value, where it is defined."""
    for source in [module for key, module in sys.modules.items() if key.startswith("mcprecond")]:
        if vars(source).get(name) is value:
            comment = ModuleAnalyzer.for_module(source.__name__).find_attr_docs().get(("", name))
            if comment:
                return " ".join(comment).strip()
    raise ValueError(f"{name} is public and has no comment that begins with #:")


def signature_of_constructor(app, what, name, value, options, signature, return_annotation):
    """Preconditioners define __new__ too, which says nothing about their arguments."""
    if what == "class" and "__init__" in vars(value):
        own = inspect.signature(value.__init__)
        parameters = [p.replace(annotation=p.empty) for p in list(own.parameters.values())[1:]]
        return str(own.replace(parameters=parameters, return_annotation=own.empty)), return_annotation
    return None


#: Pages of results, whose tables are folded.
RESULTS = ("colorings", "sweeps", "studies", "factorizations")


def fold_tables(app, doctree, page):
    """Put the tables of a page of results into boxes that open on a click, under what their first heading says."""
    if page not in RESULTS or app.builder.format != "html":
        return
    for table in list(doctree.findall(nodes.table)):
        cells = [row.astext() for row in table.findall(nodes.entry)]
        rows = len(list(table.findall(nodes.row))) - 1
        title = html.escape(f"{cells[0] or 'table'}: {rows} rows")
        folded = nodes.container(classes=["folded"])
        table.replace_self(folded)
        opening, closing = f"<details><summary>{title}</summary>", "</details>"
        folded += [nodes.raw("", opening, format="html"), table, nodes.raw("", closing, format="html")]


def setup(app):
    app.connect("autodoc-process-signature", signature_of_constructor)
    app.connect("doctree-resolved", fold_tables)


def page_of(notebook, pictures):
    """Return a notebook and its committed output as Markdown; the pictures go into files."""
    parts, drawn = [], 0
    for cell in json.loads(notebook.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                drawn += 1
                picture = pictures / f"{notebook.stem}-{drawn}.png"
                picture.write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![{data['text/plain'][0]}]({picture.name})")
            else:
                text = "".join(output.get("text", data.get("text/plain", "")))
                parts.append(f"```text\n{text.strip()}\n```")
    parts.append(f"{{download}}`This notebook <../../../notebooks/{notebook.name}>`")
    return "\n\n".join(parts) + "\n"


def table_of_applications(results):
    """Return a Markdown table: how many products with A one application of each preconditioner takes."""
    document = json.loads(results.read_text())
    cases, rows = document["cases"], {}
    for solvers in zip(*(case["solvers"] for case in cases), strict=True):
        name = solvers[0]["name"].removeprefix("pcg SGS ")
        if solvers[0]["apply_ms"] and "Eisenstat" not in name:
            rows[name] = [
                f"{solver['apply_ms'] / case['spmv_ms']:.1f} ({solver['colors']})"
                for solver, case in zip(solvers, cases, strict=True)
            ]
    return f"From {measured(document)}.\n\n{by_name('coloring', [case['name'] for case in cases], rows)}"


def table_of_iterations(results):
    """Return the speeds of the cost model, and a Markdown table of its iterations beside those measured."""
    document, speeds = json.loads(results.read_text()), MEASURED["gpu"]
    said = (
        f"On the {document['machine']['gpu']} the bandwidth is {speeds.bandwidth / 1e12:g} TB/s, the cache "
        f"{speeds.cache / 1e6:g} MB, a step {1e6 * speeds.step:g} µs and the start {1e6 * speeds.start:g} µs."
    )
    rows = {}
    for case in document["cases"]:
        for row in case["sweeps"]:
            if "iteration_ms" in row and row.get("block_size", 1) == 1:
                model = 1e3 * speeds.iteration_seconds(case["unknowns"], case["nnz"], 8, row["colors"])
                took = row["iteration_ms"]
                cells = [str(row["colors"]), f"{1e3 * model:.1f}", f"{1e3 * took:.1f}", f"{model / took:.2f}"]
                rows[f"{case['name']}, {row['name']}"] = cells
    columns = ["colors", "model, µs", "measured, µs", "model / measured"]
    return f"{said} From {measured(document)}.\n\n{by_name('an iteration', columns, rows)}"


def page_of_commands():
    """Return the help of every command as Markdown."""
    parts = ["# Command line", "Exit codes: 0 converged, 1 not converged, 2 bad input, 130 interrupted."]
    os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
    for name in cli.COMMANDS:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            cli.parser(cli.COMMANDS).parse_args([name, "--help"])
        text = said.getvalue().strip()
        parts.append(f"## mcprecond {name}\n\n```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


# What is written at every build, beside the pages; what is left of an earlier build goes first.
GENERATED = {name: DOCS / name / "generated" for name in ("reference", "development", "notebooks", "explanation")}
for folder in GENERATED.values():
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
for notebook in sorted((DOCS.parent / "notebooks").glob("*.ipynb")):
    (GENERATED["notebooks"] / f"{notebook.stem}.md").write_text(page_of(notebook, GENERATED["notebooks"]))
(GENERATED["reference"] / "command-line.md").write_text(page_of_commands())
(GENERATED["explanation"] / "applications.md").write_text(
    table_of_applications(DOCS.parent / "benchmarks" / "results" / "fenl-gpu.json")
)
(GENERATED["explanation"] / "iterations.md").write_text(
    table_of_iterations(DOCS.parent / "benchmarks" / "results" / "sweeps-gpu.json")
)

#: Members that the package itself calls, by the class on whose page they would be; "" is for the pages of all classes.
INTERNALS = {
    "": """built_for captures columns_at_once compared_with divide_upper eisenstat_incompatibility enqueue enqueue_sweep
        exponent takes_long keeps_diagonal lend_state macros narrowest new_state new_sums obstacle only_launches
        origin pattern_of refuse_singular_diagonal relaxes remedy_for_asymmetry splitting updates workspace""",
    "mcprecond.ColorBlocks": "by_rows color_slices columns_by_rows n_slices rows_of vector_shape",
    "mcprecond.storage.NodeBlocks": "by_rows color_slices columns_by_rows n_slices rows_of vector_shape",
    "mcprecond.storage.Triangle": "rows_of_entries",
    "mcprecond.PCG": "matrix most_columns options run started",
    "mcprecond.multigrid.Level": "connect replace_transfers",
    "mcprecond.preconditioners.Shifts": "count index",
    "mcprecond.coloring.Graph": "paths",
    "mcprecond.backends.Backend": """fetcher iterations_per_read kernels linalg loop memory_speed repeatable
        resident_warps shared_cache stream""",
}

# A module's page lists the names in its __all__, except for objects that the page of `mcprecond` documents already.
# Objects are compared, not names: the function `mcprecond.studies.multigrid` has the name of a module.
autosummary_context = {
    "known": {
        key: [
            name
            for name in module.__all__
            if key != "mcprecond" and name in mcprecond.__all__
            if getattr(module, name) is getattr(mcprecond, name)
        ]
        for key, module in list(sys.modules.items())
        if key.startswith("mcprecond") and hasattr(module, "__all__")
    },
    "internals": INTERNALS,
    "data": {
        key: data_of(module)
        for key, module in list(sys.modules.items())
        if key.startswith("mcprecond") and hasattr(module, "__all__")
    },
    "enums": [
        f"{key}.{name}"
        for key, module in list(sys.modules.items())
        if key.startswith("mcprecond")
        for name, value in vars(module).items()
        if isinstance(value, EnumType)
    ],
    "methods": [
        f"{method.function.__module__}.{method.function.__name__}".removeprefix("mcprecond.coloring.")
        for method in mcprecond.COLORINGS.values()
    ],
    "colorings": mcprecond.COLORINGS,
}

html_sidebars = {"tutorial": []}
html_theme = "pydata_sphinx_theme"
html_title = "mcprecond"
html_static_path = ["_static"]
html_css_files = ["mcprecond.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "colorings": [], "studies": [], "sweeps": [], "factorizations": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
