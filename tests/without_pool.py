"""Every array of CuPy in an allocation of its own: a pytest plugin for tools/sanitize.sh.

python -m pytest -p without_pool -m gpu tests/test_progress.py
"""

from __future__ import annotations


def pytest_sessionstart() -> None:
    """Before the first array is made."""
    import cupy

    cupy.cuda.set_allocator(None)
    cupy.cuda.set_pinned_memory_allocator(None)
