"""method="auto": what it picks, by degrees alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import NAMED, grid5, patterns, stencil27
from hypothesis import HealthCheck, given, settings

from mcprecond import COLORINGS, color
from mcprecond.coloring.auto import chosen_by_degrees
from mcprecond.problems import graphs

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"

# Vertices, largest degree and sum of degrees of the benchmark's graphs, and the method for them.
MEASURED = {
    "fenl_50": (132_651, 26, 3_310_300, "jp"),
    "fenl_100": (1_030_301, 26, 26_240_600, "jp"),
    "fenl_180": (5_929_741, 26, 152_410_680, "jp"),
    "grid2d_1024": (1_048_576, 4, 4_190_208, "jp"),
    "delaunay20": (1_048_576, 21, 6_291_380, "ecl_gc"),
    "rgg20": (1_048_576, 31, 13_790_566, "ecl_gc"),
    "rmat20": (1_048_576, 39_674, 16_085_654, "ecl_gc"),
    "rmat22": (4_194_304, 97_780, 65_244_146, "ecl_gc"),
    "mycielskian15": (24_575, 12_287, 11_111_110, "ecl_gc"),
    "elasticity48": (331_776, 80, 25_437_816, "jp"),
}


@pytest.mark.parametrize("name", MEASURED)
def test_among_the_fastest_with_few_colors(name):
    """In the record, at most 1.5 times the time of any parallel method within one color of the fewest."""
    *degrees, expected = MEASURED[name]
    method, options = chosen_by_degrees(*degrees)
    assert method == expected
    document = json.loads((RESULTS / "coloring-gpu.json").read_text())
    rows = next(case["methods"] for case in document["cases"] if case["name"] == name)
    parallel = [row for label, row in rows.items() if label not in ("csrcolor", "greedy")]
    fewest = min(row["colors"] for row in parallel)
    fastest = min(row["ms"] for row in parallel if row["colors"] <= fewest + 1)
    chosen = rows["jp natural" if options else method]
    assert chosen["colors"] <= fewest + 1 and chosen["ms"] <= 1.5 * fastest


CASES = {
    "grid": (grid5(40), "jp"),
    "stencil27": (stencil27(30), "jp"),
    "elasticity": (graphs.elasticity_pattern(24), "jp"),
    "rmat": (graphs.rmat(10), "ecl_gc"),
    "mycielskian": (graphs.mycielskian(8), "ecl_gc"),
    "regular": (graphs.random_regular(2000, 6), "ecl_gc"),
    "tridiagonal": (sp.csr_matrix(sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(3000, 3000))), "ecl_gc"),
    "banded": (sp.csr_matrix(sp.diags_array([1.0] * 5, offsets=[-2, -1, 0, 1, 2], shape=(3000, 3000))), "ecl_gc"),
    "empty": (NAMED["empty"], "ecl_gc"),
    "isolated": (NAMED["isolated"], "ecl_gc"),
}


@pytest.mark.parametrize("name", CASES)
def test_auto_is_the_method_that_it_names(name, backend, to_device):
    A, expected = CASES[name]
    on_device = to_device(A)
    coloring = color(on_device, "auto", seed=3)
    assert coloring.method == expected
    options = {"order": "natural"} if expected == "jp" else {}
    same = color(on_device, expected, seed=3, **options)
    np.testing.assert_array_equal(backend.to_host(coloring.colors), backend.to_host(same.colors))
    assert coloring.is_valid(on_device)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(A=patterns())
def test_auto_on_any_pattern(to_device, A):
    on_device = to_device(A)
    coloring = color(on_device, "auto")
    assert coloring.is_valid(on_device) and coloring.method in COLORINGS


def test_auto_is_no_method_and_has_no_options(to_device):
    A = to_device(grid5(4))
    assert "auto" not in COLORINGS
    with pytest.raises(TypeError, match="'auto' has no option 'order'; it has none"):
        color(A, "auto", order="natural")
    with pytest.raises(ValueError, match=r"known are eb, .*, auto"):
        color(A, "best")


def test_auto_with_distance_and_refinements(to_device):
    A = to_device(grid5(40))
    assert color(A, "auto", distance=2, recolor=1, balance=True).is_valid(A)
