"""Loops whose iterations the team of threads shares: how Numba compiles ``body(first, end, ...)`` into one of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mcprecond.backends.compilation import compiler
from mcprecond.backends.team.threads import BYTES, ENTRY_TYPE, MOST_CHUNKS, RUN, RUN_TYPE, WORD, word


@intrinsic
def _share(typing_context: Any, body: Any, grain: Any, first: Any, end: Any, *args: Any) -> Any:
    """Call ``body(begin, end, *args)`` for all chunks; the sum of what it returns, in the order of chunks."""
    operands = (types.int64, types.int64, *args)
    result = body.get_call_type(typing_context, operands, {}).return_type

    def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        call = body.get_call_type(context.typing_context, operands, {})
        compiled = body.dispatcher.overloads[tuple(call.args)]
        context.active_code_library.add_linking_library(compiled.library)
        sums = result != types.none
        kind = context.get_value_type(result) if sums else WORD
        places = cgutils.alloca_once(builder, kind, MOST_CHUNKS if sums else 1)
        given = [builder.extract_value(values[4], k) for k in range(len(args))]
        packed = cgutils.pack_struct(builder, [builder.bitcast(places, BYTES), *given])
        data = cgutils.alloca_once_value(builder, packed)

        entry = ir.Function(builder.module, ENTRY_TYPE, f"chunk.{compiled.fndesc.mangled_name}")
        entry.linkage = "internal"
        inside = ir.IRBuilder(entry.append_basic_block())
        sums_of_chunks, *taken = cgutils.unpack_tuple(
            inside, inside.load(inside.bitcast(entry.args[0], packed.type.as_pointer())), len(args) + 1
        )
        # Bounds are not negative. Where LLVM knows that, it drops the check for indices that count from the end.
        bounds = [inside.and_(bound, ir.Constant(WORD, 2**63 - 1)) for bound in entry.args[1:3]]
        status, sum_of_chunk = context.call_internal_no_propagate(inside, compiled.fndesc, call, [*bounds, *taken])
        if sums:
            inside.store(sum_of_chunk, inside.gep(inside.bitcast(sums_of_chunks, kind.as_pointer()), [entry.args[3]]))
        inside.ret(inside.zext(status.is_error, WORD))

        run = builder.inttoptr(builder.load(word(builder, ir.Constant(WORD, RUN))), RUN_TYPE.as_pointer())
        words = [builder.ptrtoint(entry, WORD), builder.ptrtoint(data, WORD)]
        chunks = builder.call(run, [*words, values[2], values[3], values[1]])
        with builder.if_then(builder.icmp_signed("<", chunks, ir.Constant(WORD, 0)), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("a loop could not allocate what it needs",))
        if not sums:
            return context.get_dummy_value()
        total = cgutils.alloca_once_value(builder, context.get_constant_null(result))
        with cgutils.for_range(builder, chunks) as loop:
            part = builder.load(builder.gep(places, [loop.index]))
            builder.store(_add(builder, builder.load(total), part), total)
        return builder.load(total)

    signature = result(body, types.int64, types.int64, types.int64, types.StarArgTuple(args))
    return signature, codegen


def _add(builder: Any, a: Any, b: Any) -> Any:
    """The sum of two numbers, or of two tuples of numbers."""
    if isinstance(a.type, ir.ArrayType | ir.LiteralStructType):
        total = a
        for k in range(len(a.type)):
            part = _add(builder, builder.extract_value(a, k), builder.extract_value(b, k))
            total = builder.insert_value(total, part, k)
        return total
    return builder.add(a, b) if isinstance(a.type, ir.IntType) else builder.fadd(a, b)


def shared_loop(body: Callable[..., Any], grain: str, known: dict[str, Any], **options: Any) -> Any:
    """Compile ``body(first, end, ...)``, and return a compiled function with the same parameters that lets the team
    share the iterations from `first` to `end`.

    Parameters
    ----------
    body : function
        Returns nothing, or numbers, of which the sum over all chunks is returned.
    grain : str
        How many iterations a chunk has at least: an expression in the parameters of the body, and in what is known.
    known : dict
        Compiled functions by their names.
    **options
        Of `numba.njit`.
    """
    serial = compiler(keeps=False, no_cpython_wrapper=True, **options)(body)
    names = ", ".join(inspect.signature(body).parameters)
    scope = {"shared": _share, "body": serial, **known}
    exec(f"def loop({names}):\n    return shared(body, {grain}, {names})", scope)
    loop = scope["loop"]
    # Numba keeps what it compiles beside the file that defines the function, under its name and line.
    code = body.__code__
    loop.__code__ = loop.__code__.replace(co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)
    return compiler(**options)(update_wrapper(loop, body, updated=()))
