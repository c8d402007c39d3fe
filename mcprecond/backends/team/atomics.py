"""Atomic updates of integer arrays inside Numba kernels: the CPU's side of CUDA's atomicOr, atomicAdd and others."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


def _atomic(operation: str) -> Any:
    """Build ``f(array, index, value)`` that returns the element's old value; `operation` is LLVM's atomicrmw word."""

    @intrinsic
    def update(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            array_type = sig.args[0]
            view = make_array(array_type)(context, builder, args[0])
            element = cgutils.get_item_pointer(context, builder, array_type, view, [args[1]], wraparound=False)
            return builder.atomic_rmw(operation, element, args[2], "monotonic")

        return signature(array.dtype, array, types.intp, array.dtype), codegen

    return update


atomic_or = _atomic("or")
atomic_add = _atomic("add")
atomic_max = _atomic("max")
atomic_min = _atomic("min")
