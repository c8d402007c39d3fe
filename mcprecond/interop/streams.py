"""Streams of other libraries' GPUs as CuPy's."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple


class _Stream(NamedTuple):
    """A stream by its address, as CUDA's protocol for streams has it."""

    address: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.address


@functools.cache
def stream_at(address: int) -> Any:
    """The stream of CuPy at an address of CUDA's; 0 is the default stream, of whatever device is the current one.

    It is kept: CuPy may destroy a stream together with its object, although the stream is another library's.
    """
    from cupy.cuda import Stream

    if address == 0:
        return Stream.null
    if hasattr(Stream, "from_external"):
        return Stream.from_external(_Stream(address))
    from cupy.cuda import ExternalStream  # before CuPy 14

    return ExternalStream(address)
