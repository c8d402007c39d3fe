"""A kernel set is compiled for the choices that it declares, and for no others, on either device."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from kernel_variants import SOURCES, kernel_set

import mcprecond
from mcprecond.backends import KernelSet, gpu
from mcprecond.backends.cuda_source import cuda_source
from mcprecond.storage.layouts import LAYOUT_CHOICES
from mcprecond.storage.layouts.interleaved import KERNELS

GIVEN = {"OFFSET": np.int32, "ENTRY": np.dtype("uint8"), "LANES": 32}


@pytest.mark.parametrize("name", SOURCES)
def test_texts_mention_what_is_declared(name):
    """What only the launch needs they do not mention."""
    words = set(re.findall(r"[A-Za-z_]\w*", cuda_source(SOURCES[name])))
    for choice, (_, is_compiled) in kernel_set(name).declared.items():
        assert (choice in words) == is_compiled, choice


def test_defaults_and_what_only_the_launch_needs_are_not_compiled():
    without = {name: GIVEN[name] for name in ("OFFSET", "ENTRY")}
    assert KERNELS.select_macros(GIVEN) == KERNELS.select_macros(GIVEN | {"SLICED_DIA": 0}) == without
    assert KERNELS.select_macros(GIVEN | {"SLICED_DIA": 1}) == without | {"SLICED_DIA": 1}
    with_type = KernelSet(__file__, "OFFSET=int32")
    assert with_type.select_macros({"OFFSET": np.int32}) == with_type.select_macros({}) == {}
    assert with_type.select_macros({"OFFSET": np.int64}) == {"OFFSET": np.int64}


LAYOUTS = ", ".join(re.findall(r"(\w+)=", LAYOUT_CHOICES))
UNKNOWN = rf"layouts/interleaved.cu has no choice VALUE; its choices are OFFSET, ENTRY, {LAYOUTS}, LANES"
MISSING = r"layouts/interleaved.cu needs ENTRY; its choices are OFFSET, ENTRY"


def test_other_choices_are_refused(backend):
    assert backend.kernels(KERNELS, **GIVEN)
    with pytest.raises(TypeError, match=UNKNOWN):
        backend.kernels(KERNELS, **GIVEN, VALUE=np.float64)
    with pytest.raises(TypeError, match=MISSING):
        backend.kernels(KERNELS, OFFSET=np.int32)


def test_programs_for_other_choices_are_refused():
    """No GPU is needed for that."""
    with pytest.raises(TypeError, match=UNKNOWN):
        gpu._program(KERNELS, GIVEN | {"VALUE": np.float64}, 0)


def decorated_functions():
    """Functions of the package by their names: what compiles each, and its tree."""
    found = {}
    for path in Path(mcprecond.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                found.setdefault(node.name, []).append((ast.unparse(node.decorator_list[0]), node))
    return found


def test_threads_at_a_loop_count_no_references():
    """What a loop calls for each row counts references to arrays only where it has to."""
    functions = decorated_functions()

    def is_loop(decorator: str) -> bool:
        return (
            decorator.startswith(("compile_loop", "KERNELS.per_item", "KERNELS.in_parts")) and "driver" not in decorator
        )

    def has_to(node: ast.FunctionDef) -> bool:
        slices = any(isinstance(part, ast.Slice) for part in ast.walk(node))
        return slices or bool(
            re.search(r"np\.(empty|zeros|full|append|cumsum)|_like|\.(copy|sort)\(", ast.unparse(node))
        )

    waiting = [node for several in functions.values() for decorator, node in several if is_loop(decorator)]
    seen = set()
    while waiting:
        for call in (part for part in ast.walk(waiting.pop()) if isinstance(part, ast.Call)):
            for decorator, node in functions.get(ast.unparse(call.func), ()):
                if not is_loop(decorator) and id(node) not in seen:
                    seen.add(id(node))
                    waiting.append(node)
                    assert decorator != "compile_part" or has_to(node), f"{node.name} should be a compile_row"
                    assert decorator == "compile_part" or not has_to(node), f"{node.name} should be a compile_part"
    assert len(seen) > 50
