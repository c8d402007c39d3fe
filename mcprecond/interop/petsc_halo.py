"""Halos: the numbers of a distributed vector that other ranks have, behind those of this rank.

Where each rank has a GPU of its own they travel by NCCL, in the order of the stream and within captured graphs;
otherwise by MPI, through the host.
"""

from __future__ import annotations

import socket
from typing import Any

import numpy as np

from mcprecond.backends import Backend

#: The attribute of a communicator of MPI that keeps that of NCCL.
_NCCL: dict[int, Any] = {}


class Halo:
    """Which numbers this rank gets from others, and which it sends them.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    first, n : int
        The number of the first of this rank's unknowns, and how many it has.
    ghosts : array of int64, on the host
        The global numbers of the unknowns behind, ascending.
    backend : Backend
    dtype : dtype
        Of the vectors.

    Attributes
    ----------
    only_launches : bool
        Whether an exchange only launches kernels.
    """

    def __init__(self, comm: Any, first: int, n: int, ghosts: Any, backend: Backend, dtype: Any) -> None:
        self.comm, self.n, self.ghosts, self.backend = comm, n, np.asarray(ghosts, np.int64), backend
        owners = np.searchsorted(np.array(comm.allgather(first)), self.ghosts, side="right") - 1
        asked = comm.alltoall([self.ghosts[owners == rank] for rank in range(comm.size)])
        self.sends = ranges_of([len(numbers) for numbers in asked])
        self.receives = ranges_of(np.bincount(owners, minlength=comm.size))
        self._taken = backend.xp.asarray(np.concatenate(asked) - first)
        self._sent = backend.xp.empty(len(self._taken), dtype)
        self._nccl = nccl_of(comm) if backend.name == "gpu" else None
        self.only_launches = self._nccl is not None or comm.size == 1

    @property
    def room(self) -> int:
        """The length of a vector with its halo."""
        return self.n + len(self.ghosts)

    def enqueue(self, x: Any) -> None:
        """Fill the halo of a vector of at least so much room, in which this rank's numbers come first. Collective."""
        if not self.sends and not self.receives:
            return
        received = x[self.n : self.room]
        self.backend.xp.take(x, self._taken, out=self._sent)
        if self._nccl is None:
            self._exchange_by_mpi(received)
        else:
            self._exchange_by_nccl(received)

    def _exchange_by_mpi(self, received: Any) -> None:
        sent, into = self.backend.to_host(self._sent), np.empty(len(received), received.dtype)
        requests = [self.comm.Irecv(into[begin:end], rank) for rank, begin, end in self.receives]
        requests += [self.comm.Isend(sent[begin:end], rank) for rank, begin, end in self.sends]
        for request in requests:
            request.Wait()
        received[...] = self.backend.xp.asarray(into)

    def _exchange_by_nccl(self, received: Any) -> None:
        import cupy
        from cupy.cuda import nccl

        stream = cupy.cuda.get_current_stream().ptr
        kind = {"f": nccl.NCCL_FLOAT32, "d": nccl.NCCL_FLOAT64}[received.dtype.char]
        nccl.groupStart()
        for rank, begin, end in self.sends:
            self._nccl.send(self._sent[begin:end].data.ptr, end - begin, kind, rank, stream)
        for rank, begin, end in self.receives:
            self._nccl.recv(received[begin:end].data.ptr, end - begin, kind, rank, stream)
        nccl.groupEnd()


def nccl_of(comm: Any) -> Any:
    """NCCL's communicator of the ranks of one of MPI; None if two of them share a GPU, or NCCL is missing on one.
    Collective.
    """
    import cupy

    if comm.size == 1:
        return None
    key = comm.py2f()
    if key not in _NCCL:
        try:
            from cupy.cuda import nccl

            own = socket.gethostname(), cupy.cuda.Device().pci_bus_id
        except ImportError:
            own = None
        all_gpus = comm.allgather(own)
        if None in all_gpus or len(set(all_gpus)) < comm.size:
            _NCCL[key] = None
        else:
            identifier = comm.bcast(nccl.get_unique_id() if comm.rank == 0 else None)
            _NCCL[key] = nccl.NcclCommunicator(comm.size, identifier, comm.rank)
    return _NCCL[key]


def ranges_of(counts: Any) -> list[tuple[int, int, int]]:
    """The ranks that have some of these numbers, and where those of each begin and end."""
    ends = np.cumsum(counts, dtype=np.int64)
    places = enumerate(zip(ends - counts, ends, strict=True))
    return [(rank, int(begin), int(end)) for rank, (begin, end) in places if begin < end]
