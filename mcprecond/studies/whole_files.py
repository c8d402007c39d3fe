"""Files of results: whoever reads one finds the old file or the new one, never a part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_whole(path: str | Path) -> Iterator[Path]:
    """Lend a path beside another one, with its ending. What is written there takes the other one's place in the end,
    but not after an exception.

    A device or a pipe is written to as it is, and so is a file in a folder that cannot be written.

    Parameters
    ----------
    path : str or Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_whole(Path(folder, "result.txt")) as part:
    ...         _ = part.write_text("done")
    ...     [file.name for file in Path(folder).iterdir()]
    ['result.txt']
    """
    path = Path(path).resolve()  # the place of a link is not taken
    if path.exists() and not (path.is_file() and os.access(path.parent, os.W_OK)):
        yield path
        return
    part = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
