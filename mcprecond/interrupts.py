"""Ctrl-C and errors while modules are imported, which no function can catch: one line in the command `mcprecond`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

#: Whether modules are still imported. Later errors that nobody catches are mistakes of the package, with a traceback.
is_starting = True


def has_started() -> None:
    """Take note that everything is imported."""
    global is_starting
    is_starting = False


def _end_in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """In the place of `sys.excepthook`."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted while starting", file=sys.stderr, flush=True)
        os._exit(130)
    if not is_starting:
        sys.__excepthook__(kind, error, trace)
        return
    reason = " ".join(str(error).split())
    print(f"mcprecond: it cannot be started: {kind.__name__}: {reason}", file=sys.stderr, flush=True)
    os._exit(2)


if sys.argv and Path(sys.argv[0]).stem == "mcprecond":  # not in anybody else's program
    sys.excepthook = _end_in_one_line
