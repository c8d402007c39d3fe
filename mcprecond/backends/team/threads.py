"""Threads that share the iterations of a loop on the CPU.

A loop is a function ``body(first, end, ...)`` of some of its iterations. Its range is cut into chunks; the calling
thread and those of the team claim one after another until none is left, each beginning with its own share, so that the
same thread finds the same rows in its cache again. Whoever has nothing to do polls for some microseconds and sleeps
then. The caller never waits for a thread that has not begun: on a machine where all cores are busy it does the work
itself. It waits for chunks that others are at, and sleeps then, too. Where it waits at a short loop for much longer
than it has worked, it does the next ones by itself.

Where chunks begin depends on the loop alone. So sums, which are added up chunk by chunk, have the same bits with any
number of threads. A loop of few chunks is done by the caller, and a loop that runs while the team is at another
one, as where several threads of Python solve at once, is done by the thread that asked for it.

The state of the team is a block of 64-bit words that compiled code knows by a symbol, so that it can be cached. A job
is published by its number, the epoch. The counter of a thread's share holds the epoch, its next chunk and where it
ends, in one word: so a claim fails if the job is over, whatever was read of it before.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mcprecond.backends.compilation import compiler
from mcprecond.backends.first_use import LOGGER
from mcprecond.backends.threads import default_threads
from mcprecond.interrupts import hold_back

#: A loop is cut into at most so many chunks.
MOST_CHUNKS = 256
MOST_THREADS = 256
#: So many chunks are worth the way to one more thread.
WORTH = 2
#: A loop of fewer chunks is short. If the caller of a short loop waited LATE times as long as it had worked, because
#: another thread lost its core in the middle of a chunk, the caller runs the next FEWEST_ALONE short loops alone. That
#: number doubles each time. A shorter wait is normal where a loop has a few long chunks of different lengths.
SHORT, LATE, FEWEST_ALONE, MOST_ALONE = 64, 2, 16, 4096
#: A thread polls this many times before it sleeps. That takes tens of microseconds, about as long as the work between
#: two loops.
POLLS = 2000

#: Words of the block, each in a cache line (or two) of its own.
_LINE = 16
(
    RUN,  # the address of `_run`, or of `_run_first`
    _START,  # the address of `_start_threads`
    _BUSY,  # 1 while a job is under way
    _STARTED,  # how many threads there are, without callers
    _THREADS,  # how many threads share a loop, with the caller
    _EPOCH,
    _MEMBERS,  # how many threads share the job
    _ENTRY,
    _DATA,
    _FIRST,
    _END,
    _SIZE,  # of a chunk
    _CHUNKS,
    _DONE,
    _FAILED,
    _ALONE,  # how many of the next short loops the caller does by itself
    _MORE_ALONE,  # how many it will be after the next time that others are late
) = range(0, 17 * _LINE, _LINE)
#: Each thread has words for the epoch, the end and the next chunk of its share, for whether it sleeps, and for its
#: mutex and its condition variable.
_NEXT = 18 * _LINE
_SLEEPS = _NEXT + _LINE * MOST_THREADS
_MUTEX = _SLEEPS + _LINE * MOST_THREADS
_CONDITION = _MUTEX + _LINE * MOST_THREADS
_WORDS = _CONDITION + _LINE * MOST_THREADS
#: These words hold the addresses of the system's functions.
_C_LOCK, _C_UNLOCK, _C_WAIT, _C_SIGNAL, _C_TIME = range(17 * _LINE, 17 * _LINE + 5)
#: The first word holds the ID of the clock that is passed to the system's clock function. The function writes seconds
#: and nanoseconds to the other two; on Windows it writes a number of ticks to the first of these.
_CLOCK, _SECONDS, _NANOSECONDS = range(17 * _LINE + 5, 17 * _LINE + 8)

_memory = (ctypes.c_int64 * (_WORDS + _LINE))()
_address = -(-ctypes.addressof(_memory) // (8 * _LINE)) * (8 * _LINE)
_block = (ctypes.c_int64 * _WORDS).from_address(_address)
_SYMBOL = "mcprecond_team"
llvmlite.binding.add_symbol(_SYMBOL, _address)

WORD, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
#: ``entry(data, begin, end, chunk)`` does a chunk and returns 0, or 1 after an exception.
ENTRY_TYPE = ir.FunctionType(WORD, [BYTES, WORD, WORD, WORD])
#: ``run(entry, data, first, end, grain)`` returns the number of chunks, or -1 after an exception.
RUN_TYPE = ir.FunctionType(WORD, [WORD] * 5)


# The words, in compiled code.


def word(builder: Any, index: Any) -> Any:
    """The address of a word of the block."""
    module = builder.module
    words = module.globals.get(_SYMBOL)
    if words is None:
        words = ir.GlobalVariable(module, ir.ArrayType(WORD, _WORDS), _SYMBOL)
    return builder.gep(words, [ir.Constant(WORD, 0), index])


def _operation(emit: Callable[[Any, Any], Any]) -> Any:
    """An intrinsic, whose operands and whose result are int64."""

    @intrinsic
    def operation(typing_context: Any, *operands: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return emit(builder, cgutils.unpack_tuple(builder, args[0]))

        return types.int64(types.StarArgTuple(operands)), codegen

    return operation


def _emit_exchange_if(builder: Any, args: Any) -> Any:
    done = builder.cmpxchg(word(builder, args[0]), args[1], args[2], "seq_cst", "seq_cst")
    return builder.zext(builder.extract_value(done, 1), WORD)


def _emit_call(builder: Any, args: Any) -> Any:
    function = builder.inttoptr(args[0], ENTRY_TYPE.as_pointer())
    return builder.call(function, [builder.inttoptr(args[1], BYTES), *args[2:]])


def _emit_c_call(builder: Any, args: Any) -> Any:
    """Call with two addresses; others than SleepConditionVariableSRW ignore its arguments: no time limit, no flags."""
    function = builder.inttoptr(builder.load(word(builder, args[0])), ir.FunctionType(WORD, [WORD] * 4).as_pointer())
    return builder.call(function, [*args[1:], ir.Constant(WORD, 0xFFFFFFFF), ir.Constant(WORD, 0)])


def _emit_pause(builder: Any, args: Any) -> Any:
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        name, operands = "llvm.x86.sse2.pause", []
    elif machine in ("aarch64", "arm64"):
        name, operands = "llvm.aarch64.hint", [ir.Constant(ir.IntType(32), 1)]
    else:
        return args[0]
    kind = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
    builder.call(builder.module.declare_intrinsic(name, (), kind), operands)
    return args[0]


_load = _operation(lambda builder, args: builder.load_atomic(word(builder, args[0]), "acquire", 8))
_exchange = _operation(lambda builder, args: builder.atomic_rmw("xchg", word(builder, args[0]), args[1], "seq_cst"))
_add = _operation(lambda builder, args: builder.atomic_rmw("add", word(builder, args[0]), args[1], "seq_cst"))
_exchange_if = _operation(_emit_exchange_if)
_call = _operation(_emit_call)
_call_c = _operation(_emit_c_call)
_address_of = _operation(lambda builder, args: builder.ptrtoint(word(builder, args[0]), WORD))
_pause = _operation(_emit_pause)


_compile = compiler(nogil=True, error_model="numpy")


@_compile
def _wake(thread):
    """Wake a thread if it sleeps."""
    if _load(_SLEEPS + _LINE * thread):
        mutex, condition = _address_of(_MUTEX + _LINE * thread), _address_of(_CONDITION + _LINE * thread)
        _call_c(_C_LOCK, mutex, 0)
        _exchange(_SLEEPS + _LINE * thread, 0)
        _call_c(_C_SIGNAL, condition, 0)
        _call_c(_C_UNLOCK, mutex, 0)


@_compile
def _sleep(me, epoch, chunks):
    """Sleep until somebody wakes this thread: thread 0, the caller, until all chunks are done; others for a new job."""
    mutex, condition = _address_of(_MUTEX + _LINE * me), _address_of(_CONDITION + _LINE * me)
    _call_c(_C_LOCK, mutex, 0)
    _exchange(_SLEEPS + _LINE * me, 1)
    if me == 0:
        while _load(_DONE) < chunks:
            _call_c(_C_WAIT, condition, mutex)
    elif _load(_EPOCH) == epoch or me >= _load(_MEMBERS):
        _call_c(_C_WAIT, condition, mutex)
    _exchange(_SLEEPS + _LINE * me, 0)
    _call_c(_C_UNLOCK, mutex, 0)


@_compile
def _now():
    """Read the clock, in nanoseconds or another unit. Only the caller of a loop may, since the words are shared."""
    _call_c(_C_TIME, _load(_CLOCK), _address_of(_SECONDS))
    return _load(_SECONDS) * 1_000_000_000 + _load(_NANOSECONDS)


@_compile
def _claim_chunks(me, epoch):
    """Do chunks of a job until none is left, and return how many; none if the job is over."""
    entry, data, first, end = _load(_ENTRY), _load(_DATA), _load(_FIRST), _load(_END)
    size, chunks, members = _load(_SIZE), _load(_CHUNKS), _load(_MEMBERS)
    claimed = 0
    if me >= members:
        return claimed
    for child in range(2 * me, 2 * me + 2):  # who takes part wakes two others
        if me < child < members:
            _wake(child)
    for step in range(members):
        counter = _NEXT + _LINE * ((me + step) % members)
        while True:
            seen = _load(counter)
            chunk, stop = seen & 0xFFFF, (seen >> 16) & 0xFFFF
            if seen >> 32 != epoch or chunk >= stop:
                break
            if _exchange_if(counter, seen, seen + 1):
                begin = first + chunk * size
                if _call(entry, data, begin, min(begin + size, end), chunk):
                    _exchange(_FAILED, 1)
                claimed += 1
                if _add(_DONE, 1) + 1 == chunks:
                    _wake(0)
    return claimed


@_compile
def _work(me):
    """What a thread of the team does, for ever."""
    epoch, polls = 0, 0
    while True:
        now = _load(_EPOCH)
        if now != epoch:
            epoch = now
            if _claim_chunks(me, epoch):
                polls = 0
        polls += 1
        _pause(0)
        if polls > POLLS:
            _sleep(me, epoch, 0)
            polls = 0


@_compile
def _run(entry, data, first, end, grain):
    """Do all chunks of a loop, and return how many there are; -1 if there was an exception in one of them."""
    size = max(grain, (end - first + MOST_CHUNKS - 1) // MOST_CHUNKS)
    chunks = max((end - first + size - 1) // size, 0)
    members = min(chunks // WORTH, _load(_THREADS))
    if members > 1 and chunks < SHORT and _load(_ALONE) > 0:
        _add(_ALONE, -1)
        members = 1
    if members < 2 or not _exchange_if(_BUSY, 0, 1):
        failed = 0
        for chunk in range(chunks):
            begin = first + chunk * size
            failed |= _call(entry, data, begin, min(begin + size, end), chunk)
        return -1 if failed else chunks
    if _load(_STARTED) < _load(_THREADS) - 1:
        _call(_load(_START), 0, 0, 0, 0)
    members = min(members, _load(_STARTED) + 1)
    epoch = (_load(_EPOCH) + 1) & 0x7FFFFFFF
    _exchange(_ENTRY, entry)
    _exchange(_DATA, data)
    _exchange(_FIRST, first)
    _exchange(_END, end)
    _exchange(_SIZE, size)
    _exchange(_CHUNKS, chunks)
    _exchange(_MEMBERS, members)
    _exchange(_DONE, 0)
    _exchange(_FAILED, 0)
    for thread in range(members):
        stop = chunks * (thread + 1) // members
        _exchange(_NEXT + _LINE * thread, (epoch << 32) | (stop << 16) | (chunks * thread // members))
    started = _now() if chunks < SHORT else 0
    _exchange(_EPOCH, epoch)
    _claim_chunks(0, epoch)
    worked = _now() - started if chunks < SHORT else 0
    polls = 0
    while _load(_DONE) < chunks:
        _pause(0)
        polls += 1
        if polls > POLLS:
            _sleep(0, epoch, chunks)
    if chunks < SHORT:
        more = _load(_MORE_ALONE)
        if polls > POLLS and _now() - started - worked > LATE * worked:
            _exchange(_ALONE, more)
            _exchange(_MORE_ALONE, min(2 * more, MOST_ALONE))
        elif more > FEWEST_ALONE:
            _exchange(_MORE_ALONE, more - 1)
    failed = _load(_FAILED)
    _exchange(_BUSY, 0)
    return -1 if failed else chunks


# Callbacks that compiled code uses to compile `_run` and to start the threads, and the functions for Python.


_LOOP = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)


@_LOOP
def _run_first(entry: int, data: int, first: int, end: int, grain: int) -> Any:
    """Compile `_run`, and let it take the place of this function."""
    try:
        with hold_back(in_callback=True):
            _block[RUN] = address = _c_address(_run, 5)
    except Exception:  # raised here, it would be printed, and the loop taken for done
        LOGGER.exception("the loop that threads share cannot be compiled")
        return -1
    return _LOOP(address)(entry, data, first, end, grain)


def _c_address(function: Any, operands: int) -> int:
    """The address by which C calls a compiled function of so many int64."""
    signature = (types.int64,) * operands
    function.compile(signature)
    compiled = function.overloads[signature]
    address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)
    assert isinstance(address, int)
    return address


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)
def _start_threads(*nothing: Any) -> int:
    """Start the threads that are missing; as many as the system gives."""
    try:
        with hold_back(in_callback=True):
            _work.compile((types.int64,))
            for me in range(_block[_STARTED] + 1, _block[_THREADS]):
                _prepare_sleep(me)
                threading.Thread(target=_work, args=(me,), name=f"mcprecond-{me}", daemon=True).start()
                _block[_STARTED] = me
    except (RuntimeError, MemoryError):  # no more threads, or Python ends
        _block[_THREADS] = _block[_STARTED] + 1
    return 0


def _prepare_sleep(thread: int) -> None:
    """A mutex and a condition variable for a thread; on Windows zeros will do."""
    for kind, begin in (("mutex", _MUTEX), ("cond", _CONDITION)):
        address = ctypes.c_void_p(_address + 8 * (begin + _LINE * thread))
        ctypes.memset(address, 0, 8 * _LINE)
        if not sys.platform.startswith("win"):
            getattr(_SYSTEM, f"pthread_{kind}_init")(address, None)


def set_threads(threads: int) -> None:
    """Let so many threads share a loop, the caller's included."""
    _block[_THREADS] = min(threads, MOST_THREADS)


def get_threads() -> int:
    """How many threads share a loop."""
    return int(_block[_THREADS])


def _forget_threads() -> None:
    """Reset the team in a child of os.fork, which has no threads: it may inherit a running loop, and a locked mutex."""
    _block[_STARTED] = _block[_BUSY] = 0
    for thread in range(MOST_THREADS):
        _block[_SLEEPS + _LINE * thread] = 0
    _prepare_sleep(0)


if sys.platform.startswith("win"):
    _SYSTEM = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    _NAMES = (
        "AcquireSRWLockExclusive",
        "ReleaseSRWLockExclusive",
        "SleepConditionVariableSRW",
        "WakeConditionVariable",
        "QueryPerformanceCounter",
    )
    _block[_CLOCK] = _address + 8 * _SECONDS  # its one argument
else:
    _SYSTEM = ctypes.CDLL(None)
    _NAMES = ("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait", "pthread_cond_signal", "clock_gettime")
    _block[_CLOCK] = time.CLOCK_MONOTONIC
for _index, _name in zip((_C_LOCK, _C_UNLOCK, _C_WAIT, _C_SIGNAL, _C_TIME), _NAMES, strict=True):
    _block[_index] = ctypes.cast(getattr(_SYSTEM, _name), ctypes.c_void_p).value or 0
_block[RUN] = ctypes.cast(_run_first, ctypes.c_void_p).value or 0
_block[_START] = ctypes.cast(_start_threads, ctypes.c_void_p).value or 0
_prepare_sleep(0)
_block[_MORE_ALONE] = FEWEST_ALONE
set_threads(default_threads())
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_threads)
