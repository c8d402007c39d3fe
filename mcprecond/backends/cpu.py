"""The CPU: NumPy arrays, SciPy matrices, Numba kernels on all cores."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from mcprecond.backends.kernels import Kernels, KernelSet
from mcprecond.backends.loops import repeat_on_host
from mcprecond.typing import Device


class CpuBackend:
    """See `Backend`."""

    name: Device = "cpu"
    iterations_per_read = 1

    resident_warps = 0
    most_blocks = 0
    shared_cache = 0
    memory_speed = 0.0
    stream = None  # what is enqueued is done when the call returns

    @property
    def xp(self) -> ModuleType:
        return np

    @property
    def sparse(self) -> ModuleType:
        return scipy.sparse

    @property
    def linalg(self) -> ModuleType:
        return scipy.sparse.linalg

    def kernels(self, kernel_set: KernelSet, **macros: Any) -> Kernels:
        kernel_set.select_macros(macros)  # refuses what a GPU would
        return Kernels({name: side.function for name, side in kernel_set.functions.items()}, self, kernel_set, macros)

    def record(self, fields: tuple[Any, ...], of_cuda: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        return fields

    def repeatable(self, function: Callable[[], None]) -> Callable[[], None]:
        return function

    def loop(self, function: Callable[[], None], states: Any, captures: bool, bundle: int) -> Callable[[int], None]:
        return repeat_on_host(function, states, self.to_host)

    def zeros(self, count: int, dtype: Any) -> Any:
        return np.zeros(count, dtype)

    def to_host(self, array: Any) -> np.ndarray:
        return np.asarray(array)

    def fetcher(self, array: Any) -> Callable[[], np.ndarray]:
        return lambda: array

    def synchronize(self) -> None:
        pass

    def __reduce__(self) -> Any:
        from mcprecond.backends import get_backend

        return get_backend, (self.name,)
