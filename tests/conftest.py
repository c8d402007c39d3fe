"""One test body for both array libraries: `device` runs a test on the CPU and, where asked for, on the GPU."""

from __future__ import annotations

import signal
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings

from mcprecond.backends import Backend, first_use, get_backend
from mcprecond.matrix import FLOATS
from mcprecond.storage import color_blocks, layouts
from mcprecond.storage.layouts import dia

# A shell starts background jobs with SIGINT ignored, and then Python does not install its own handler. Some tests send
# SIGINT to their own process or to others, and rely on that handler, which raises KeyboardInterrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: A plugin that has to come before the package.
collect_ignore = ["interpreted.py"]

#: The tests that run first. `make test` has two processes or more: while one of them compiles CUDA sources for the
#: first module, Numba compiles functions in another one, and later tests load these. The last two modules take long. If
#: they ran at the end, all other processes would wait for them.
FIRST = (
    "tests/backends/test_cuda_compiles.py",
    "notebooks/",
    "tests/apparatus/",
    "tests/backends/",
    "tests/test_load.py",
    "tests/test_wide.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return next((k for k, begin in enumerate(FIRST) if item.nodeid.startswith(begin)), len(FIRST))

    items.sort(key=place)


settings.register_profile("mcprecond", deadline=None, derandomize=True, max_examples=25)
# For the record of a GPU, whose time is short; each example costs dozens of launches.
settings.register_profile("gpu", settings.get_profile("mcprecond"), max_examples=10)
settings.load_profile("mcprecond")


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request) -> str:
    return request.param


@pytest.fixture
def backend(device) -> Backend:
    return get_backend(device)


@pytest.fixture
def to_device(backend):
    """Move a SciPy matrix or a NumPy array to the backend under test."""

    def move(value: Any) -> Any:
        if backend.name == "cpu":
            return value
        if sp.issparse(value):
            # CuPy's matrices hold floats; the entries are moved as they stand, unsorted and repeated ones too.
            csr = value.tocsr()
            data = csr.data if csr.dtype in FLOATS else csr.data.astype(np.float64)
            arrays = tuple(backend.xp.asarray(array) for array in (data, csr.indices, csr.indptr))
            return backend.sparse.csr_matrix(arrays, shape=csr.shape)
        return backend.xp.asarray(value)

    return move


@pytest.fixture(scope="session")
def pages():
    """All pages of the documentation, those that git ignores as well, which are written where they are missing."""
    from report import DOCS, write_missing

    write_missing()
    return [path for path in sorted(DOCS.rglob("*.md")) if not {"_build", "generated"} & set(path.parts)]


@pytest.fixture
def listed_columns(monkeypatch):
    """Let color blocks on a GPU list columns as diagonals wherever rows are sorted, not only where that pays; in slices
    of so many rows, where asked for.
    """

    def force(rows: int | None = None) -> None:
        monkeypatch.setattr(dia, "USUAL_PLACES", 10**6)
        monkeypatch.setattr(layouts, "LEAST_ROWS", 1)
        monkeypatch.setattr(layouts, "LEAST_SLICES", 0)
        if rows is not None:
            monkeypatch.setattr(color_blocks, "rows_per_slice", lambda sizes, *_: np.full(len(sizes), rows, np.int32))

    return force


@pytest.fixture
def here(monkeypatch, capsys):
    """Run a command in this process: the exit code and what was printed."""
    from rich.console import Console

    from mcprecond import cli
    from mcprecond.cli import terminal

    # Whether a kernel has been compiled before is not what a test asks.
    monkeypatch.setattr(first_use, "SILENT", 1e6)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["mcprecond", *map(str, arguments)])
        # The consoles took hold of the streams before they were captured.
        monkeypatch.setattr(terminal, "out", Console())
        monkeypatch.setattr(terminal, "err", Console(stderr=True))
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        said = capsys.readouterr()
        return exit_.value.code or 0, said.out, said.err

    return call
