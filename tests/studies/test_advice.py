"""Advice for a matrix, in Python and on the command line."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graphs import grid5, spd
from scipy.sparse.linalg import splu

import mcprecond
from mcprecond import problems, studies
from mcprecond.backends import get_backend
from mcprecond.backends.team import get_threads
from mcprecond.matrix import PatternChangedError
from mcprecond.problems.graphs import grid2d
from mcprecond.studies import advice
from mcprecond.studies import candidates as candidates_module
from mcprecond.studies.advice import Trial, rank
from mcprecond.studies.candidates import Candidate, candidates
from mcprecond.studies.measure import Timing

NAMES = ("pcg", "multigrid", "MulticolorSGS", "MulticolorDILU", "ILU0", "SmoothedAggregation")


@pytest.fixture
def tried(monkeypatch):
    """Has `advise` try two preconditioners, and what a test adds to them."""

    def among(*more):
        own = [one for one in candidates(get_backend("cpu")) if one.method in ("SGS", "none")]
        monkeypatch.setattr(advice, "candidates", lambda *arguments: [*more, *own])

    among()
    return among


def with_all_threads(table):
    return {row["method"]: row for row in table.rows if row["threads"] != 1}


def test_best_first_and_runnable(to_device, backend):
    A = to_device(grid2d(30))
    table = studies.advise(A)
    rows = with_all_threads(table)
    assert sorted(rows) == sorted(candidate.method for candidate in candidates(backend))
    seconds = [row["seconds"] for row in table.rows]
    assert seconds == sorted(seconds)
    (advised,) = (row for row in table.rows if row["advised"])
    assert advised is table.rows[0] or not advised["decided"]
    assert all(row["verified"] and row["residual"] <= 1e-8 for row in table.rows)
    assert rows["ILU0 row order"]["colors"] == 59 > rows["ILU0 colors"]["colors"]
    assert rows["SGS greedy"]["colors"] == 2 and rows["none"]["application"] == 0
    assert rows["SGS eb"]["iterations"] < rows["none"]["iterations"]
    predicted = {name for name, row in rows.items() if row["predicted_seconds"] is not None}
    of_cpu = {"ILU0 row order", "DILU"} if backend.name == "cpu" else set()
    assert predicted == {"none", "SGS", "multigrid"} | of_cpu
    assert all(rows[name]["predicted_seconds"] > 0 for name in predicted)

    names = {name: getattr(mcprecond, name) for name in NAMES}
    names |= {"A": A, "b": A @ backend.xp.ones(900), "scipy": __import__("scipy.sparse.linalg")}
    for name in ("pyamg", "nvmath.sparse.advanced", "cupyx.scipy.sparse"):
        if find_spec(name.partition(".")[0]) and (backend.name == "gpu" or name == "pyamg"):
            names[name.partition(".")[0]] = __import__(name)
    for row in rows.values():
        result = eval(row["python"], names)
        x = getattr(result, "x", result)
        assert float(abs(x - 1).max()) < 1e-3


def test_hermitian_matrices(to_device, backend):
    rows = with_all_threads(studies.advise(to_device(spd(grid5(8), dtype=np.complex128)), repeats=1))
    assert len(rows) == len(candidates(backend))
    ours = [row for name, row in rows.items() if "PyAMG" not in name and name != "classical"]
    assert all(row["verified"] for row in ours) and all(row["reason"] for row in rows.values())


def test_a_given_system(to_device, backend, capfd):
    """In blocks, with a near-null space and a right-hand side. PyAMG has something to print then."""
    A = problems.elasticity(5)
    B, b = np.tile(np.eye(3), (A.shape[0] // 3, 1)), np.arange(A.shape[0], dtype=float)
    given = {"b": to_device(b), "B": to_device(B), "block_size": 3, "rtol": 1e-10, "repeats": 1}
    rows = with_all_threads(studies.advise(to_device(A), **given))
    assert capfd.readouterr().out == ""
    assert all(row["residual"] <= 1e-10 for row in rows.values() if row["verified"])
    assert rows["multigrid"]["verified"] and rows["SGS"]["verified"]
    assert rows["multigrid"]["python"] == "pcg(A, b, M=SmoothedAggregation(A, B=B, block_size=3))"
    assert rows["SGS"]["python"] == "pcg(A, b, M=MulticolorSGS(A, block_size=3))"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"b": np.ones(3)}, ValueError, "b must have shape"),
        ({"b": np.full(64, np.nan)}, ValueError, "b "),
        ({"B": np.ones((3, 2))}, ValueError, "B must have shape"),
        ({"block_size": 7}, ValueError, "block_size 7 does not divide the 64 unknowns"),
        ({"block_size": 0}, ValueError, "block_size must be between 1"),
        ({"rtol": -1.0}, ValueError, "rtol must be at least 0"),
        ({"rtol": "small"}, TypeError, "rtol must be a real number"),
        ({"repeats": 0}, ValueError, "repeats must be at least 1"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        studies.advise(grid2d(8), **options)


def test_one_thread_is_tried_beside_all(tried, monkeypatch):
    monkeypatch.setattr(advice, "LONGER", np.inf)
    before, seen = get_threads(), []
    rehearsed = Candidate("seen", lambda A: seen.append(get_threads()), "")
    tried(rehearsed)
    mcprecond.configure(threads=2)
    try:
        table = studies.advise(grid2d(8), repeats=1)
        assert get_threads() == 2
    finally:
        mcprecond.configure(threads=before)
    assert set(seen) == {1, 2} and {row["threads"] for row in table.rows} == {1, 2}
    for row in table.rows:
        assert row["python"].startswith("configure(threads=1); ") == (row["threads"] == 1)


def test_where_there_is_one_thread_it_is_not_spoken_of(tried):
    before = get_threads()
    mcprecond.configure(threads=1)
    try:
        table = studies.advise(grid2d(8), repeats=1)
    finally:
        mcprecond.configure(threads=before)
    assert [(row["threads"], "threads" in row["python"]) for row in table.rows] == [(None, False)] * 2


@pytest.mark.parametrize("run", [1, 2, 3])
def test_a_candidate_that_fails_later_is_a_row_with_its_reason(tried, run):
    calls = []

    def build(A):
        calls.append(A)
        if len(calls) > run:
            raise MemoryError("full by now")

    tried(Candidate("growing", build, ""))
    *_, last = studies.advise(grid2d(8)).rows
    assert last["method"] == "growing" and not last["verified"] and "full by now" in last["reason"]


def test_progress_knows_how_many_runs_there_are(tried):
    def build(A):
        raise ValueError("not this one")

    tried(Candidate("refusing", build, ""))
    told = []
    studies.advise(grid2d(8), progress=lambda *words: told.append(words))
    counts, totals = [done for _, done, _ in told], [total for _, _, total in told]
    assert counts == list(range(len(told))) and totals[-1] == len(told)
    assert totals == sorted(totals, reverse=True) and all("warming up" in what or "timing" in what for what, *_ in told)


def test_a_solve_that_takes_much_longer_than_the_fastest_is_given_up(tried, monkeypatch):
    monkeypatch.setattr(advice, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(advice, "LONGER", 0.0)
    table = studies.advise(grid2d(200), rtol=1e-12, repeats=1)
    assert [row["method"] for row in table.rows if row["verified"]][:1] == ["SGS"]
    assert "given up after" in next(row["reason"] for row in table.rows if row["method"] == "none")


def timed_trial(method, *seconds):
    trial = Trial(Candidate(method, None, ""), None)
    trial.setups, trial.solves, trial.verified = [0.0] * len(seconds), list(seconds), True
    trial.facts["iterations"] = 9
    return trial


def test_what_differs_by_no_more_than_the_noise_is_not_decided():
    trials = [timed_trial("slow", 9.0, 9.0, 9.0), timed_trial("b", 1.1, 1.0, 1.2), timed_trial("a", 1.0, 1.1, 0.9)]
    rows = rank(trials, {})
    assert [(row["method"], row["decided"]) for row in rows] == [("a", False), ("b", False), ("slow", True)]
    assert rank(trials[:2], {})[0]["decided"] is True


def advised_of(*trials):
    (row,) = (row for row in rank([*trials], {}) if row["advised"])
    return row["method"]


def test_what_is_about_as_fast_as_the_fastest_is_told_apart_by_rules():
    """The rows stay in the order of their numbers, and the advice is the same whichever of them is ahead."""
    for ahead in (0.95, 1.05):
        alone, few, default = (timed_trial(name, 1.0, 1.1, 0.9) for name in ("alone", "few", "default"))
        alone.threads, alone.facts["iterations"] = 1, 1
        few.facts["iterations"] = 2
        default.candidate = default.candidate._replace(is_default=True)
        default.solves = [ahead * seconds for seconds in default.solves]
        rows = rank([alone, few, default], {})
        assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)
        assert advised_of(alone, few, default) == "default"
        assert advised_of(alone, few) == "few"
        slow = timed_trial("slow", 9.0, 9.0, 9.0)
        slow.candidate = slow.candidate._replace(is_default=True)
        assert advised_of(slow, alone) == "alone"


def test_noise_is_three_times_the_distance_of_the_quartiles():
    one, other = Timing.of([1.0, 1.0, 1.0]), Timing.of([1.2, 1.3, 1.4])
    assert other.noise == pytest.approx(3 * 0.1 / 1.3)
    assert other.exceeds(one) and not one.exceeds(other)
    assert not Timing.of([1.0, 1.2, 1.4]).exceeds(one)


def test_a_direct_solver_that_would_take_long_is_not_tried():
    candidates_module._refuse_much_work(grid2d(300))
    with pytest.raises(MemoryError, match=r"predicted to take .* operations"):
        candidates_module._refuse_much_work(problems.laplacian((64, 64, 64)))


def test_what_fails_comes_last():
    rows = with_all_threads(studies.advise(-grid2d(8)))
    assert not any(row["verified"] for name, row in rows.items() if name != "direct")
    assert rows["none"]["reason"] == "indefinite_a" and rows["Jacobi"]["reason"] == "indefinite_m"


def test_rounding_on_one_side_of_the_diagonal_is_no_asymmetry(to_device):
    A = grid2d(8).tolil()
    A[0, 60], A[50, 3] = 1e-17, -2e-17
    table = studies.advise(to_device(A.tocsr()), repeats=1)
    assert all(row["verified"] for row in table.rows)


@pytest.mark.parametrize("error", [ValueError, TypeError, MemoryError, RuntimeError, PatternChangedError])
@pytest.mark.parametrize("where", ["in the constructor", "in an application"])
def test_a_candidate_that_refuses_is_a_row_with_its_reason(error, where, tried):
    class Refusing:
        shape, dtype = (64, 64), np.dtype(float)

        def __matmul__(self, r):
            raise error("not this one")

    def build(A):
        if where == "in the constructor":
            raise error("not this one")
        return Refusing()

    tried(Candidate("refusing", build, "nothing"))
    *good, last = studies.advise(grid2d(8), repeats=1).rows
    assert last["method"] == "refusing" and f"{error.__name__}: not this one" in last["reason"]
    assert {row["method"] for row in good} == {"SGS", "none"} and all(row["verified"] for row in good)


def test_pyamg_is_not_tried_on_graphs_with_hubs():
    pytest.importorskip("pyamg")
    n = 1000
    ones, leaves = np.ones(n), np.arange(1, n + 1)
    star = sp.csr_matrix((ones, (np.zeros(n, int), leaves)), shape=(n + 1, n + 1))
    rows = with_all_threads(studies.advise(star + star.T + sp.diags_array(np.r_[2.0 * n, 2 * ones]), repeats=1))
    theirs = [row for name, row in rows.items() if "PyAMG" in name or name == "classical"]
    assert len(theirs) == 3 and all("A has hubs" in row["reason"] for row in theirs)


def test_cudss_is_planned_and_factorized_once_and_freed(monkeypatch):
    """With a stand-in for nvmath, which needs a GPU."""
    calls = []

    class DirectSolver:
        def __init__(self, A, b, options):
            self.factors, self.b = splu(A.tocsc()), b
            calls.append(options)

        def __getattr__(self, name):
            return lambda: calls.append(name)

        def reset_operands(self, b):
            self.b = b

        def solve(self):
            return self.factors.solve(self.b)

    kinds = SimpleNamespace(SPD="spd", HPD="hpd")
    advanced = SimpleNamespace(
        DirectSolver=DirectSolver,
        DirectSolverMatrixType=kinds,
        DirectSolverOptions=lambda sparse_system_type: sparse_system_type,
    )
    for name in ("nvmath", "nvmath.sparse"):
        monkeypatch.setitem(
            sys.modules, name, SimpleNamespace(sparse=SimpleNamespace(advanced=advanced), advanced=advanced)
        )
    monkeypatch.setitem(sys.modules, "nvmath.sparse.advanced", advanced)
    A = grid2d(8)
    factors = candidates_module._cudss(A)
    for seed in (0, 1):
        x = np.random.default_rng(seed).standard_normal(64)
        np.testing.assert_allclose(factors @ (A @ x), x)
    del factors
    assert calls == ["spd", "plan", "factorize", "free"]


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (sp.csr_matrix((0, 0)), "A has no rows"),
        (sp.csr_matrix((2, 3)), "A must be square"),
    ],
)
def test_bad_matrices(A, message):
    with pytest.raises(ValueError, match=message):
        studies.advise(A)


def unsymmetric(n=12):
    wind = sp.diags_array(np.ones(n * n - 1), offsets=-1, shape=(n * n, n * n))
    return sp.csr_matrix(grid2d(n) + 0.1 * sp.eye_array(n * n) - 0.7 * wind)


@pytest.mark.parametrize("kind", ["unsymmetric", "complex symmetric"])
def test_matrices_that_are_not_hermitian(kind, to_device, backend, monkeypatch):
    """By bicgstab and gmres, and what is printed can be run."""
    monkeypatch.setattr(advice, "LONGER", np.inf)  # on a busy machine any solve may take long
    A = unsymmetric() if kind == "unsymmetric" else sp.csr_matrix(grid2d(12) + (1 + 2j) * sp.eye_array(144))
    A = to_device(A)
    rows = with_all_threads(studies.advise(A, A @ backend.xp.ones(144, A.dtype), repeats=1))
    assert sum(row["verified"] for row in rows.values()) >= 8
    assert {name.partition(",")[0] for name in rows} >= {"bicgstab", "gmres"}
    names = {name: getattr(mcprecond, name) for name in (*NAMES, "bicgstab", "gmres", "MulticolorGS", "ClassicalAMG")}
    names |= {"A": A, "b": A @ backend.xp.ones(144), "scipy": __import__("scipy.sparse.linalg")}
    for row in rows.values():
        if row["verified"]:
            result = eval(row["python"], names)
            assert float(abs(getattr(result, "x", result) - 1).max()) < 1e-3


def test_singular_matrices(to_device, backend):
    """Of which the constants are known to be the null space, or another one is given; b need not fit."""
    n = 12
    L = sp.csr_matrix(sp.csgraph.laplacian(abs(grid2d(n) - sp.diags_array(grid2d(n).diagonal()))))
    b = np.arange(float(n * n))
    rows = with_all_threads(studies.advise(to_device(L), to_device(b), repeats=1))
    assert rows["SGS"]["verified"] and rows["multigrid"]["verified"] and "direct" not in rows
    assert rows["SGS"]["python"].endswith(', nullspace="constant")')
    x = eval(
        rows["SGS"]["python"], {"pcg": mcprecond.pcg, "MulticolorSGS": mcprecond.MulticolorSGS} | {"A": L, "b": b}
    ).x
    assert abs(L @ x - (b - b.mean())).max() < 1e-2
    d = np.linspace(1, 2, n * n)
    scaled = sp.csr_matrix(sp.diags_array(1 / d) @ L @ sp.diags_array(1 / d))
    rows = with_all_threads(studies.advise(to_device(scaled), nullspace=to_device(d), quick=True))
    assert rows["SGS"]["verified"] and "nullspace=nullspace" in rows["SGS"]["python"]
    with pytest.raises(ValueError, match="nullspace needs a symmetric or Hermitian A"):
        studies.advise(unsymmetric(), nullspace="constant")


def test_quick_tries_the_usual_ones(backend, to_device):
    table = studies.advise(to_device(grid2d(12)), quick=True)
    assert {row["method"] for row in table.rows} == set(advice.QUICK)
    assert len(table.rows) == len(advice.QUICK)


@pytest.mark.parametrize(("size", "expected"), [(1, 1), (2, 2), (3, 3)])
def test_full_blocks_are_found(size, expected):
    A = sp.csr_matrix(sp.kron(grid2d(8), np.ones((size, size)) + np.eye(size)))
    assert advice.full_block_size(A) == expected


def test_a_refusal_is_one_line_of_at_most_100_characters(tried):
    def build(A):
        raise ValueError("first line " * 20 + "\nsecond")

    tried(Candidate("refusing", build, ""))
    reason = studies.advise(grid2d(8), repeats=1).rows[-1]["reason"]
    assert len(reason) <= 100 and "first line" in reason and "second" not in reason


def test_the_command(tmp_path, here):
    path = tmp_path / "grid.mtx"
    scipy.io.mmwrite(path, grid2d(12), symmetry="symmetric")
    code, said, complaint = here("advise", path)
    assert code == 0, complaint
    for word in ("grid.mtx: 144 rows", "SGS eb", "Jacobi", "none", "direct", "iterations", "colors", "Use: "):
        assert word in said


def test_the_command_takes_a_system(tmp_path, here, tried):
    A = problems.elasticity(4)
    scipy.io.mmwrite(tmp_path / "A.mtx", A)
    np.save(tmp_path / "b.npy", np.ones(A.shape[0]))
    np.save(tmp_path / "B.npy", np.tile(np.eye(3), (A.shape[0] // 3, 1)))
    given = ("--rhs", tmp_path / "b.npy", "--near-null-space", tmp_path / "B.npy", "--block-size", 3)
    code, said, complaint = here("advise", tmp_path / "A.mtx", *given, "--rtol", 1e-9, "--repeats", 1, "--json")
    assert code == 0, complaint
    rows = json.loads(said)
    assert {row["method"] for row in rows} == {"SGS", "none"} and all(row["residual"] <= 1e-9 for row in rows)
    code, _, complaint = here("advise", tmp_path / "A.mtx", "--near-null-space", tmp_path / "b.npy", "--block-size", 7)
    assert code == 2 and "block_size 7 does not divide" in complaint


def test_the_command_says_what_is_not_decided(tmp_path, here, monkeypatch):
    trials = [timed_trial("a", 1.0, 1.1, 0.9), timed_trial("b", 1.1, 1.0, 1.2), timed_trial("slow", 9.0, 9.0, 9.0)]
    for trial in trials:
        trial.facts = {"iterations": 3, "application": 1.0}
    monkeypatch.setattr(advice, "contest", lambda *arguments, **options: trials)
    scipy.io.mmwrite(tmp_path / "grid.mtx", grid2d(4), symmetry="symmetric")
    code, said, _ = here("advise", tmp_path / "grid.mtx")
    assert code == 0 and "a and b differ by no more than the noise:" in said
    trials.pop(1)
    assert "noise" not in here("advise", tmp_path / "grid.mtx")[1]


@pytest.mark.parametrize(("threads", "setting"), [(1, "MCPRECOND_NUM_THREADS=1 "), (2, "")])
def test_the_command_that_is_printed_uses_as_many_threads(tmp_path, here, monkeypatch, threads, setting):
    """One thread may win by its time on any machine, and is advised with a command, too."""
    trial = timed_trial("SGS", 1.0, 1.0, 1.0)
    trial.candidate, trial.threads = trial.candidate._replace(command="--preconditioner sgs"), threads
    trial.facts = {"iterations": 3, "application": 1.0}
    monkeypatch.setattr(advice, "contest", lambda *arguments, **options: [trial])
    scipy.io.mmwrite(tmp_path / "grid.mtx", grid2d(4), symmetry="symmetric")
    code, said, complaint = here("advise", tmp_path / "grid.mtx")
    assert code == 0, complaint
    assert f"or: {setting}mcprecond solve" in said and "--preconditioner sgs --rtol 1e-08" in said


def test_nothing_converges_is_exit_code_1(tmp_path, here, tried):
    tried(next(one for one in candidates(get_backend("cpu")) if one.method == "Jacobi"))
    scipy.io.mmwrite(tmp_path / "negative.mtx", -grid2d(4))
    code, said, complaint = here("advise", tmp_path / "negative.mtx")
    assert code == 1 and "none of them converged" in complaint and "Use:" not in said
    assert "none failed: indefinite_a" in said and "failed: indefinite_m" in said


def test_the_command_prints_what_can_be_run(tmp_path, here, tried):
    """And a hint at blocks; equal reasons are one line."""

    def build(A):
        raise ValueError("not this one")

    tried(Candidate("refusing", build, ""), Candidate("refusing, too", build, ""))
    A = problems.elasticity(4)
    scipy.io.mmwrite(tmp_path / "A.mtx", A)
    code, said, complaint = here("advise", tmp_path / "A.mtx", "--rtol", 1e-6)
    assert code == 0, complaint
    assert "refusing, refusing, too failed: refused: ValueError: not this one" in said
    assert "full blocks of 3 x 3: --block-size 3" in " ".join(said.split())
    (line,) = (line for line in said.splitlines() if "mcprecond solve" in line)
    words = line.partition("mcprecond ")[2].split()
    code, said, complaint = here(*words)
    assert code == 0 and "converged" in said, complaint


def test_files_that_cannot_be_used(tmp_path, here):
    code, _, complaint = here("advise", tmp_path / "no.mtx")
    assert code == 2 and "No such file" in complaint and "Traceback" not in complaint
    scipy.io.mmwrite(tmp_path / "dense.mtx", np.eye(2))
    code, _, complaint = here("advise", tmp_path / "dense.mtx")
    assert code == 2 and "holds a dense matrix" in " ".join(complaint.split())
