"""The CPU's functions as plain Python, which Numba does not compile. A pytest plugin.

    python -m pytest -p interpreted -m "not gpu" tests/coloring/test_orders.py

What it is for: to see which lines of these functions tests reach (`make coverage`), and to change such a line and run
tests without compiling anew, as tools for mutation testing do. NUMBA_DISABLE_JIT would not do: loops that the team of
threads shares, and atomic updates, are made by code that only Numba's compiler can call. So three modules of
`mcprecond.backends` are replaced before the package is imported. A loop runs as one chunk, hence sums may differ in
their last bits, and nothing runs in parallel. Tests of threads, of caches and of bits have no meaning under it.
"""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numba.extending
import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("interpreted", deadline=None, derandomize=True, max_examples=3)


def widened(value: Any) -> Any:
    """An integer that Numba would compute with in 64 bits."""
    return int(value) if isinstance(value, np.integer) and not isinstance(value, np.uint64) else value


class Array(np.ndarray):
    """An array whose integers are read as Python's."""

    def __getitem__(self, key: Any) -> Any:
        return widened(super().__getitem__(key))

    def __iter__(self) -> Iterator[Any]:
        return map(widened, super().__iter__())


def compiler(*, keeps: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """In the place of `mcprecond.backends.compilation.compiler`."""

    def interpret(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            given = (arg.view(Array) if isinstance(arg, np.ndarray) else widened(arg) for arg in args)
            with np.errstate(all="ignore"):
                found = function(*given)
            return np.asarray(found) if isinstance(found, Array) else found

        call.py_func, call.stats = function, SimpleNamespace(cache_path=None)
        return call

    return interpret


def shared_loop(body: Callable[..., Any], grain: str, known: dict[str, Any], **options: Any) -> Any:
    """In the place of `mcprecond.backends.team.loops.shared_loop`."""
    return compiler()(body)


def atomic(change: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """An update of an array's element that returns its old value."""

    def update(array: Any, index: Any, value: Any) -> Any:
        before = array[index]
        array[index] = change(before, array.dtype.type(value))
        return before

    return update


def intrinsic(function: Callable[..., Any]) -> Any:
    """In the place of Numba's, of which one is left: the products of `team/arithmetic.py`."""
    scope = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    return scope["each"].cell_contents if "each" in scope else function


def replace(name: str, **functions: Any) -> None:
    """Put a module into the place of one of `mcprecond.backends` that is not imported yet."""
    name = f"mcprecond.backends.{name}"
    assert name not in sys.modules, "this plugin has to be loaded first: python -m pytest -p interpreted"
    sys.modules[name] = module = ModuleType(name)
    vars(module).update(functions)


replace("compilation", compiler=compiler)
replace("team.loops", shared_loop=shared_loop)
replace(
    "team.atomics",
    atomic_or=atomic(lambda a, b: a | b),
    atomic_add=atomic(lambda a, b: a + b),
    atomic_max=atomic(max),
    atomic_min=atomic(min),
)
numba.extending.intrinsic = intrinsic


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--most-seconds", type=float, default=5, help="skip the rest of a test that computes longer")
    parser.addoption("--slow-fails", action="store_true", help="let such a test fail")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    def give_up(_: int, frame: Any) -> None:
        while frame:  # coverage may hold a lock
            path = Path(frame.f_code.co_filename)
            if path.parent.name == "coverage" and path.name not in ("__main__.py", "cmdline.py", "execfile.py"):
                signal.setitimer(signal.ITIMER_PROF, 0.01)
                return
            frame = frame.f_back
        signal.setitimer(signal.ITIMER_PROF, 0.5)  # for whoever catches that and goes on, as Hypothesis does
        (pytest.fail if item.config.getoption("--slow-fails") else pytest.skip)("takes too long in Python")

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, item.config.getoption("--most-seconds"))
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
