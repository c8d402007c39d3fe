"""What commands print: to two consoles, with a line that shows how far they are."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn


def console(**options: Any) -> Console:
    """A console as wide as the terminal; of 80 columns if the variable COLUMNS is no width."""
    width = os.environ.get("COLUMNS", "").strip()
    return Console(width=80 if width and not (width.isdecimal() and int(width) > 0) else None, **options)


out, err = console(), console(stderr=True)


def beside() -> Console:
    """Where a bar and the log go: to stderr, but by the console of stdout where both are terminals. What two consoles
    write to one terminal runs into each other.
    """
    return out if out.is_terminal and err.is_terminal else err


class ToStderr(logging.Handler):
    """Prints what the package logs, such as that kernels are compiled."""

    def emit(self, record: logging.LogRecord) -> None:
        beside().print(f"mcprecond: {record.getMessage()}", style="dim", markup=False, highlight=False, soft_wrap=True)


LOG_HANDLER = ToStderr()


class Work:
    """What a command says while it works: a line with a bar, on a terminal only.

    Attributes
    ----------
    interrupted : str
        What Ctrl-C prints behind "interrupted": how far the command has come.
    """

    def __init__(self, bar: Progress, message: str) -> None:
        self._bar = bar
        self._task = bar.add_task(escape(message), total=None)
        self.interrupted = f"while {message}"

    def update(self, message: str) -> None:
        """Say what happens now; nobody knows for how long."""
        self.interrupted = f"while {message}"
        self._bar.update(self._task, description=escape(message), total=None)

    def advance(self, message: str, done: float, total: float) -> None:
        """Say what happens now, and how much of it is done."""
        self.interrupted = f"while {message}"
        self._bar.update(self._task, description=escape(message), completed=done, total=total)


@contextmanager
def working(message: str) -> Iterator[Work]:
    """Show what goes on. Ctrl-C prints one line with how far it has come, and exits with 130."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24)
    bar = Progress(*columns, console=beside(), transient=True, disable=not err.is_terminal)
    with bar if err.is_terminal else nullcontext():  # up to Rich 14 a disabled bar ends in an empty line
        work = Work(bar, message)
        try:
            yield work
        except KeyboardInterrupt:
            stopped = work.interrupted
        else:
            return
    err.print(f"interrupted {stopped}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise SystemExit(130)


def refuse(message: str) -> None:
    """Print why a command cannot run, and exit with 2."""
    # No markup: messages name extras, such as mcprecond[gpu].
    err.print(f"mcprecond: {' '.join(message.split())}", style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(2)


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Print a fact a line, or all of them as JSON."""
    if as_json:
        # JSON has no NaN.
        print(json.dumps({k: None if v in (np.inf, -np.inf) or v != v else v for k, v in facts.items()}, indent=1))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        shown = f"{value:.3g}" if isinstance(value, float) else value
        out.print(f"{name.replace('_', ' '):{width}} {shown}", markup=False, highlight=False, soft_wrap=True)
