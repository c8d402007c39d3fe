"""Ctrl-C and errors that no function of the package can catch.

While modules are imported, the command `mcprecond` prints one line for them. While C code calls functions of Python,
Ctrl-C has to wait.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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


#: An interrupt that came during a callback is raised so many seconds after it.
LATER = 0.01


@contextmanager
def held_back(in_callback: bool = False) -> Iterator[None]:
    """Let Ctrl-C wait while C code calls functions of Python: what is raised there is printed and forgotten, and the C
    code goes on as if all were well.

    Parameters
    ----------
    in_callback : bool
        Whether this is such a function itself. It has to return before the exception is raised.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came and in_callback:
            threading.Timer(LATER, _thread.interrupt_main).start()
        elif came:
            handler(signal.SIGINT, None)


if sys.argv and Path(sys.argv[0]).stem == "mcprecond":  # not in anybody else's program
    sys.excepthook = _end_in_one_line
