"""Linear elements on random triangulations with slivers: iterations of CG with Gauss-Seidel, DILU and ILU(0).

    python benchmarks/experiments/pivots.py                # 30,000 and a million points, three shapes of triangles
    python benchmarks/experiments/pivots.py 30000 --output x.json

writes benchmarks/results/pivots-cpu.json (or where --output says). The more the triangles are stretched, the more
pivots of an incomplete factorization are negative, unless they are shifted: see mcprecond/preconditioners/pivots.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))  # where the benchmarks are

from cases import SEED, linear_elements
from measure import RESULTS, record, save

from mcprecond import ILU0, MulticolorDILU, MulticolorSGS, color, pcg

RTOL = 1e-8
SIZES, STRETCHES = [30_000, 1_000_000], [1, 4, 30]
BUILT = {
    "SGS": MulticolorSGS,
    "DILU": MulticolorDILU,
    "ILU0": lambda A, coloring: ILU0(A, coloring=coloring),
}


def measure_case(n: int, stretch: float) -> dict[str, Any]:
    A = linear_elements(n, stretch)
    b = A @ np.random.default_rng(SEED).uniform(-1, 1, A.shape[0])
    coloring = color(A, "eb")
    case: dict[str, Any] = {
        "name": f"p1_{n}_x{stretch}",
        "unknowns": A.shape[0],
        "nnz": int(A.nnz),
        "stretch": stretch,
        "positive_off_diagonal": int((A.data > 0).sum()) - A.shape[0],
        "n_colors": coloring.n_colors,
    }
    for name, build in BUILT.items():
        M = build(A, coloring)
        result = pcg(A, b, M=M, rtol=RTOL)
        shifted = len(M.shifted.rows) if hasattr(M, "shifted") else 0
        case[name] = {"reason": result.reason.name, "iterations": result.iterations, "shifted": shifted}
    print(case, flush=True)
    return case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int, nargs="*", default=SIZES)
    parser.add_argument("--output", type=Path, default=RESULTS / "pivots-cpu.json")
    arguments = parser.parse_args()
    cases = []
    for n in arguments.n:
        for stretch in STRETCHES:
            cases.append(measure_case(n, stretch))
            save(record("pivots", "cpu", cases, seed=SEED, rtol=RTOL), arguments.output)


if __name__ == "__main__":
    main()
