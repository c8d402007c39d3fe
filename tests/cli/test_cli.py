"""The command line, as a user calls it."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graphs import grid5, spd

from mcprecond import problems


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from mcprecond.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


@pytest.fixture
def no_gpu():
    from mcprecond.backends import gpu_problem

    if gpu_problem() is None:
        pytest.fail("this test is for machines without a GPU; `make test-gpu` leaves it out")


@pytest.fixture(params=[".mtx", ".mtx.gz", ".npz"])
def stored(request, tmp_path):
    """A matrix and the file that holds it."""
    from mcprecond import problems

    A, path = problems.laplacian((9, 11)), tmp_path / f"a{request.param}"
    if request.param == ".npz":
        sp.save_npz(path, A)
    else:
        scipy.io.mmwrite(tmp_path / "a.mtx", A, symmetry="symmetric")
        if request.param == ".mtx.gz":
            path.write_bytes(gzip.compress((tmp_path / "a.mtx").read_bytes()))
    return A, path


@pytest.fixture
def grid(tmp_path):
    """A file with the Laplacian of a 40 x 40 grid."""
    from mcprecond import problems

    sp.save_npz(tmp_path / "grid.npz", problems.laplacian((40, 40)))
    return str(tmp_path / "grid.npz")


def test_gpu_asked_for_without_one(no_gpu):
    result = run("warmup", "--gpu")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("mcprecond: --gpu cannot be used: ") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [("warmup", "--gpu"), ("info",)])
def test_without_cupy_the_extras_are_named(command):
    program = "import sys; sys.modules['cupy'] = None; from mcprecond.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", program, *command], capture_output=True, text=True)
    said = " ".join((result.stdout + result.stderr).split())
    assert "CuPy is not installed" in said and "pip install '.[gpu" in said and "Traceback" not in said


def test_info_and_version():
    import mcprecond

    facts = json.loads(run("info", "--json").stdout)
    assert facts["mcprecond"] == mcprecond.__version__ == run("--version").stdout.strip()
    assert {"numpy", "scipy", "numba", "gpu", "cpu_threads"} <= set(facts)


def test_help_shows_an_example():
    assert "mcprecond demo" in " ".join(run("--help").stdout.split())
    assert "--gpu" in run("color", "--help").stdout


def test_import_needs_numpy_scipy_and_numba_only():
    """Nor does it bring parts of SciPy that only some functions need."""
    optional = ("cupy", "rich", "matplotlib", "pyamg", "scipy.io", "scipy.spatial", "scipy.optimize", "scipy.stats")
    program = f"import sys, mcprecond; print([m for m in {optional} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_color_writes_a_proper_coloring(here, stored, tmp_path):
    from mcprecond.coloring import coloring_of
    from mcprecond.matrix import admit_matrix

    A, path = stored
    code, said, _ = here("color", path, "--method", "greedy", "--output", tmp_path / "c.npy", "--json")
    facts = json.loads(said)
    assert code == 0
    assert (facts["rows"], facts["entries"], facts["colors"], facts["method"]) == (99, A.nnz, 2, "greedy")
    coloring = coloring_of(admit_matrix(A), np.load(tmp_path / "c.npy"))
    assert coloring.n_colors == 2
    assert (facts["largest_class"], facts["smallest_class"]) == (coloring.sizes.max(), coloring.sizes.min())


def test_color_as_text_and_at_distance_two(here, grid, tmp_path):
    code, said, _ = here("color", grid, "--distance", 2, "--recolor", 2, "--output", tmp_path / "c.txt")
    colors = np.loadtxt(tmp_path / "c.txt", dtype=np.int32).reshape(40, 40)
    assert code == 0
    assert "colors" in said and "greedy" in said
    assert (colors[:, 2:] != colors[:, :-2]).all() and (colors[1:, 1:] != colors[:-1, :-1]).all()


@pytest.mark.parametrize("preconditioner", ["sgs", "multigrid", "jacobi", "none"])
def test_solve_finds_what_made_the_right_hand_side(here, grid, preconditioner):
    code, said, _ = here("solve", grid, "--preconditioner", preconditioner, "--rtol", "1e-10", "--json")
    facts = json.loads(said)
    assert code == 0
    assert facts["converged"] and facts["residual"] <= 1e-10 and facts["error"] < 1e-7
    assert ("colors" in facts) == (preconditioner == "sgs")
    assert {"compile_seconds", "setup_seconds", "solve_seconds"} <= set(facts)


@pytest.mark.parametrize("preconditioner", ["sgs", "jacobi"])
def test_solve_with_a_hermitian_matrix(here, tmp_path, preconditioner):
    A = spd(grid5(12), dtype=np.complex128)
    scipy.io.mmwrite(tmp_path / "a.mtx", A, symmetry="hermitian", precision=17)
    code, _, _ = here(
        "solve", tmp_path / "a.mtx", "--preconditioner", preconditioner, "--output", tmp_path / "x.mtx", "--rtol", 1e-12
    )
    x = scipy.io.mmread(tmp_path / "x.mtx").ravel()
    assert code == 0 and np.linalg.norm(x - np.random.default_rng(0).standard_normal(144)) < 1e-8


def test_solve_with_a_right_hand_side(here, stored, tmp_path):
    A, path = stored
    b = np.arange(99.0)
    np.save(tmp_path / "b.npy", b)
    code, said, _ = here(
        "solve", path, "--rhs", tmp_path / "b.npy", "--coloring", "greedy", "--output", tmp_path / "x.npy"
    )
    assert code == 0
    assert "converged" in said and "error" not in said
    assert np.linalg.norm(A @ np.load(tmp_path / "x.npy") - b) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("kind", ["array", "coordinate", ".mtx.gz", "row"])
def test_right_hand_sides_and_solutions_in_matrix_market_files(here, stored, tmp_path, kind):
    A, path = stored
    b = np.where(np.arange(99) % 3, np.arange(99.0), 0.0)
    rhs = tmp_path / ("b.mtx.gz" if kind == ".mtx.gz" else "b.mtx")
    scipy.io.mmwrite(tmp_path / "b.mtx", sp.coo_matrix(b[:, None]) if kind == "coordinate" else b[:, None])
    if kind == ".mtx.gz":
        rhs.write_bytes(gzip.compress((tmp_path / "b.mtx").read_bytes()))
    if kind == "row":
        scipy.io.mmwrite(rhs, b[None])
    code, _, complaint = here("solve", path, "--rhs", rhs, "--output", tmp_path / "x.mtx")
    if kind == "row":
        assert code == 2 and "holds 99 columns; a vector has one" in complaint
        return
    assert code == 0
    x = scipy.io.mmread(tmp_path / "x.mtx")
    assert x.shape == (99, 1) and np.linalg.norm(A @ x.ravel() - b) <= 1e-8 * np.linalg.norm(b)


def test_solve_as_a_user_calls_it(grid):
    result = run("solve", grid, "--coloring", "greedy")
    assert result.returncode == 0, result.stderr
    assert "converged" in result.stdout
    assert all("Numba compiles" in line for line in result.stderr.splitlines())


@pytest.mark.parametrize("solver", [None, "gmres"])
@pytest.mark.parametrize("preconditioner", [None, "dilu", "multigrid", "none"])
def test_solve_takes_matrices_that_are_not_symmetric(here, tmp_path, solver, preconditioner):
    wind = sp.diags_array(np.ones(143), offsets=-1, shape=(144, 144))
    A = sp.csr_matrix(grid5(12) + sp.eye_array(144) - 0.7 * wind)
    sp.save_npz(tmp_path / "wind.npz", A)
    options = [
        *(["--solver", solver] if solver else []),
        *(["--preconditioner", preconditioner] if preconditioner else []),
    ]
    code, said, complaint = here("solve", tmp_path / "wind.npz", *options, "--json")
    facts = json.loads(said)
    assert code == 0, complaint
    assert facts["solver"] == (solver or "bicgstab") and facts["preconditioner"] == (preconditioner or "auto")
    assert facts["error"] < 1e-5


@pytest.mark.parametrize("preconditioner", ["auto", "ilu0", "dilu", "multigrid"])
def test_solve_takes_systems_of_nodes(here, tmp_path, preconditioner):
    A = problems.elasticity(4)
    sp.save_npz(tmp_path / "A.npz", A)
    np.save(tmp_path / "B.npy", np.tile(np.eye(3), (A.shape[0] // 3, 1)))
    given = ("--block-size", 3, "--near-null-space", tmp_path / "B.npy")
    code, said, complaint = here("solve", tmp_path / "A.npz", "--preconditioner", preconditioner, *given, "--json")
    assert code == 0, complaint
    assert json.loads(said)["residual"] <= 1e-8


def test_solve_shows_no_error_that_no_solver_can_know(here, tmp_path):
    """The solution of a singular system is known up to the null space; which one is known, or given."""
    L = sp.csr_matrix(sp.csgraph.laplacian(abs(sp.triu(grid5(12), 1) + sp.tril(grid5(12), -1))))
    d = np.linspace(1, 2, 144)
    sp.save_npz(tmp_path / "L.npz", L)
    sp.save_npz(tmp_path / "S.npz", sp.csr_matrix(sp.diags_array(1 / d) @ L @ sp.diags_array(1 / d)))
    np.save(tmp_path / "d.npy", d)
    assert abs(L @ np.ones(144)).max() < 1e-12
    for options in (["L.npz"], ["L.npz", "--nullspace", "constant"], ["S.npz", "--nullspace", str(tmp_path / "d.npy")]):
        code, said, complaint = here("solve", tmp_path / options[0], *options[1:], "--json")
        assert code == 0, complaint
        assert json.loads(said)["error"] < 1e-5


@pytest.mark.parametrize("width", ["0", "-3", "wide"])
def test_a_width_that_is_none_is_left_alone(grid, width):
    result = run("solve", grid, COLUMNS=width)
    assert result.returncode == 0 and "converged" in result.stdout


def test_solve_not_converged_is_exit_code_1(here, grid):
    code, said, _ = here("solve", grid, "--maxiter", 2, "--json")
    facts = json.loads(said)
    assert code == 1
    assert facts["iterations"] == 2 and not facts["converged"] and "maxiter" in facts["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("color", "none.mtx"), "No such file or directory: 'none.mtx'"),
        (("solve", "a.txt"), "a.txt must end in .mtx, .mtx.gz or .npz"),
        (("color", "GRID", "--method", "gready"), "--method must be one of"),
        (("color", "GRID", "--distance", "3"), "--distance must be 1 or 2"),
        (("solve", "none.mtx", "--rtol", "-1"), "--rtol must be at least 0.0, got -1.0"),
        (("solve", "none.mtx", "--coloring", "gready"), "--coloring must be one of"),
        (("solve", "none.mtx", "--maxiter", "-1"), "--maxiter must be at least 0"),
        (("color", "none.mtx", "--recolor", "-1"), "--recolor must be at least 0"),
        (("solve", "GRID", "--rhs", "SHORTRHS"), "b must have shape (1600,), got (3,)"),
        (("plot", "GRID", "--output", "a.pdf"), "--output must end in .png or .svg"),
        (
            ("plot", "GRID", "--output", "a.png", "--what", "colors"),
            "--what must be one of pattern, levels, convergence",
        ),
        (("color", "GRID", "--output", "c.csv"), "--output must end in .npy or .txt"),
        (("solve", "GRID", "--output", "nowhere/x.npy"), "no folder nowhere"),
        (("solve", "GRID", "--output", "x.txt"), "--output must end in .npy or .mtx"),
        (("solve", "GRID", "--rhs", "NOVECTOR"), "cannot be read as a vector"),
        (("solve", "GRID", "--preconditioner", "ilu"), "--preconditioner must be one of auto, sgs, dilu"),
        (("solve", "GRID", "--rtol", "-1"), "--rtol must be at least 0.0, got -1.0"),
        (("solve", "GRID", "--rhs", "none.npy"), "none.npy"),
        (("solve", "GRID", "--rhs", "GRID"), "must end in .npy, .mtx or .mtx.gz"),
        (("solve", "SHORT"), "must be square"),
        (("solve", "WIND", "--solver", "pcg"), "not symmetric, which pcg needs; try --solver gmres"),
        (("solve", "TURNED", "--solver", "pcg"), "not Hermitian"),
        (("solve", "GRID", "--preconditioner", "spilu"), "spilu is not symmetric, as pcg needs it"),
        (("solve", "WIND", "--solver", "minres"), "not symmetric, which minres needs; try --solver gmres"),
        (("solve", "WIND", "--solver", "minres", "--preconditioner", "auto"), "not symmetric, which minres needs"),
        (("solve", "GRID", "--solver", "minres", "--preconditioner", "auto"), "auto is not for minres"),
        (("solve", "WIND", "--nullspace", "constant"), "--nullspace needs --solver pcg"),
        (("solve", "GRID", "--nullspace", "none.npy"), "none.npy"),
        (("solve", "GRID", "--nullspace", "constant"), "column 0 of nullspace is not in the null space of A"),
        (("solve", "GRID", "--solver", "cg"), "--solver must be one of pcg, minres, bicgstab, gmres"),
        (("solve", "GRID", "--block-size", "0"), "--block-size must be at least 1"),
        (("solve", "HOLE", "--preconditioner", "jacobi"), "A has 0.0 on the diagonal in row 1"),
    ],
)
def test_bad_input_of_color_and_solve_is_one_line(here, grid, tmp_path, arguments, message):
    sp.save_npz(tmp_path / "short.npz", sp.csr_matrix(np.ones((2, 3))))
    sp.save_npz(tmp_path / "wind.npz", sp.csr_matrix(np.array([[2.0, 1.0], [-1.0, 2.0]])))
    sp.save_npz(tmp_path / "turned.npz", sp.csr_matrix(np.array([[2.0, 1j], [1j, 2.0]])))
    sp.save_npz(tmp_path / "hole.npz", sp.csr_matrix(np.array([[2.0, 1.0], [1.0, 0.0]])))
    (tmp_path / "vector.mtx").write_text("1 2 3")
    np.save(tmp_path / "three.npy", np.ones(3))
    files = {"GRID": grid, "SHORTRHS": str(tmp_path / "three.npy"), "NOVECTOR": str(tmp_path / "vector.mtx")} | {
        name: str(tmp_path / f"{name.lower()}.npz") for name in ("SHORT", "WIND", "TURNED", "HOLE")
    }
    code, said, complaint = here(*(files.get(argument, argument) for argument in arguments))
    assert code == 2
    assert said == ""
    assert complaint.startswith("mcprecond: ") and complaint.count("\n") == 1 and message in complaint


@pytest.mark.parametrize("command", ["color", "solve"])
def test_gpu_asked_for_color_and_solve_without_one(no_gpu, here, grid, command):
    code, said, complaint = here(command, grid, "--gpu")
    assert (code, said) == (2, "")
    assert complaint.startswith("mcprecond: --gpu cannot be used: ")


@pytest.mark.parametrize("command", ["demo", "color", "solve", "advise", "plot", "info", "warmup"])
def test_help_shows_an_example_of_every_command(here, command):
    from mcprecond import cli

    assert command in cli.COMMANDS and len(cli.COMMANDS) == 7
    code, said, _ = here(command, "--help")
    words = " ".join(said.split())
    assert code == 0
    assert f"Example: mcprecond {command}" in words and ("--json" in words) == (command != "plot")


def test_help_says_what_the_docstrings_say(here):
    """Brackets are no markup."""
    from mcprecond import cli

    for name, function in cli.COMMANDS.items():
        words = " ".join(here(name, "--help")[1].replace("-\n", "-").split())
        for paragraph in inspect.getdoc(function).split("\n\n"):
            assert " ".join(paragraph.split()) in words
    assert "which the extra studies brings" in " ".join(here("plot", "--help")[1].split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("info", "--m", "3"), "unrecognized arguments: --m 3; see mcprecond info --help"),
        (("color", "GRID", "--recolor", "many"), "invalid int value: 'many'; see mcprecond color --help"),
        (("solve",), "the following arguments are required: FILE; see mcprecond solve --help"),
        (("solv", "GRID"), "; did you mean 'solve'?"),
        (("solve", "GRID", "--preconditioner", "multgrid"), "; did you mean 'multigrid'?"),
        (("plot", "GRID"), "required: --output"),
        (("paint",), "invalid choice: 'paint'"),
        (("color", "GRID", "--dist", "2"), "unrecognized arguments: --dist 2"),
    ],
)
def test_bad_arguments_are_one_line(here, grid, arguments, message):
    code, said, complaint = here(*(grid if argument == "GRID" else argument for argument in arguments))
    assert (code, said) == (2, "")
    assert complaint.startswith("mcprecond: ") and complaint.count("\n") == 1 and message in complaint


def test_without_a_command_the_help_is_shown(here):
    code, said, _ = here()
    assert code == 2 and "mcprecond demo" in " ".join(said.split())


def test_without_rich_it_says_what_to_install(tmp_path):
    program = "import sys; sys.modules['rich'] = None; from mcprecond.command import main; main()"
    result = subprocess.run([sys.executable, "-c", program, "info"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "mcprecond: the command line needs rich; from a clone: pip install '.[cli]'\n"


def started(tmp_path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """The command as it is installed, in another environment."""
    script = tmp_path / "mcprecond"
    script.write_text("from mcprecond.command import main; main()")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()])} | environment
    result = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, env=environment)
    return result.returncode, result.stdout, result.stderr


def test_a_variable_that_turns_numba_off_is_named(tmp_path):
    code, out, complaint = started(tmp_path, "info", NUMBA_DISABLE_JIT="1")
    *_, last = complaint.splitlines()
    assert (code, out) == (1, "") and "unset that variable" in last and "NUMBA_DISABLE_JIT" in last


def test_importing_changes_nothing_outside_of_the_package(tmp_path):
    program = "import sys; hook = sys.excepthook; import mcprecond.command; assert sys.excepthook is hook"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_mistakes_of_the_package_keep_their_traceback(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import mcprecond.cli.machine as m\ndef surroundings(): raise ZeroDivisionError\nm.surroundings = surroundings"
    )
    code, _, complaint = started(tmp_path, "info")
    assert code == 1 and complaint.startswith("Traceback") and "ZeroDivisionError" in complaint


def test_an_interrupt_outside_of_the_work(here, monkeypatch):
    from mcprecond.cli import machine

    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(machine, "surroundings", stop)
    assert here("info") == (130, "", "interrupted\n")


@pytest.mark.parametrize("columns", [40, 80])
def test_advise_fits_the_terminal(here, grid, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    code, said, _ = here("advise", grid)
    table = said.split("To a relative")[0]
    assert code == 0 and "…" not in table and all(len(line) <= columns for line in table.splitlines())
    assert ("total" in table) == (columns == 40) and ("setup" in table) == (columns == 80)


def test_demo_shows_every_problem_and_what_was_seen(here):
    code, said, _ = here("demo", "--small")
    assert code == 0
    for word in ("FENL", "circuit", "triangulation", "elasticity", "CG", "Jacobi", "SGS", "multigrid", "iterations"):
        assert word in said
    words = " ".join(said.split())
    assert words.index("circuit") < words.index("FENL") and ("is the fastest" in words or "are about equal" in words)
    assert words.count("solve(A, b) chose") == 5
    assert "mcprecond advise" in words and "It ran on the CPU" in words


def test_demo_as_json_adds_up(here):
    code, said, _ = here("demo", "--small", "--json")
    rows = json.loads(said)
    assert code == 0 and len(rows) == 25
    for row in rows:
        assert row["verified"] and row["total_seconds"] == row["setup_seconds"] + row["solve_seconds"]
        assert row["method"] != "CG" or row["times_faster"] == 1
        assert bool(row["chosen"]) == (row["method"] == "solve")


def raced(**methods):
    """Rows of one table of the demonstration: method -> (iterations, seconds of setup, and of the solve)."""
    return [
        {
            "method": method,
            "iterations": iterations,
            "setup_seconds": setup,
            "solve_seconds": solve,
            "total_seconds": setup + solve,
            "verified": iterations < 10_000,
            "times_faster": methods["CG"][2] / (setup + solve),
            "chosen": "SGS" if method == "solve" else "",
        }
        for method, (iterations, setup, solve) in methods.items()
    ]


def test_what_the_demo_says_was_seen():
    from mcprecond.studies.demo import verdict

    assert verdict(raced(CG=(500, 0, 5.0), SGS=(200, 0.5, 2.0), multigrid=(10, 2.0, 2.0))) == (
        "SGS is the fastest, 2.0 times as fast as CG."
    )
    assert verdict(raced(CG=(500, 0, 6.1), SGS=(200, 0.5, 4.0), multigrid=(10, 1.7, 1.0))) == (
        "multigrid is the fastest, 2.3 times as fast as CG."
    )
    assert verdict(raced(CG=(500, 0, 5.0), SGS=(200, 0.5, 1.5), multigrid=(10, 1.1, 1.0))) == (
        "SGS and multigrid are about equal, 2.5 times as fast as CG."
    )
    assert verdict(raced(CG=(180, 0, 1.8), SGS=(80, 0.57, 1.6), multigrid=(9, 3.0, 1.0))) == (
        "CG is the fastest: CG needs 180 iterations. SGS needs 80, each as long as 2.0 of CG's, and its setup takes as "
        "long as 57 of them."
    )
    assert verdict(raced(CG=(500, 0, 5.0), SGS=(200, 0.5, 1.5), solve=(200, 0.6, 1.5))) == (
        "SGS and solve are about equal, 2.5 times as fast as CG. solve(A, b) chose SGS."
    )
    assert verdict(raced(CG=(500, 0, 5.0), SGS=(200, 0.5, 1.5), solve=(200, 1.5, 1.5))) == (
        "SGS is the fastest, 2.5 times as fast as CG. solve(A, b) chose SGS, and took 1.5 times as long."
    )
    assert verdict(raced(CG=(10_000, 0, 5.0), SGS=(200, 0.5, 2.0))) == "SGS is the fastest."
    assert verdict(raced(CG=(10_000, 0, 5.0))) == "No method converged."


def test_a_bar_shares_the_console_of_what_is_printed_on_a_terminal(monkeypatch):
    """The lines of two consoles run into each other."""
    from rich.console import Console

    from mcprecond.cli import terminal

    both, other = Console(force_terminal=True), Console(stderr=True, force_terminal=True)
    monkeypatch.setattr(terminal, "out", both)
    monkeypatch.setattr(terminal, "err", other)
    assert terminal.beside() is both
    monkeypatch.setattr(terminal, "out", Console(force_terminal=False))
    assert terminal.beside() is other


@pytest.mark.parametrize("what", ["pattern", "levels", "convergence"])
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plot_writes_a_picture(here, grid, tmp_path, what, suffix):
    picture = tmp_path / f"picture{suffix}"
    code, said, complaint = here("plot", grid, "--what", what, "--output", picture)
    assert code == 0, complaint
    assert said.strip() == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG" if suffix == ".png" else b"<?xml")


def test_advise_says_why(here, grid):
    code, said, _ = here("advise", grid)
    assert code == 0
    assert "Use: " in said and "It took " in said and " to set up" in said


@pytest.mark.parametrize(
    ("arguments", "within", "reached"),
    [
        (("solve", "GRID"), "pcg", "while setting up sgs"),
        (("color", "GRID"), "color", "while coloring"),
        (("advise", "GRID"), "studies.advise", "while reading"),
        (("demo", "--small"), "studies.demo", "while starting"),
    ],
)
def test_interrupted_commands_say_how_far_they_came(here, grid, monkeypatch, arguments, within, reached):
    import mcprecond

    def stop(A=None, b=None, **options):
        # The rehearsal of a solve goes on.
        if within != "pcg" or options.get("maxiter") != 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(f"mcprecond.{within}", stop)
    if within == "color":
        monkeypatch.setattr(mcprecond, "color", lambda *args, **options: stop())
    code, said, complaint = here(*(grid if argument == "GRID" else argument for argument in arguments))
    assert (code, said) == (130, "")
    assert complaint.startswith("interrupted ") and reached in complaint and complaint.count("\n") == 1


def test_an_interrupted_solve_says_the_residual(here, grid, monkeypatch):
    import mcprecond

    solve = mcprecond.pcg

    def interrupted(A, b, **options):
        told = options.pop("progress", None)

        def stop(iterations, residual_norm):
            if iterations == 3:
                clock[0] += 1
                told(iterations, residual_norm)
                raise KeyboardInterrupt

        return solve(A, b, **options, progress=told and stop)

    clock = [0.0]
    monkeypatch.setattr("mcprecond.cli.solving.time.perf_counter", lambda: clock[0])
    monkeypatch.setattr(mcprecond, "pcg", interrupted)
    code, _, complaint = here("solve", grid)
    assert code == 130
    assert complaint.startswith("interrupted after 3 iterations at a relative residual of ")
