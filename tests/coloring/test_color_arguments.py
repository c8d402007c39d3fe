"""Arguments of `color`: what is wrong with one is said by name, and nothing wrong is taken for something else."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5

from mcprecond import COLORINGS, color
from mcprecond.coloring import coloring_of
from mcprecond.matrix import admit_matrix

NO_NAMES = [None, True, 0, 1.5, b"eb", ["eb"], ("eb",), {"eb": 1}, np.array(["eb"]), object()]
NO_INTEGERS = [None, True, 1.5, np.nan, 2j, "1", b"1", [1], np.array(1), np.array([1, 2]), object()]
NO_FLAGS = [None, 0, 1, 1.0, "no", "x", [], [True], np.array([True, False]), object()]
#: By the name of an option: what it is not, and values of its type that are out of range.
OPTIONS = {
    "worklist": (NO_NAMES, ["", "list"]),
    "resolution": (NO_NAMES, ["", "coin"]),
    "engine": (NO_NAMES, ["", "steam"]),
    "chunk_size": (NO_INTEGERS, [0, -1, 10**30]),
    "max_forbid": (NO_INTEGERS, [0, -1, 1025]),
    "hashes": (NO_INTEGERS, [0, -1, 33]),
    "table_size": (NO_INTEGERS, [0, -1, 64]),
    "shortcut1": (NO_FLAGS, []),
    "shortcut2": (NO_FLAGS, []),
    "edge_filtering": (NO_FLAGS, []),
    "tentative": (NO_FLAGS, []),
    "drop_edges": (NO_FLAGS, []),
    "doubling": (NO_FLAGS, []),
    "long_words": (NO_FLAGS, []),
    "two_sets": (NO_FLAGS, []),
    "fused": (NO_FLAGS, []),
    "atomics": (NO_FLAGS, []),
    "palettes": (NO_NAMES, ["", "blocks"]),
    "published": (NO_FLAGS, []),
}
COMMON = {
    "method": (NO_NAMES, ["", "EB", "gready"]),
    "distance": (NO_INTEGERS, [0, 3, -1, 10**30]),
    "seed": (NO_INTEGERS, [-1, 2**63]),
    "recolor": (NO_INTEGERS, [-1]),
    "balance": (NO_FLAGS, []),
}


def refused(error, name, to_device, method="greedy", **arguments) -> None:
    arguments = {"method": method} | arguments
    with pytest.raises(error, match=name) as raised:
        color(to_device(grid5(4)), **arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", COMMON)
def test_common_arguments(name, to_device):
    for error, values in zip((TypeError, ValueError), COMMON[name], strict=True):
        for value in values:
            refused(error, f"{name} must be|unknown coloring {name}", to_device, **{name: value})


@pytest.mark.parametrize("method", COLORINGS)
def test_options(method, to_device):
    for name in COLORINGS[method].options:
        if name == "order":
            continue
        for error, values in zip((TypeError, ValueError), OPTIONS[name], strict=True):
            for value in values:
                if value is not None or (method, name) != ("eb", "resolution"):  # which then depends on `published`
                    refused(error, f"{name} must be", to_device, method, **{name: value})


@pytest.mark.parametrize("method", [*COLORINGS, "auto"])
def test_what_is_published_is_said(method, to_device):
    if method == "auto" or "published" not in COLORINGS[method].options:
        message = rf"published is offered for eb, ecl_gc, and not for coloring method '{method}'; leave it out"
        refused(ValueError, message, to_device, method, published=True)
    else:
        assert color(to_device(grid5(4)), method, published=True).method == method


@pytest.mark.parametrize("option", ["tentative", "drop_edges"])
def test_optimizations_of_eb_are_left_out_as_published_only(option, to_device):
    refused(ValueError, "options of published=True; pass that, too", to_device, "eb", **{option: False})


N = 16
BAD_ORDERS = [
    ([0] * N, ValueError, "got 0 twice"),
    ([*range(N - 1), N], ValueError, "got 16 and not 15"),
    ([-1, *range(1, N)], ValueError, "got -1 and not 0"),
    (range(N - 1), ValueError, "got an array of shape (15,)"),
    (np.arange(N).reshape(4, 4), ValueError, "got an array of shape (4, 4)"),
    (5, ValueError, "got an array of shape ()"),
    (np.arange(float(N)), TypeError, "of dtype float64"),
    (np.ones(N, bool), TypeError, "of dtype bool"),
    (list("natural"), TypeError, "of dtype <U1"),
    ([[0], [1, 2]], TypeError, "got [[0], [1, 2]] (list)"),
    (object(), TypeError, "of dtype object"),
    ({}, TypeError, "of dtype object"),
    ("upside down", ValueError, "got 'upside down'"),
]


@pytest.mark.parametrize("case", range(len(BAD_ORDERS)))
@pytest.mark.parametrize("method", ["jp", "greedy"])
def test_orders(case, method, to_device):
    order, error, message = BAD_ORDERS[case]
    refused(error, f"^order must be one of natural.*{re.escape(message)}", to_device, method, order=order)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_orders_of_any_integers(dtype, to_device):
    A, order = to_device(grid5(4)), np.arange(N)[::-1].astype(dtype)
    expected = color(A, "greedy", order=order.astype(np.int32)).colors
    assert (color(A, "greedy", order=to_device(order)).colors == expected).all()
    assert (color(A, "greedy", order=order.tolist()).colors == expected).all()


@pytest.mark.parametrize("scalar", [np.int8, np.int64, np.uint16])
def test_scalars_of_numpy(scalar, to_device):
    A = to_device(grid5(4))
    coloring = color(A, "eb", distance=scalar(2), seed=scalar(1), recolor=scalar(1), balance=np.True_)
    assert coloring.is_valid(A)
    assert color(A, "ecl_gc", shortcut1=np.False_).is_valid(A)


def test_an_empty_list_colors_an_empty_matrix(to_device):
    assert coloring_of(admit_matrix(to_device(sp.csr_matrix((0, 0)))), []).n_colors == 0
    assert color(to_device(sp.csr_matrix((0, 0))), "greedy", order=[]).n_colors == 0
    with pytest.raises(ValueError, match=r"coloring must have shape \(16,\)"):
        coloring_of(admit_matrix(to_device(grid5(4))), [])
