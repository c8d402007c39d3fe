"""PETSc's Python types where PETSc is missing; what they do with it is in tests/petsc."""

from __future__ import annotations

import importlib.util

import pytest

from mcprecond.interop import petsc


@pytest.mark.parametrize("name", petsc.__all__)
def test_they_say_that_petsc4py_is_missing(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"needs petsc4py.*pip install '\.\[petsc\]'"):
        petsc.solve(None, None) if name == "solve" else getattr(petsc, name)()


def test_arguments_are_those_of_the_operator(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    assert petsc.MulticolorSGS(omega=1.2).arguments == {"omega": 1.2}
    with pytest.raises(TypeError, match="ILU0 has no argument 'omega', only ordering, coloring, pivot, dtype, device"):
        petsc.ILU0(omega=1.2)
    with pytest.raises(TypeError, match="SmoothedAggregation has no argument 'A'"):
        petsc.SmoothedAggregation(A=None)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [("3", "sweeps", 3), ("2", "block_size", 2), ("1.5", "omega", 1.5), ("jp", "coloring", "jp"), ("f", "dtype", "f")],
)
def test_options_are_parsed(text, name, value):
    annotation = petsc.MulticolorSGS._parameters()[name].annotation
    assert petsc.parse_option(text, annotation, f"-mcprecond_{name}") == value


@pytest.mark.parametrize(
    ("annotation", "kind"), [("int", "an integer"), ("int | None", "an integer"), ("float", "a number")]
)
def test_an_option_that_is_no_number(annotation, kind):
    with pytest.raises(ValueError, match=f"option -sub_mcprecond_x must be {kind}, got 'fast'"):
        petsc.parse_option("fast", annotation, "-sub_mcprecond_x")
