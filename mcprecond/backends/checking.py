"""A debug build, in which kernels check indices: MCPRECOND_DEBUG=1 when the package is imported.

In CUDA a CHECK (cuda/check.cuh) that fails prints file, line and index, and stops the kernel; the next call of CuPy
raises an error. What is compiled so has other text, and so another key in the cache. Numba checks every index, prints
what it finds, and keeps what it compiles in a folder of its own, since its cache knows nothing of options.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numba

DEBUG = os.environ.get("MCPRECOND_DEBUG", "0") not in ("", "0")
#: A constant of all CUDA files, and an option of Numba.
CUDA_CONSTANTS: dict[str, int] = {"CHECKED": 1} if DEBUG else {}
NUMBA_OPTIONS: dict[str, Any] = {"boundscheck": True} if DEBUG else {}

if DEBUG:
    _config: Any = numba.config
    _config.CACHE_DIR = str(Path(_config.CACHE_DIR or tempfile.gettempdir(), "mcprecond-debug"))
    _config.FULL_TRACEBACKS = 1  # say which index, of loops that threads share, too
