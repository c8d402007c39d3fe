"""Checks of arguments: what is let through, and what a refusal says."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mcprecond
from mcprecond import problems
from mcprecond.backends.arguments import did_you_mean, flag, integer, one_of, real
from mcprecond.problems.graphs import grid2d


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint8(3), np.int64(3)])
def test_integers_of_every_kind(value):
    assert integer(value, "n", 1, 5) == 3 and type(integer(value, "n")) is int


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.int8(3)])
def test_reals_of_every_kind(value):
    assert real(value, "x", 1, 5) == 3.0 and type(real(value, "x")) is float


@pytest.mark.parametrize("value", [True, np.True_])
def test_flags_of_every_kind(value):
    assert flag(value, "f") is True


def test_one_of():
    assert one_of("a", "s", ("a", "b")) == "a"


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: integer(2.0, "n", 1), TypeError, "n must be an integer at least 1, got 2.0 (float)"),
        (lambda: integer(True, "n"), TypeError, "n must be an integer, got True (bool)"),
        (lambda: integer("x" * 99, "n"), TypeError, f"n must be an integer, got '{'x' * 59}... (str)"),
        (lambda: integer(np.zeros((9, 9)), "n"), TypeError, "n must be an integer, got array([[0., 0.,"),
        (lambda: integer(0, "n", 1), ValueError, "n must be at least 1, got 0"),
        (lambda: integer(9, "n", 1, 5), ValueError, "n must be between 1 and 5, got 9"),
        (lambda: real(2j, "x"), TypeError, "x must be a real number, got 2j (complex)"),
        (lambda: real(None, "x", 0.0), TypeError, "x must be a real number at least 0.0, got None (NoneType)"),
        (lambda: real(float("nan"), "x"), ValueError, "x must be a finite number, got nan (float)"),
        (lambda: real(10**400, "x"), ValueError, "x must be a finite number, got 1000"),
        (lambda: real(3.0, "x", most=2.0), ValueError, "x must be at most 2.0, got 3.0"),
        (lambda: flag("no", "f"), TypeError, "f must be True or False, got 'no' (str)"),
        (lambda: flag(1, "f"), TypeError, "f must be True or False, got 1 (int)"),
        (lambda: one_of(["a"], "s", ("a", "b")), TypeError, "s must be a string, one of a, b, got ['a'] (list)"),
        (lambda: one_of("c", "s", ("a", "b")), ValueError, "s must be one of a, b, got 'c'"),
        (
            lambda: one_of("alpa", "s", ("alpha", "b")),
            ValueError,
            "s must be one of alpha, b, got 'alpa'; did you mean ",
        ),
    ],
)
def test_refusals(check, error, message):
    with pytest.raises(error, match="^" + re.escape(message)) as raised:
        check()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("value", "hint"),
    [("gredy", "; did you mean 'greedy'?"), ("EB", "; did you mean 'eb'?"), ("k", "; did you mean 'K'?"), ("zzz", "")],
)
def test_a_name_that_is_close_is_suggested(value, hint):
    assert did_you_mean(value, ("eb", "greedy", "K")) == hint


def test_every_name_has_a_suggestion():
    A, b = grid2d(4), np.ones(16)
    for call, meant in (
        (lambda: mcprecond.color(A, "gredy"), "greedy"),
        (lambda: mcprecond.color(A, "greedy", order="sld"), "sdl"),
        (lambda: mcprecond.SmoothedAggregation(A, smoother="chebishev"), "chebyshev"),
        (lambda: mcprecond.SmoothedAggregation(A, cycle="v"), "V"),
        (lambda: mcprecond.SmoothedAggregation(A).solve(b, accel="gmre"), "gmres"),
        (lambda: mcprecond.MulticolorGS(A, sweep="symetric"), "symmetric"),
        (lambda: mcprecond.ILU0(A, ordering="colour"), "color"),
        (lambda: mcprecond.MulticolorDILU(A, pivot="positiv"), "positive"),
        (lambda: mcprecond.pcg(A, b, M="aut"), "auto"),
        (lambda: mcprecond.pcg(A, b, form="eisenstein"), "eisenstat"),
        (lambda: problems.laplacian((4, 4), device="gpuu"), "gpu"),
    ):
        with pytest.raises(ValueError, match=f"did you mean '{meant}'\\?$"):
            call()
