"""PETSc's solvers on GPUs, one rank a GPU, with its preconditioners and ours.

    mpiexec -n 2 python benchmarks/petsc_gpu.py --add

writes benchmarks/results/petsc-gpu.json (or where --output says); with --add the cases of other runs stay, such as
those on another number of ranks. It needs a PETSc with CUDA. Each rank has a slab of a grid: 7 points, or the 27 of
trilinear elements. CG goes to a relative residual of 1e-8 with b = A x* for a random x*. Setups and solves are timed
after a first one, which compiles; times are milliseconds on the slowest rank.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import petsc4py
import scipy.sparse as sp
from mpi4py import MPI

petsc4py.init(["petsc_gpu", "-use_gpu_aware_mpi", "0", "-options_left", "no"])
from measure import MULTIGRID, RESULTS, Times, application, graph_ms, record, save  # noqa: E402
from petsc4py import PETSc  # noqa: E402

from mcprecond.interop.petsc import solve  # noqa: E402
from mcprecond.preconditioners import Preconditioner  # noqa: E402

OURS = "-pc_type python -pc_python_type mcprecond.interop.petsc."
GAMG = "-pc_type gamg -pc_gamg_threshold 0.01 -mg_levels_esteig_ksp_type cg -mg_levels_pc_type "
CONFIGURATIONS = {
    "jacobi": "-pc_type jacobi",
    "bjacobi with icc, on CPUs": "-pc_type bjacobi -sub_pc_type icc",
    "gamg": GAMG + "jacobi",
    "gamg, MulticolorSGS on the levels": GAMG
    + "python -mg_levels_pc_python_type mcprecond.interop.petsc.MulticolorSGS -mg_levels_ksp_type richardson",
    "MulticolorSGS": OURS + "MulticolorSGS",
    "SmoothedAggregation": OURS + "SmoothedAggregation",
    "DistributedSmoothedAggregation": OURS + "DistributedSmoothedAggregation",
}
#: Those of ``solve(A, b, M=...)``, which iterates by itself.
SOLVES = {f"solve, {name}": name for name in ("jacobi", "sgs", "multigrid", "auto")}
#: Points of the stencil -> unknowns along an edge of the cube of a rank.
SIZES = {7: (128, 256), 27: (80, 160)}
ON_CPUS = "on CPUs"
RTOL, APPLICATIONS, SEED = 1e-8, 50, 0
#: Repetitions of setups and solves, and the milliseconds after which there are no more.
REPEATS, ENOUGH = 5, 2000.0
COMM = MPI.COMM_WORLD


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=[7, 27], choices=[7, 27])
    parser.add_argument("--edges", type=int, nargs="+", help="in place of those of the record")
    names = [*CONFIGURATIONS, *SOLVES]
    parser.add_argument("--configurations", nargs="+", default=names, choices=names)
    parser.add_argument("--strong", action="store_true", help="all ranks share one cube")
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS / "petsc-gpu.json")
    arguments = parser.parse_args()
    cupy.cuda.Device(COMM.rank % cupy.cuda.runtime.getDeviceCount()).use()
    kept = arguments.add and arguments.output.exists()
    cases = json.loads(arguments.output.read_text())["cases"] if kept and COMM.rank == 0 else []
    for points in arguments.points:
        for edge in arguments.edges or SIZES[points]:
            case = {"points": points, "edge": edge, "ranks": COMM.size, "strong": arguments.strong, "solvers": []}
            cases.append(case)
            A = slab(points, edge, 1 if arguments.strong else COMM.size)
            case |= {"unknowns": A.getSize()[0], "product_ms": product_ms(A)}
            for name in arguments.configurations:
                if name in SOLVES:
                    case["solvers"].append(measured_solve(name, A))
                else:
                    case["solvers"].append(measured(name, A.convert("aij", PETSc.Mat()) if ON_CPUS in name else A))
                if COMM.rank == 0:
                    print(points, edge, COMM.size, case["solvers"][-1], flush=True)
                    document = record("petsc", "gpu", cases, MULTIGRID, rtol=RTOL, seed=SEED, small=False)
                    save(document, arguments.output)
            A.destroy()


def slab(points: int, edge: int, cubes: int) -> Any:
    """The matrix of a grid of edge x edge x (cubes edge) nodes; each rank has some of its layers."""
    layers = cubes * edge
    first, end = (layers * (COMM.rank + step) // COMM.size for step in (0, 1))
    stiff, mass = (lambda n, s=s: sp.diags_array(s, offsets=[-1, 0, 1], shape=(n, n), format="csr") for s in STENCILS)
    one = lambda n: sp.eye_array(n, format="csr")  # noqa: E731
    across = mass if points == 27 else one
    in_layer = sp.kron(stiff(edge), across(edge)) + sp.kron(across(edge), stiff(edge))
    own = sp.kron(across(layers)[first:end], in_layer, format="csr")
    own += sp.kron(stiff(layers)[first:end], sp.kron(across(edge), across(edge)), format="csr")
    n, rows = edge**2 * layers, edge**2 * (end - first)
    local = own.indptr.astype(PETSc.IntType), own.indices.astype(PETSc.IntType), own.data
    A = PETSc.Mat().createAIJ(((rows, n), (rows, n)), csr=local)
    A.assemble()
    A.setOption(PETSc.Mat.Option.SPD, True)
    return A.convert("aijcusparse", PETSc.Mat())


STENCILS = [-1.0, 2.0, -1.0], [1 / 6, 4 / 6, 1 / 6]


def slowest_ms(function: Callable[[], Any]) -> float:
    """Milliseconds of a call, device work included, on the slowest rank."""
    cupy.cuda.Device().synchronize()
    COMM.Barrier()
    started = time.perf_counter()
    function()
    cupy.cuda.Device().synchronize()
    return 1e3 * COMM.allreduce(time.perf_counter() - started, MPI.MAX)


def repeated_ms(function: Callable[[], Any]) -> Times:
    """Those of several calls, or of one that takes long."""
    times = [slowest_ms(function)]
    while len(times) < REPEATS and sum(times) < ENOUGH:
        times.append(slowest_ms(function))
    return Times(times)


def product_ms(A: Any) -> float:
    x, y = A.createVecs()
    x.set(1.0)
    A.mult(x, y)
    return slowest_ms(lambda: [A.mult(x, y) for _ in range(APPLICATIONS)]) / APPLICATIONS


def measured(name: str, A: Any) -> dict[str, Any]:
    """Setup, solve and an application of a configuration."""
    options = PETSc.Options()
    options.clear()
    options.insertString("-ksp_type cg -ksp_norm_type unpreconditioned " + CONFIGURATIONS[name])
    ksp = PETSc.KSP().create()
    ksp.setOperators(A)
    ksp.setTolerances(rtol=RTOL, max_it=2000)
    ksp.setFromOptions()
    x, b = A.createVecs()
    x.setArray(np.random.default_rng(SEED + COMM.rank).uniform(-1, 1, x.getLocalSize()))
    A.mult(x, b)
    row: dict[str, Any] = {"name": name}
    try:
        row["first_setup_ms"] = slowest_ms(ksp.setUp)
        ksp.solve(b, x)
        row["solve_ms"] = repeated_ms(lambda: ksp.solve(b, x))
        row |= {"iterations": ksp.getIterationNumber(), "converged": ksp.getConvergedReason() > 0}
        pc, z = ksp.getPC(), x.duplicate()
        row["application_ms"] = slowest_ms(lambda: [pc.apply(b, z) for _ in range(APPLICATIONS)]) / APPLICATIONS
        M = getattr(pc.getPythonContext(), "M", None) if pc.getType() == "python" else None
        if isinstance(M, Preconditioner):
            r = cupy.ones(M.shape[0])
            run = application(M, r, cupy.empty_like(r))
            row["application_outside_ms"] = graph_ms(run)
            launch = M.backend.repeatable(run)
            row["application_alone_ms"] = slowest_ms(lambda: [launch() for _ in range(APPLICATIONS)]) / APPLICATIONS
        row["setup_ms"] = repeated_ms(lambda: set_up(A))
    except (PETSc.Error, ImportError) as error:
        row["failed"] = str(error)
    ksp.destroy()
    return row


def measured_solve(name: str, A: Any) -> dict[str, Any]:
    """Setup and solve by one call."""
    x, b = A.createVecs()
    x.setArray(np.random.default_rng(SEED + COMM.rank).uniform(-1, 1, x.getLocalSize()))
    A.mult(x, b)
    right = cupy.asarray(b.getArray(readonly=True))
    call = partial(solve, A, right, M=SOLVES[name], rtol=RTOL)
    first = call()
    setups, solves = [], []
    while len(solves) < REPEATS and 1e3 * (sum(setups) + sum(solves)) < 2 * ENOUGH:
        COMM.Barrier()
        result = call()
        setups.append(COMM.allreduce(result.setup_seconds, MPI.MAX))
        solves.append(COMM.allreduce(result.solve_seconds, MPI.MAX))
    times = {
        f"{part}_ms": Times([1e3 * each for each in found]) for part, found in (("setup", setups), ("solve", solves))
    }
    row = {"name": name, "first_setup_ms": 1e3 * COMM.allreduce(first.setup_seconds, MPI.MAX), **times}
    row |= {"iterations": first.iterations, "converged": first.converged, "method": first.stages[0].name}
    for v in (x, b):
        v.destroy()
    return row


def set_up(A: Any) -> None:
    """From scratch."""
    ksp = PETSc.KSP().create()
    ksp.setOperators(A)
    ksp.setFromOptions()
    ksp.setUp()
    ksp.destroy()


if __name__ == "__main__":
    main()
