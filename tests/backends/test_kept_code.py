"""The machine code that Numba keeps is that of the function that is called, whichever processes have kept some."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mcprecond.backends.code_digest import digest_of
from mcprecond.backends.kernels import least_rows

#: Functions of the same name that differ in a closure variable. They are too long for LLVM to inline them.
FACTORY = (
    "def times(factor):\n    def product(x):\n"
    + "".join(f"        x = x * factor - {k} if x > {k} else x / (factor + {k})\n" for k in range(60))
    + "        return x\n    return product\n"
)
MODULES = {
    "factory": FACTORY,
    "numbers_of_steps": "STEPS = 2\n",
    "steps": "def step(x):\n    return x + 1.0\n",
    "walks": "def walk_of_2(x):\n    return product_of_2(x)\n\n\ndef walk_of_3(x):\n    return product_of_3(x)\n\n\n"
    "def go(x):\n    for _ in range(STEPS):\n        x = step(x)\n    return x\n",
}
PROGRAM = """
import sys
from mcprecond.backends import compile_inlined, compile_part, compile_row
import factory, numbers_of_steps, steps, walks
for module in (factory, steps, walks):
    sys.modules["mcprecond." + module.__name__] = module
    for function in vars(module).values():
        if callable(function):
            function.__module__ = "mcprecond." + module.__name__
walks.STEPS = numbers_of_steps.STEPS
walks.step = compile_inlined(steps.step)
plain = {}
for factor in (2, 3):
    plain[f"walk_of_{factor}"] = product = factory.times(factor)
    product.__module__ = "mcprecond.factory"
    setattr(walks, f"product_of_{factor}", compile_row(product))
compiled = {name: compile_part(getattr(walks, name)) for name in ("walk_of_2", "walk_of_3", "go")}
for name in sys.argv[1:]:
    result = compiled[name](4096.0)
    said = result == plain[name](4096.0) if name in plain else result
    print(name, said, sum(compiled[name].stats.cache_hits.values()))
"""


@pytest.fixture
def run(tmp_path):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)

    def run(*names: str) -> str:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": os.getcwd() + ":."}
        environment |= {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", PROGRAM, *names]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.nightly
def test_what_two_processes_keep_does_not_mix(run):
    """Each compiles a function of the same name, which would be the first one of its process for both."""
    names = ("walk_of_3", "walk_of_2")
    for name in names:
        assert run(name) == f"{name} True 0\n"
    assert run(*names) == "".join(f"{name} True 1\n" for name in names)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("module", "text", "result"),
    [("steps", "def step(x):\n    return x + 2.0\n", 4100.0), ("numbers_of_steps", "STEPS = 3\n", 4099.0)],
)
def test_code_is_compiled_anew_where_another_module_changed(run, tmp_path, module, text, result):
    """The file of the function that is kept is the same as before."""
    assert run("go") == "go 4098.0 0\n"
    assert run("go") == "go 4098.0 1\n"
    (tmp_path / f"{module}.py").write_text(text)
    assert run("go") == f"go {result} 0\n"


def test_a_debug_build_keeps_code_of_its_own():
    assert digest_of(least_rows.py_func, {}) != digest_of(least_rows.py_func, {"boundscheck": True})


def test_functions_of_others_are_numbered_as_before():
    program = """
import numba
from numba.core.bytecode import FunctionIdentity
import mcprecond
numbers = FunctionIdentity._unique_ids
import numpy, scipy.sparse
mcprecond.color(scipy.sparse.diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(5, 5), format="csr"))
assert FunctionIdentity._unique_ids is numbers
assert numba.njit(lambda x: x + 1)(1) == 2
assert next(numbers) < 10_000
"""
    subprocess.run([sys.executable, "-c", program], check=True)
