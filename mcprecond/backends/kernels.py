"""A kernel set: the CUDA kernels of one module, and the Numba functions of the same names for the CPU.

Both compute the same and are called alike, through a backend. The CPU's functions are what production runs there, and
are written to be fast; readable definitions, which tests compare both with, are in tests/reference::

    KERNELS = KernelSet(__file__, "VALUE")     # the .cu file beside this module, and what it is compiled for

    @KERNELS.per_item
    def scale(first, end, factor, x): ...      # extern "C" __global__ void scale(long long items, double factor, ...)

    run = backend.kernels(KERNELS, VALUE=x.dtype)
    run.scale(x.size, 2.0, x)

In a kernel's signature every integer scalar is ``long long`` and every real scalar ``double``. What `Backend.record`
puts together, such as the arrays of a matrix, is one struct in CUDA. On the CPU its fields are arguments.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from mcprecond.backends.checking import NUMBA_OPTIONS
from mcprecond.backends.compilation import compiler
from mcprecond.backends.team.loops import shared_loop

#: For all functions. fastmath stays off: results keep their bits whatever is compiled around them. C does not call
#: them, and a way for it to do so would take time to compile.
ALL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **NUMBA_OPTIONS}
#: The smallest chunk of a loop over rows of a sparse matrix: less work does not pay for handing it to another thread.
ROWS = 512
#: The number of matrix entries in the smallest chunk of a loop over long rows, and the number of entries whose cost
#: equals the fixed cost of a row.
ENTRIES, OF_ROW = 8192, 4
#: The smallest chunk of a loop over the entries of vectors.
NUMBERS = 4096


def compile_loop(
    body: Callable[..., Any] | None = None,
    *,
    grain: int = ROWS,
    offsets: str | None = None,
    values: str | None = None,
    parts: int = 0,
) -> Any:
    """Compile ``body(first, end, ...)``, the iterations of a parallel loop from `first` to `end`; see `shared_loop`.

    A call runs the whole range, which the threads share, and returns the sum of what the body returns. A chunk has at
    least `grain` iterations. If `offsets` names the parameter with the row offsets of a matrix, the smallest chunk has
    ROWS rows, or fewer if that many rows of mean length have more than ENTRIES entries. If `values` names the parameter
    with the values of the matrix, the size of that array is used in place of the number of entries, because an entry
    may be a block of values. If the iterations are `parts` parts of these rows, the smallest chunk has parts with as
    many rows.
    """
    if body is None:
        return partial(compile_loop, grain=grain, offsets=offsets, values=values, parts=parts)
    least = str(grain)
    if offsets:
        rows = f"len({offsets}) - 1"
        least = f"least_rows({rows}, {f'{values}.size' if values else f'{offsets}[{rows}]'})"
        least = f"least_parts({parts}, {rows}, {least})" if parts else least
    return shared_loop(body, least, {"least_rows": least_rows, "least_parts": least_parts}, **ALL)


# In compiled functions, copy arrays with loops and not with slices. For `a[i:j] = b` Numba also compiles the code that
# raises an error if the shapes do not match, and this takes longer than the compilation of most functions here.

# This decorator compiles serial functions, which may call parallel loops and allocate arrays.
compile_part = compiler(**ALL)
# This decorator compiles functions that parallel loops call for each row, vertex or edge. It turns off Numba's
# reference counting, because all threads would update the same counters at every call. The functions may therefore
# neither allocate nor slice arrays.
compile_row = compiler(_nrt=False, **ALL)
# This decorator does the same and inlines the functions. It is meant for short ones, where a call would take as long as
# the work.
compile_inlined = compiler(forceinline=True, _nrt=False, **ALL)


@compile_inlined
def least_rows(rows, entries):
    """Return the smallest number of rows in a chunk."""
    return min(ROWS, max(1, np.int64(rows) * ENTRIES // max(np.int64(entries) + OF_ROW * np.int64(rows), 1)))


@compile_inlined
def least_parts(parts, rows, least):
    """Return the smallest number of parts in a chunk that has at least `least` rows."""
    return max(parts * np.int64(least) // max(np.int64(rows), 1), 1)


#: How many threads a CUDA kernel gets: one (or LANES) per item; at most what the device holds at once, each striding
#: over the items; the same and with grid-wide barriers.
Launch = Literal["per_item", "strided", "resident"]


@dataclass(frozen=True)
class CpuFunction:
    """The Numba side of a kernel and how its CUDA side is launched."""

    function: Callable[..., None]
    launch: Launch


class Choice(NamedTuple):
    """A compile-time choice of a kernel set.

    Without a default it has to be given. The default is what the text takes where the macro is not defined.
    """

    default: int | np.dtype[Any] | None
    is_compiled: bool


def choice_of(word: str) -> int | np.dtype[Any]:
    """A choice by its text: "8" or "int32"."""
    return int(word) if word.isdecimal() else np.dtype(word)


@dataclass
class KernelSet:
    """The kernels of the module `module_file`: `source` is the .cu file of the same name.

    The decorators `per_item`, `strided` and `resident` register the functions for the CPU, and say how many threads run
    the kernel on a GPU.

    Parameters
    ----------
    module_file : str
    choices : str
        The macros that kernels are compiled with, as in "OFFSET VALUE SLICED_DIA=0 (LANES)": their names, some with a
        default. Choices in parentheses are for the launch only.
    """

    module_file: str
    choices: str = ""
    functions: dict[str, CpuFunction] = field(default_factory=dict)

    @property
    def source(self) -> Path:
        """The .cu file."""
        return Path(self.module_file).with_suffix(".cu")

    @cached_property
    def declared(self) -> dict[str, Choice]:
        """The choices by name."""
        choices = {}
        for word in self.choices.split():
            name, _, default = word.strip("()").partition("=")
            choices[name] = Choice(choice_of(default) if default else None, is_compiled=word[0] != "(")
        return choices

    def select_macros(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the macros to define, of the choices that are given: those that are not defaults.

        Raises
        ------
        TypeError
            If one is given that is not declared, or one is missing.
        """
        if unknown := given.keys() - self.declared.keys():
            raise self._refusal(f"has no choice {', '.join(sorted(unknown))}")
        macros = {}
        for choice, (default, is_compiled) in self.declared.items():
            if is_compiled and choice in given:
                if default is None or given[choice] != default:
                    macros[choice] = given[choice]
            elif is_compiled and default is None:
                raise self._refusal(f"needs {choice}")
        return macros

    def _refusal(self, reason: str) -> TypeError:
        known = ", ".join(self.declared) or "none"
        return TypeError(f"{'/'.join(self.source.parts[-2:])} {reason}; its choices are {known}")

    def per_item(self, body: Callable[..., Any] | None = None, *, grain: int = ROWS) -> Any:
        """For a kernel with one thread (or LANES threads) per item: ``body(first, end, ...)`` of a parallel loop."""
        if body is None:
            return partial(self.per_item, grain=grain)
        self._register(body.__name__, partial(loop := compile_loop(body, grain=grain), 0), "per_item")
        return loop

    def in_parts(self, parts: int, offsets: str) -> Any:
        """`per_item` where the CPU does its work in so many parts: ``body(first_part, end_part, items, ...)``; see
        `compile_loop` for `offsets`.
        """

        def register(body: Callable[..., Any]) -> Any:
            loop = compile_loop(body, offsets=offsets, parts=parts)
            self._register(body.__name__, partial(loop, 0, parts), "per_item")
            return loop

        return register

    def per_item_driver(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`per_item` where the function on the CPU is serial code that calls parallel loops, as drivers are."""
        return self._register(function.__name__, compile_part(function), "per_item")

    def strided(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """For a kernel whose threads stride over the items, as reductions do: serial code that calls parallel loops."""
        return self._register(function.__name__, compile_part(function), "strided")

    def resident(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """For a kernel that fills the device and has barriers in it: serial code that calls parallel loops."""
        return self._register(function.__name__, compile_part(function), "resident")

    def _register(self, name: str, function: Callable[..., Any], launch: Launch) -> Callable[..., Any]:
        self.functions[name] = CpuFunction(function, launch)
        return function

    def __hash__(self) -> int:
        return hash(self.module_file)

    def __reduce__(self) -> Any:
        """A pickle names the module that defines the functions."""
        function = next(iter(self.functions.values())).function
        return _kernel_set_of, (getattr(function, "func", function).__module__,)


def _kernel_set_of(module: str) -> KernelSet:
    kernel_set = importlib.import_module(module).KERNELS
    assert isinstance(kernel_set, KernelSet)
    return kernel_set


class Kernels:
    """The callables of one variant of a kernel set, one attribute each, as `Backend.kernels` returns them.

    Compiled code does not travel: copies and pickles say which variant it is, and it is made where they arrive.

    Parameters
    ----------
    callables : dict of str to callable
    backend : Backend
    kernel_set : KernelSet
    macros : dict
        What `Backend.kernels` was called with.
    """

    def __init__(
        self, callables: dict[str, Callable[..., None]], backend: Any, kernel_set: KernelSet, macros: dict[str, Any]
    ) -> None:
        self.__dict__.update(callables)
        self._origin = backend, kernel_set, macros

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Only names that are not there arrive here."""
        raise AttributeError(f"there is no kernel {name!r}")

    def __reduce__(self) -> Any:
        return _kernels, self._origin


def _kernels(backend: Any, kernel_set: KernelSet, macros: dict[str, Any]) -> Kernels:
    kernels = backend.kernels(kernel_set, **macros)
    assert isinstance(kernels, Kernels)
    return kernels


#: From so many entries on, row offsets are int64: 32 bits have to have room for a thread's last step beyond the end.
INT32_LIMIT = 2**31 - 2**16


def offset_type(entries: int) -> type[np.signedinteger[Any]]:
    """The dtype of the row offsets of a matrix."""
    return np.int32 if entries < INT32_LIMIT else np.int64


def unsigned(indices: Any) -> Any:
    """A view of non-negative integers as unsigned ones.

    Numba checks whether a signed index counts from the end, which takes a third of the time of a loop over sparse rows.
    But do not compute with them: together with signed integers they become floats.
    """
    return indices.view(f"u{indices.dtype.itemsize}")
