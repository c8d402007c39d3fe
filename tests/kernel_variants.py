"""The kernel sets of all .cu files, and the variants and architectures that each is compiled for in tests and gates."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mcprecond
from mcprecond.backends import KernelSet
from mcprecond.backends.gpu import compile_options

PACKAGE = Path(mcprecond.__file__).parent
SOURCES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.cu"))}
ARCHITECTURES, USUAL = [75, 80, 90, 100, 120], 90
VARIANTS = [
    {
        "OFFSET": np.int32,
        "VALUE": np.float64,
        "STORED": np.float64,
        "ARGUMENT": np.float64,
        "COARSE": np.float64,
        "LANES": 2,
        "NATURAL": 1,
        "ENTRY": np.int32,
        "SOURCE": np.uint8,
        "PLACE": np.uint8,
    },
    {
        "OFFSET": np.int64,
        "VALUE": np.float64,
        "STORED": np.float32,
        "ARGUMENT": np.float32,
        "COARSE": np.float64,
        "LANES": 8,
        "NATURAL": 0,
        "ENTRY": np.float64,
        "SOURCE": np.uint16,
        "PLACE": np.uint16,
    },
    {
        "OFFSET": np.int32,
        "VALUE": np.float32,
        "STORED": np.float32,
        "ARGUMENT": np.float64,
        "COARSE": np.float64,
        "LANES": 32,
        "NATURAL": 0,
        "ENTRY": np.float32,
        "SOURCE": np.uint32,
        "PLACE": np.uint8,
    },
]
COMPLEX = {np.float32: np.complex64, np.float64: np.complex128}
COMPLEX_VARIANTS = [{name: COMPLEX.get(value, value) for name, value in variant.items()} for variant in VARIANTS]
#: What else there is to choose in some sources.
BLOCK_SIZES = [{"BLOCK_SIZE": 3}, {"BLOCK_SIZE": 9}]
TRUNCATED = {"TRUNCATED_VECTORS": 1}
SHORT = {"LARGE_VECTORS": 1, **TRUNCATED}
PITCHED = [{"PITCHED": 1}, {"PITCHED": 1, "RHS": 4}, {"PITCHED": 1, "RHS": 2, "BLOCK_SIZE": 3}]
CHOICES: dict[str, list[dict[str, int]]] = {
    "coloring/published/rig.cu": [{"BITS": 32}, {"BITS": 64}],
    "coloring/published/vertex_based.cu": [{"MAXFORBID": 64}, {"MAXFORBID": 256}],
    "linalg/columns.cu": [{}, {"LONG_ROWS": 1}],
    "linalg/csr.cu": [{}, {"LONG_ROWS": 1}],
    "multigrid/polynomial.cu": [{}, {"LONG_ROWS": 1}],
    "multigrid/polynomial_columns.cu": [{}, {"LONG_ROWS": 1}],
    "multigrid/interpolation.cu": [{"UNKNOWNS": 1, "CANDIDATES": 1}, {"UNKNOWNS": 3, "CANDIDATES": 6}],
    "multigrid/galerkin.cu": [{"UNKNOWNS": 1, "CANDIDATES": 1}, {"UNKNOWNS": 3, "CANDIDATES": 6}],
    "multigrid/products.cu": [
        {"SHARING": 1, "WIDTH": 1},
        {"SHARING": 1, "WIDTH": 0},
        {"SHARING": 3, "WIDTH": 6},
        {"WIDE": 1, "LANES": 256, "SHARING": 1, "WIDTH": 6},
    ],
    "multigrid/tentative.cu": [{}, {"LANES": 256}],
    "storage/values.cu": [{}, {"SLICED_DIA": 1}, {"CUT_ROWS": 1}],
    "storage/node_blocks.cu": BLOCK_SIZES,
    "storage/node_values.cu": BLOCK_SIZES,
    "storage/layouts/interleaved.cu": [{}, {"SLICED_DIA": 1}, {"CUT_ROWS": 1}],
    "sweeps/vectors.cu": [{}, {"BLOCK_SIZE": 3}, {"RHS": 2}, TRUNCATED, {"RHS": 4, **TRUNCATED}, *PITCHED],
    "preconditioners/dilu.cu": [{}, {"SLICED_DIA": 1}, {"CUT_ROWS": 1}],
    "preconditioners/elimination.cu": [{"SHARE": 8}, {"SHARE": 1}],
    "sweeps/triangular.cu": [
        {},
        {"SLICED_DIA": 1},
        *BLOCK_SIZES,
        {"RHS": 2},
        {"RHS": 3},
        {"RHS": 4},
        {"RHS": 4, "SLICED_DIA": 1},
        {"BLOCK_SIZE": 2, "RHS": 4},
        {"BLOCK_SIZE": 3, "RHS": 2},
        SHORT,
        {"SLICED_DIA": 1, **SHORT},
        {"BLOCK_SIZE": 3, **SHORT},
        {"RHS": 4, **SHORT},
        {"LARGE_MATRIX": 1},
        {"LARGE_MATRIX": 1, "SLICED_DIA": 1, **SHORT},
        {"LARGE_MATRIX": 1, "RHS": 4},
        {"CUT_ROWS": 1},
        {"CUT_ROWS": 1, "RHS": 4, **SHORT},
        *PITCHED,
    ],
    "solvers/columns.cu": [{}, {"LONG_ROWS": 1}],
    "solvers/eisenstat.cu": [{}, {"SLICED_DIA": 1}, {"CUT_ROWS": 1}, {"PRODUCTS_APART": 1}, *BLOCK_SIZES],
}
#: Sources for real numbers only, and those for complex ones as well.
REAL = [(name, VARIANTS) for name in SOURCES if name.startswith(("backends", "coloring", "interop", "problems"))]
BOTH = [(name, VARIANTS + COMPLEX_VARIANTS) for name in SOURCES if name not in dict(REAL)]


def kernel_set(name: str) -> KernelSet:
    """The one whose kernels a source has."""
    return importlib.import_module("mcprecond." + name.removesuffix(".cu").replace("/", ".")).KERNELS


def declared(name: str, variant: dict[str, Any]) -> dict[str, Any]:
    """Those choices of a variant that the kernel set declares."""
    return {choice: value for choice, value in variant.items() if choice in kernel_set(name).declared}


def compilations():
    """Which source is compiled in which variant for which architecture: each variant once, and each source for all
    architectures, which its variants share; the first variant has the usual one, and those that are left.
    """
    for name, variants in REAL + BOTH:
        found: dict[str, tuple[str, dict[str, Any]]] = {}
        for k, variant in enumerate(variants):
            for m, choice in enumerate(CHOICES.get(name, [{}])):
                if m > 0 and k not in (m % 3, 3 + (m + 1) % 3):  # of further choices two variants, others for each
                    continue
                macros = kernel_set(name).select_macros(declared(name, variant) | choice)
                # Sources do not declare all that variants differ in.
                found.setdefault(repr(compile_options(macros)), (f"{name}-{k}-{m}", macros))
        first, *others = found.values()
        of_others = [ARCHITECTURES[k % len(ARCHITECTURES)] for k in range(len(others))]
        of_first = [USUAL, *(each for each in ARCHITECTURES if each not in {USUAL, *of_others})]
        for (label, macros), architecture in [
            *((first, each) for each in of_first),
            *zip(others, of_others, strict=True),
        ]:
            yield pytest.param(name, macros, architecture, id=f"{label}-sm_{architecture}")
