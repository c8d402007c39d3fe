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
    #: How many iterations of a solver may run before the host reads the residuals.
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

    def loop(self, function: Callable[[], None], states: Any, captures: bool, bundle: int) -> Callable[[int], None]:
        """Return a function ``loop(most)`` that runs `function` so many times, or until none of the states is 0 any
        more, but once at least; on the GPU without waiting for the host, where that is possible.

        Parameters
        ----------
        function : function
            Nothing changes if it runs once more afterwards.
        states : array of int64
            On the device.
        captures : bool
            Whether `function` launches kernels and does nothing else, as for `repeatable`.
        bundle : int
            On the GPU the loop reads the states after every `bundle` runs, or after each one if `most` is less.
        """

    def zeros(self, count: int, dtype: Any) -> Any:
        """Return an array with a few zeros, such as counters, for kernels on the current stream. It is a part of a
        larger array, which stays as long as any part of it. Not to be called while something is captured.
        """

    def to_host(self, array: Any) -> np.ndarray:
        """Return `array` as a NumPy array; on the GPU this waits for the current stream."""

    def fetcher(self, array: Any) -> Callable[[], np.ndarray]:
        """Return a cheap way to fetch `array` again and again, once everything enqueued so far is done. What it returns
        holds until the next call.
        """

    def synchronize(self) -> None:
        """Wait until everything enqueued on the current stream is done."""
