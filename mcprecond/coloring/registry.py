"""The registry of coloring methods: one record for each, which `color`, the documentation and the tests read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mcprecond.coloring.independent_set.cc import cc
from mcprecond.coloring.independent_set.graphblas import graphblas_is, graphblas_jp, graphblas_mis
from mcprecond.coloring.independent_set.hashed import is_hash
from mcprecond.coloring.independent_set.jpl import jpl
from mcprecond.coloring.independent_set.minmax import is_minmax
from mcprecond.coloring.independent_set.reduce import is_reduce
from mcprecond.coloring.priority.ecl_gc import ecl_gc
from mcprecond.coloring.priority.jp import jp
from mcprecond.coloring.sequential.greedy import greedy
from mcprecond.coloring.speculative.chen import chen_pq, chen_topo, chen_wlc
from mcprecond.coloring.speculative.eb import eb
from mcprecond.coloring.speculative.gm import gm
from mcprecond.coloring.speculative.rig import rig, sirg
from mcprecond.coloring.speculative.vertex_based import ipgc, vb, vb_bit
from mcprecond.typing import MethodName

DEVECI = "Deveci, Boman, Devine, Rajamanickam 2016"
NAUMOV = "Naumov, Castonguay, Cohen 2015"
OSAMA = "Osama, Truong, Yang, Buluç, Owens 2019"
SISTLA = "Sistla, Nandivada"
CHEN = "Chen, Li, Yang 2016"


@dataclass(frozen=True, eq=False)
class Method:
    """A coloring method and what is known of it.

    Attributes
    ----------
    function : function
        Takes a Graph and keyword options and returns the colors, from 0, and the log of its rounds, from which
        `finished` makes a Coloring.
    paper : str
        Who published it.
    deterministic : bool
        Whether it gives the same colors each time, and on both devices.
    bounded : bool
        Whether there are at most as many colors as the largest degree and one.
    speculative : bool
        Whether a vertex may be colored again, after a conflict.
    """

    function: Callable[..., tuple[Any, Any]]
    paper: str
    deterministic: bool = False
    bounded: bool = True
    speculative: bool = False

    def __call__(self, graph: Any, **options: Any) -> tuple[Any, Any]:
        """Color a graph."""
        return self.function(graph, **options)

    @cached_property
    def _parameters(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.function).parameters)

    @property
    def options(self) -> tuple[str, ...]:
        """The names of what may be chosen, but for the seed and the distance, which `color` has for all."""
        return tuple(name for name in self._parameters if name not in ("graph", "seed", "distance"))

    @property
    def finds_distance_two(self) -> bool:
        """Whether it visits the neighbors of neighbors as it goes; others color the graph of the squared pattern."""
        return "distance" in self._parameters


#: The methods of `color` by name.
COLORINGS: dict[MethodName, Method] = {
    "eb": Method(eb, DEVECI, speculative=True),
    "ecl_gc": Method(ecl_gc, "Alabandi, Powers, Burtscher 2020", deterministic=True),
    "jpl": Method(jpl, NAUMOV, deterministic=True, bounded=False),
    "jp": Method(jp, "Jones, Plassmann 1993", deterministic=True),
    "ipgc": Method(ipgc, DEVECI, speculative=True),
    "vb": Method(vb, DEVECI, speculative=True),
    "vb_bit": Method(vb_bit, DEVECI, speculative=True),
    "rig": Method(rig, SISTLA, speculative=True),
    "sirg": Method(sirg, SISTLA, speculative=True),
    "gm": Method(gm, "Gebremedhin, Manne 2000", speculative=True),
    "chen_topo": Method(chen_topo, CHEN, speculative=True),
    "chen_wlc": Method(chen_wlc, CHEN, speculative=True),
    "chen_pq": Method(chen_pq, CHEN, speculative=True),
    "cc": Method(cc, NAUMOV, deterministic=True, bounded=False),
    "is_minmax": Method(is_minmax, OSAMA, deterministic=True, bounded=False),
    "is_hash": Method(is_hash, OSAMA, deterministic=True, bounded=False, speculative=True),
    "is_reduce": Method(is_reduce, OSAMA, deterministic=True, bounded=False),
    "graphblas_is": Method(graphblas_is, OSAMA, deterministic=True, bounded=False),
    "graphblas_mis": Method(graphblas_mis, OSAMA, deterministic=True),
    "graphblas_jp": Method(graphblas_jp, OSAMA, deterministic=True, bounded=False),
    "greedy": Method(greedy, "first-fit, in an order", deterministic=True),
}
