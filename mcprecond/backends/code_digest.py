"""A digest of what a compiled function does, by which its machine code is kept.

Numba looks at the file and at the bytecode of the function alone. But compiled functions are inlined into others, and
numbers of other modules become constants. Where one of those changes, as in an upgrade that leaves the file of the
caller as it was, Numba would go on with the old machine code.
"""

from __future__ import annotations

import hashlib
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

PACKAGE = __name__.partition(".")[0]


def digest_of(function: Any, options: dict[str, Any]) -> str:
    """A digest of the bytecode and the constants of a function, and of all functions of the package that it names."""
    return hashlib.sha256("\n".join(_Description(function, options).lines).encode()).hexdigest()


class _Description:
    """Lines of text that describe a function and, once each, the functions and the numbers that it names."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self.lines = [repr(sorted(options.items()))]
        self.seen: set[FunctionType] = set()
        self.add(function)

    def add(self, value: Any) -> None:
        """Describe a value that a function names."""
        if isinstance(value, Dispatcher):
            self.lines.append(repr(sorted(value.targetoptions.items(), key=str)))
            self.add(value.py_func)
        elif isinstance(value, _Intrinsic):
            self.add(value._defn)
        elif isinstance(value, FunctionType) and value.__module__.partition(".")[0] == PACKAGE:
            self.lines.append(f"{value.__module__} {value.__qualname__} {value in self.seen}")
            if value not in self.seen:
                self.seen.add(value)
                self.add_function(value)
        elif isinstance(value, tuple | list):
            for item in value:
                self.add(item)
        elif isinstance(value, frozenset):
            self.lines.append(repr(sorted(map(repr, value))))
        elif isinstance(value, str | bytes | bool | int | float | complex | np.generic | np.dtype | None):
            self.lines.append(repr(value))
        elif isinstance(value, np.ndarray):
            self.lines.append(f"{value.dtype} {value.shape} {value.tobytes().hex()}")
        elif type(value).__module__.startswith("llvmlite.ir."):  # a type, which prints as in LLVM
            self.lines.append(str(value))
        else:
            self.lines.append(getattr(value, "__qualname__", type(value).__qualname__))

    def add_function(self, function: FunctionType) -> None:
        """Describe the code of a function, and what its names stand for."""
        names = self.add_code(function.__code__)
        for name in names:
            if name in function.__globals__:
                value = function.__globals__[name]
                self.lines.append(name)
                self.add(value)
                if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == PACKAGE:
                    self.add([getattr(value, attribute, None) for attribute in names])
        for cell in function.__closure__ or ():
            self.add(cell.cell_contents)
        self.add(function.__defaults__)

    def add_code(self, code: CodeType) -> list[str]:
        """Describe a code object and those inside of it; return the names that they use."""
        self.lines.append(code.co_code.hex())
        names = [*code.co_names]
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                names += self.add_code(constant)
            else:
                self.add(constant)
        return names
