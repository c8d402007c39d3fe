"""Sums in a fixed order: the same bits in every run, on every GPU, and with any number of threads.

The sums of NumPy and CuPy are in no fixed order: the number of partial sums depends on the threads of the BLAS, or on
the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.backends import NUMBERS, Backend, KernelSet, compile_loop
from mcprecond.backends.cuda_source import BLOCK
from mcprecond.linalg.powers import exponent_of, power_times, times_power

KERNELS = KernelSet(__file__)

#: The number of thread blocks of the kernel that adds numbers up. It is the same on all GPUs, and small enough that
#: every GPU runs all of them at the same time.
BLOCKS = 64


def total(v: Any, backend: Backend) -> Any:
    """The sum of real or complex numbers in double precision.

    Parameters
    ----------
    v : array, shape (n,)
    backend : Backend

    Returns
    -------
    array of float64 or complex128, shape ()
        On the device.
    """
    if v.dtype.kind == "c":
        return total(v.real, backend) + 1j * total(v.imag, backend)
    xp, v = backend.xp, v.astype(np.float64)
    result, arrivals = xp.zeros(1 + BLOCKS), xp.zeros(1, np.uint32)
    backend.kernels(KERNELS).add_up(min(len(v), BLOCKS * BLOCK), len(v), v, result[1:], arrivals, result)
    return result[0]


def norm(v: Any, backend: Backend) -> Any:
    """The Euclidean norm of a vector, as `total` returns a sum."""
    v = wide(v)
    return backend.xp.sqrt(total(v.real**2 + v.imag**2 if v.dtype.kind == "c" else v**2, backend))


def wide(v: Any) -> Any:
    """A vector of numbers, integers too, in double precision."""
    return v.astype(np.complex128 if v.dtype.kind == "c" else np.float64, copy=False)


def norm_of(v: Any, backend: Backend) -> float:
    """The Euclidean norm of a vector whose squares may overflow or underflow, as a number on the host.

    It is not finite if the vector is not.
    """
    v = wide(v)
    exponent = exponent_of(v, backend.xp)
    return power_times(float(norm(times_power(v, -exponent, backend.xp), backend)), exponent)


@KERNELS.strided
def add_up(threads, n, v, parts, arrivals, found):
    """The sum of n numbers, into the first place of `found`."""
    found[0] = sum_of_numbers(0, n, v)


@compile_loop(grain=NUMBERS)
def sum_of_numbers(first, end, v):
    """The numbers of `add_up`."""
    total = 0.0
    for i in range(first, end):
        total += v[i]
    return total
