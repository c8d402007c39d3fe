"""Rows of sparse matrices times several columns on the CPU, in vector registers.

LLVM finds vectors in loops, and a loop over a few columns is too short for that. So this code says what they are.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _each(begin: Any, end: Any, indices: Any, values: Any, x: Any, c: Any, sums: Any) -> None:
    """The same one number after another, for complex ones."""
    for q in range(len(sums)):
        total = x.dtype.type(0)
        for e in range(begin, end):
            total += values[e] * x[indices[e], c + q]
        sums[q] = total


def _product_of_width(width: int) -> Any:
    """Return the function ``product(begin, end, indices, values, x, c, sums)`` for so many columns.

    It makes ``sums[q]`` the sum of ``values[e] * x[indices[e], c + q]`` over e from `begin` to `end` - 1, in this
    order. `sums` has `width` numbers, which lie together, as those of a row of x do.
    """

    @intrinsic
    def product(typing_context: Any, begin: Any, end: Any, indices: Any, values: Any, x: Any, c: Any, sums: Any) -> Any:
        signature = types.void(types.int64, types.int64, indices, values, x, types.int64, sums)

        def codegen(context: Any, builder: Any, sig: Any, given: Any) -> Any:
            if not isinstance(x.dtype, types.Float):
                return context.compile_internal(builder, _each, sig, given)
            number = context.get_value_type(x.dtype)
            vector, size = ir.VectorType(number, width), context.get_abi_sizeof(number)
            arrays = [
                context.make_array(kind)(context, builder, given[k])
                for k, kind in enumerate(sig.args)
                if k in (2, 3, 4, 6)
            ]
            of_indices, of_values, of_x, of_sums = arrays
            pitch = builder.extract_value(of_x.strides, 0)
            first = builder.ptrtoint(builder.gep(of_x.data, [given[5]]), pitch.type)
            total = cgutils.alloca_once_value(builder, ir.Constant(vector, [ir.Constant(number, 0.0)] * width))
            with cgutils.for_range_slice(builder, given[0], given[1], ir.Constant(given[0].type, 1)) as (e, _):
                j = builder.zext(builder.load(builder.gep(of_indices.data, [e])), pitch.type)
                a = builder.load(builder.gep(of_values.data, [e]))
                a = context.cast(builder, a, values.dtype, x.dtype)
                row = builder.inttoptr(builder.add(first, builder.mul(j, pitch)), vector.as_pointer())
                lanes = builder.insert_element(ir.Constant(vector, ir.Undefined), a, ir.Constant(ir.IntType(32), 0))
                zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [ir.Constant(ir.IntType(32), 0)] * width)
                lanes = builder.shuffle_vector(lanes, ir.Constant(vector, ir.Undefined), zeros)
                term = builder.fmul(lanes, builder.load(row, align=size))
                builder.store(builder.fadd(builder.load(total), term), total)
            builder.store(builder.load(total), builder.bitcast(of_sums.data, vector.as_pointer()), align=size)
            return context.get_dummy_value()

        return signature, codegen

    return product


product_of_4, product_of_8 = _product_of_width(4), _product_of_width(8)
