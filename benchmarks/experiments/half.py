"""An experiment: triangles stored in two bytes per value, float16 or bfloat16, under a float64 solver.

    python benchmarks/experiments/half.py gpu                        # the full sizes
    python benchmarks/experiments/half.py cpu --small                # iterations only, in rounded float32 storage

The system is scaled to a unit diagonal first, from both sides, so that all values of a positive definite matrix fit
into either format. Iterations are those of the plain form with values that were rounded to the format. On a GPU the
application is timed with storage that has the two bytes: bfloat16, whose conversion is a shift; float16 moves as many
bytes. Writes benchmarks/results/half-gpu.json or half-cpu.json (or where --output says).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))  # where the benchmarks are

from cases import MATRICES, SEED
from measure import RESULTS, application, graph_ms, record, save
from sweeps import CASES, COLORINGS, RTOL

from mcprecond import MulticolorSGS, color, pcg
from mcprecond.backends import get_backend
from mcprecond.backends.cuda_source import cuda_source
from mcprecond.backends.gpu import Program, _launchers, compile_options

SHORT = """
struct Short {
    unsigned short bits;
    __device__ Short() : bits(0) {}
    __device__ operator float() const { return __int_as_float((int)bits << 16); }
};
template <int BYTES>
struct PieceOf;
template <>
struct PieceOf<2> {
    typedef unsigned short Type;
};
"""


def rounded(values: Any, form: str) -> Any:
    """Values of float32 that the short format holds."""
    if form == "float16":
        return values.astype(np.float16).astype(np.float32)
    bits = values.view(np.uint32)
    # To the nearest, ties to even, in the upper half of the bits.
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def scaled(A: Any, backend: Any) -> Any:
    """S A S with a unit diagonal."""
    S = backend.sparse.diags(1 / backend.xp.sqrt(A.diagonal()))
    return (S @ A @ S).tocsr()


def application_of_two_bytes(M: MulticolorSGS, b: Any, z: Any) -> Callable[[], None]:
    """A function that puts M b into z, for one symmetric sweep, and lets M store its triangles in bfloat16."""
    import cupy

    state = M.new_state()
    substitution = state.sweeps[0].substitution
    _, kernel_set, macros = substitution._run._origin
    options = compile_options(kernel_set.select_macros(macros))
    short = tuple("-DSTORED=Short" if option.startswith("-DSTORED=") else option for option in options)
    device = cupy.cuda.Device()
    program = Program(SHORT + cuda_source(kernel_set.source), short, int(device.compute_capability))
    substitution._run = SimpleNamespace(**_launchers(kernel_set, program, macros["LANES"], device.id))
    for part in (M.blocks.lower, M.blocks.upper):
        part.values = (part.values.view(np.uint32) >> 16).astype(np.uint16)
    return lambda: M.enqueue(state, b, z)


def measure_case(name: str, device: str, small: bool) -> dict[str, Any]:
    backend = get_backend(device)
    xp, A = backend.xp, scaled(MATRICES[name](small, device), backend)
    b = A @ xp.asarray(np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]))
    rows = []
    for label, method in COLORINGS.items():
        coloring, z = color(A, method), xp.empty_like(b)
        for form in ("float64", "float32", "float16", "bfloat16"):
            M = MulticolorSGS(A, coloring, dtype="float64" if form == "float64" else "float32")
            if form.endswith("16"):
                for part in (M.blocks.lower, M.blocks.upper):
                    part.values[...] = rounded(part.values, form)
            result = pcg(A, b, M=M, rtol=RTOL, form="plain")
            row = {"coloring": label, "stored": form, "iterations": result.iterations, "converged": result.info == 0}
            if device == "gpu" and form != "float16":
                expected = M @ b
                apply = application_of_two_bytes if form == "bfloat16" else application
                row["apply_ms"] = graph_ms(apply(M, b, z))
                if form == "bfloat16":
                    row["difference"] = float(xp.abs(z - expected).max() / xp.abs(expected).max())
            rows.append(row)
            print(name, row, flush=True)
    return {"name": name, "unknowns": A.shape[0], "nnz": int(A.nnz), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["fenl_50", "fenl_180", "elasticity48"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    cases = [measure_case(name, arguments.device, arguments.small) for name in arguments.cases]
    document = record("half", arguments.device, cases, seed=SEED, rtol=RTOL, small=arguments.small)
    save(document, arguments.output or RESULTS / f"half-{arguments.device}.json")


if __name__ == "__main__":
    main()
