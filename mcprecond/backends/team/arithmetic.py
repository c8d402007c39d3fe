"""Instructions that Numba does not reach, on the CPU: fused multiply-adds, the lowest bit of a number, and rows of
sparse matrices times several columns in vector registers.

LLVM finds vectors in loops, and a loop over a few columns is too short for that. So this code spells out the vectors.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c in double precision, rounded once."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


def _trailing_zeros() -> Any:
    def each(word: Any) -> Any:
        """The same, bit by bit."""
        place = 0
        while not (int(word) >> place) & 1:
            place += 1
        return place

    @intrinsic
    def trailing_zeros(context: Any, word: Any) -> Any:
        """The place of the lowest bit that is set in a positive number."""

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if word != types.uint64:
                return context.compile_internal(builder, each, sig, args)
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(word), codegen

    return trailing_zeros


trailing_zeros = _trailing_zeros()


def _product_of_width(width: int) -> Any:
    """Return the function ``product(begin, end, indices, values, x, c, y, i)`` for so many columns, from c on.

    It makes ``y[i, c + q]`` the sum of ``values[e] * x[indices[e], c + q]`` over e from `begin` to `end` - 1, in this
    order. The numbers of a row of x and of y lie together. (Views of rows would cost more than short rows do.)
    """

    def each(begin: Any, end: Any, indices: Any, values: Any, x: Any, c: Any, y: Any, i: Any) -> None:
        """The same, one number after another, for complex numbers."""
        for q in range(c, c + width):
            total = x.dtype.type(0)
            for e in range(begin, end):
                total += values[e] * x[indices[e], q]
            y[i, q] = total

    @intrinsic
    def product(context: Any, begin: Any, end: Any, indices: Any, values: Any, x: Any, c: Any, y: Any, i: Any) -> Any:
        signature = types.void(types.int64, types.int64, indices, values, x, types.int64, y, types.int64)

        def codegen(context: Any, builder: Any, sig: Any, given: Any) -> Any:
            if not isinstance(x.dtype, types.Float):
                return context.compile_internal(builder, each, sig, given)

            def row(array: Any, j: Any) -> Any:
                """Where the numbers of a row begin."""
                pitch = builder.extract_value(array.strides, 0)
                first = builder.ptrtoint(builder.gep(array.data, [given[5]]), pitch.type)
                return builder.inttoptr(builder.add(first, builder.mul(j, pitch)), vector.as_pointer())

            number = context.get_value_type(x.dtype)
            vector, size = ir.VectorType(number, width), context.get_abi_sizeof(number)
            of_indices, of_values, of_x, of_y = (
                context.make_array(sig.args[k])(context, builder, given[k]) for k in (2, 3, 4, 6)
            )
            first_lane, step = ir.Constant(ir.IntType(32), 0), ir.Constant(given[0].type, 1)
            every_lane = ir.Constant(ir.VectorType(ir.IntType(32), width), [first_lane] * width)
            total = cgutils.alloca_once_value(builder, ir.Constant(vector, [ir.Constant(number, 0.0)] * width))
            with cgutils.for_range_slice(builder, given[0], given[1], step) as (e, _):
                j = builder.zext(builder.load(builder.gep(of_indices.data, [e])), step.type)
                a = context.cast(builder, builder.load(builder.gep(of_values.data, [e])), values.dtype, x.dtype)
                lane = builder.insert_element(ir.Constant(vector, ir.Undefined), a, first_lane)
                lanes = builder.shuffle_vector(lane, ir.Constant(vector, ir.Undefined), every_lane)
                term = builder.fmul(lanes, builder.load(row(of_x, j), align=size))
                builder.store(builder.fadd(builder.load(total), term), total)
            builder.store(builder.load(total), row(of_y, given[7]), align=size)
            return context.get_dummy_value()

        return signature, codegen

    return product


product_of_4, product_of_8 = _product_of_width(4), _product_of_width(8)
