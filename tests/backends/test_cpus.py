"""How many threads there are, and that importing the package sets nothing."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprecond.backends import threads
from mcprecond.backends.threads import CHOSEN, default_threads, parse_quota, quotas, threads_for

VARIABLES = set(CHOSEN)


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_quota_is_a_number_of_cpus(quota, period):
    assert parse_quota(f"{quota} {period}\n") == quota / period


@pytest.mark.parametrize("text", ["max 100000", "-1 100000", "0 0", "", "100000", "a b"])
def test_no_quota(text):
    assert parse_quota(text) is None


@given(st.integers(1, 1000), st.lists(st.floats(1e-3, 1e6)))
def test_threads_use_up_the_least_of_all_bounds(cpus, bounds):
    found = threads_for(cpus, bounds)
    assert 1 <= found <= cpus
    assert all(found < bound + 1 for bound in bounds)
    assert found in {cpus, *(math.ceil(bound) for bound in bounds)}


def test_quotas_of_the_group_and_of_those_above(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "a/cpu.max").write_text("250000 100000\n")
    (tmp_path / "a/b/cpu.max").write_text("400000 100000\n")
    membership = tmp_path / "cgroup"
    for path, expected in {"/a/b": [4, 2.5], "/a": [2.5], "/": [], "/a/gone": [2.5], "/gone": []}.items():
        membership.write_text(f"1:name=systemd:/a\n0::{path}\n")
        assert quotas(membership, tmp_path) == expected


def test_quotas_of_version_1(tmp_path):
    """The path is the host's, as in a container without a name space of its own; what is mounted is the group."""
    (tmp_path / "cpu,cpuacct").mkdir()
    (tmp_path / "cpu,cpuacct/cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu,cpuacct/cpu.cfs_period_us").write_text("100000\n")
    membership = tmp_path / "cgroup"
    membership.write_text("3:cpuset:/\n2:cpu,cpuacct:/docker/0123\n1:memory:/\n")
    assert quotas(membership, tmp_path) == [0.5]


def test_a_system_without_groups(tmp_path):
    assert quotas(tmp_path / "none", tmp_path) == []


@pytest.mark.parametrize(("cpus", "quota", "expected"), [(4, [1.5], 2), (4, [8.0], 4), (4, [], 4), (1, [0.5], 1)])
def test_a_quota_limits_the_threads(cpus, quota, expected, monkeypatch):
    monkeypatch.setattr(threads, "allowed_cpus", lambda: cpus)
    monkeypatch.setattr(threads, "quotas", lambda *_: quota)
    assert default_threads({}) == expected
    # A variable takes precedence over the quota, and the first variable over the others. A value that is not a positive
    # number is refused in the variable of this package, and ignored in those of others.
    for k, name in enumerate(CHOSEN):
        assert default_threads(dict.fromkeys(CHOSEN[k + 1 :], "7") | {name: "3"}) == 3
        for value in ("all", "0", "-1", "1e3"):
            if name == CHOSEN[0]:
                with pytest.raises(ValueError, match=f"{name} must be an integer at least 1, got '{value}'"):
                    default_threads({name: value})
            else:
                assert default_threads({name: value}) == expected


@given(st.integers(1, 64), st.integers(1, 64), st.integers(2, 64), st.lists(st.floats(0.1, 100), max_size=2))
def test_ranks_share_what_their_launcher_may_use(cpus, others, ranks, bounds):
    of_all = cpus + others
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "allowed_cpus", lambda process=0: of_all if process else cpus)
        patch.setattr(threads, "quotas", lambda *_: bounds)
        found = default_threads({"OMPI_COMM_WORLD_LOCAL_SIZE": str(ranks)})
    assert 1 <= found <= cpus and (found == 1 or found * ranks <= threads_for(of_all, bounds))
    assert found == cpus or (found + 1) * ranks > threads_for(of_all, bounds)


def imported(program: str, **environment: str) -> list[str]:
    """What a process prints that has none of the variables but these."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=kept | environment
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_importing_changes_nothing_outside():
    """Neither the environment nor Numba; and no thread is started before there is a loop to share."""
    before = "import os, threading, numba; before = dict(os.environ), vars(numba.config).copy(), dir(numba);"
    after = "print((dict(os.environ), vars(numba.config), dir(numba)) == before, threading.active_count())"
    assert imported(f"{before} import mcprecond; {after}") == ["True", "1"]


def test_the_quota_decides():
    """On a machine with five more CPUs than it has, under a quota of one."""
    program = """
import os, pathlib
read, cpus = pathlib.Path.read_text, len(os.sched_getaffinity(0))
fakes = {"cgroup": "0::/", "cpu.max": "100000 100000"}
pathlib.Path.read_text = lambda path, *args, **kwargs: fakes.get(path.name) or read(path, *args, **kwargs)
os.sched_getaffinity = lambda _: range(cpus + 5)
import mcprecond
print(mcprecond.configure(), mcprecond.configure(threads=2))
"""
    assert imported(program) == ["1", "2"]
    assert imported(program, MCPRECOND_NUM_THREADS="3") == ["3", "2"]
