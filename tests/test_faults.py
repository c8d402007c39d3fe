"""Faults in the middle of things: memory that runs out, Ctrl-C, callbacks that raise, matrices that are refused late.

What is updated has its old values afterwards, or its new ones, or says that it has neither; and the next call is right.
"""

from __future__ import annotations

import contextlib
import gc
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, spd

import mcprecond
from mcprecond import (
    ILU0,
    PCG,
    ClassicalAMG,
    ColorBlocks,
    MulticolorDILU,
    MulticolorSGS,
    SmoothedAggregation,
    bicgstab,
    color,
    gmres,
    minres,
    pcg,
)
from mcprecond.backends import get_backend
from mcprecond.interrupts import hold_back
from mcprecond.storage.fingerprint import UPDATES_PER_FILL, Fingerprint

PACKAGE = str(Path(mcprecond.__file__).parent)

SIZE = 12

#: What can be updated, by name.
UPDATED: dict[str, Callable[[Any], Any]] = {
    "color blocks": partial(ColorBlocks, coloring="greedy"),
    "SGS": partial(MulticolorSGS, coloring="greedy"),
    "SGS of nodes": partial(MulticolorSGS, coloring="greedy", block_size=2),
    "DILU": partial(MulticolorDILU, coloring="greedy", pivot="raise"),
    "ILU0": partial(ILU0, pivot="raise"),
    "multigrid": partial(SmoothedAggregation, smoother="gauss_seidel", coloring="greedy", max_coarse=8),
    "multigrid, Chebyshev": partial(SmoothedAggregation, smoother="chebyshev", max_coarse=8),
    "classical multigrid": partial(ClassicalAMG, max_coarse=8),
}


def applied(M: Any) -> np.ndarray:
    """What M does, in bits."""
    b = M.backend.xp.asarray(np.random.default_rng(0).uniform(-1, 1, M.shape[0]))
    return M.backend.to_host(M.permuted() @ b if isinstance(M, ColorBlocks) else M @ b)


def system(to_device: Callable[[Any], Any], size: int = SIZE) -> tuple[Any, Any, Any]:
    """A, another matrix with its pattern, and b."""
    A = spd(grid5(size))
    scale = sp.diags_array(np.random.default_rng(1).uniform(1, 2, size**2))
    return to_device(A), to_device(sp.csr_matrix(scale @ A @ scale)), to_device(np.ones(size**2))


class Expected:
    """What an object does before an update and after it."""

    def __init__(self, make: Callable[[Any], Any], A: Any, other: Any) -> None:
        self.M = make(A)
        self.old = applied(self.M)
        self.updated(other)
        self.new = applied(self.M)
        self.updated(A, self.old)
        assert not np.array_equal(self.old, self.new)

    def check(self, unchanged: bool, may_be_halfway: bool) -> None:
        """After an update that has failed: all old values, or all new ones unless `unchanged`; or M says that it is
        halfway.
        """
        if may_be_halfway and self.M.is_halfway:
            with pytest.raises(RuntimeError, match="the last update failed"):
                applied(self.M)
            return
        found = applied(self.M)
        assert np.array_equal(found, self.old) or (not unchanged and np.array_equal(found, self.new))

    def updated(self, A: Any, values: np.ndarray | None = None) -> None:
        """An update that succeeds."""
        self.M.update(A)
        if values is not None:
            np.testing.assert_array_equal(applied(self.M), values)


# ---- Matrices that are refused late


def without_pivot(A: sp.csr_matrix) -> sp.csr_matrix:
    """The same pattern with zeros on the diagonal, which the door lets in: the last rows of it."""
    bad = A.copy()
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    bad.data[(rows == bad.indices) & (rows >= A.shape[0] - 2)] = 0
    bad.data[(rows != bad.indices) & (rows >= A.shape[0] - 2)] = 0
    return bad


@pytest.mark.parametrize("kind", UPDATED)
def test_what_a_late_refusal_has_left_is_not_used(kind, to_device):
    """M refuses to be used until an update succeeds; what is refused at the door changes nothing."""
    host = spd(grid5(12))
    A, other, _ = system(to_device)
    case = Expected(UPDATED[kind], A, other)
    if kind == "color blocks":  # which divide by nothing, and so refuse at the door only
        bad, message = host.copy(), "finite"
        bad.data[-1] = np.nan
    else:
        bad, message = without_pivot(host), "row"
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            case.M.update(to_device(bad))
        case.check(unchanged=True, may_be_halfway=kind != "color blocks")
    case.updated(other, case.new)
    case.updated(A, case.old)


@pytest.mark.parametrize("smoother", ["gauss_seidel", "chebyshev", "dilu"])
def test_a_coarse_level_that_is_refused_leaves_nothing_to_use(smoother, to_device, backend):
    """The finest level is symmetric with a positive diagonal; a coarse one is indefinite."""
    host = sp.csr_matrix(grid5(20))
    A = to_device(host)
    M = SmoothedAggregation(A, smoother=smoother, max_coarse=8)
    assert len(M.levels) > 2
    before = applied(M)
    solver, b = PCG(A, M), to_device(np.ones(400))
    x = backend.to_host(solver.solve(b, rtol=1e-9).x)
    indefinite = host.copy()
    indefinite.setdiag(host.diagonal() * 0.6)
    with pytest.raises(ValueError, match="level"):
        M.update(to_device(indefinite))
    for use in (partial(applied, M), partial(applied, M.aspreconditioner("W")), partial(solver.solve, b)):
        with pytest.raises(RuntimeError, match="the last update failed"):
            use()
    M.update(A)
    np.testing.assert_array_equal(applied(M), before)
    np.testing.assert_array_equal(backend.to_host(solver.solve(b, rtol=1e-9).x), x)


@pytest.mark.parametrize("form", ["plain", "eisenstat"])
def test_pcg_does_not_use_what_is_halfway(form, to_device, backend):
    host = spd(grid5(12))
    A, b = to_device(host), to_device(np.ones(144))
    M = MulticolorSGS(A, "greedy")
    solver = PCG(A, M, form=form)
    x = backend.to_host(solver.solve(b).x)
    with pytest.raises(ValueError, match="row"):
        M.update(to_device(without_pivot(host)))
    for solve in (partial(solver.solve, b), partial(pcg, A, b, M=M, form=form)):
        with pytest.raises(RuntimeError, match="the last update failed"):
            solve()
    M.update(A)
    np.testing.assert_array_equal(backend.to_host(solver.solve(b).x), x)


# ---- What is done, and undone

#: What is done with A and b, by name; each returns an array.
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "color": lambda A, b: color(A).colors,
    "color, distance 2": lambda A, b: color(A, "jp", distance=2).colors,
    "color blocks": lambda A, b: ColorBlocks(A, "greedy").permuted().data,
    "SGS": lambda A, b: MulticolorSGS(A) @ b,
    "ILU0": lambda A, b: ILU0(A) @ b,
    "multigrid": lambda A, b: SmoothedAggregation(A, max_coarse=8) @ b,
    "pcg": lambda A, b: pcg(A, b, rtol=1e-9).x,
    "pcg, Eisenstat": lambda A, b: pcg(A, b, M=MulticolorSGS(A, "greedy"), form="eisenstat", rtol=1e-9).x,
    "pcg, columns": lambda A, b: pcg(A, b[:, None] * b[:3], M=MulticolorSGS(A, "greedy"), form="plain").x,
    "bicgstab": lambda A, b: bicgstab(A, b, rtol=1e-9).x,
    "gmres": lambda A, b: gmres(A, b, rtol=1e-9).x,
    "minres": lambda A, b: minres(A, b, rtol=1e-9).x,
}


def nothing_is_captured(backend: Any) -> bool:
    """Whether the current stream is as it should be between two calls."""
    return backend.name == "cpu" or not backend.xp.cuda.get_current_stream().is_capturing()


def some_of(count: int, most: int = 40, others: int = 10) -> list[int]:
    """The numbers from 1 to `most`, and some of those up to `count`."""
    rest = range(most + 1, count + 1)
    return [*range(1, min(most, count) + 1), *sorted(random.Random(0).sample(rest, min(others, len(rest))))]


# ---- Memory that runs out

#: Functions of NumPy that allocate, where the package calls them.
ALLOCATING = ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "arange", "concatenate", "cumsum", "diff")


class Scarce:
    """Lets the allocation of a number fail, and counts them: CuPy's, or those of NumPy that the package makes."""

    def __init__(self, backend: Any) -> None:
        self.backend, self.count, self.fails_at = backend, 0, 0

    def allocate(self, size: int) -> Any:
        """In the place of CuPy's allocator."""
        cuda = self.backend.xp.cuda
        self.count += 1
        if self.count == self.fails_at:
            raise cuda.memory.OutOfMemoryError(size, 0)
        return self.backend.xp.get_default_memory_pool().malloc(size)

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """In the place of a function of NumPy."""

        def allocate(*arguments: Any, **options: Any) -> Any:
            if sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
                self.count += 1
                if self.count == self.fails_at:
                    raise MemoryError("there is no memory left")
            return function(*arguments, **options)

        return allocate

    @contextlib.contextmanager
    def failing(self, number: int) -> Iterator[None]:
        """Let an allocation fail, counted from here."""
        self.count, self.fails_at = 0, number
        if self.backend.name == "gpu":
            with self.backend.xp.cuda.using_allocator(self.allocate):
                yield
            return
        with pytest.MonkeyPatch.context() as patched:
            for name in ALLOCATING:
                patched.setattr(np, name, self.counted(getattr(np, name)))
            yield

    def fails(self, run: Callable[[], Any], number: int) -> bool:
        """Whether a call ends by a MemoryError; nothing refers to what it had."""
        try:
            with self.failing(number):
                run()
        except MemoryError:
            return True
        return False

    def used(self) -> int:
        """Bytes of the GPU that are in use."""
        if self.backend.name == "cpu":
            return 0
        for thread in threading.enumerate():
            if thread.name == "mcprecond-cupy":  # which makes CuPy compile
                thread.join()
        gc.collect()
        return self.backend.xp.get_default_memory_pool().used_bytes()


@pytest.mark.parametrize("name", OPERATIONS)
def test_any_allocation_may_fail(name, to_device, backend):
    A, _, b = system(to_device)
    run, scarce = partial(OPERATIONS[name], A, b), Scarce(backend)
    expected = backend.to_host(run())
    with scarce.failing(0):
        run()
    before, failed = scarce.used(), 0
    for number in some_of(scarce.count):
        failed += scarce.fails(run, number)
        assert nothing_is_captured(backend)
    assert failed > 0 and scarce.used() <= before
    np.testing.assert_array_equal(backend.to_host(run()), expected)


@pytest.mark.parametrize("kind", UPDATED)
def test_any_allocation_of_an_update_may_fail(kind, to_device, backend):
    A, other, _ = system(to_device)
    case, scarce = Expected(UPDATED[kind], A, other), Scarce(backend)
    blocks = case.M if isinstance(case.M, ColorBlocks) else getattr(case.M, "blocks", None)

    def update(to: Any) -> None:
        if blocks:
            blocks._fingerprints._zeros.clear()  # which are for many updates
        case.M.update(to)

    with scarce.failing(0):
        update(A)
    case.updated(A, case.old)  # what an application keeps is there, as it is after each turn
    before, failed = scarce.used(), 0
    for number in some_of(scarce.count):
        if scarce.fails(partial(update, other), number):
            failed += 1
            case.check(unchanged=True, may_be_halfway=True)
        assert nothing_is_captured(backend)
        case.updated(A, case.old)
    room = UPDATES_PER_FILL * len(Fingerprint._fields) * 8  # zeros for further updates
    assert failed > 0 and scarce.used() <= before + room
    case.updated(other, case.new)


@pytest.mark.gpu
@pytest.mark.parametrize("waits", [False, True])
def test_what_fails_while_it_is_captured_tells_its_own_error(waits):
    """Also where CUDA gives up the capture, as at a kernel that is waited for."""
    backend = get_backend("gpu")
    kept = backend.xp.arange(3.0)

    def fail() -> None:
        kept.fill(1)
        if waits:
            with contextlib.suppress(backend.xp.cuda.runtime.CUDARuntimeError):
                backend.synchronize()
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            backend.repeatable(fail)
        assert nothing_is_captured(backend) and backend.to_host(kept).tolist() == [0, 1, 2]
    backend.repeatable(lambda: kept.fill(1))()
    backend.xp.cuda.Device().synchronize()
    assert backend.to_host(kept).tolist() == [1, 1, 1]


# ---- Ctrl-C


@contextlib.contextmanager
def interrupted_at(number: int) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt at a line of the package's Python code; they are counted as they are run."""
    count = [0]

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            count[0] += 1
            if count[0] == number:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


def lines_of(run: Callable[[], Any]) -> int:
    """How many lines of the package's Python code a call runs."""
    with interrupted_at(0) as count:
        run()
    return count[0]


def is_interrupted(run: Callable[[], Any], number: int) -> bool:
    """Whether Ctrl-C at a line ends a call."""
    try:
        with interrupted_at(number):
            run()
    except KeyboardInterrupt:
        return True
    return False


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_interrupt_anywhere_leaves_nothing_behind(name, to_device, backend):
    A, _, b = system(to_device)
    run = partial(OPERATIONS[name], A, b)
    expected = backend.to_host(run())
    count = sum(is_interrupted(run, number) for number in some_of(lines_of(run), 0, 25))
    assert count > 0 and nothing_is_captured(backend)
    np.testing.assert_array_equal(backend.to_host(run()), expected)


@pytest.mark.gpu
def test_an_interrupt_while_a_loop_is_made_ends_its_capture(monkeypatch):
    """To free a stream that captures may crash."""
    import cupy

    backend, streams = get_backend("gpu"), []
    make_stream, kept = cupy.cuda.Stream, cupy.zeros(1, np.int64)

    def remember(**options: Any) -> Any:
        streams.append(make_stream(**options))
        return streams[-1]

    monkeypatch.setattr(cupy.cuda, "Stream", remember)
    make = partial(backend.loop, partial(kept.fill, 1), kept, True, 1)
    for number in range(1, lines_of(make) + 1):
        assert is_interrupted(make, number) and not any(stream.is_capturing() for stream in streams)
    make()(100)
    assert int(kept[0]) == 1 and streams


@pytest.mark.parametrize("kind", UPDATED)
def test_an_interrupted_update_has_old_values_or_new_ones(kind, to_device, backend):
    A, other, _ = system(to_device)
    case, interrupted = Expected(UPDATED[kind], A, other), 0
    for number in some_of(lines_of(partial(case.M.update, A)), 0, 40):
        interrupted += is_interrupted(partial(case.M.update, other), number)
        case.check(unchanged=False, may_be_halfway=True)
        assert nothing_is_captured(backend)
        case.updated(A, case.old)
    assert interrupted > 0
    case.updated(other, case.new)


@pytest.mark.parametrize(
    "M_of", [None, partial(MulticolorSGS, coloring="greedy", omega=1.2)], ids=["plain", "Eisenstat"]
)
def test_one_solver_goes_on_after_interrupts(M_of, to_device, backend):
    """Of its solves, and of updates that it has to take note of."""
    A, other, b = system(to_device)
    own = A.copy()
    M = M_of and M_of(own)
    solver = PCG(own, M)
    solve = partial(solver.solve, b, rtol=1e-9)
    expected = [backend.to_host(pcg(C, b, M=M_of and M_of(C), rtol=1e-9).x) for C in (A, other)]
    for number in some_of(lines_of(solve), 0, 25):
        is_interrupted(solve, number)
        assert nothing_is_captured(backend)
        np.testing.assert_array_equal(backend.to_host(solve().x), expected[0])
    if M is None:
        return

    def follow(to: Any) -> None:
        own.data[...] = to.data
        M.update(own)
        solve()

    for number in some_of(lines_of(partial(follow, A)), 0, 40):
        is_interrupted(partial(follow, other), number)
        follow(other)
        np.testing.assert_array_equal(backend.to_host(solve().x), expected[1])
        follow(A)
        np.testing.assert_array_equal(backend.to_host(solve().x), expected[0])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer of signals here")
def test_signals_while_the_team_is_at_work():
    """They arrive in compiled loops, too; the threads go on."""
    A = sp.csr_matrix(mcprecond.problems.laplacian((60, 60, 10)))
    M, b, count = MulticolorSGS(A, "eb"), np.ones(36_000), 0
    expected, x = M @ b, pcg(A, b, M=M, maxiter=20).x
    random_times = random.Random(0)
    for _ in range(20):
        # Once more after a second: an exception that arrives in a destructor is printed and lost.
        signal.setitimer(signal.ITIMER_REAL, random_times.uniform(1e-4, 2e-2), 1.0)
        handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            while True:
                M.update(A)
                pcg(A, b, M=M, maxiter=20)
        except KeyboardInterrupt:
            count += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        M.update(A)
        np.testing.assert_array_equal(M @ b, expected)
    np.testing.assert_array_equal(pcg(A, b, M=M, maxiter=20).x, x)
    assert count == 20


def test_an_interrupt_that_is_held_back_comes_in_the_end():
    done = []

    def work() -> None:
        with hold_back(), hold_back():
            signal.raise_signal(signal.SIGINT)
            done.append("went on")
        done.append("too far")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["went on"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with hold_back(), hold_back(in_callback=True):
        pass


def test_an_interrupt_in_a_callback_of_c_comes_behind_it():
    done = []

    def work() -> None:
        with hold_back(in_callback=True):
            signal.raise_signal(signal.SIGINT)
        done.append("returned")
        for _ in range(1000):
            time.sleep(0.01)
        done.append("slept")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["returned"]


def test_other_threads_are_not_held_back():
    found = []
    thread = threading.Thread(target=lambda: found.append(hold_back().__enter__()))
    before = signal.getsignal(signal.SIGINT)
    thread.start()
    thread.join()
    assert found == [None] and signal.getsignal(signal.SIGINT) is before


# ---- Functions of the user that raise


class Raises:
    """A callback that raises when it is called for the k-th time."""

    def __init__(self, k: int) -> None:
        self.left = k

    def __call__(self, *arguments: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise ZeroDivisionError("of the user")


@pytest.mark.parametrize("hook", ["callback", "progress"])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("kind", [None, "SGS", "multigrid"])
def test_a_function_that_raises_leaves_the_solver_usable(kind, columns, hook, to_device, backend):
    A, _, b = system(to_device)
    b = b if columns == 1 else b[:, None] * backend.xp.arange(1.0, 1 + columns)
    solver = PCG(A, kind and UPDATED[kind](A))
    expected = backend.to_host(solver.solve(b, rtol=1e-9).x)
    for k in (1, 2, 3) if hook == "callback" else (1, 2):  # a GPU tells its progress now and then
        with pytest.raises(ZeroDivisionError, match="of the user"):
            solver.solve(b, rtol=1e-9, **{hook: Raises(k)})
        assert nothing_is_captured(backend)
    np.testing.assert_array_equal(backend.to_host(solver.solve(b, rtol=1e-9).x), expected)


@pytest.mark.parametrize(
    "solve", [minres, bicgstab, partial(gmres, callback_type="pr_norm")], ids=["minres", "bicgstab", "gmres"]
)
def test_the_next_solve_is_right_after_a_function_that_raises(solve, to_device, backend):
    A, _, b = system(to_device)
    expected = backend.to_host(solve(A, b, rtol=1e-9, callback=lambda *_: None).x)
    with pytest.raises(ZeroDivisionError):
        solve(A, b, rtol=1e-9, callback=Raises(2))
    np.testing.assert_array_equal(backend.to_host(solve(A, b, rtol=1e-9, callback=lambda *_: None).x), expected)
