"""The documentation: its code prints what it says, it has every public name, and it builds without a warning."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import pkgutil
import posixpath
import re
import subprocess
import sys

import pytest

import mcprecond
from report import DOCS, PAGES

#: Those that are committed.
COMMITTED = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if path not in PAGES.values() and not {"_build", "generated"} & set(path.parts)
]

#: A block of Python and what it prints, if that follows. Blocks of the class `gpu` need one.
BLOCK = re.compile(
    r"^```(?:python|\{code-block\} python\n:class: (?P<mark>gpu))\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<printed>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.parametrize("page", COMMITTED, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_files_that_a_page_names_exist(page):
    names = re.findall(r"`((?:tests|benchmarks|tools|examples)/[\w./-]+)`", page.read_text())
    assert [name for name in names if not (DOCS.parent / name).exists()] == []


@pytest.mark.parametrize(
    ("page", "device"),
    [pytest.param(page, "cpu", id=page.relative_to(DOCS).as_posix()) for page in COMMITTED]
    + [
        pytest.param(page, "gpu", id=f"gpu-{page.relative_to(DOCS).as_posix()}", marks=pytest.mark.gpu)
        for page in COMMITTED
        if ":class: gpu" in page.read_text()
    ],
    indirect=["device"],
)
def test_code_prints_what_the_page_says(page, device, tmp_path, monkeypatch):
    """The blocks of a page run one after the other; those for a GPU run beside them, on copies of their names. A page
    of the gallery may import its example, which it offers for download.
    """
    monkeypatch.chdir(tmp_path)
    if page.parent.name == "gallery":
        monkeypatch.syspath_prepend(DOCS.parent / "examples" / "gallery")
        monkeypatch.delitem(sys.modules, page.stem, raising=False)
    text, names = page.read_text(), {}
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == len(re.findall(r"^```(?:python|\{code-block\} python)$", text, re.MULTILINE))
    for block in blocks:
        line = text.count("\n", 0, block.start("code"))
        code = compile("\n" * line + block["code"], str(page), "exec")
        if block["mark"]:
            if device == "gpu":
                exec(code, dict(names))
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(code, names)
        assert output.getvalue() == (block["printed"] or ""), f"printed by the block in line {line}"


def test_modules_that_the_pages_name_exist(pages):
    named = {
        path
        for page in pages
        for path in re.findall(r"`((?:mcprecond|benchmarks|report|tools|tests)/[\w/.]+)`", page.read_text())
    }
    assert len(named) > 20
    assert {path for path in named if not (DOCS.parent / path).exists()} == set()


@pytest.mark.parametrize("page", ["papers.md", "how-to/choose-a-method.md"])
def test_every_coloring_method_is_on_the_page(page, pages):
    text = (DOCS / page).read_text()
    assert [name for name in mcprecond.COLORINGS if f'"{name}"' not in text] == []


@pytest.fixture(scope="module")
def built(tmp_path_factory, pages):
    """The folder with the built pages."""
    folder = tmp_path_factory.mktemp("docs")
    sphinx = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    run = subprocess.run([*sphinx, "-d", folder / "cache", DOCS, folder / "html"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return folder / "html"


def test_every_public_name_is_in_the_reference(built):
    from sphinx.util.inventory import InventoryFile

    with (built / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", posixpath.join)
    documented = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    packages = [f"mcprecond.{module.name}" for module in pkgutil.iter_modules(mcprecond.__path__) if module.ispkg]
    public = {
        f"{package}.{name}"
        for package in ["mcprecond", *packages]
        for name in getattr(importlib.import_module(package), "__all__", [])
        if package == "mcprecond" or name not in mcprecond.__all__
        if not name.startswith("__")
    }
    assert public - documented == set()


@pytest.mark.parametrize("name", [name for name in mcprecond.__all__ if inspect.isclass(getattr(mcprecond, name))])
def test_every_public_method_is_documented(name):
    """By itself, or by the method of the base class that it overrides."""
    members = inspect.getmembers(getattr(mcprecond, name), inspect.isfunction)
    assert [member for member, method in members if member[0] != "_" and not inspect.getdoc(method)] == []
