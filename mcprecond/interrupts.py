"""Ctrl-C while modules are imported, which no function here can catch: one line in the command `mcprecond`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType


def _end_in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """In the place of `sys.excepthook`."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    print("interrupted while starting", file=sys.stderr, flush=True)
    os._exit(130)


if sys.argv and Path(sys.argv[0]).stem == "mcprecond":  # not in anybody else's program
    sys.excepthook = _end_in_one_line
