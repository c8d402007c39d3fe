"""The GraphBLAS colorings against slow serial definitions, and their engines against each other."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from graphs import NAMED, grid5, patterns, stencil27
from hypothesis import HealthCheck, given, settings
from reference.first_fit import serial_first_fit
from reference.independent_sets import serial_reuse, serial_sets
from reference.orders import by_weight

from mcprecond import color

METHODS = ("graphblas_is", "graphblas_mis", "graphblas_jp")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_colors_are_those_of_serial_definitions(backend, to_device, A):
    on_device = to_device(A)
    is_, mis, jp = (backend.to_host(color(on_device, method, seed=6).colors) for method in METHODS)
    np.testing.assert_array_equal(is_, serial_sets(A, 6))
    np.testing.assert_array_equal(mis, serial_first_fit(A, by_weight(A, 6)))
    np.testing.assert_array_equal(jp, serial_reuse(A, 6))


def test_independent_sets_are_those_of_jpl(backend, to_device):
    for A in (stencil27(16), NAMED["dense rows"], grid5(50)):
        on_device = to_device(A)
        jpl, *ours = (color(on_device, method, seed=2**32 + 1) for method in ("jpl", *METHODS))
        np.testing.assert_array_equal(backend.to_host(ours[0].colors), backend.to_host(jpl.colors))
        assert ours[0].rounds == ours[2].rounds == jpl.rounds
        assert ours[1].n_colors < ours[2].n_colors <= jpl.n_colors


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMED)
def test_engines_agree(name, method):
    ours, theirs = (color(NAMED[name], method, seed=1, engine=engine) for engine in ("kernels", "suitesparse"))
    np.testing.assert_array_equal(ours.colors, theirs.colors)
    assert ours.colors.dtype == theirs.colors.dtype
    np.testing.assert_array_equal(ours.history, theirs.history)


@given(A=patterns())
def test_engines_agree_on_any_pattern(A):
    for method in METHODS:
        ours, theirs = (color(A, method, engine=engine) for engine in ("kernels", "suitesparse"))
        np.testing.assert_array_equal(ours.colors, theirs.colors)


def test_a_missing_engine_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphblas", None)
    with pytest.raises(ImportError, match=r"needs python-graphblas; from a clone: pip install '\.\[graphblas\]'"):
        color(grid5(3), "graphblas_is", engine="suitesparse")


def test_unknown_engine(to_device):
    with pytest.raises(ValueError, match="engine must be one of kernels, suitesparse, got 'graphblast'"):
        color(to_device(grid5(3)), "graphblas_mis", engine="graphblast")


@pytest.mark.gpu
def test_suitesparse_is_for_the_cpu():
    from mcprecond.backends import get_backend

    A = get_backend("gpu").sparse.csr_matrix(grid5(3))
    with pytest.raises(ValueError, match="engine='suitesparse' works on the CPU only"):
        color(A, "graphblas_jp", engine="suitesparse")
