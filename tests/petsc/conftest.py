"""Tests that every rank runs, one after the other in the same order: ``make test-petsc``.

Without petsc4py they are not collected.
"""

from __future__ import annotations

import importlib.util
import sys

if importlib.util.find_spec("petsc4py") is None:
    collect_ignore_glob = ["*.py"]
else:
    import petsc4py
    from mpi4py import MPI

    # MPI may not know of the memory of a GPU.
    petsc4py.init(["pytest", "-options_left", "no", "-use_gpu_aware_mpi", "0"])

    COMM = MPI.COMM_WORLD

    def pytest_runtest_logreport(report):
        """Stop all ranks where one has failed: the others would wait for it."""
        if report.failed and COMM.size > 1:
            print(f"rank {COMM.rank}:", report.nodeid, report.longreprtext, sep="\n", file=sys.__stderr__, flush=True)
            COMM.Abort(1)
