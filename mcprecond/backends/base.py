"""What the rest of the package may ask of the place where arrays live."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from mcprecond.backends.kernels import KernelSet
from mcprecond.typing import Device


class Backend(Protocol):
    """NumPy and Numba, or CuPy and CUDA. Array modules differ in the functions of this protocol only."""

    name: Device
    #: How many solver iterations to enqueue before the host reads the result the first time.
    iterations_per_read: int

    @property
    def xp(self) -> ModuleType:
        """The array module: numpy or cupy."""

    @property
    def sparse(self) -> ModuleType:
        """The sparse matrices: scipy.sparse or cupyx.scipy.sparse."""

    @property
    def linalg(self) -> ModuleType:
        """The Krylov solvers and LinearOperator: (cupyx.)scipy.sparse.linalg."""

    @property
    def resident_warps(self) -> int:
        """How many warps the current device works on at once; 0 on the CPU, which has no warps."""

    @property
    def most_blocks(self) -> int:
        """The most blocks of a kernel that the current device holds at once; 0 on the CPU."""

    @property
    def shared_cache(self) -> int:
        """Bytes of the cache that all processors of the current device share; 0 on the CPU, where nobody asks."""

    @property
    def memory_speed(self) -> float:
        """Bytes per second that the memory of the current device is made for; 0 on the CPU, or if it is not known."""

    @property
    def stream(self) -> Hashable:
        """A key that tells the current stream from others. Work on one stream is done in the order of its enqueuing."""

    def kernels(self, kernel_set: KernelSet, **macros: Any) -> Any:
        """Return an object with one callable ``f(items, *args)`` per kernel of the set.

        Macros are compile-time choices of the CUDA side (a dtype becomes its C type), which the set declares; Numba
        specializes by itself. A TypeError names a choice that is not declared, or is missing.
        """

    def record(self, fields: tuple[Any, ...], of_cuda: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        """Return the arguments by which kernels take arrays and integers that belong together: in CUDA one struct with
        the arrays' addresses, which does not keep the arrays alive; on the CPU the fields, but for those of CUDA alone.
        """

    def repeatable(self, function: Callable[[], None]) -> Callable[[], None]:
        """Return a cheap way to run `function` again and again on the same arrays: on the GPU a captured graph.

        `function` must launch kernels and do nothing else: allocate nothing, and read nothing back.
        """

    def to_host(self, array: Any) -> np.ndarray:
        """Return `array` as a NumPy array; on the GPU this waits for the current stream."""

    def fetcher(self, array: Any) -> Callable[[], Callable[[], np.ndarray]]:
        """Return a function that asks for `array` as it is once everything enqueued so far is done, and returns a
        function that waits for it, but not for what is enqueued later. The array that the latter returns holds until
        the next array is asked for.
        """

    def synchronize(self) -> None:
        """Wait until everything enqueued on the current stream is done."""
