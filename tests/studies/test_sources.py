"""Hashes of sources: what is compiled counts, how it is written does not."""

from __future__ import annotations

import functools
import shutil
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprecond.backends import cuda_source
from mcprecond.studies import sources
from mcprecond.studies.sources import TOKEN, cuda, python

PACKAGE = cuda_source.PACKAGE
SOURCE = """\
#include "a.cuh"
#define TWICE(x) \\
    ((x) + (x))  // a macro
#define NAME "a  // b"
#if LANES > 1
template <int N> __device__ int f(int i)
{
    /* more
       than a line */
    int j = i++ + 1'000 - -i, c = '"';  // "text"
    return j << 2 > N ? TWICE(j) : 0x1e + c;
}
#endif
"""
MODULE = '''\
"""What it is."""

import numpy as np


class A:
    """A class."""

    x: int = 1

    def f(self, y=None, *, z="a  b"):
        """A function."""
        return f"{y}  {z!r}" if y is not None else np.array([1.0, -0.0])  # why
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  // a macro", ""),
        ('  // "text"', "\n\n"),
        ("/* more\n       than a line */", ""),
        ("f(int i)\n{", "f( int i ) {"),
        ("int j = i", "int\n\tj=i"),
        ("\n", "\r\n"),
    ],
)
def test_how_cuda_code_is_written(old, new):
    assert old in SOURCE and cuda(SOURCE.replace(old, new)) == cuda(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<< 2", "<< 3"),
        ("i++ + 1", "i+ ++1"),
        ("return j", "returnj"),
        ("TWICE(x)", "TWICE (x)"),
        ("\\\n    ((x)", "\n    ((x)"),
        ("a  // b", "a // b"),
        ("#if LANES > 1", "#if LANES > 2"),
        ("a.cuh", "b.cuh"),
        ("    int j", "    i *= 2;\n    int j"),
    ],
)
def test_what_cuda_code_says(old, new):
    assert old in SOURCE and cuda(SOURCE.replace(old, new)) != cuda(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""What it is."""\n', ""),
        ("A class.", "Another."),
        ('        """A function."""\n', "\n\n"),
        ("  # why", ""),
        ('"a  b"', "'a  b'"),
        ("self, y=None", "self,\n        y=None"),
    ],
)
def test_how_python_is_written(old, new):
    assert old in MODULE and python(MODULE.replace(old, new)) == python(MODULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x: int = 1", "x: int = 2"),
        ("y=None", "y=0"),
        ("-0.0", "0.0"),
        ("a  b", "a b"),
        ("!r", "!s"),
    ],
)
def test_what_python_says(old, new):
    assert old in MODULE and python(MODULE.replace(old, new)) != python(MODULE)


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(PACKAGE.rglob("*.cu*"))))
def test_comments_between_any_tokens(seed, path):
    """Comments and white space where there is some already, in the package's own files; other letters do count."""
    random, text = Random(seed), path.read_text()
    tokens = list(TOKEN.finditer(text))
    spaces = {"space": [" ", "\t", "  ", " /* it's */", " \\\n "], "newline": ["\n", "\n\n", ' // "\n', "\n/* \n */\n"]}
    written = "".join(random.choice(spaces.get(token.lastgroup, [token[0]])) for token in tokens)
    assert cuda(written) == cuda(text)
    said = [token for token in tokens if token.lastgroup in ("number", "other")]
    at = random.choice(said).end()
    assert cuda(text[:at] + "x" + text[at:]) != cuda(text)


FUNCTION = "\n@compile_row\ndef more():\n    return 1\n"


@pytest.fixture(scope="module")
def readers():
    """The functions that read sources, which remember what they have read."""
    return {name: functools.cache(getattr(sources, name)) for name in ("cuda", "python")}


@pytest.fixture
def once(readers, monkeypatch):
    """Reads each text once, whichever folder it is in."""
    for name, reader in readers.items():
        monkeypatch.setattr(sources, name, reader)


@pytest.mark.parametrize(
    ("changed", "text", "on_gpu", "on_cpu"),
    [
        ("storage/split.cu", "// a remark\n\n", set(), set()),
        ("storage/split.cu", "#define MORE 1\n", {"storage/split"}, set()),
        ("storage/split.py", "MORE = 1\n", {"storage/split"}, {"storage/split"}),
        ("storage/split.py", "import json\n", set(), set()),
        ("storage/split.py", FUNCTION, set(), {"storage/split"}),
        ("storage/color_blocks.py", "MORE = 1\n", {"storage"}, {"storage"}),
        ("coloring/published/balanced.cuh", "#define MORE 1\n", None, set()),
    ],
)
@pytest.mark.parametrize("gpu", [False, True])
def test_a_change_shows_in_what_it_is_compiled_into(tmp_path, monkeypatch, once, gpu, changed, text, on_gpu, on_cpu):
    before, parts = sources.code(gpu), on_gpu if gpu else on_cpu
    package = tmp_path / "mcprecond"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    with (package / changed).open("a") as file:
        file.write(text)
    monkeypatch.setattr(sources, "PACKAGE", package)
    monkeypatch.setattr(cuda_source, "PACKAGE", package)
    after = sources.code.__wrapped__(gpu)
    found = {part for part in before if after[part] != before[part]}
    if parts is None:  # those whose CUDA includes the header
        assert found and all(part.startswith("coloring/published/") for part in found)
    else:
        assert found == parts
