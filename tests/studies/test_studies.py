"""Comparisons on a user's own matrices: what the rows say, what the files keep, what is refused."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp

from mcprecond import MulticolorSGS, SmoothedAggregation, color, pcg, problems, studies
from mcprecond.problems import graphs
from mcprecond.studies import Table
from mcprecond.studies.hierarchies import HIERARCHIES
from mcprecond.studies.measure import time_calls


@pytest.fixture
def matrices(to_device):
    return {"grid": to_device(graphs.grid2d(10)), "cube": to_device(graphs.grid3d(5, 27))}


def test_coloring_says_what_color_says(matrices, device):
    methods = {
        "rows": ("greedy", {"order": "natural"}),
        "far": ("greedy", {"distance": 2}),
        "jpl": ("jpl", {"seed": 3}),
        "hash": ("is_hash", {"table_size": 1}),
    }
    table = studies.coloring(matrices, methods, repeats=2)
    assert [(row["matrix"], row["method"]) for row in table.rows] == [(m, label) for m in matrices for label in methods]
    for row in table.rows:
        A, (name, options) = matrices[row["matrix"]], methods[row["method"]]
        runs = [color(A, name, **({"seed": seed} | options)) for seed in range(2)]
        assert row["verified"] is True
        found = {"colors": [run.n_colors for run in runs], "rounds": [run.rounds for run in runs]}
        found["conflicts"] = [run.history[:, 1].sum() for run in runs]
        assert {key: row[key] for key in found} == {key: min(counts) for key, counts in found.items()}
        assert (row["vertices"], row["entries"], row["device"]) == (A.shape[0], A.nnz, device)
        assert row["seconds"] > 0 and row["spread"] >= 0 and row["pattern_seconds"] > 0


def test_counts_of_several_seeds_have_a_range(backend, to_device):
    A = to_device(sp.csr_matrix(graphs.rmat(7)))
    methods = {"random": ("jp", {}), "one seed": ("jp", {"seed": 3}), "greedy": ("greedy", {})}
    random, one_seed, greedy = studies.coloring({"A": A}, methods, repeats=6).rows
    counts = [color(A, "jp", seed=seed).n_colors for seed in range(6)]
    assert [random["colors_least"], random["colors_most"]] == [min(counts), max(counts)] and len(set(counts)) > 1
    assert random["colors"] == sorted(counts)[2] and random["colors_mean"] == pytest.approx(np.mean(counts))
    assert one_seed["colors_least"] == one_seed["colors_most"] == counts[3]
    assert greedy["colors_least"] == greedy["colors_most"] and greedy["verified"]


def test_degrees_are_those_of_the_graph(to_device):
    """Entries on the diagonal do not count, and one of two that are opposite to each other suffices."""
    A = sp.block_diag([sp.csr_matrix(np.ones((33, 33))), sp.csr_matrix(np.triu(np.ones((3, 3))))])
    (row,) = studies.coloring({"cliques": to_device(sp.csr_matrix(A))}, ["greedy"], repeats=1).rows
    degrees = [32] * 33 + [2] * 3
    assert row["max_degree"] == 32 and row["share_of_degrees_from_32"] == 33 / 36
    np.testing.assert_allclose([row["mean_degree"], row["degree_deviation"]], [np.mean(degrees), np.std(degrees)])


def test_a_function_is_another_coloring(matrices, backend):
    """It may return a Coloring or colors; improper ones are refused."""

    def rows_alternate(A):
        return backend.xp.arange(A.shape[0], dtype=np.int32)

    methods = {"own": rows_alternate, "two": lambda A: color(A, "greedy", order="ldf")}
    table = studies.coloring(matrices, methods, repeats=1)
    for own, two in zip(table.rows[::2], table.rows[1::2], strict=True):
        A = matrices[own["matrix"]]
        assert own["verified"] and two["verified"] and own["colors"] == A.shape[0]
        assert own["peak_bytes"] >= 4 * A.shape[0] and own["coloring"].endswith("rows_alternate")
        assert two["colors"] == color(A, "greedy", order="ldf").n_colors
    with pytest.raises(ValueError, match="the same color 0"):
        studies.coloring(matrices, {"none": lambda A: backend.xp.zeros(A.shape[0], np.int32)}, repeats=1)
    with pytest.raises(TypeError, match="a name and a dict of options, or a function, for each label, got 3"):
        studies.coloring(matrices, {"none": 3})


def test_an_improper_coloring_is_not_verified(monkeypatch):
    A = sp.csr_matrix(graphs.grid2d(3))
    proper = color(A, "greedy")
    wrong = type(proper)(np.zeros(9, np.int32), np.array([9]), "greedy", proper.history)
    monkeypatch.setattr("mcprecond.studies.compare.color", lambda *args, **options: wrong)
    table = studies.coloring({"A": A}, {"greedy": ("greedy", {}), "far": ("greedy", {"distance": 2})}, repeats=1)
    assert [row["verified"] for row in table.rows] == [False, False]


def test_convergence_says_what_the_solver_says(matrices, backend):
    table = studies.convergence(
        matrices, {"none": None, "SGS": lambda A: MulticolorSGS(A, "greedy")}, repeats=2, seed=5
    )
    for row in table.rows:
        A = matrices[row["matrix"]]
        x = backend.xp.asarray(np.random.default_rng(5).standard_normal(A.shape[0]))
        M = MulticolorSGS(A, "greedy") if row["method"] == "SGS" else None
        assert row["iterations"] == pcg(A, A @ x, rtol=1e-8, M=M).iterations
        assert row["colors"] == (M.n_colors if M else None)
        assert row["verified"] is True and row["reason"] == "converged"
        assert 0 < row["residual"] <= 1e-8 and 0 < row["error"] < 1e-6
        assert row["seconds"] == row["setup_seconds"] + row["solve_seconds"]
        assert (row["application"] > 0) == (row["setup_seconds"] > 0) == (M is not None)


def test_multigrid_says_what_the_hierarchies_say(to_device, backend):
    A = to_device(problems.laplacian((30, 30)))
    choices = {"defaults": {"max_coarse": 50}, "K": {"cycle": "K", "max_coarse": 50}, "none": {"theta": 7}}
    table = studies.multigrid({"grid": A}, choices, repeats=1, seed=5)
    x = backend.xp.asarray(np.random.default_rng(5).standard_normal(900))
    for row in table.rows[:2]:
        M = SmoothedAggregation(A, **choices[row["method"]])
        result = pcg(A, A @ x, M=M, rtol=1e-8)
        assert row["verified"] is True and row["iterations"] == result.iterations
        assert (row["levels"], row["operator_complexity"]) == (len(M.levels), M.operator_complexity)
        np.testing.assert_allclose(row["residuals"], result.residuals / result.residuals[0])
        np.testing.assert_allclose(row["factor"] ** row["iterations"], row["residuals"][-1])
    assert "max_coarse=50" in row["options"]
    refused = table.rows[2]
    assert refused["verified"] is False and "theta must be" in refused["reason"]
    assert f"{len(table.rows[0]['residuals'])} numbers" in str(table)


def test_hierarchies_are_found_again(tmp_path):
    A, told = problems.laplacian((20, 20)), []
    for theta in (None, None, 0.1):
        choices = {"one": {"theta": theta}}
        table = studies.multigrid({"A": A}, choices, path=tmp_path / "r.json", repeats=1, progress=told.append)
        assert isinstance(table.rows[0]["residuals"], list)
    assert len(told) == 4
    assert {row["method"] for row in studies.multigrid({"A": A}, repeats=1).rows} == set(HIERARCHIES)


def test_matrices_are_not_changed(to_device, backend):
    ordered = graphs.grid2d(6)
    A = sp.csr_matrix((ordered.data.copy(), ordered.indices.copy(), ordered.indptr))
    for begin, end in zip(A.indptr, A.indptr[1:], strict=False):  # rows backwards
        A.indices[begin:end], A.data[begin:end] = A.indices[begin:end][::-1].copy(), A.data[begin:end][::-1].copy()
    unsorted = to_device(A)
    indices, data = unsorted.indices.copy(), unsorted.data.copy()
    studies.coloring({"A": unsorted}, {"far": ("greedy", {"distance": 2})}, repeats=1)
    assert all(row["verified"] for row in studies.convergence({"A": unsorted}, {"none": None}, repeats=1).rows)
    studies.advise(unsorted)
    assert bool((unsorted.indices == indices).all()) and bool((unsorted.data == data).all())


def test_what_did_not_converge_is_not_verified():
    def broken(A):
        raise ValueError("zero pivot in row 3")

    table = studies.convergence({"A": graphs.grid2d(20)}, {"none": None, "broken": broken}, maxiter=2, repeats=1)
    short, failed = table.rows
    assert short["verified"] is False and short["iterations"] == 2 and short["reason"] == "max_iterations"
    assert failed["verified"] is False and "zero pivot in row 3" in failed["reason"]


def test_files_hold_the_rows_and_are_gone_on_with(tmp_path):
    path, made = tmp_path / "new" / "record.json", []

    def grid():
        made.append("grid")
        return graphs.grid2d(6)

    def run(methods, **options):
        return studies.coloring({"grid": grid}, methods, path=path, repeats=1, **options)

    first = run(["greedy"])
    told = []
    both = run(["greedy", "jpl"], progress=told.append)
    assert told == ["grid (1 of 2 done)", "grid: jpl (1 of 2 done)"] and made == ["grid"] * 2
    assert both.rows[0] == first.rows[0]
    assert run(["jpl"]).rows == both.rows[1:] and made == ["grid"] * 2  # nothing left to do, so no matrix
    run({"greedy": ("greedy", {"order": "ldf"})})
    assert made == ["grid"] * 3  # the same label with other options is another case

    document = json.loads(path.read_text())
    assert document["study"] == "coloring" and document["machine"]["cores"] and document["versions"]["numba"]
    assert document["cases"][:2] == both.rows and len(document["cases"]) == 3
    with path.with_suffix(".csv").open(newline="") as file:
        assert [row["colors"] for row in csv.DictReader(file)] == [str(case["colors"]) for case in document["cases"]]
    assert sorted(p.name for p in path.parent.iterdir()) == ["record.csv", "record.json"]


def test_orders_that_differ_in_the_middle_are_different_cases(tmp_path):
    A, told = graphs.grid2d(50), []
    order = np.arange(2500)
    for _ in range(2):
        studies.coloring(
            {"A": A}, {"o": ("greedy", {"order": order})}, path=tmp_path / "r.json", repeats=1, progress=told.append
        )
        order = order.copy()
        order[[1200, 1201]] = order[[1201, 1200]]
    assert len(told) == 4  # the matrix and the case, twice


def test_records_are_not_mixed(tmp_path):
    path, A = tmp_path / "record.json", {"A": graphs.grid2d(4)}
    studies.coloring(A, ["greedy"], path=path, repeats=1)
    with pytest.raises(ValueError, match="another study: coloring; give another path"):
        studies.convergence(A, {"none": None}, path=path)
    document = json.loads(path.read_text())
    machine = document["machine"]
    document["machine"] = machine | {"cpu": "abacus"}
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"another machine: .*abacus"):
        studies.coloring(A, ["greedy"], path=path)
    document["machine"], document["code"] = machine, {}
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="another code"):
        studies.coloring(A, ["greedy"], path=path)
    path.write_text("[]")
    with pytest.raises(ValueError, match="another study: list"):
        studies.coloring(A, ["greedy"], path=path)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"repeats": 0}, "repeats must be at least 1, got 0"), ({"path": "table.txt"}, "path must end in .json")],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        studies.coloring({"A": graphs.grid2d(4)}, ["greedy"], **options)


NO_LABELS = [None, True, "x", b"x", 1.5, ["x"], object(), np.zeros((2, 2)), {1: None}]
NO_LISTS = [None, True, "CG", b"CG", 1.5, [1], object(), np.zeros((2, 2))]
NO_FUNCTIONS = [True, "x", 1.5, 0, [], {}]
NO_INTEGERS = [None, True, "x", 1.5, np.nan, 2j, []]
NO_PATHS = [True, b"x.json", 1.5, 0, [], {}]
MATRICES = {"A": sp.eye_array(16, format="csr")}
SHARED = {"repeats": NO_INTEGERS, "progress": NO_FUNCTIONS, "path": NO_PATHS}
#: Studies with arguments that are right, and what the arguments are not.
WRONG = {
    "coloring": (
        {"matrices": MATRICES, "methods": ["greedy"]},
        {
            "matrices": NO_LABELS,
            "methods": [*NO_LISTS, {"a": "greedy"}, {"a": ("greedy", 3)}, {"a": (1, {})}],
            **SHARED,
        },
    ),
    "convergence": (
        {"matrices": MATRICES, "preconditioners": {"none": None}},
        {"matrices": NO_LABELS, "preconditioners": [*NO_LABELS, {"a": 3}], "solver": NO_FUNCTIONS, **SHARED},
    ),
    "multigrid": (
        {"matrices": MATRICES},
        {"matrices": NO_LABELS, "hierarchies": [*NO_LABELS[1:], {"a": 3}], "seed": NO_INTEGERS, **SHARED},
    ),
    "advise": (
        MATRICES,
        {
            "A": [None, np.eye(3), "x"],
            "b": ["x"],
            "B": [np.array(["x"] * 16)],
            "block_size": NO_INTEGERS,
            "rtol": [None, "x"],
            "repeats": NO_INTEGERS,
            "progress": NO_FUNCTIONS,
        },
    ),
}


@pytest.mark.parametrize(
    ("study", "argument"), [(study, name) for study, (_, wrong) in WRONG.items() for name in wrong]
)
def test_arguments_of_another_type(study, argument):
    right, wrong = WRONG[study]
    for value in wrong[argument]:
        with pytest.raises(TypeError, match=argument) as raised:
            getattr(studies, study)(**right | {argument: value})
        assert "\n" not in str(raised.value)


def test_unknown_methods_are_named():
    with pytest.raises(ValueError, match="unknown coloring method 'rainbow'"):
        studies.coloring({"A": graphs.grid2d(4)}, ["rainbow"])


def test_a_table_as_text_and_html():
    table = Table([{"method": "a<b", "seconds": 0.0012345, "ok": True}, {"method": "c", "colors": 12, "ok": False}])
    lines = str(table).splitlines()
    assert lines[0].split() == ["method", "seconds", "ok", "colors"]
    assert lines[1].split() == ["a<b", "0.00123", "yes"] and lines[2].split() == ["c", "no", "12"]
    assert lines[0].index("colors") + len("colors") == lines[2].index("12") + 2
    shown = table._repr_html_()
    assert shown.count("<tr>") == 3 and "a&lt;b" in shown and "0.00123" in shown
    assert str(Table([])) == ""


def test_timed_warms_up():
    calls = []
    timing = time_calls(lambda: calls.append(1), lambda: None, 3)
    assert len(calls) == 4 and timing.median >= 0 and timing.spread >= 0
