"""A solver of another package on one system, in a process of the Python that has the package.

    python benchmarks/opponents/solvers.py NAME SYSTEM.npz REPEATS

reads the arrays data, indices, indptr and b, and the number rtol, solves once to warm up, and then REPEATS times from
the matrix on. It prints a line of JSON with the milliseconds of each setup and each solve, the iterations, and the
relative residual of the last solution. `benchmarks/side_by_side.py` calls it. It imports nothing of this project.
"""

import contextlib
import json
import sys
import time

import numpy as np
import scipy.sparse

MOST = 2000
#: PETSc's options: CG with the norm of the true residual, as all others here.
CG = "-ksp_type cg -ksp_norm_type unpreconditioned "
GAMG = CG + "-pc_type gamg -pc_gamg_threshold 0.01 -mg_levels_esteig_ksp_type cg "
BOOMERAMG = CG + "-pc_type hypre -pc_hypre_type boomeramg "
#: BoomerAMG's settings for three dimensions, which its users' guide advises.
BOOMERAMG_3D = BOOMERAMG + (
    "-pc_hypre_boomeramg_coarsen_type HMIS -pc_hypre_boomeramg_interp_type ext+i -pc_hypre_boomeramg_P_max 4 "
    "-pc_hypre_boomeramg_strong_threshold 0.5 "
)


def main():
    name, path, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])
    system = np.load(path)
    n = len(system["b"])
    A = scipy.sparse.csr_matrix((system["data"], system["indices"], system["indptr"]), shape=(n, n))
    set_up, solve = SOLVERS[name]
    b, rtol, setups, solves = system["b"], float(system["rtol"]), [], []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        solver = set_up(A)
        ready = time.perf_counter()
        x, iterations = solve(solver, b, rtol)
        setups.append(1e3 * (ready - started))
        solves.append(1e3 * (time.perf_counter() - ready))
    residual = float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))
    found = {"setup_ms": setups[1:], "solve_ms": solves[1:], "iterations": iterations, "residual": residual}
    print(json.dumps(found))


def solve_by_pyamg(hierarchy, b, rtol):
    residuals = []
    x = hierarchy.solve(b, tol=rtol, maxiter=MOST, accel="cg", residuals=residuals)
    return x, len(residuals) - 1


def smoothed_aggregation(A):
    import pyamg

    return pyamg.smoothed_aggregation_solver(A)


def ruge_stuben(A):
    import pyamg

    return pyamg.ruge_stuben_solver(A)


def petsc(options):
    """The setup of PETSc's CG with these options."""

    def set_up(A):
        with contextlib.suppress(ImportError):
            import mpi4py.MPI  # noqa: F401 - before petsc4py, so that the library of MPI is found
        import petsc4py

        petsc4py.init(["solvers", "-options_left", "no"])
        from petsc4py import PETSc

        PETSc.Options().insertString(options)
        index = PETSc.IntType
        rows = A.indptr.astype(index, copy=False), A.indices.astype(index, copy=False), A.data
        P = PETSc.Mat().createAIJWithArrays(A.shape, rows)
        P.setOption(PETSc.Mat.Option.SPD, True)
        ksp = PETSc.KSP().create()
        ksp.setOperators(P)
        ksp.setFromOptions()
        ksp.setUp()
        return ksp

    return set_up


def solve_by_petsc(ksp, b, rtol):
    x, right = ksp.getOperators()[0].createVecs()
    right.setArray(b)
    ksp.setTolerances(rtol=rtol, max_it=MOST)
    ksp.solve(right, x)
    return x.getArray().copy(), ksp.getIterationNumber()


def pardiso(A):
    import pypardiso

    solver = pypardiso.PyPardisoSolver(mtype=2)  # real, symmetric and positive definite: the upper triangle
    upper = scipy.sparse.triu(A, format="csr")
    solver.factorize(upper)
    return solver, upper


def solve_by_pardiso(factors, b, rtol):
    solver, upper = factors
    return solver.solve(upper, b), 0


SOLVERS = {
    "PyAMG, smoothed aggregation": (smoothed_aggregation, solve_by_pyamg),
    "PyAMG, Ruge-Stuben": (ruge_stuben, solve_by_pyamg),
    "PETSc's gamg": (petsc(GAMG), solve_by_petsc),
    "hypre's BoomerAMG": (petsc(BOOMERAMG), solve_by_petsc),
    "hypre's BoomerAMG, for 3D": (petsc(BOOMERAMG_3D), solve_by_petsc),
    "Pardiso": (pardiso, solve_by_pardiso),
}

if __name__ == "__main__":
    main()
