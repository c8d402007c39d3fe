"""Every method of coloring with its options, and what is to be true of each coloring."""

from __future__ import annotations

import numpy as np
from graphs import neighbors

from mcprecond import COLORINGS, Coloring

# Method and options: every method without any, and what else there is to choose. The registry says what else is to be
# expected of a method.
VARIANTS = {name: (name, {}) for name in COLORINGS} | {
    "eb-atomic": ("eb", {"worklist": "atomic"}),
    "eb-index": ("eb", {"resolution": "index"}),
    "eb-published": ("eb", {"published": True}),
    "eb-published-atomic": ("eb", {"published": True, "worklist": "atomic"}),
    "eb-published-degree": ("eb", {"published": True, "resolution": "degree"}),
    "eb-published-certain": ("eb", {"published": True, "tentative": False}),
    "eb-published-all-edges": ("eb", {"published": True, "drop_edges": False}),
    "eb-published-simple": ("eb", {"published": True, "tentative": False, "drop_edges": False}),
    "ecl_gc-published": ("ecl_gc", {"published": True}),
    "ipgc-degree": ("ipgc", {"resolution": "degree", "chunk_size": 1}),
    "ipgc-random": ("ipgc", {"resolution": "random", "seed": 4}),
    "vb-pps": ("vb", {"worklist": "pps"}),
    "vb-filtering": ("vb", {"edge_filtering": True, "resolution": "degree"}),
    "vb-ranges": ("vb", {"max_forbid": 3, "edge_filtering": True}),
    "vb_bit-alone": ("vb_bit", {"chunk_size": 1}),
    "vb_bit-random": ("vb_bit", {"resolution": "random", "chunk_size": 1}),
    "vb_bit-filtering": ("vb_bit", {"worklist": "pps", "edge_filtering": True, "chunk_size": 3}),
    "sirg-index": ("sirg", {"resolution": "index"}),
    "sirg-large": ("sirg", {"doubling": False}),
    "sirg-baseline": ("sirg", {"doubling": False, "long_words": False}),
    "sirg-vertices": ("sirg", {"palettes": "vertices", "resolution": "index"}),
    "cc-one": ("cc", {"hashes": 1, "seed": 4}),
    "is_minmax-one-set": ("is_minmax", {"two_sets": False}),
    "is_minmax-one-set-atomics": ("is_minmax", {"two_sets": False, "atomics": True}),
    "is_hash-small": ("is_hash", {"table_size": 2}),
    "graphblas_jp": ("graphblas_jp", {"seed": 3}),
    "jp-random": ("jp", {"seed": 2}),
    "jp-ldf": ("jp", {"order": "ldf"}),
    "jp-sdl_batch": ("jp", {"order": "sdl_batch"}),
    "greedy-natural": ("greedy", {"order": "natural"}),
    "greedy-random": ("greedy", {"order": "random", "seed": 5}),
    "greedy-ldf": ("greedy", {"order": "ldf"}),
    "greedy-sdl": ("greedy", {"order": "sdl"}),
    "greedy-sd": ("greedy", {"order": "sd"}),
    "greedy-id": ("greedy", {"order": "id"}),
}


def is_bounded(method: str, options: dict) -> bool:
    """Whether a variant has at most one color more than the largest degree; not EB as published."""
    return COLORINGS[method].bounded and not (method == "eb" and options.get("published"))


def check(A, coloring: Coloring, colors: np.ndarray, bounded: bool | None = None) -> None:
    """Proper, complete, contiguous, bounded, with a history that adds up."""
    adjacency = neighbors(A)
    assert colors.dtype == np.int32 and colors.shape == (A.shape[0],)
    assert all(colors[v] != colors[u] for v, near in enumerate(adjacency) for u in near)
    assert coloring.n_colors == len(coloring.sizes) == len(np.unique(colors))
    np.testing.assert_array_equal(coloring.sizes, np.bincount(colors, minlength=coloring.n_colors))
    if bounded is None:
        bounded = COLORINGS[coloring.method].bounded
    if bounded and len(colors):
        assert coloring.n_colors <= max(map(len, adjacency)) + 1
    check_history(coloring, A.shape[0])


def check_history(coloring: Coloring, n: int) -> None:
    """What is colored less what is undone lies between nothing and all after every round, and is all in the end."""
    history = coloring.history
    assert isinstance(history, np.ndarray) and history.dtype == np.int64
    assert history.shape == (coloring.rounds, 2) and (coloring.rounds > 0) == (n > 0)
    assert (history >= 0).all()
    colored = np.cumsum(history[:, 0] - history[:, 1])
    assert (colored >= 0).all() and (colored <= n).all() and (colored[-1:] == n).all()
    if not COLORINGS[coloring.method].speculative:
        assert not history[:, 1].any()
