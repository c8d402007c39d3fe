"""How many threads compute on the CPU: as many as it has for this process.

In a container the quota may be less than the number of CPUs, and the ranks of an MPI program share them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
#: Where launchers say how many ranks they start on this machine: MPICH and Intel MPI, Open MPI, MVAPICH.
RANKS = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
#: Where users say how many threads there are to be; the first one counts.
OURS = "MCPRECOND_NUM_THREADS"
CHOSEN = (OURS, "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def default_threads(environ: Mapping[str, str] = os.environ) -> int:
    """The number of threads that the environment names, or one for each CPU that this process may use.

    Raises
    ------
    ValueError
        If the variable of this package holds anything but a number of threads.
    """
    if (chosen := environ.get(OURS, "").strip()) and not (chosen.isdecimal() and int(chosen) > 0):
        raise ValueError(f"{OURS} must be an integer at least 1, got {chosen!r}; set it to the number of threads")
    for name in CHOSEN:
        if (chosen := environ.get(name, "").strip()).isdecimal() and int(chosen) > 0:
            return int(chosen)
    cpus, ranks = allowed_cpus(), ranks_here(environ)
    # Ranks may have masks of their own, or all have the same mask. The mask of the launcher tells which.
    of_all = allowed_cpus(os.getppid()) if ranks > 1 else cpus
    return min(cpus, max(1, threads_for(of_all, quotas(Path("/proc/self/cgroup"), CGROUPS)) // ranks))


def allowed_cpus(process: int = 0) -> int:
    """The number of CPUs on which a process, by default this one, may run: those of its affinity mask, where there is
    one.
    """
    return len(os.sched_getaffinity(process)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ranks_here(environ: Mapping[str, str]) -> int:
    """How many ranks of an MPI program its launcher has started on this machine; 1 where none says so.

    >>> ranks_here({"MPI_LOCALNRANKS": "4"}), ranks_here({})
    (4, 1)
    """
    return max([1, *(int(environ[name]) for name in RANKS if environ.get(name, "").isdecimal())])


def threads_for(cpus: int, quotas: Iterable[float]) -> int:
    """The number of threads for so many CPUs under quotas in CPUs. One of 1.5 is used up by two threads only."""
    return max(1, math.ceil(min([cpus, *quotas])))


def quotas(membership: Path, cgroups: Path) -> list[float]:
    """The quotas in CPUs of the control groups named by /proc/self/cgroup, and of the groups above them.

    Parameters
    ----------
    membership : Path
        The file with a line ``number:controllers:/path`` for each hierarchy. It exists on Linux only.
    cgroups : Path
        Where the hierarchies are mounted. In a container this may be the group itself, under a path that has no
        counterpart; then the groups that exist are read.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []
    limits = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            root, files = cgroups, ["cpu.max"]
        elif "cpu" in controllers.split(","):  # version 1
            root, files = cgroups / controllers, ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        group = root / path.strip("/")
        for folder in [group, *group.parents]:
            if not folder.is_relative_to(root):
                break
            try:
                text = " ".join((folder / file).read_text() for file in files)
            except OSError:
                continue
            quota = parse_quota(text)
            if quota is not None:
                limits.append(quota)
    return limits


def parse_quota(text: str) -> float | None:
    """The CPUs that "quota period", in microseconds, amounts to, or None without one ("max", or -1 in version 1).

    >>> parse_quota("150000 100000"), parse_quota("max 100000"), parse_quota("-1 100000")
    (1.5, None, None)
    """
    try:
        quota, period = map(int, text.split())
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None
