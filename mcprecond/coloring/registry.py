"""The registry of coloring methods: one record for each, which `color`, the documentation and the tests read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

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
    place : str
        Its module in `mcprecond.coloring` and its function, as in "published.eb:eb"; imported when it is needed.
    paper : str
        Who published it.
    deterministic : bool
        Whether it gives the same colors each time, and on both devices.
    bounded : bool
        Whether there are at most as many colors as the largest degree and one.
    speculative : bool
        Whether a vertex may be colored again, after a conflict.
    """

    place: str
    paper: str
    deterministic: bool = False
    bounded: bool = True
    speculative: bool = False

    @cached_property
    def function(self) -> Callable[..., tuple[Any, Any]]:
        """Takes a Graph and keyword options and returns the colors, from 0, and the log of its rounds, from which
        `finish` makes a Coloring.
        """
        module, _, name = self.place.partition(":")
        found: Callable[..., tuple[Any, Any]] = getattr(import_module(f"mcprecond.coloring.{module}"), name)
        return found

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
    "eb": Method("published.eb:eb", DEVECI, speculative=True),
    "ecl_gc": Method("ecl_gc:ecl_gc", "Alabandi, Powers, Burtscher 2020", deterministic=True),
    "jpl": Method("published.jpl:jpl", NAUMOV, deterministic=True, bounded=False),
    "jp": Method("jp:jp", "Jones, Plassmann 1993", deterministic=True),
    "ipgc": Method("published.vertex_based:ipgc", DEVECI, speculative=True),
    "vb": Method("published.vertex_based:vb", DEVECI, bounded=False, speculative=True),
    "vb_bit": Method("published.vertex_based:vb_bit", DEVECI, bounded=False, speculative=True),
    "rig": Method("published.rig:rig", SISTLA, speculative=True),
    "sirg": Method("published.rig:sirg", SISTLA, speculative=True),
    "gm": Method("published.gm:gm", "Gebremedhin, Manne 2000", speculative=True),
    "chen_topo": Method("published.chen:chen_topo", CHEN, speculative=True),
    "chen_wlc": Method("published.chen:chen_wlc", CHEN, speculative=True),
    "chen_pq": Method("published.chen:chen_pq", CHEN, speculative=True),
    "cc": Method("published.cc:cc", NAUMOV, deterministic=True, bounded=False),
    "is_minmax": Method("published.minmax:is_minmax", OSAMA, deterministic=True, bounded=False),
    "is_hash": Method("published.hashed:is_hash", OSAMA, deterministic=True, bounded=False, speculative=True),
    "is_reduce": Method("published.reduce:is_reduce", OSAMA, deterministic=True, bounded=False),
    "graphblas_is": Method("published.graphblas:graphblas_is", OSAMA, deterministic=True, bounded=False),
    "graphblas_mis": Method("published.graphblas:graphblas_mis", OSAMA, deterministic=True),
    "graphblas_jp": Method("published.graphblas:graphblas_jp", OSAMA, deterministic=True, bounded=False),
    "greedy": Method("greedy:greedy", "first-fit, in an order", deterministic=True),
}
