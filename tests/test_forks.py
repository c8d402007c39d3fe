"""Forks: in the child of a process that has used the package there is an error of Python, no signal."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

BEGIN = """
    import os, signal, sys, warnings
    warnings.simplefilter("ignore")  # Python warns of forks with threads
    import numpy as np, scipy.sparse
    from mcprecond import MulticolorSGS, color, pcg, problems
    A = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(400, 400), format="csr")

    def in_child(work):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                work()
                code = 0
            except RuntimeError as error:
                code = 7 if "spawn" in str(error) and "fork" in str(error) else 8
            os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # a fork of a fork ends without
"""


def said(program: str, **environment: str) -> list[str]:
    text = textwrap.dedent(BEGIN) + textwrap.dedent(program)
    run = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=300, env=os.environ | environment
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_a_fork_after_use_raises():
    """Whatever the child does: color, apply what the parent has built, solve, assemble, or fork again."""
    codes = said("""
        M = MulticolorSGS(A, "eb")
        pcg(A, np.ones(400), M=M)
        for work in (
            lambda: color(A, "ecl_gc"),
            lambda: M @ np.ones(400),
            lambda: M.update(A),
            lambda: pcg(A, np.ones(400)),
            lambda: problems.graphs.rmat(8),
            lambda: in_child(lambda: color(A)),
        ):
            in_child(work)
        print(color(A, "eb").is_valid(A))
    """)
    assert codes == ["7", "7", "7", "7", "7", "7", "0", "True"]


def test_a_fork_before_use_works():
    assert said("""
        in_child(lambda: color(A, "eb"))
        print(color(A, "eb").is_valid(A))
    """) == ["0", "True"]


def test_a_fork_works_on_threads_that_survive_it():
    assert said(
        """
        color(A, "eb")
        in_child(lambda: color(A, "eb"))
        """,
        NUMBA_THREADING_LAYER="workqueue",
    ) == ["0"]
