"""Forks: the child of a process that has used the package has no threads, and starts its own."""

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
    n = 20_000  # loops that are shared
    A = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")

    def check(holds):
        if not holds:
            raise RuntimeError

    def in_child(work):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                work()
                code = 0
            except RuntimeError:
                code = 8
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


def test_a_fork_after_use_works():
    """Whatever the child does: color, apply what the parent has built, solve, assemble, or fork again."""
    codes = said("""
        M = MulticolorSGS(A, "eb")
        expected = M @ np.ones(n)
        pcg(A, np.ones(n), M=M)
        for work in (
            lambda: color(A, "ecl_gc"),
            lambda: check(np.array_equal(M @ np.ones(n), expected)),
            lambda: M.update(A),
            lambda: check(pcg(A, np.ones(n)).converged),
            lambda: problems.graphs.rmat(8),
            lambda: in_child(lambda: color(A)),
        ):
            in_child(work)
        print(color(A, "eb").is_valid(A))
    """)
    assert codes == ["0"] * 7 + ["True"]


def test_a_fork_before_use_works():
    assert said("""
        in_child(lambda: color(A, "eb"))
        print(color(A, "eb").is_valid(A))
    """) == ["0", "True"]


def test_a_fork_in_the_middle_of_another_threads_loop():
    """The team is at a loop of the parent, which the child does not have."""
    assert said("""
        import threading
        M, done = MulticolorSGS(A, "eb"), threading.Event()
        M @ np.ones(n)  # a fork while Numba compiles or loads would inherit its lock
        def apply():
            while not done.is_set():
                M @ np.ones(n)
        thread = threading.Thread(target=apply)
        thread.start()
        for _ in range(5):
            in_child(lambda: color(A, "eb"))
        done.set()
        thread.join()
        print(color(A, "eb").is_valid(A))
    """) == ["0"] * 5 + ["True"]
