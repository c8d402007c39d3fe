"""Updates of one object from several threads: one at a time."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Update = TypeVar("Update", bound=Callable[..., Any])


class UpdateLock:
    """A lock that its holder may enter again, with the number of updates so far. Copies and pickles are new ones."""

    def __init__(self) -> None:
        self.lock, self.count = threading.RLock(), 0

    def __reduce__(self) -> Any:
        return UpdateLock, ()


def one_at_a_time(update: Update) -> Update:
    """Make updates of one object run one after the other. The object has an `UpdateLock` as `_updating`."""

    @functools.wraps(update)
    def waiting(self: Any, *arguments: Any) -> Any:
        with self._updating.lock:
            self._updating.count += 1  # even if Ctrl-C comes at once after the update
            try:
                return update(self, *arguments)
            finally:
                self.backend.synchronize()  # the next one may be on another stream

    return waiting  # type: ignore[return-value]
