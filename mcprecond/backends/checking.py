"""A debug build, in which kernels check indices: MCPRECOND_DEBUG=1 when the package is imported.

In CUDA a CHECK (cuda/check.cuh) that fails prints file, line and index, and stops the kernel; the next call of CuPy
raises an error. Numba checks every index, and prints what it finds. Both keep what they compile under other keys than
those of a usual build.
"""

from __future__ import annotations

import os
from typing import Any

import numba

DEBUG = os.environ.get("MCPRECOND_DEBUG", "0") not in ("", "0")
#: A constant of all CUDA files, and an option of Numba.
CUDA_CONSTANTS: dict[str, int] = {"CHECKED": 1} if DEBUG else {}
NUMBA_OPTIONS: dict[str, Any] = {"boundscheck": True} if DEBUG else {}

if DEBUG:
    numba.config.FULL_TRACEBACKS = 1  # type: ignore[attr-defined]  # say which index, of loops that threads share, too
