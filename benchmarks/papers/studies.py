"""Studies by name, as `python -m benchmarks.papers` runs them: the papers' questions, asked of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.families import mycielskian, random_geometric, road_like
from benchmarks.papers.csrcolor import csrcolor
from benchmarks.papers.level_sizes import circuit_in_rcm, circuit_in_rcm_of_its_mesh, level_sizes
from benchmarks.papers.mesh_families import FAMILIES, Family
from benchmarks.papers.real_matrices import Readers, fitting, graph_of, readers_of, system_of
from benchmarks.papers.table_v import table_v
from mcprecond import problems
from mcprecond.backends import backend_of, get_backend
from mcprecond.coloring import COLORINGS, Graph, color
from mcprecond.matrix import admit_matrix
from mcprecond.ordering.color_order import swept_coloring
from mcprecond.ordering.levels import levels_of
from mcprecond.preconditioners import MulticolorGS, MulticolorSGS
from mcprecond.problems import graphs
from mcprecond.problems.fenl import CONDUCTIVITY
from mcprecond.solvers import Reason, SolveResult, pcg
from mcprecond.studies.compare import Progress, coloring, convergence
from mcprecond.studies.table import Table
from mcprecond.typing import MethodName

Makers = dict[str, Callable[[], Any]]  # name -> function that makes a matrix on the host
Methods = dict[str, Any]  # label -> method of `color` and its options, or a function of the matrix

REPEATS = 5
#: Colorings of each method, with as many seeds.
SEEDS = 10
HUGE = 5_000  # neighbors

#: The rows of Tables II and III and of Figure 4 of Deveci et al. that are no methods by their names.
VARIANTS: Methods = {
    "eb atomic": ("eb", {"worklist": "atomic"}),
    "vb EF": ("vb", {"edge_filtering": True}),
    "vb_bit EF": ("vb_bit", {"edge_filtering": True}),
}
#: The rows of Table III and Figure 2 as the paper runs them, and what its Sections III-A1, III-B, IV-A, IV-C and IV-D
#: change.
PUBLISHED: Methods = {
    "eb": ("eb", {"published": True}),
    "eb atomic": ("eb", {"published": True, "worklist": "atomic"}),
    "eb, no tentative colors": ("eb", {"published": True, "tentative": False}),
    "eb, all edges": ("eb", {"published": True, "drop_edges": False}),
    "eb, neither": ("eb", {"published": True, "tentative": False, "drop_edges": False}),
    **{
        f"{name}{' EF' if filtering else ''}": (name, {"edge_filtering": filtering})
        for name in ("vb", "vb_bit")
        for filtering in (False, True)
    },
    **{f"vb, MAXFORBID {size}": ("vb", {"max_forbid": size}) for size in (32, 128, 256)},
    "vb_bit, chunks of 1": ("vb_bit", {"chunk_size": 1}),
    "vb_bit, by degree": ("vb_bit", {"resolution": "degree"}),
    "vb_bit, chunks of 1, by degree": ("vb_bit", {"chunk_size": 1, "resolution": "degree"}),
    "vb_bit, at random": ("vb_bit", {"resolution": "random"}),
    "vb_bit, prefix sum": ("vb_bit", {"worklist": "pps"}),
    "ipgc": ("ipgc", {}),
    "ipgc, prefix sum": ("ipgc", {"worklist": "pps"}),
    "eb, default": ("eb", {}),
}


@dataclass(frozen=True)
class Setting:
    """Where a study runs, on how much, and who hears of its progress.

    Attributes
    ----------
    device : {"cpu", "gpu"}
    small : bool
        Seconds on two cores.
    only : tuple of str
        Of the matrices those whose name has one of these in it; all if there is none.
    path, progress
        As in `coloring`.
    readers : dict of str to function, optional
        Real matrices, which take the place of the generated ones.
    """

    device: str = "cpu"
    small: bool = False
    only: tuple[str, ...] = ()
    path: str | Path | None = None
    progress: Progress | None = None
    readers: Readers | None = None

    def graphs(self, *begins: str, mycielskian: bool = False) -> Makers:
        """Return the graphs of several studies, of those generated the ones whose names begin so."""
        if self.readers is not None:
            return fitting(self.chosen(self.readers), graph_of, self.progress)
        makers = _families(self.small) | (_mycielskian(self.small) if mycielskian else {})
        return {name: make for name, make in makers.items() if name.startswith(begins or "")}

    def systems(self, makers: Makers) -> Makers:
        """Return real matrices that are symmetric positive definite, or these where there are no real ones."""
        return makers if self.readers is None else fitting(self.chosen(self.readers), system_of, self.progress)

    def chosen(self, makers: Makers) -> Makers:
        """Return those that `only` leaves."""
        left = {name: make for name, make in makers.items() if not self.only or any(part in name for part in self.only)}
        if not left:
            raise ValueError(f"no matrix of this study is called {', '.join(self.only)}; it has {', '.join(makers)}")
        return left

    def placed(self, makers: Makers) -> Makers:
        """Return the chosen ones, which are moved to the device when they are made."""
        csr = get_backend(self.device).sparse.csr_matrix
        return {name: partial(lambda make: csr(make()), make) for name, make in self.chosen(makers).items()}

    def coloring(self, study: str, makers: Makers, methods: Methods) -> Table:
        """Run `coloring` here, on a GPU with cuSPARSE's own coloring, too."""
        compared = methods | ({"csrcolor": colors_of_csrcolor} if self.device == "gpu" else {})
        common: dict[str, Any] = {"path": self.path, "study": study, "progress": self.progress, "repeats": SEEDS}
        return coloring(self.placed(makers), compared, **common)

    def by_all_methods(self, study: str, makers: Makers) -> Table:
        """Run `coloring` by every method and variant, but where some neighborhoods are huge without two of them: there
        is_hash takes minutes, and so does the serial repair of gm on a GPU.
        """
        makers, methods = self.chosen(makers), _by_name(COLORINGS) | VARIANTS
        heavy = [] if self.small else [name for name, make in makers.items() if _largest_degree(make()) > HUGE]
        rows: list[dict[str, Any]] = []
        for some, left_out in (([name for name in makers if name not in heavy], ()), (heavy, ("is_hash", "gm"))):
            if some:
                kept = {label: method for label, method in methods.items() if label not in left_out}
                rows += self.coloring(study, {name: makers[name] for name in some}, kept).rows
        return Table(rows)

    def convergence(self, study: str, makers: Makers, preconditioners: Mapping[str, Any], **options: Any) -> Table:
        """Run `convergence` here."""
        common: dict[str, Any] = {"path": self.path, "study": study, "progress": self.progress, "repeats": REPEATS}
        return convergence(self.placed(makers), preconditioners, **common, **options)


class WithCopies:
    """ECL-GC as published, of a graph that lies in the memory of the host, where its colors are wanted, too.

    A study hands over a matrix on the device; it is copied to the host when it is handed over first.
    """

    def __init__(self) -> None:
        self._seen: Any = None
        self._pattern: tuple[np.ndarray, np.ndarray] = np.empty(0), np.empty(0)

    def __repr__(self) -> str:
        return type(self).__qualname__

    def __call__(self, A: Any) -> Any:
        backend = backend_of(A)
        if self._seen is not A:
            self._seen, self._pattern = A, (backend.to_host(A.indices), backend.to_host(A.indptr))
        indices, indptr = (backend.xp.asarray(part) for part in self._pattern)
        entries = backend.xp.ones(indices.size, np.float32)
        found = color(backend.sparse.csr_matrix((entries, indices, indptr), shape=A.shape), "ecl_gc", published=True)
        backend.to_host(found.colors)
        return found


def colors_of_csrcolor(A: Any) -> Any:
    """cuSPARSE's colors."""
    return csrcolor()(A)[0]


def table_v_of_all(setting: Setting) -> Table:
    """Table V of Deveci et al.: CG alone, with SGS by two colorings, with Jacobi, and with multigrid, on FENL and on
    stand-ins of four matrices.

    By default FENL is a problem of one dimension: neither Newton's right-hand side nor, but for a factor, the diagonal
    depends on x and y. So FENL comes with a mesh that is not uniform, and with a conductivity that depends on x, too;
    and with an absolute tolerance, by which the example in Kokkos stops, while that in Trilinos takes a relative one.
    """
    small, device = setting.small, setting.device
    sizes = {"Fenl_8": 8, "Fenl_12": 12} if small else {f"Fenl_{n}": n for n in (50, 100, 180)}
    kinds = {
        "": {},
        "absolute ": {},
        "bubbled ": {"bubble": 0.5},
        "k(x) ": {"profile": ((1, 1, 0), (1, 0, 0), (1, 0, 0))},
    }
    fenl: Makers = {
        kind + name: partial(problems.fenl, n, **options, device=device)
        for kind, options in kinds.items()
        for name, n in sizes.items()
    }
    stand_ins: Makers = {
        "G3_circuit stand-in": partial(problems.circuit, 48 if small else 1259, device=device),
        "audikw_1 stand-in": partial(problems.elasticity, 7 if small else 68, device=device),
        "Bump_2911 stand-in": partial(problems.elasticity, 8 if small else 99, elements="tetrahedra", device=device),
        "Queen_4147 stand-in": partial(problems.elasticity, 9 if small else 110, device=device),
    }
    if small:
        stand_ins = {f"small {name}": make for name, make in stand_ins.items()}
    makers = setting.chosen(fenl | stand_ins) if setting.readers is None else setting.placed(setting.systems({}))
    colorings = ["eb", "cc", *(["csrcolor"] if device == "gpu" else [])]
    sgs = [f"SGS {name}{order}" for name in colorings for order in ("", ", ordered")]
    absolute = [name for name in makers if name.startswith("absolute")]
    common: dict[str, Any] = {"path": setting.path, "repeats": REPEATS, "progress": setting.progress}
    return table_v(makers, ["CG", "Jacobi", *sgs, "multigrid"], absolute=absolute, **common)


def families(setting: Setting) -> Table:
    """Tables II and III of Deveci et al.: colors and time of all methods on families of graphs."""
    return setting.by_all_methods("table-ii-iii", setting.graphs())


def published_schedules(setting: Setting) -> Table:
    """Figure 2 and Tables II and III of Deveci et al. in the paper's schedules, and EB in ours: rounds and time."""
    return setting.coloring("published-schedules", setting.graphs(), PUBLISHED)


def orders(setting: Setting) -> Table:
    """Colors of first-fit in the orders that Alabandi et al. list in Section 1."""
    methods: Methods = {
        order: ("greedy", {"order": order}) for order in ("natural", "random", "ldf", "sdl", "sdl_batch", "sd", "id")
    }
    return setting.coloring("orders", setting.graphs(mycielskian=True), methods)


def cpu_codes(setting: Setting) -> Table:
    """Figures 12-15 of Alabandi et al., and Figure 7 of Sistla and Nandivada: colors and throughput of algorithms for
    CPUs, serial and parallel.
    """
    methods: Methods = {
        "ecl_gc": ("ecl_gc", {}),
        "rig": ("rig", {}),
        "greedy (FirstFit, serial)": ("greedy", {}),
        "greedy ldf (JP-D1)": ("greedy", {"order": "ldf"}),
    }
    return setting.coloring("cpu-codes", setting.graphs(mycielskian=True), methods)


def gunrock(setting: Setting) -> Table:
    """Table II and Section IV-B of Osama et al.: what each of Gunrock's optimizations is worth on G3_circuit, here on a
    stand-in.
    """
    methods: Methods = {
        "advance-reduce": ("is_reduce", {}),
        "advance-reduce, fused": ("is_reduce", {"fused": True}),
        "hash": ("is_hash", {}),
        **{f"hash, table of {size}": ("is_hash", {"table_size": size}) for size in (1, 2, 4)},
        "one set, atomics": ("is_minmax", {"two_sets": False, "atomics": True}),
        "one set": ("is_minmax", {"two_sets": False}),
        "min-max": ("is_minmax", {}),
        "jpl": ("jpl", {}),
    }
    return setting.coloring("gunrock", setting.graphs("circuit"), methods)


def rmat_scaling(setting: Setting) -> Table:
    """Figure 4 of Deveci et al.: time of coloring R-MAT graphs of growing size."""
    scales = range(8, 12) if setting.small else range(14, 25, 2)
    methods = _by_name(["cc", "vb", "vb_bit", "eb", "ecl_gc", "sirg", "greedy"]) | VARIANTS
    makers: Makers = {f"rmat_{s}": partial(graphs.rmat, s) for s in scales}
    return setting.coloring("rmat-scaling", makers, methods)


def rgg_scaling(setting: Setting) -> Table:
    """Figure 3 of Osama et al.: time of coloring random geometric graphs of growing size."""
    scales = range(8, 12) if setting.small else range(15, 25)
    makers: Makers = {f"rgg_{s}": partial(random_geometric, 2**s) for s in scales}
    methods = _by_name(["is_minmax", "graphblas_is", "graphblas_mis", "jpl", "cc", "eb", "ecl_gc", "greedy"])
    return setting.coloring("rgg-scaling", makers, methods)


def sirg_ablation(setting: Setting) -> Table:
    """Figures 6 and 8 to 10 of Sistla and Nandivada: SIRG and what its optimizations are worth."""
    methods: Methods = {
        "published baseline": ("sirg", {"long_words": False, "doubling": False}),
        "published, Opt1": ("sirg", {"doubling": False}),
        "published, Opt1 and Opt2": ("sirg", {}),
        "published, by index": ("sirg", {"resolution": "index"}),
        "published, palettes of vertices": ("sirg", {"palettes": "vertices"}),
    }
    return setting.coloring("sirg-ablation", setting.graphs(mycielskian=True), methods)


def ecl_shortcuts(setting: Setting) -> Table:
    """Tables 4 and 5, Figures 9 and 10 of Alabandi et al.: steps and time of ECL-GC without shortcuts, with each, and
    with both, in our schedule and in the paper's, and with copies to the device and back (Section 6.3.1).
    """
    switches = {"baseline": (False, False), "+SC1": (True, False), "+SC2": (False, True), "+SC1+SC2": (True, True)}
    methods: Methods = {
        f"{'published ' if published else ''}{label}": (
            "ecl_gc",
            {"shortcut1": first, "shortcut2": second} | ({"published": True} if published else {}),
        )
        for published in (False, True)
        for label, (first, second) in switches.items()
    }
    if setting.device == "gpu":
        methods["published +SC1+SC2, with copies"] = WithCopies()
    return setting.coloring("ecl-shortcuts", setting.graphs(mycielskian=True), methods)


def level_histogram(setting: Setting) -> Table:
    """Figures 6 and 7 of Naumov et al.: levels of ILU(0) before and after coloring, and what they cost."""
    small = setting.small
    n = 40 if small else 1259
    makers: Makers = {
        f"circuit {n}": partial(problems.circuit, n),
        f"RCM circuit {n}": partial(circuit_in_rcm, n),
        f"mesh RCM circuit {n}": partial(circuit_in_rcm_of_its_mesh, n),
        f"grid2d {24 if small else 1024}": partial(graphs.grid2d, 24 if small else 1024),
        f"fenl {6 if small else 100}": lambda: _jacobian(6 if small else 100),
        f"elasticity {6 if small else 48}": partial(problems.elasticity, 6 if small else 48),
    }
    return level_sizes(
        setting.placed(setting.systems(makers)), path=setting.path, repeats=REPEATS, progress=setting.progress
    )


def time_quality(setting: Setting) -> Table:
    """Figure 2 of Osama et al.: time against colors of all methods, on a mesh, a power grid and a cube."""
    return setting.by_all_methods("time-quality", setting.graphs("delaunay", "circuit", "fenl"))


def ordering(setting: Setting) -> Table:
    """Iterations against the order of the rows: natural, by color, at random, and downwind.

    "grid" is a Laplacian, solved by CG with SGS. "wind" is FENL with a wind against the natural order, and a mesh
    Péclet number of 1; it is solved by bicgstab with one forward sweep of GS. Sweeps are "in row order", that is by
    the levels of the triangles, or by the colors of a method that colors the rows in their new order.
    """
    n, m = (16, 6) if setting.small else (48, 16)
    grid = graphs.grid2d(n)
    problem = problems.fenl(m, advection=-2 * CONDUCTIVITY * m / np.sqrt(3))
    wind = problem.jacobian(problem.initial())
    downwind = np.argsort(problem.coordinates @ np.array(problem.advection), kind="stable")
    forward = partial(MulticolorGS, sweep="forward")
    kinds: list[tuple[str, Any, dict[str, np.ndarray], Callable[..., Any], Callable[..., SolveResult]]] = [
        ("grid", grid, {}, MulticolorSGS, pcg),
        ("wind", wind, {"downwind": downwind}, forward, bicgstab),
    ]
    makers: Makers = {}
    runs: list[tuple[str, dict[str, Callable[[Any], Any]], Callable[..., SolveResult]]] = []
    for kind, A, more, sweep, solver in kinds:
        orders = {
            "natural": np.arange(A.shape[0]),
            "colored": color(A, "greedy").permutation(),
            "random": np.random.default_rng(0).permutation(A.shape[0]),
        } | more
        makers |= {f"{kind} {name}": partial(_reordered, A, order) for name, order in orders.items()}
        methods: dict[str, Callable[[Any], Any]] = {"in row order": partial(_in_row_order, sweep)}
        methods |= {name: partial(sweep, coloring=name) for name in ("greedy", "eb")}
        runs.append((kind, methods, solver))
    chosen = setting.chosen(makers)
    rows: list[dict[str, Any]] = []
    for kind, methods, solver in runs:
        some = {name: make for name, make in chosen.items() if name.startswith(kind)}
        if some:
            rows += setting.convergence("ordering", some, methods, solver=solver, maxiter=500).rows
    return Table(rows)


def coloring_effect(setting: Setting) -> Table:
    """Iterations and time of SGS-preconditioned CG against the number of colors, on one 27-point Laplacian.

    Methods of `color` differ in both the number of colors and the order. "parts" are the eight colors of "greedy", in
    the order of its sweeps and each cut into so many: the order, and with it the iterations, stay as they are. Those of
    "ecl_gc" are recolored and balanced as well, and found for pairs at distance 2: what each is worth to a sweep.
    """
    n = 10 if setting.small else 64
    names: tuple[MethodName, ...] = ("greedy", "is_hash", "eb", "ecl_gc", "graphblas_jp", "cc", "jpl")
    methods: dict[str, Any] = {f"SGS {name}": partial(MulticolorSGS, coloring=name) for name in names}
    changes: dict[str, Any] = {
        "recolored twice": {"recolor": 2},
        "balanced": {"balance": True},
        "at distance 2": {"distance": 2},
    }
    methods |= {f"SGS ecl_gc, {name}": partial(_colored, options=options) for name, options in changes.items()}
    for parts in (2, 8, 32) if setting.small else (2, 8, 32, 128, 512):
        methods[f"SGS greedy in {parts} parts"] = partial(_in_parts, parts=parts)
    return setting.convergence("coloring-effect", {f"grid3d {n}": lambda: graphs.grid3d(n, 27)}, methods)


def multigrid(setting: Setting) -> Table:
    """Iterations and time of CG with SGS and with multigrid on meshes of growing size.

    Families are Laplacians in two and three dimensions, FENL, diffusion that depends on the direction, or on the place
    with coefficients of 1 and 10^4, and elasticity with rigid body modes.
    """
    makers: Makers = {}
    families: dict[str, Family] = {}
    for kind, family in FAMILIES.items():
        for n in family.small if setting.small else family.large:
            makers[f"{kind} {n}"], families[f"{kind} {n}"] = partial(family.make, n), family
    rows: list[dict[str, Any]] = []
    for name, make in setting.chosen(makers).items():
        methods = {"SGS": families[name].sgs, "multigrid": families[name].multigrid}
        rows += setting.convergence("multigrid", {name: make}, methods).rows
    return Table(rows)


def bicgstab(A: Any, b: Any, *, rtol: float, maxiter: int | None, M: Any) -> SolveResult:
    """Solve by SciPy's or CuPy's bicgstab; an iteration is two products with A."""
    backend = backend_of(A)
    norm, products = backend.xp.linalg.norm, 0

    def multiply(x: Any) -> Any:
        nonlocal products
        products += 1
        return A @ x

    operator = backend.linalg.LinearOperator(A.shape, matvec=multiply, dtype=A.dtype)
    x, info = backend.linalg.bicgstab(operator, b, rtol=rtol, maxiter=maxiter, M=M)
    residual = float(norm(b - A @ x))
    reason = Reason.CONVERGED if info == 0 else Reason.MAX_ITERATIONS
    # One more was for the residual of the initial guess.
    return SolveResult(x, reason, products // 2, np.array([float(norm(b)), residual]), residual, 0.0, 0.0)


#: The studies by name; `run` runs them.
STUDIES: dict[str, Callable[[Setting], Table]] = {
    "table-v": table_v_of_all,
    "table-ii-iii": families,
    "published-schedules": published_schedules,
    "rmat-scaling": rmat_scaling,
    "sirg-ablation": sirg_ablation,
    "ecl-shortcuts": ecl_shortcuts,
    "orders": orders,
    "cpu-codes": cpu_codes,
    "level-histogram": level_histogram,
    "rgg-scaling": rgg_scaling,
    "time-quality": time_quality,
    "gunrock": gunrock,
    "ordering": ordering,
    "coloring-effect": coloring_effect,
    "multigrid": multigrid,
}

#: Those whose graphs or systems may be real matrices.
ON_MATRICES = (
    *("table-v", "level-histogram", "table-ii-iii", "published-schedules", "sirg-ablation", "ecl-shortcuts"),
    *("orders", "cpu-codes", "time-quality", "gunrock"),
)


def run(
    study: str,
    *,
    device: str = "cpu",
    small: bool = False,
    only: Iterable[str] = (),
    path: str | Path | None = None,
    progress: Progress | None = None,
    matrices: str | Path | None = None,
) -> Table:
    """Run one of the studies that the papers stand for.

    Parameters
    ----------
    study : str
        A name in `STUDIES`.
    device : {"cpu", "gpu"}
    small : bool
        On small problems: less than a minute on two cores.
    only : iterable of str
        Of the study's matrices those whose name has one of these texts in it; all by default.
    path, progress
        As in `coloring`: with a path, an interrupted study goes on where it stopped.
    matrices : path or "pyamg", optional
        A folder with .mtx, .mtx.gz and .tar.gz files, at any depth, whose matrices take the place of the generated
        ones; or PyAMG's own. Graphs are those of A + A'; solvers take what is symmetric positive definite.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If there is no such study or matrix, none that fits, no GPU, the study takes no real matrices, or the file at
        `path` holds another study, machine or versions.
    """
    if study not in STUDIES:
        raise ValueError(f"unknown study {study!r}; known are {', '.join(STUDIES)}")
    if matrices is not None and study not in ON_MATRICES:
        raise ValueError(f"{study} makes its own matrices; real ones are for {', '.join(ON_MATRICES)}")
    get_backend(device)
    readers = None if matrices is None else readers_of(matrices)
    return STUDIES[study](Setting(device, small, tuple(only), path, progress, readers))


def _largest_degree(A: Any) -> int:
    return int(np.diff(A.indptr).max())


def _by_name(names: Iterable[str]) -> Methods:
    return {name: (name, {}) for name in names}


def _jacobian(n: int) -> Any:
    problem = problems.fenl(n)
    return problem.jacobian(problem.initial())


def _reordered(A: Any, order: np.ndarray) -> Any:
    return A[order][:, order]


def _in_row_order(sweep: Callable[..., Any], A: Any) -> Any:
    return sweep(A, levels_of(Graph.of(A), None))


def _colored(A: Any, options: dict[str, Any]) -> MulticolorSGS:
    """SGS by the colors of "ecl_gc" with options of `color`."""
    return MulticolorSGS(A, color(A, "ecl_gc", **options))


def _in_parts(A: Any, parts: int) -> MulticolorSGS:
    """SGS by the colors of "greedy", each in so many parts of rows in a row."""
    found, backend = swept_coloring(admit_matrix(A), "greedy"), backend_of(A)
    colors = backend.to_host(found.colors).astype(np.int64)
    place = np.empty(len(colors), np.int64)
    for c, size in enumerate(found.sizes):
        place[colors == c] = np.arange(size) * parts // size
    # Of a color with fewer rows than parts some are empty.
    numbers = np.unique(colors * parts + place, return_inverse=True)[1].astype(np.int32)
    return MulticolorSGS(A, backend.xp.asarray(numbers))


@cache
def _families(small: bool) -> Makers:
    """Graphs of several studies; each is made once."""
    n, scale, mesh = (8, 9, 40) if small else (100, 20, 1259)
    makers: Makers = {
        f"fenl_{n}": lambda: graphs.fenl(n),
        f"circuit_{mesh}": lambda: problems.circuit(mesh),
        f"delaunay_{scale}": lambda: graphs.delaunay(2**scale),
        f"rgg_{scale}": lambda: random_geometric(2**scale),
        f"road_{scale}": lambda: road_like(2**scale),
        f"rmat_{scale}": lambda: graphs.rmat(scale),
    }
    return {name: cache(make) for name, make in makers.items()}


@cache
def _mycielskian(small: bool) -> Makers:
    k = 9 if small else 15
    return {f"mycielskian_{k}": cache(lambda: mycielskian(k))}
