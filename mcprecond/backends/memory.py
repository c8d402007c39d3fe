"""Memory: how much is left, arrays that may not be written, the values of an object to come back to, bytes in words."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mcprecond.backends.base import Backend


def available_bytes(backend: Backend) -> int:
    """Bytes that can still be allocated where a backend's arrays live: of the GPU, or of the machine or container."""
    if backend.name == "gpu":
        return int(backend.xp.cuda.Device().mem_info[0]) + int(backend.xp.get_default_memory_pool().free_bytes())
    return min(_of_machine(), _of_container())


def shown_bytes(count: int) -> str:
    """A number of bytes in a unit that suits it."""
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.0f} bytes" if units[0] == "bytes" else f"{size:.3g} {units[0]}"


def writable(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an object itself, or a deep copy if one of its NumPy arrays is read-only, wherever that is.

    Read-only are the arrays that joblib maps into the memory of its processes.
    """
    search = _ReadOnlySearch(io.BytesIO(), pickle.HIGHEST_PROTOCOL)
    search.dump(state)
    return copy.deepcopy(state) if search.has_found else state


class _ReadOnlySearch(pickle.Pickler):
    """Goes through an object as pickle does, but looks at arrays only."""

    has_found = False

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return NotImplemented
        self.has_found = self.has_found or not value.flags.writeable
        return object, ()


def kept_values(*parts: Any) -> Callable[[], None]:
    """Copy all floating point numbers that objects of this package hold, and return a function that puts them back.

    Attributes come back as well, as they are now; integers in arrays belong to patterns, which no update changes, and
    arrays that are read-only keep their values anyway.

    Parameters
    ----------
    *parts
        Objects, arrays and sparse matrices, and sequences of them. What they refer to is followed, but for backends and
        kernels.
    """
    attributes: dict[int, tuple[Any, dict[str, Any]]] = {}
    arrays: dict[int, tuple[Any, Any]] = {}
    waiting = list(parts)

    def is_ours(part: Any) -> bool:
        module = type(part).__module__
        return module.startswith("mcprecond.") and not module.startswith(__package__) and hasattr(part, "__dict__")

    def is_of_numbers(part: Any) -> bool:
        return isinstance(getattr(part, "nbytes", None), int) and part.ndim and part.dtype.kind in "fc"

    while waiting:
        part = waiting.pop()
        if hasattr(part, "indptr") and hasattr(part, "data"):
            part = part.data
        if isinstance(part, list | tuple):
            waiting += part
        elif is_ours(part):
            if id(part) not in attributes:
                attributes[id(part)] = part, dict(part.__dict__)
                waiting += part.__dict__.values()
        elif is_of_numbers(part) and getattr(part.flags, "writeable", True):  # CuPy's arrays always are
            arrays[id(part)] = arrays.get(id(part)) or (part, part.copy())

    def put_back() -> None:
        for array, values in arrays.values():
            array[...] = values
        for part, own in attributes.values():  # behind the arrays, since one may say that these are halfway
            part.__dict__.update(own)
            for name in part.__dict__.keys() - own.keys():
                del part.__dict__[name]

    return put_back


@contextlib.contextmanager
def values_put_back(*parts: Any) -> Iterator[None]:
    """Put the values of objects back if a block of code ends by an exception; see `kept_values`."""
    put_back = kept_values(*parts)
    try:
        yield
    except BaseException:
        try:
            put_back()
        except KeyboardInterrupt:
            put_back()
            raise
        raise


def _of_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # not Linux: half of what is built in
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return 2**33


def _of_container() -> int:
    try:
        most, used = (int(Path("/sys/fs/cgroup", name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # "max": no limit
        return 2**63
    return max(most - used, 0)
