"""Solvers of other packages on one system, in a process of a Python that has the packages.

    python benchmarks/opponents/solvers.py SYSTEM.npz REPEATS NAME...

reads the arrays data, indices, indptr and b, and the number rtol. For each solver it puts them where the solver wants
them, solves once to warm up, and then REPEATS times from the matrix on; 0 times means that the first solve counts. It
prints a line of JSON with the milliseconds of each setup and of each solve, the iterations, and the relative residual
of the last solution. At the first solver that fails it prints the reason, and ends. `benchmarks/side_by_side.py` calls
it. It imports nothing of this project.

AmgX is the library `libamgxsh.so` of the folder that the variable AMGX names, which also has AmgX's folder `configs`,
and a file `version`.
"""

import contextlib
import ctypes
import functools
import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse

MOST = 10_000
#: The package of each solver, by how its name begins.
PACKAGES = {
    "PyAMG": "pyamg",
    "PETSc": "petsc4py",
    "hypre": "petsc4py",
    "Pardiso": "pypardiso",
    "CuPy": "cupy-cuda13x",
    "torch-sla": "torch-sla",
}
#: For AmgX: the tolerance for the relative residual, the size of the memory pool in bytes, and the value of the mode
#: dDDI, which stands for double precision on a GPU.
RTOL_OF_AMGX, POOL, DOUBLES = 1e-8, 2**33, 8193
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
    path, repeats, *names = sys.argv[1:]
    system = np.load(path)
    n = len(system["b"])
    A = scipy.sparse.csr_matrix((system["data"], system["indices"], system["indptr"]), shape=(n, n))
    for name in names:
        try:
            found = measure(name, A, system["b"], float(system["rtol"]), int(repeats))
        except Exception as error:
            found = {"reason": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)
        if "reason" in found:
            return  # what a failure has left, such as a broken context of the GPU, shall not meet the others


def measure(name, A, b, rtol, repeats):
    set_up, solve, *places = SOLVERS[name]
    setups, solves = [], []
    placed = places[0](A, b) if places else (A, b)
    wait = wait_for_gpu if places else lambda: None
    for _ in range(repeats + 1):
        started = time.perf_counter()
        solver = set_up(placed[0])
        wait()
        ready = time.perf_counter()
        x, iterations = solve(solver, placed[1], rtol)
        wait()
        setups.append(1e3 * (ready - started))
        solves.append(1e3 * (time.perf_counter() - ready))
        if hasattr(solver, "close"):
            solver.close()
    residual = float(np.linalg.norm(b - A @ (x.get() if places else x)) / np.linalg.norm(b))
    first = min(repeats, 1)
    found = {"setup_ms": setups[first:], "solve_ms": solves[first:], "iterations": iterations, "residual": residual}
    return found | {"version": version_of(name)}


def version_of(name):
    """The version of the package that has a solver; of AmgX what the file `version` of its folder says."""
    if name.startswith("AmgX"):
        return "AmgX " + (Path(os.environ["AMGX"]) / "version").read_text().strip()
    (package,) = (package for start, package in PACKAGES.items() if name.startswith(start))
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:  # it came inside of another one
        return f"{package} {sys.modules[package].__version__}"


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


# The solvers that run on a GPU. Times do not include copying the matrix and the vector to the GPU. They do include
# waiting until the GPU has finished.


def on_gpu(A, b):
    import cupy
    import cupyx.scipy.sparse

    return cupyx.scipy.sparse.csr_matrix(A), cupy.asarray(b)


def wait_for_gpu():
    import cupy

    cupy.cuda.Device().synchronize()


def alone(A):
    return A, None


def with_jacobi(A):
    import cupyx.scipy.sparse.linalg

    scales = 1 / A.diagonal()
    return A, cupyx.scipy.sparse.linalg.LinearOperator(A.shape, lambda v: scales * v)


def solve_by_cupy(solver, b, rtol):
    import cupyx.scipy.sparse.linalg

    (A, M), steps = solver, []
    x, _ = cupyx.scipy.sparse.linalg.cg(A, b, rtol=rtol, maxiter=MOST, M=M, callback=lambda _: steps.append(1))
    return x, len(steps)


def for_torch(A):
    """The matrix as torch-sla takes it: values, rows, columns and shape."""
    import torch

    coo = A.tocoo()
    return *(torch.as_tensor(array) for array in (coo.data, coo.row.astype("int64"), coo.col.astype("int64"))), A.shape


def solve_by_torch(A, b, rtol):
    import cupy
    import torch
    import torch_sla

    by = {"backend": "pytorch", "method": "cg", "preconditioner": "jacobi"}
    right = torch.as_tensor(b)  # its own relative tolerance is 1e-10, and the larger tolerance counts
    x = torch_sla.spsolve(*A, right, atol=rtol * float(right.norm()), maxiter=MOST, **by)
    return cupy.from_dlpack(x.detach()), None  # it tells no iterations


class AmgX:
    """A solver that AmgX ships the configuration of; the matrix is uploaded from the GPU, too."""

    def __init__(self, configuration, A):
        self.resources, config = amgx_with(configuration)
        self.matrix, self.solver, self.right, self.x = (ctypes.c_void_p() for _ in range(4))
        rows = (ctypes.c_void_p(array.data.ptr) for array in (A.indptr, A.indices, A.data))
        call_amgx("matrix_create", ctypes.byref(self.matrix), self.resources, DOUBLES)
        call_amgx("matrix_upload_all", self.matrix, A.shape[0], A.nnz, 1, 1, *rows, None)
        call_amgx("solver_create", ctypes.byref(self.solver), self.resources, DOUBLES, config)
        call_amgx("solver_setup", self.solver, self.matrix)

    def solve(self, b, rtol):
        import cupy

        if rtol != RTOL_OF_AMGX:
            raise ValueError(f"AmgX is set up for a residual of {RTOL_OF_AMGX}, not {rtol}")
        found, iterations = cupy.empty_like(b), ctypes.c_int()
        for vector in (self.right, self.x):
            call_amgx("vector_create", ctypes.byref(vector), self.resources, DOUBLES)
        call_amgx("vector_upload", self.right, len(b), 1, ctypes.c_void_p(b.data.ptr))
        call_amgx("vector_set_zero", self.x, len(b), 1)
        call_amgx("solver_solve_with_0_initial_guess", self.solver, self.right, self.x)
        call_amgx("vector_download", self.x, ctypes.c_void_p(found.data.ptr))
        call_amgx("solver_get_iterations_number", self.solver, ctypes.byref(iterations))
        return found, iterations.value

    def close(self):
        call_amgx("solver_destroy", self.solver)
        for vector in (self.right, self.x):
            call_amgx("vector_destroy", vector)
        call_amgx("matrix_destroy", self.matrix)


def call_amgx(name, *arguments):
    if code := getattr(amgx_library(), f"AMGX_{name}")(*arguments):
        raise RuntimeError(f"AMGX_{name} returned {code}")


@functools.cache
def amgx_library():
    library = ctypes.CDLL(str(Path(os.environ["AMGX"]) / "libamgxsh.so"))
    library.AMGX_initialize()
    return library


@functools.cache
def amgx_with(configuration):
    """AmgX's handles of resources and of a configuration."""
    settings = json.loads((Path(os.environ["AMGX"]) / "configs" / f"{configuration}.json").read_text())
    settings["device_mem_pool_size"] = POOL
    settings["solver"] |= {"tolerance": RTOL_OF_AMGX, "max_iters": MOST, "convergence": "RELATIVE_INI"}
    for part in (settings["solver"], settings["solver"]["preconditioner"]):
        part |= {"print_solve_stats": 0, "print_grid_stats": 0, "obtain_timings": 0}
    config, resources = ctypes.c_void_p(), ctypes.c_void_p()
    call_amgx("config_create", ctypes.byref(config), json.dumps(settings).encode())
    call_amgx("resources_create_simple", ctypes.byref(resources), config)
    return resources, config


SOLVERS = {
    "PyAMG, smoothed aggregation": (smoothed_aggregation, solve_by_pyamg),
    "PyAMG, Ruge-Stuben": (ruge_stuben, solve_by_pyamg),
    "PETSc's gamg": (petsc(GAMG), solve_by_petsc),
    "hypre's BoomerAMG": (petsc(BOOMERAMG), solve_by_petsc),
    "hypre's BoomerAMG, for 3D": (petsc(BOOMERAMG_3D), solve_by_petsc),
    "Pardiso": (pardiso, solve_by_pardiso),
    "CuPy's CG": (alone, solve_by_cupy, on_gpu),
    "CuPy's CG with Jacobi": (with_jacobi, solve_by_cupy, on_gpu),
    "torch-sla's CG with Jacobi": (for_torch, solve_by_torch, on_gpu),
    "AmgX, classical": (functools.partial(AmgX, "PCG_CLASSICAL_V_JACOBI"), AmgX.solve, on_gpu),
    "AmgX, aggregation": (functools.partial(AmgX, "PCG_AGGREGATION_JACOBI"), AmgX.solve, on_gpu),
}

if __name__ == "__main__":
    main()
