"""Tests that every rank runs, one after the other in the same order: ``make test-petsc``.

Without petsc4py they are not collected.
"""

from __future__ import annotations

import importlib.util
import sys

import pytest

if importlib.util.find_spec("petsc4py") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    from mpi4py import MPI

    import petsc4py

    petsc4py.init(["pytest", "-options_left", "no"])

    COMM = MPI.COMM_WORLD

    def pytest_configure(config):
        """Let one rank speak."""
        if COMM.rank:
            config.pluginmanager.get_plugin("terminalreporter")._tw._file = open("/dev/null", "w")

    def pytest_runtest_logreport(report):
        """Stop all ranks where one has failed: the others would wait for it."""
        if report.failed and COMM.size > 1:
            print(f"rank {COMM.rank}:", report.nodeid, report.longreprtext, sep="\n", file=sys.__stderr__, flush=True)
            COMM.Abort(1)

    @pytest.fixture(autouse=True)
    def options():
        """PETSc's database of options, which a test leaves empty."""
        from petsc4py import PETSc

        yield PETSc.Options()
        PETSc.Options().clear()
