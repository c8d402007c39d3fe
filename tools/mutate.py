"""Mutation tests: change the package in one place, and see whether a test notices.

    python tools/mutate.py --sample 300 --seed 1        # a new sample; it takes half an hour
    python tools/mutate.py --again                      # what survived the last time, after tests were added

A mutant is a copy of the package with one comparison, one sign, one constant or one statement changed, in the Python of
ROOMS. The first run notes which tests reach which lines. Then the tests that reach a mutant's line run on it, those of
different functions first, until one fails. The CPU's functions run as plain Python by tests/interpreted.py, since Numba
would compile for minutes each time, so tests that take long that way are left out. CUDA kernels are not changed.

tools/mutants.json has the result. A survivor may be a gap in the tests, unless tools/mutants.toml says why nothing can
tell it from the original. With --again the mutants are those of that file, and others for those whose code is gone. It
needs the package coverage.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("coloring", "storage", "sweeps", "solvers", "multigrid")
RESULTS, REASONS = ROOT / "tools" / "mutants.json", ROOT / "tools" / "mutants.toml"
#: Modules of tests that know these rooms; what they ask for does not need threads, caches or large problems.
MODULES = (
    *("coloring", "orders", "ecl_gc", "distance2", "color_order", "color_arguments", "listed_columns"),
    *("color_blocks", "schedule", "dia", "node_blocks", "rest", "wide", "gauss_seidel", "smooth", "many_columns"),
    *("pcg", "columns", "nullspace", "unsymmetric", "automatic", "multigrid", "multigrid_solve", "long_rows", "scale"),
    *("identity", "single_precision"),
)
SLOW = 1.5  # seconds of the processor: a test that takes longer is left out
BUDGET, MOST_TESTS = 8.0, 60  # seconds, and tests, for one mutant
# In the first run a module of tests has some seconds, and more where it is long.
LEAST_SECONDS, BYTES_PER_SECOND = 10.0, 600
PATIENCE = 60  # seconds for all tests of a mutant
MOST_CASES = 30  # of a test that has parameters; they are drawn
SWAPS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is not": "is", "is": "is not"},
    **{"not in": "in", "in": "not in", "+": "-", "-": "+", "and": "or", "or": "and", "0": "1", "1": "0"},
}


class Mutant(NamedTuple):
    """The text from byte `begin` to `end` of a file is replaced."""

    file: str
    line: int
    begin: int
    end: int
    old: str
    new: str
    key: str  # what it is called where reasons are given; lines move


def mutants_of(file: str) -> Iterator[Mutant]:
    """All mutants of a file: in the bodies of functions, but not in what errors say."""
    text = (ROOT / file).read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def mutant(line: int, begin: int, end: int, old: str, new: str) -> Mutant:
        shown = text[starts[line - 1] : begin].decode() + f"[{old} -> {new}]"
        rest = text[end : max(end, starts[line] - 1)].decode() if end < starts[line] else ""
        return Mutant(file, line, begin, end, old, new, f"{file}: {(shown + rest).strip()}")

    def place(node: Any) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def between(left: Any, right: Any, words: str) -> Iterator[Mutant]:
        begin, end = place(left)[1], place(right)[0]
        if found := re.search(words, text[begin:end].decode()):
            line = text[: begin + found.start()].count(b"\n") + 1
            yield mutant(line, begin + found.start(), begin + found.end(), found[0], SWAPS[found[0]])

    def visit(node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.Raise | ast.Assert | ast.FunctionDef | ast.JoinedStr):
            return  # functions inside of functions are found by themselves
        if isinstance(node, ast.Compare):
            for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
                yield from between(left, right, r"is not|not in|[<>=!]=|[<>]|\bis\b|\bin\b")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            yield from between(node.left, node.right, r"[+-]")
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], r"\b(and|or)\b")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            begin, end = place(node)[0], place(node.operand)[0]
            yield mutant(node.lineno, begin, end, "not", "")
        elif isinstance(node, ast.Constant) and type(node.value) is int and node.value in (0, 1):
            yield mutant(node.lineno, *place(node), str(node.value), SWAPS[str(node.value)])
        elif (
            isinstance(node, ast.AugAssign | ast.Continue | ast.Break)
            or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript | ast.Attribute))
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
            or (isinstance(node, ast.Return) and node.value is None)
        ):
            begin, end = place(node)
            yield mutant(node.lineno, begin, end, text[begin:end].decode().splitlines()[0], "pass")
        if not isinstance(node, ast.AnnAssign):
            for child in ast.iter_child_nodes(node):
                yield from visit(child)
        elif node.value:
            yield from visit(node.value)

    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                yield from visit(statement)


def copy_of_tree(folder: Path) -> Path:
    """The files that tests read."""
    for name in ("mcprecond", "tests", "pyproject.toml"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)
    return folder


def options(most_seconds: float) -> list[str]:
    plain = ["-q", "-p", "interpreted", "-p", "no:cacheprovider", "--hypothesis-profile", "interpreted"]
    return [*plain, "-m", "not gpu", "--most-seconds", str(most_seconds)]


def environment(tree: Path, **more: str) -> dict[str, str]:
    path = [str(tree), str(tree / "tests"), str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path), "MCPRECOND_NUM_THREADS": "1"} | more


class Note:
    """A plugin that tells coverage which test runs, and notes which ones passed and how long they took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.deadline = time.process_time() + float(os.environ["MUTATE_SECONDS"])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        drawn = Counter[str]()
        turns = []
        for k in random.Random(1).sample(range(len(items)), len(items)):
            function = items[k].nodeid.partition("[")[0]
            drawn[function] += 1
            turns.append((drawn[function], k))
        # All functions once, then all of them a second time, as long as there is time.
        items[:] = [items[k] for turn, k in sorted(turns) if turn <= MOST_CASES]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        import coverage

        coverage.Coverage.current().switch_context(item.nodeid)
        if time.process_time() > self.deadline:
            item.session.shouldstop = "enough"
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration

    def pytest_sessionfinish(self) -> None:
        Path(os.environ["MUTATE_NOTES"]).write_text(json.dumps(self.seconds))


def pytest_configure(config: pytest.Config) -> None:
    """With MUTATE_NOTES this module is a plugin of the first run."""
    if "MUTATE_NOTES" in os.environ:
        config.pluginmanager.register(Note())


def tests_by_line(tree: Path, folder: Path, workers: int) -> tuple[dict[tuple[str, int], list[str]], dict[str, float]]:
    """Which tests reach a line of a file, and the seconds of those that pass; from notes where there are some."""
    import coverage

    def run(name: str) -> dict[str, float]:
        notes, module = folder / f"{name}.json", tree / "tests" / f"test_{name}.py"
        before = ("-m", "coverage", "run", f"--data-file={folder / name}.lines", "--source=mcprecond")
        limit = LEAST_SECONDS + module.stat().st_size / BYTES_PER_SECOND
        more = {"MUTATE_NOTES": str(notes), "MUTATE_SECONDS": str(limit), "COVERAGE_CORE": "ctrace"}
        command = [sys.executable, "-B", *before, "-m", "pytest", "-p", "mutate", *options(SLOW), str(module)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            if not notes.exists():
                subprocess.run(command, cwd=tree, env=environment(tree, **more), capture_output=True, timeout=8 * limit)
        if not notes.exists():
            print(f"{name} came to no end", flush=True)
        return json.loads(notes.read_text()) if notes.exists() else {}

    seconds: dict[str, float] = {}
    reached = defaultdict(list)
    with ThreadPoolExecutor(workers) as pool:
        for name, found in zip(MODULES, pool.map(run, MODULES), strict=True):
            seconds |= found
            for lines in folder.glob(f"{name}.lines*"):  # pyproject.toml lets each process write a file of its own
                data = coverage.CoverageData(str(lines))
                data.read()
                for path in data.measured_files():
                    file = "mcprecond/" + path.rpartition("/mcprecond/")[2]
                    for line, names in data.contexts_by_lineno(path).items():
                        reached[file, line] += [name for name in names if name in found]
    if not reached:
        raise RuntimeError("no test reaches any line; was coverage told to write its data elsewhere?")
    return reached, seconds


# A process imports the libraries that take long to import, but not the package. It reads lines with a folder and the
# arguments of pytest; for each line it forks a child that runs the tests, and prints how the child ended. So no child
# has to import the libraries.
BEGUN = """
import json, numba, os, pytest, scipy.sparse.linalg, signal, sys, time, traceback
for line in sys.stdin:
    tree, arguments, seconds = json.loads(line)
    if not (child := os.fork()):
        os.chdir(tree)
        os.dup2(os.open("output", os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 1)
        sys.path[:0] = [tree, tree + "/tests"]
        code = 3
        try:
            code = int(pytest.main(arguments))
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        finally:
            sys.stdout.flush()
            os._exit(code)
    end = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        time.sleep(0.01)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            end += seconds
    print(os.waitstatus_to_exitcode(ended[1]), file=sys.stderr, flush=True)
"""


class Tree(NamedTuple):
    """A copy of the tree that mutants are made in, and the process that runs tests there."""

    folder: Path
    begun: subprocess.Popen[str]

    def run(self, arguments: list[str]) -> int:
        """The exit status of pytest; that of a process that was killed is negative."""
        assert self.begun.stdin is not None and self.begun.stderr is not None
        print(json.dumps([str(self.folder), arguments, PATIENCE]), file=self.begun.stdin, flush=True)
        while not re.fullmatch(r"-?\d+", line := self.begun.stderr.readline().strip()):
            assert self.begun.poll() is None, line
        return int(line)


def begun_in(folder: Path) -> Tree:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    command = [sys.executable, "-B", "-W", "ignore", "-c", BEGUN]
    return Tree(folder, subprocess.Popen(command, text=True, env=environment(folder), **streams))


def chosen_tests(names: list[str], seconds: dict[str, float]) -> list[str]:
    """The fast ones first, in turns: one of each function, then a second one."""
    turns: Counter[str] = Counter()
    order = []
    for name in sorted(names, key=lambda name: seconds[name]):
        function = name.partition("[")[0]
        order.append((turns[function], seconds[name], name))
        turns[function] += 1
    chosen, total = [], 0.0
    for _, cost, name in sorted(order)[:MOST_TESTS]:
        total += cost
        if chosen and total > BUDGET:
            break
        chosen.append(name)
    return chosen


def fate(mutant: Mutant, tests: list[str], trees: SimpleQueue[Tree]) -> str:
    """What becomes of it: "killed", "timed out", "survived" or "not reached"."""
    if not tests:
        return "not reached"
    tree = trees.get()
    file = tree.folder / mutant.file
    original = file.read_bytes()
    file.write_bytes(original[: mutant.begin] + mutant.new.encode() + original[mutant.end :])
    try:
        status = tree.run([*options(4 * SLOW), "-x", "--slow-fails", *tests])
        if status == 0:
            return "survived"
        is_slow = status < 0 or "takes too long in Python" in (tree.folder / "output").read_text()
        return "timed out" if is_slow else "killed"
    finally:
        file.write_bytes(original)
        trees.put(tree)


def sampled(size: int, seed: int, before: Collection[str] = ()) -> list[Mutant]:
    """So many mutants, as many of each room: those whose keys were there before, and others for what is gone."""
    chosen, random_ = [], random.Random(seed)
    for room in ROOMS:
        files = sorted((ROOT / "mcprecond" / room).rglob("*.py"))
        everything = {m.key: m for file in files for m in mutants_of(str(file.relative_to(ROOT)))}
        kept = [everything.pop(key) for key in before if key in everything]
        missing = size // len(ROOMS) - len(kept)
        chosen += kept + random_.sample(list(everything.values()), min(missing, len(everything)))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--notes", type=Path, help="a folder for what the first run notes, or that has it")
    parser.add_argument("--again", action="store_true", help="those that survived the last time")
    arguments = parser.parse_args()
    known: dict[str, str] = {}
    seed, size = arguments.seed, arguments.sample
    if arguments.again:
        record = json.loads(RESULTS.read_text())
        seed, size, known = record["seed"], record["sample"], record["fates"]
    mutants = sampled(size, seed, known)
    with tempfile.TemporaryDirectory() as scratch:
        trees: SimpleQueue[Tree] = SimpleQueue()
        for _ in range(arguments.workers):
            trees.put(begun_in(copy_of_tree(Path(tempfile.mkdtemp(dir=scratch)))))
        folder = arguments.notes or Path(tempfile.mkdtemp(dir=scratch))
        folder.mkdir(parents=True, exist_ok=True)
        tree = copy_of_tree(Path(tempfile.mkdtemp(dir=scratch)))
        reached, seconds = tests_by_line(tree, folder.resolve(), arguments.workers)
        print(f"{len(seconds)} tests reach {len(reached)} lines", flush=True)

        def result(mutant: Mutant) -> str:
            if (before := known.get(mutant.key)) in ("killed", "timed out"):
                return before
            found = fate(mutant, chosen_tests(reached[mutant.file, mutant.line], seconds), trees)
            print(f"{found:<12}{mutant.file}:{mutant.line} {mutant.old!r} -> {mutant.new!r}", flush=True)
            return found

        with ThreadPoolExecutor(arguments.workers) as pool:
            fates = list(pool.map(result, mutants))
    reasons = tomllib.loads(REASONS.read_text()) if REASONS.exists() else {}
    RESULTS.write_text(json.dumps(record_of(mutants, fates, reasons, size, seed), indent=1) + "\n")


def record_of(mutants: list[Mutant], fates: list[str], reasons: dict[str, Any], size: int, seed: int) -> dict[str, Any]:
    counts: dict[str, Counter[str]] = {room: Counter() for room in ROOMS}
    survivors, left = [], {mutant.key for mutant, found in zip(mutants, fates, strict=True)}
    for mutant, found in zip(mutants, fates, strict=True):
        counts[mutant.file.split("/")[1]][found] += 1
        if found in ("survived", "not reached"):
            why = reasons.get("equivalent", {}).get(mutant.key)
            survivors.append({"line": mutant.line, "mutant": mutant.key, "fate": found, "why": why})
    unexplained = sum(survivor["why"] is None for survivor in survivors)
    print(f"{len(survivors)} of {len(mutants)} survive, {unexplained} of them without a reason")
    return {
        **{"seed": seed, "sample": size, "mutants": len(mutants), "survivors": len(survivors)},
        **{"unexplained": unexplained, "rooms": counts, "survived": survivors},
        "fates": {mutant.key: found for mutant, found in zip(mutants, fates, strict=True) if mutant.key in left},
    }


if __name__ == "__main__":
    main()
