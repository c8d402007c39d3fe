"""PETSc's Python types where PETSc is missing; what they do with it is in tests/petsc."""

from __future__ import annotations

import importlib.util

import pytest

from mcprecond.interop import petsc


@pytest.mark.parametrize("name", petsc.__all__)
def test_they_say_that_petsc4py_is_missing(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"needs petsc4py.*install mcprecond\[petsc\]"):
        getattr(petsc, name)()


def test_arguments_are_those_of_the_operator(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    assert petsc.MulticolorSGS(omega=1.2).arguments == {"omega": 1.2}
    with pytest.raises(TypeError, match="ILU0 has no argument 'omega', only ordering, coloring, pivot, dtype, device"):
        petsc.ILU0(omega=1.2)
    with pytest.raises(TypeError, match="SmoothedAggregation has no argument 'A'"):
        petsc.SmoothedAggregation(A=None)


@pytest.mark.parametrize(
    ("text", "default", "value"), [("3", 1, 3), ("1.5", 1.0, 1.5), ("jp", "auto", "jp"), ("float32", None, "float32")]
)
def test_options_are_parsed(text, default, value):
    assert petsc.parsed(text, default, "-mcprecond_x") == value


@pytest.mark.parametrize(("default", "kind"), [(1, "an integer"), (1.0, "a number")])
def test_an_option_that_is_no_number(default, kind):
    with pytest.raises(ValueError, match=f"option -sub_mcprecond_x must be {kind}, got 'fast'"):
        petsc.parsed("fast", default, "-sub_mcprecond_x")
