"""Halos: the numbers of a distributed vector that other ranks have, behind those of this rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import Backend


class Halo:
    """Which numbers this rank gets from others, and which it sends them.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    first, n : int
        The number of the first of this rank's unknowns, and how many it has.
    ghosts : array of int64, on the host
        The global numbers of the unknowns behind, in any order.
    backend : Backend
    """

    def __init__(self, comm: Any, first: int, n: int, ghosts: Any, backend: Backend) -> None:
        self.comm, self.n, self.ghosts, self.backend = comm, n, np.asarray(ghosts, np.int64), backend
        owners = np.searchsorted(np.array(comm.allgather(first)), self.ghosts, side="right") - 1
        order = np.argsort(owners, kind="stable")
        asked = comm.alltoall([self.ghosts[order][owners[order] == rank] for rank in range(comm.size)])
        self.sends = ranges_of([len(numbers) for numbers in asked])
        self.receives = ranges_of(np.bincount(owners, minlength=comm.size))
        self._taken = backend.xp.asarray(np.concatenate(asked) - first)
        #: Where in the halo the numbers are that are received, unless they come in order.
        is_sorted = bool((order == np.arange(len(order))).all())
        self._places = None if is_sorted else backend.xp.asarray(order)

    def enqueue(self, x: Any) -> None:
        """Fill the halo of a vector, of shape (n + ghosts,) or longer, in which this rank's numbers come first.
        Collective.
        """
        received = x[self.n : self.n + len(self.ghosts)]
        sent = x[self._taken]
        if self._places is None:
            self._exchange(sent, received)
        else:
            buffer = self.backend.xp.empty_like(received)
            self._exchange(sent, buffer)
            received[self._places] = buffer

    def _exchange(self, sent: Any, received: Any) -> None:
        """By MPI, through the host."""
        out, into = self.backend.to_host(sent), np.empty(len(received), received.dtype)
        requests = [self.comm.Irecv(into[begin:end], rank) for rank, begin, end in self.receives]
        requests += [self.comm.Isend(out[begin:end], rank) for rank, begin, end in self.sends]
        for request in requests:
            request.Wait()
        received[...] = self.backend.xp.asarray(into)


def ranges_of(counts: Any) -> list[tuple[int, int, int]]:
    """The ranks that have some of these numbers, and where those of each begin and end."""
    ends = np.cumsum(counts, dtype=np.int64)
    return [(rank, int(end - count), int(end)) for rank, (count, end) in enumerate(zip(counts, ends, strict=True)) if count]
