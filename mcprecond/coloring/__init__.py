"""Colorings of sparse matrices: what defaults choose, with the orders and refinements of colorings.

The methods that are there to be compared with stand in `mcprecond.coloring.published`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, cast

from mcprecond.backends.arguments import describe, did_you_mean, flag, integer
from mcprecond.backends.determinism import refuse_races
from mcprecond.coloring.auto import choose_method
from mcprecond.coloring.balance import balance as balanced
from mcprecond.coloring.coloring import Coloring, finish, user_coloring
from mcprecond.coloring.graph import Graph
from mcprecond.coloring.recolor import recolor as recolored
from mcprecond.coloring.registry import COLORINGS, Method
from mcprecond.matrix import AdmittedMatrix
from mcprecond.typing import ColoringMethod, Integers, Matrix, Order

__all__ = ["COLORINGS", "Coloring", "Graph", "Method", "color", "coloring_of"]

LARGEST_SEED = 2**63 - 1


def color(
    A: Matrix | AdmittedMatrix,
    method: ColoringMethod = "auto",
    *,
    distance: Literal[1, 2] = 1,
    order: Order | Integers | None = None,
    seed: int = 0,
    recolor: int = 0,
    balance: bool = False,
    **options: Any,
) -> Coloring:
    """Color the graph of a sparse matrix: neighbors get different colors.

    The graph has a vertex per row and an edge wherever A or its transpose stores an entry off the diagonal, zeros
    included.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        In any format, of any dtype; only the pattern is read. A CuPy matrix is colored on its GPU.
    method : str
        A name in `COLORINGS`:

        - "eb": edge-based speculation (Deveci et al. 2016, Algorithms 5-9); ``worklist="pps" | "atomic"``,
          ``resolution="degree" | "index"``, ``published=False``, and with that ``tentative=True`` and
          ``drop_edges=True``.
        - "ecl_gc": largest degree first with shortcuts (Alabandi et al. 2020); ``shortcut1=True``, ``shortcut2=True``,
          ``published=False``; deterministic.
        - "jpl": an independent set per color (Naumov et al. 2015); deterministic, many colors.
        - "jp": first-fit by fronts in an order (Jones, Plassmann 1993), random by default; deterministic.
        - "ipgc", "vb", "vb_bit": vertex-based speculation (Deveci et al. 2016, Algorithms 1-4); ``chunk_size=8``,
          ``resolution="index" | "degree" | "random"``, ``worklist="atomic" | "pps"``, for the last two
          ``edge_filtering=False``, and for "vb" ``max_forbid=64``.
        - "rig", "sirg": data-driven speculation, the second with resolution by degree and palettes that double (Sistla
          and Nandivada); for the second ``resolution="degree" | "index"``, ``doubling=True``, ``long_words=True``,
          ``palettes="threads" | "vertices"``.
        - "gm": speculation once, then serial repair (Gebremedhin, Manne 2000).
        - "chen_topo", "chen_wlc", "chen_pq": speculation where the larger degree keeps its color, over all vertices,
          over worklists, over a queue in order of degree (Chen et al. 2016).
        - "cc": several independent sets per round by hash functions, after a paragraph of Naumov et al. (2015);
          cuSPARSE's csrcolor is another program; ``hashes=4``; deterministic, many colors.
        - "is_minmax", "is_hash", "is_reduce": Gunrock's independent sets (Osama et al. 2019); for the second
          ``table_size=16``, for the first ``two_sets=True`` and ``atomics=False``, for the third ``fused=False``;
          deterministic, many colors.
        - "graphblas_is", "graphblas_mis", "graphblas_jp": independent sets, maximal ones, and ones reusing colors, by
          products over semirings (Osama et al. 2019); ``engine="kernels" | "suitesparse"``; deterministic.
        - "greedy": sequential first-fit in an order, natural by default; deterministic.

        With ``published=True`` "eb" and "ecl_gc" run as their papers have them, without what this package adds to them.
        The methods that serve comparisons only run in their published schedule on a GPU, and on one thread on a CPU.

        Or "auto": one of these by the degrees, with few colors first and then time in mind (`mcprecond.coloring.auto`
        has the rule); deterministic, without options. The result's `method` says which. ``coloring="auto"`` of a
        preconditioner goes by another rule, the least predicted time of a solve (`mcprecond.tuning.least_time`).
    distance : {1, 2}
        2: vertices with a common neighbor get different colors, too, as Jacobian compression needs it. "eb", "jp",
        "greedy" and the refinements of their colorings find such pairs as they go; the other methods color the graph of
        all of them, which is built first: 8 bytes a pair (40 on a GPU) are refused where the memory left has no room
        for them.
    order : str or array of int, shape (n,), optional
        For "jp" and "greedy": "natural", "random", "ldf" (largest degree first), "sdl" (smallest degree last),
        "sdl_batch" (the same, found in parallel), or a permutation; for "greedy" also "sd" (saturation degree) and "id"
        (incidence degree), both serial on the host. For "ecl_gc": "ldf" (ties at random), "ldf_natural" (ties in row
        order) or "natural".
    seed : int
        Of the random priorities, in methods that have them; 0 to 2^63 - 1.
    recolor : int
        So many passes of first-fit over the color classes afterwards. They never raise the number of colors.
    balance : bool
        Afterwards even out the sizes of the classes, for at most one more color.
    **options
        Of the method.

    Returns
    -------
    Coloring

    Raises
    ------
    TypeError
        If A is not a sparse matrix, the method does not have one of the options, or an argument has a wrong type.
    ValueError
        If A is not square, the method is unknown or is not offered as published, or an argument is out of range; if
        "greedy" in the order "sd" or "id" would take hours at distance 2, as there are hubs; or if results differ from
        run to run, and `deterministic` excludes that.
    MemoryError
        If the graph of all pairs within distance 2 has no room; the message says how many there are.

    Examples
    --------
    >>> import scipy.sparse
    >>> from mcprecond import color
    >>> A = scipy.sparse.diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(6, 6), format="csr")
    >>> color(A, "greedy").colors
    array([0, 1, 0, 1, 0, 1], dtype=int32)
    >>> color(A, "greedy", distance=2).colors
    array([0, 1, 2, 0, 1, 2], dtype=int32)
    """
    if not isinstance(method, str):
        raise TypeError(f"method must be a string, a name in COLORINGS or 'auto', got {describe(method)}")
    if method != "auto" and method not in COLORINGS:
        choices = [*COLORINGS, "auto"]
        hint = did_you_mean(method, choices)
        raise ValueError(f"unknown coloring method {method!r}; known are {', '.join(choices)}{hint}")
    reach = integer(distance, "distance")
    if reach not in (1, 2):
        raise ValueError(f"distance must be 1 or 2, got {distance}")
    seed = integer(seed, "seed", 0, LARGEST_SEED)
    recolor = integer(recolor, "recolor", 0)
    balance = flag(balance, "balance")
    if order is not None:
        options["order"] = order
    known = () if method == "auto" else COLORINGS[method].options
    if "published" in options and "published" not in known:
        offered = ", ".join(name for name in COLORINGS if "published" in COLORINGS[name].options)
        raise ValueError(f"published is offered for {offered}, and not for coloring method {method!r}; leave it out")
    for name in options:
        if name not in known:
            its = ", ".join(known) or "none"
            hint = did_you_mean(name, known)
            raise TypeError(f"coloring method {method!r} has no option {name!r}; it has {its}{hint}")
    if method != "auto" and not COLORINGS[method].deterministic:
        others = ", ".join(name for name, one in COLORINGS.items() if one.deterministic)
        refuse_races(f"coloring method {method!r} races", f"choose one of {others}")
    if balance:
        refuse_races("balance=True races", "leave it out")
    graph = Graph.of(A)
    chosen = choose_method(graph, reach) if method == "auto" else method
    if COLORINGS[chosen].finds_distance_two:
        options["distance"] = reach
    elif reach == 2:
        graph, reach = graph.square(), 1
    colors, log = COLORINGS[chosen](graph, seed=seed, **options)
    coloring = finish(colors, log, chosen, graph.backend)
    if recolor:
        colors = recolored(graph, reach, coloring.colors, coloring.sizes, recolor)
        coloring = finish(colors, log, chosen, graph.backend)
    if balance:
        colors = balanced(graph, reach, coloring.colors, coloring.sizes)
        coloring = finish(colors, log, chosen, graph.backend)
    return coloring


def coloring_of(matrix: AdmittedMatrix, coloring: Any) -> Coloring:
    """Return the coloring that a `coloring` argument stands for: a method name, a Coloring or a user's array.

    Raises
    ------
    TypeError, ValueError
        As `color`; for an array of the wrong length or dtype, or an improper one (names an edge).
    """
    if isinstance(coloring, str):
        return color(matrix, cast(ColoringMethod, coloring))
    if isinstance(coloring, Coloring):
        return replace(user_coloring(coloring.colors, matrix), method=coloring.method, history=coloring.history)
    return user_coloring(coloring, matrix)
