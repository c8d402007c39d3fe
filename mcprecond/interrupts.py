"""Ctrl-C while C code calls functions of Python: it has to wait."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: An interrupt that came during a callback is raised so many seconds after it.
LATER = 0.01


@contextmanager
def hold_back(in_callback: bool = False) -> Iterator[None]:
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
