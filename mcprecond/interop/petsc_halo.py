"""How numbers travel between ranks: sums over all of them, and halos, which a rank has of the vectors of others.

Where each rank has a GPU of its own they travel by NCCL, in the order of the stream and within captured graphs;
otherwise by MPI, through the host.
"""

from __future__ import annotations

import socket
from typing import Any

import numpy as np

from mcprecond.backends import Backend

#: NCCL's communicator by the number of that of MPI; None where ranks cannot use NCCL. NCCL takes long to make one.
_NCCL: dict[int, Any] = {}


class Ranks:
    """The ranks of a communicator.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
    backend : Backend

    Attributes
    ----------
    only_launches : bool
        Whether an exchange only launches kernels.
    """

    def __init__(self, comm: Any, backend: Backend) -> None:
        self.comm, self.backend = comm, backend
        self._nccl = nccl_of(comm) if backend.name == "gpu" and comm.size > 1 else None
        self.only_launches = self._nccl is not None or comm.size == 1

    @property
    def _stream(self) -> int:
        """The address of the current stream."""
        return int(self.backend.xp.cuda.get_current_stream().ptr)

    def add_up(self, x: Any) -> None:
        """Replace an array by the sum of those of all ranks. Collective."""
        if self.comm.size == 1:
            return
        if self._nccl is None:
            sent = self.backend.to_host(x)
            found = np.empty_like(sent)
            self.comm.Allreduce(sent, found)
            x[...] = self.backend.xp.asarray(found)
        else:
            self._nccl.allReduce(x.data.ptr, x.data.ptr, x.size, kind_of(x), nccl().NCCL_SUM, self._stream)

    def sum(self, number: Any) -> Any:
        """The sum of a number of each rank. Collective."""
        return self.comm.allreduce(number)

    def least(self, number: Any) -> Any:
        """The least number of all ranks. Collective."""
        return min(self.comm.allgather(number))

    def gather(self, x: Any) -> Any:
        """The arrays of all ranks, one after the other. Collective."""
        lengths = self.comm.allgather(len(x))
        if self._nccl is None:
            return self.backend.xp.asarray(np.concatenate(self.comm.allgather(self.backend.to_host(x))))
        begin = sum(lengths[: self.comm.rank])
        found = self.backend.xp.zeros((sum(lengths), *x.shape[1:]), x.dtype)
        found[begin : begin + len(x)] = x
        self.add_up(found)
        return found

    def exchange(self, sent: Any, sends: list[Range], received: Any, receives: list[Range]) -> None:
        """Send parts of an array to other ranks, and receive parts of another one from them. Collective."""
        if self._nccl is None:
            of_host, into = self.backend.to_host(sent), np.empty(len(received), received.dtype)
            requests = [self.comm.Irecv(into[begin:end], rank) for rank, begin, end in receives]
            requests += [self.comm.Isend(of_host[begin:end], rank) for rank, begin, end in sends]
            for request in requests:
                request.Wait()
            received[...] = self.backend.xp.asarray(into)
            return
        stream = self._stream
        nccl().groupStart()
        for rank, begin, end in sends:
            self._nccl.send(sent[begin:end].data.ptr, end - begin, kind_of(sent), rank, stream)
        for rank, begin, end in receives:
            self._nccl.recv(received[begin:end].data.ptr, end - begin, kind_of(received), rank, stream)
        nccl().groupEnd()


#: A rank, and where the numbers that it sends or gets begin and end.
Range = tuple[int, int, int]


class Request:
    """Unknowns of other ranks that this rank asks for, and those of its own that others ask for. Collective.

    Parameters
    ----------
    ranks : Ranks
    firsts : array of int64, on the host
        The number of the first unknown of each rank; that of the next one where a rank has none.
    numbers : array of int64, on the host
        The global numbers of the unknowns, in ascending order.

    Attributes
    ----------
    sends, receives : list of int
        How many of them travel to each rank, and from it.
    taken : array of int64
        Which of its unknowns this rank sends, rank by rank.
    """

    def __init__(self, ranks: Ranks, firsts: Any, numbers: Any) -> None:
        ends = [*np.searchsorted(numbers, firsts[1:]).tolist(), len(numbers)]
        parts = [numbers[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
        asked = ranks.comm.alltoall(parts)
        self.sends, self.receives = [len(each) for each in asked], [len(each) for each in parts]
        self.taken = ranks.backend.xp.asarray(np.concatenate(asked) - firsts[ranks.comm.rank])


class Halo:
    """Which numbers of a distributed vector this rank gets from others, and which it sends them.

    Parameters
    ----------
    ranks : Ranks
    n : int
        How many unknowns this rank has.
    requests : list of Request
        For those behind, layer by layer.
    dtype : dtype
        Of the vectors.

    Attributes
    ----------
    room : int
        The length of a vector with its halo.
    """

    def __init__(self, ranks: Ranks, n: int, requests: list[Request], dtype: Any) -> None:
        self.ranks, self.n, xp = ranks, n, ranks.backend.xp
        self._taken = xp.concatenate([request.taken for request in requests])
        self._sends, self._receives = list[Range](), list[Range]()
        sent = received = 0
        for request in requests:
            self._sends += ranges_of(request.sends, sent)
            self._receives += ranges_of(request.receives, received)
            sent, received = sent + sum(request.sends), received + sum(request.receives)
        self.room = n + received
        self._sent = xp.empty(sent, dtype)

    def new_vector(self) -> Any:
        """A vector of zeros with its halo."""
        return self.ranks.backend.xp.zeros(self.room, self._sent.dtype)

    def fill(self, x: Any) -> None:
        """Fill the halo of a vector, whose first numbers are this rank's. Collective."""
        if self._sends or self._receives:
            self.ranks.backend.xp.take(x, self._taken, out=self._sent)
            self.ranks.exchange(self._sent, self._sends, x[self.n :], self._receives)


def ranges_of(counts: Any, before: int = 0) -> list[Range]:
    """The ranks that have some of these numbers, and where those of each begin and end, behind so many others."""
    ends = before + np.cumsum(counts, dtype=np.int64)
    places = enumerate(zip(ends - counts, ends, strict=True))
    return [(rank, int(begin), int(end)) for rank, (begin, end) in places if begin < end]


def nccl_of(comm: Any) -> Any:
    """NCCL's communicator of the ranks of one of MPI; None if two of them share a GPU, or NCCL is missing on one.
    Collective.
    """
    import cupy

    key = comm.py2f()
    if key not in _NCCL:
        own = (socket.gethostname(), cupy.cuda.Device().pci_bus_id) if nccl().available else None
        of_all = comm.allgather(own)
        if None in of_all or len(set(of_all)) < comm.size:
            _NCCL[key] = None
        else:
            identifier = comm.bcast(nccl().get_unique_id() if comm.rank == 0 else None)
            _NCCL[key] = nccl().NcclCommunicator(comm.size, identifier, comm.rank)
    return _NCCL[key]


def nccl() -> Any:
    """CuPy's module of NCCL."""
    from cupy.cuda import nccl

    return nccl


def kind_of(x: Any) -> int:
    """NCCL's number for the dtype of an array."""
    names = {"f4": "FLOAT32", "f8": "FLOAT64", "i4": "INT32", "i8": "INT64"}
    return int(getattr(nccl(), f"NCCL_{names[x.dtype.str[1:]]}"))
