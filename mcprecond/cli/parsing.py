"""From functions to commands: their parameters and docstrings are the arguments and the help."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, NoReturn, get_args, get_origin

import mcprecond
from mcprecond.backends.arguments import did_you_mean

DESCRIPTION = (
    "Preconditioners for sparse linear systems: multicolor Gauss-Seidel, ILU(0) and multigrid. To begin with: "
    "mcprecond demo"
)


@dataclasses.dataclass(frozen=True)
class Option:
    """How a parameter of a command is given: by a name, or by its place.

    Attributes
    ----------
    help : str
    named : bool
        Whether it is given as ``--name``.
    """

    help: str
    named: bool = True


File = Annotated[Path, Option("A sparse matrix: .mtx or .mtx.gz (Matrix Market), or .npz (SciPy).", named=False)]
AsJson = Annotated[bool, Option("Print as JSON.")]
NearNullSpace = Annotated[Path | None, Option("For multigrid, a column each: .npy or .mtx[.gz].")]
NullSpaceFile = Annotated[str | None, Option("Of a singular matrix: constant, detect, or a file, a column each.")]


class Paragraphs(argparse.HelpFormatter):
    """Help whose paragraphs stay apart."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(super(Paragraphs, self)._fill_text(part, width, indent) for part in text.split("\n\n"))


class Parser(argparse.ArgumentParser):
    """Arguments of a command, without abbreviations; what is wrong with them is a ValueError."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=Paragraphs, **options)

    def parse_known_args(self, *given: Any) -> Any:  # type: ignore[override]
        """See `argparse.ArgumentParser`; but a command refuses by itself what it does not know."""
        found, unknown = super().parse_known_args(*given)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        hint = ""
        if wrong := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            hint = did_you_mean(wrong[1], wrong[2].replace("'", "").split(", "))
        elif wrong := re.search(r"unrecognized arguments: (--[^ =]+)", message):
            hint = did_you_mean(wrong[1], re.findall(r"--[\w-]+", self.format_usage()))
        raise ValueError(f"{message}{hint or f'; see {self.prog} --help'}")


def parser(functions: Mapping[str, Callable[..., None]]) -> Parser:
    """The parser of commands, made from the signatures and docstrings of their functions."""
    whole = Parser(prog="mcprecond", description=DESCRIPTION)
    whole.add_argument("--version", action="version", version=mcprecond.__version__, help="Print the version and stop.")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, function in functions.items():
        text = inspect.getdoc(function) or ""
        first = text.split("\n")[0].partition(". ")[0].rstrip(".")
        own = commands.add_parser(name, help=f"{first}.", description=text)
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            add(own, parameter)
    return whole


def add(parser: Parser, parameter: inspect.Parameter) -> None:
    """Add what a parameter of a function stands for."""
    kind, option = get_args(parameter.annotation)
    default, text = parameter.default, option.help.replace("%", "%%")
    name = parameter.name.removeprefix("as_")
    kinds = [one for one in get_args(kind) if one is not NoneType] if NoneType in get_args(kind) else [kind]
    if not option.named:
        parser.add_argument(name, type=kinds[0], metavar=name.upper(), help=text)
    elif kinds == [bool]:
        parser.add_argument(f"--{name}", dest=parameter.name, action="store_true", help=text)
    else:
        repeated = get_origin(kinds[0]) is list
        required = default is inspect.Parameter.empty
        told = "" if required or default is None else f" Default: {default}."
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            dest=parameter.name,
            type=get_args(kinds[0])[0] if repeated else kinds[0],
            action="append" if repeated else "store",
            required=required,
            default=None if required else default,
            metavar=kinds[0].__name__.upper() if kinds[0] in (int, float) else "PATH" if kinds[0] is Path else "NAME",
            help=text + told,
        )
