"""How many threads compute on the CPU, and how long each spins where it waits for the others.

Numba starts a pool of threads at the first parallel loop, one for each CPU that the process may use, and GNU OpenMP
lets them spin at the end of every loop. Both are wrong where CPUs are shared. In a container the quota may be less than
the number of CPUs, and the ranks of an MPI program share them; and a thread that spins for milliseconds takes the CPU
from the one that it waits for. Both are read from the environment once, so `settle` has to run before Numba is imported
and before the pool starts.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path

#: Loops of GNU OpenMP before a waiting thread sleeps: tens of microseconds, about as long as the serial code between
#: two parallel loops takes. Its default of 300,000 is milliseconds.
SPINS = 3000
CGROUPS = Path("/sys/fs/cgroup")
#: Where launchers say how many ranks they start on this machine: MPICH and Intel MPI, Open MPI, MVAPICH.
RANKS = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")


def settle(environ: MutableMapping[str, str], numba_is_imported: bool) -> None:
    """Set what the environment leaves open: GOMP_SPINCOUNT, and NUMBA_NUM_THREADS where a quota or other ranks ask for
    it.

    An imported Numba has read its number already, and raises an error if it changes.
    """
    if "OMP_WAIT_POLICY" not in environ:
        environ.setdefault("GOMP_SPINCOUNT", str(SPINS))
    cpus, ranks = allowed_cpus(), ranks_here(environ)
    # The mask of a rank may be a part of the machine that it has alone, or that of all of them: the launcher's tells.
    of_all = allowed_cpus(os.getppid()) if ranks > 1 else cpus
    threads = min(cpus, max(1, threads_for(of_all, quotas(Path("/proc/self/cgroup"), CGROUPS)) // ranks))
    if threads < cpus and not numba_is_imported:
        environ.setdefault("NUMBA_NUM_THREADS", str(threads))


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
    found = []
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
            quota = parsed_quota(text)
            if quota is not None:
                found.append(quota)
    return found


def parsed_quota(text: str) -> float | None:
    """The CPUs that "quota period", in microseconds, amounts to, or None without one ("max", or -1 in version 1).

    >>> parsed_quota("150000 100000"), parsed_quota("max 100000"), parsed_quota("-1 100000")
    (1.5, None, None)
    """
    try:
        quota, period = map(int, text.split())
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


settle(os.environ, "numba" in sys.modules)
