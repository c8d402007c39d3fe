"""Memory: how much is left, and bytes in words."""

from __future__ import annotations

import os
from pathlib import Path

from mcprecond.backends.base import Backend


def available_bytes(backend: Backend) -> int:
    """Bytes that can still be allocated where a backend's arrays live: of the GPU, or of the machine or container."""
    if backend.name == "gpu":
        return int(backend.xp.cuda.Device().mem_info[0]) + int(backend.xp.get_default_memory_pool().free_bytes())
    return min(_of_machine(), _of_container())


def format_bytes(count: int) -> str:
    """A number of bytes in a unit that suits it."""
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.0f} bytes" if units[0] == "bytes" else f"{size:.3g} {units[0]}"


def _of_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # not Linux: half of what is built in
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return 2**33


def _of_container() -> int:
    try:
        most, used = (int(Path("/sys/fs/cgroup", name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # "max": no limit
        return 2**63
    return max(most - used, 0)
