"""Hashes of sources that change with what is compiled and not with how it is written.

Comments, white space, docstrings and imports do not count, for a GPU no function that Numba compiles for the CPU, and
for a CPU no CUDA. `code` has the hashes that a file of results carries, so that `python -m report --stale` can say
which kernels have changed since; for it the names of modules do not count either.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from mcprecond.backends.cuda_source import PACKAGE, cuda_source

CUDA = (".cu", ".cuh")
SUFFIXES = (".py", *CUDA)
SHORT = 12  # digits of a hash in a file of results
TOKEN = re.compile(
    r"""
      (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
    | (?P<text> R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | (?P<splice> \\\n )
    | (?P<newline> \n )
    | (?P<space> [^\S\n]+ )
    | (?P<number> \.?\d(?:[eEpP][+-]|'?\w|\.)* )
    | (?P<other> [^\W\d](?:(?!R")\w)* | . )
    """,
    re.VERBOSE | re.DOTALL,
)
#: Decorators of functions that Numba compiles, which are for the CPU.
FOR_CPU = re.compile(r"_?compile\w*|KERNELS\.\w+")
OPERATORS = frozenset("+-*/%<>=!&|^:.#~?")  # two of them in a row may be one


@cache
def code(gpu: bool) -> dict[str, str]:
    """The hash of each kernel set, which has the path of its module, and of all other modules of each room, as far as a
    run on a GPU, or on a CPU, depends on it.

    That of a kernel set is of its module and of the CUDA that it is compiled from, with what that includes. Imports do
    not count, so that a module may get another name.
    """
    texts: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name, kernels = path.relative_to(PACKAGE).with_suffix(""), path.with_suffix(".cu")
        parts = texts.setdefault(name.as_posix() if kernels.exists() else name.parts[0], [])
        parts.append(python(path.read_text(encoding="utf-8"), path.name, imports=False, for_cpu=not gpu))
        if gpu and kernels.exists():
            # Where a line stands in its file does not count.
            lines = cuda_source(kernels).splitlines()
            parts.append(cuda("\n".join(line for line in lines if not line.startswith("#line"))))
    return {name: hashlib.sha256("\0".join(parts).encode()).hexdigest()[:SHORT] for name, parts in texts.items()}


def hashes(folder: Path) -> dict[str, str]:
    """The hash of every source file in a folder and below, by its path inside the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    return {path.relative_to(folder).as_posix(): digest_of(path) for path in paths}


def digest_of(path: Path) -> str:
    """SHA-256 of what a file is compiled from, for a GPU, without imports."""
    text = path.read_text(encoding="utf-8")
    compiled = cuda(text) if path.suffix in CUDA else python(text, path.name, imports=False, for_cpu=False)
    return hashlib.sha256(compiled.encode()).hexdigest()


def python(text: str, name: str = "<text>", *, imports: bool = True, for_cpu: bool = True) -> str:
    """The syntax tree without docstrings. Unlike that of `ast.dump`, its text is the same in all versions of Python.

    On request `imports` are left out, and what Numba compiles `for_cpu`.
    """

    def counts(node: object) -> bool:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return imports
        return for_cpu or not is_for_cpu(node)

    def dump(node: object) -> str:
        if isinstance(node, list):
            return "[" + ",".join(dump(part) for part in node if counts(part)) + "]"
        if not isinstance(node, ast.AST):
            return f"{type(node).__name__}:{node!r}"
        if isinstance(node, ast.Constant):
            return f"{type(node.value).__name__}:{node.value!r}"
        fields = dict(ast.iter_fields(node))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and has_docstring(node):
            fields["body"] = node.body[1:]
        if isinstance(node, ast.JoinedStr):  # some versions end a nested format with an empty text
            fields["values"] = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")]
        # What newer versions add is None or empty where it is not used.
        said = ",".join(f"{field}={dump(value)}" for field, value in fields.items() if value not in (None, []))
        return f"{type(node).__name__}({said})"

    return dump(ast.parse(text, name))


def is_for_cpu(node: object) -> bool:
    """Whether a statement is a function that Numba compiles, or says how Numba compiles functions."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) == "compiler"
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(FOR_CPU.match(ast.unparse(decorator)) for decorator in decorators)


def has_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the first statement is one."""
    return ast.get_docstring(node, clean=False) is not None


def cuda(text: str) -> str:
    """The tokens of C++: spaces where they part two of them, and a line for each directive of the preprocessor."""
    lines: list[list[str]] = [[]]
    for token in TOKEN.finditer(text.replace("\r\n", "\n")):
        if token.lastgroup == "newline":
            lines.append([])
        elif token.lastgroup != "splice":
            lines[-1].append(" " if token.lastgroup in ("comment", "space") else token[0])
    parts: list[str] = []
    code: list[str] = []
    for line in lines:
        if next((token for token in line if token != " "), "") == "#":
            # Here all spaces stay: the one after the name of a macro tells that it has no arguments.
            parts += [join_tokens(code, needs_space), join_tokens(line, lambda *_: True)]
            code = []
        else:
            code += [*line, " "]
    return "\n".join(filter(None, [*parts, join_tokens(code, needs_space)]))


def join_tokens(tokens: list[str], needs_space: Callable[[str, str], bool]) -> str:
    """Tokens with one space where there is one or more and where those on both sides have to be parted."""
    text, space = "", False
    for token in tokens:
        if token == " ":
            space = True
            continue
        text += (" " if space and text and needs_space(text[-1], token[0]) else "") + token
        space = False
    return text


def needs_space(left: str, right: str) -> bool:
    """Whether these characters could be in one token."""
    return (left in OPERATORS and right in OPERATORS) or (is_of_word(left) and is_of_word(right))


def is_of_word(character: str) -> bool:
    """Whether a name, a number or a text may have it."""
    return character.isalnum() or character in "_.\"'"
