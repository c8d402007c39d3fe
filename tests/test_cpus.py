"""How many threads there are and how long they spin: what the package sets before Numba's pool starts."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcprecond.backends import threads
from mcprecond.backends.threads import SPINS, parsed_quota, quotas, settle, threads_for

VARIABLES = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "NUMBA_NUM_THREADS"}


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_quota_is_a_number_of_cpus(quota, period):
    assert parsed_quota(f"{quota} {period}\n") == quota / period


@pytest.mark.parametrize("text", ["max 100000", "-1 100000", "0 0", "", "100000", "a b"])
def test_no_quota(text):
    assert parsed_quota(text) is None


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


@pytest.mark.parametrize("numba_is_imported", [False, True])
@pytest.mark.parametrize(
    "given_",
    [{}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "7"}, {"NUMBA_NUM_THREADS": "3"}],
    ids=lambda found: "".join(found) or "nothing",
)
def test_what_the_environment_has_stays(given_, numba_is_imported, monkeypatch):
    monkeypatch.setattr(threads, "allowed_cpus", lambda: 4)
    monkeypatch.setattr(threads, "quotas", lambda *_: [1.5])
    environment = dict(given_)
    settle(environment, numba_is_imported)
    expected = {} if "OMP_WAIT_POLICY" in given_ else {"GOMP_SPINCOUNT": str(SPINS)}
    expected |= {} if numba_is_imported else {"NUMBA_NUM_THREADS": "2"}
    assert environment == expected | given_


def test_threads_are_left_to_numba_without_a_quota(monkeypatch):
    monkeypatch.setattr(threads, "allowed_cpus", lambda: 4)
    monkeypatch.setattr(threads, "quotas", lambda *_: [8.0])
    environment: dict[str, str] = {}
    settle(environment, numba_is_imported=False)
    assert "NUMBA_NUM_THREADS" not in environment


@given(st.integers(1, 64), st.integers(1, 64), st.integers(2, 64), st.lists(st.floats(0.1, 100), max_size=2))
def test_ranks_share_what_their_launcher_may_use(cpus, others, ranks, bounds):
    of_all = cpus + others
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "allowed_cpus", lambda process=0: of_all if process else cpus)
        patch.setattr(threads, "quotas", lambda *_: bounds)
        environment = {"OMPI_COMM_WORLD_LOCAL_SIZE": str(ranks)}
        settle(environment, numba_is_imported=False)
    found = int(environment.get("NUMBA_NUM_THREADS", cpus))
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


# What C code, such as GNU OpenMP, finds in the environment, at the time at which Numba is imported and after it.
WATCHED = """
import ctypes, os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("numba", "numba.np.ufunc.omppool"):
            value = getenv(b"GOMP_SPINCOUNT")
            print(name, None if value is None else value.decode())
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
sys.meta_path.insert(0, Watch())
from mcprecond import color, problems
import numba.np.ufunc.parallel
print(numba.np.ufunc.parallel._is_initialized)
color(problems.graphs.grid2d(5), "eb")
"""


def test_the_package_sets_the_environment_before_numba_and_its_pool():
    assert imported(WATCHED, NUMBA_THREADING_LAYER="omp") == [
        "numba",
        str(SPINS),
        "False",
        "numba.np.ufunc.omppool",
        str(SPINS),
    ]


def test_a_users_setting_wins():
    assert imported(WATCHED, NUMBA_THREADING_LAYER="omp", GOMP_SPINCOUNT="11")[1] == "11"
    assert imported(WATCHED, NUMBA_THREADING_LAYER="omp", OMP_WAIT_POLICY="passive")[1] == "None"


# A machine with five more CPUs than it has, under a quota of one.
QUOTA = """
import os, pathlib
read, cpus = pathlib.Path.read_text, len(os.sched_getaffinity(0))
fakes = {"cgroup": "0::/", "cpu.max": "100000 100000"}
pathlib.Path.read_text = lambda path, *args, **kwargs: fakes.get(path.name) or read(path, *args, **kwargs)
os.sched_getaffinity = lambda _: range(cpus + 5)
"""


def test_the_quota_decides_where_numba_is_not_imported():
    program = QUOTA + "import mcprecond, numba; print(numba.get_num_threads())"
    assert imported(program) == ["1"]
    assert imported(program, NUMBA_NUM_THREADS="2") == ["2"]


def test_an_imported_numba_keeps_its_threads():
    """Numba raises an error at the next compilation where the variable changes after the threads have started."""
    program = f"""
import numba
before = numba.get_num_threads()
{QUOTA}
from mcprecond import color, problems
color(problems.graphs.grid2d(5), "eb")
print(before == numba.get_num_threads(), os.environ.get("NUMBA_NUM_THREADS"))
"""
    assert imported(program) == ["True", "None"]
