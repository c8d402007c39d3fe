"""The text of CUDA files: includes, constants of Python modules, and where inline assembly may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mcprecond
from mcprecond.backends import cuda_source as module
from mcprecond.backends.cuda_source import cuda_source, define

PACKAGE = Path(mcprecond.__file__).parent
PTX = "cuda/ptx.cuh"
FILES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.cu*")) if path.suffix != ".pyc"}
ASSEMBLY = re.compile(r"\basm\b|\bvolatile\b|__(?:ld|st)c[agsv]\b|__cvta_|__ldg\b")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder in the place of the package's, and a function that writes files into it."""
    monkeypatch.setattr(module, "PACKAGE", tmp_path)

    def write(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_cuh", ".cuh").replace("_cu", ".cu")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    return write


def test_a_file_is_included_once_and_lines_keep_their_numbers(tmp_path, package):
    package(
        a__k_cu='// a\n#include "cuda/x.cuh"\n#include "y.cuh"\nint k;\n',
        cuda__x_cuh="#pragma once\nint x;\n",
        a__y_cuh='#pragma once\n#include "cuda/x.cuh"\nint y;\n',
    )
    lines = cuda_source(tmp_path / "a" / "k.cu").splitlines()[2:]
    assert lines == [
        '#line 1 "a/k.cu"',
        "// a",
        '#line 1 "cuda/x.cuh"',
        "",
        "int x;",
        '#line 3 "a/k.cu"',
        '#line 1 "a/y.cuh"',
        "",
        '#line 3 "a/y.cuh"',
        "int y;",
        '#line 4 "a/k.cu"',
        "int k;",
    ]


def test_no_include_depends_on_a_condition(tmp_path, package):
    package(k_cu='#if 1\n#include "x.cuh"\n#endif\n', x_cuh="int x;\n")
    with pytest.raises(ValueError, match=r"k\.cu, line 2: no #include inside of #if"):
        cuda_source(tmp_path / "k.cu")


def test_one_file_is_taken_for_another(tmp_path, package):
    package(k_cu='#include "cuda/x.cuh"\n', cuda__x_cuh="int x;\n", other_cuh="int y;\n")
    text = cuda_source(tmp_path / "k.cu", {"cuda/x.cuh": tmp_path / "other.cuh"})
    assert "int y;" in text and "int x;" not in text


def test_constants_keep_their_digits():
    assert define({"A": 3, "B": 2**40, "C": 0.0625, "D": True}) == [
        "#define A (3)",
        f"#define B ({2**40}ll)",
        "#define C (0.0625)",
        "#define D (1)",
    ]


def test_constants_of_python_modules_are_sent():
    from mcprecond.coloring.graph import UNCOLORED
    from mcprecond.solvers.iteration import HISTORY, NAN

    text = cuda_source(FILES["solvers/iteration.cu"])
    assert f"#define HISTORY ({HISTORY})\n" in text and f"#define NOT_A_NUMBER ({NAN})\n" in text
    assert f"#define UNCOLORED ({UNCOLORED})\n" in cuda_source(FILES["coloring/published/eb.cu"])
    assert cuda_source(FILES["multigrid/aggregation.cu"]).count(f"#define OUT ({2**32 - 1}ll)\n") == 1


@pytest.mark.parametrize("name", FILES)
def test_names_of_constants_are_defined_in_python_alone(name):
    """Nothing that Python sends is defined in CUDA, too."""
    sent = re.findall(r"#define (\w+) \(-?\d+(?:ll)?\)\n", cuda_source(FILES[name]))
    own = re.findall(r"^ *#define (\w+)|enum[^{;]*\{([^}]*)\}", FILES[name].read_text(), flags=re.MULTILINE)
    names = {word for groups in own for group in groups for word in re.findall(r"[A-Z]\w+", group)}
    assert not names & set(sent)


@pytest.mark.parametrize("name", FILES)
def test_inline_assembly_and_cache_hints_are_in_one_file(name):
    code = re.sub(r"//.*", "", FILES[name].read_text())
    assert bool(ASSEMBLY.search(code)) == (name == PTX)


def test_the_emulation_has_the_functions_of_that_file():
    from emulated import REPLACED

    functions = re.compile(r"^(?:__device__ __forceinline__|inline) [^(]*?(\w+)\(", re.MULTILINE)
    real, emulated = ({*functions.findall(path.read_text())} for path in (FILES[PTX], REPLACED[PTX]))
    assert real - emulated == {"evict_last_policy"}
    assert emulated <= real
