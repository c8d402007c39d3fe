"""Run another code on our graphs or matrices.

    python benchmarks/opponents/run.py ecl-gc --sources ~/ECL-GC --cases fenl_50 rgg20
    python benchmarks/opponents/run.py amgx --binary ~/AMGX/build/examples/amgx_capi --cases fenl_50

builds it, unless its binary is given, writes the files that it reads, calls it, and writes
benchmarks/results/opponents/run-NAME.json (or where --output says), with lines as in the other files there. Each call
is a process of its own; times are those that the code prints, and the medians those of the calls. Where a coloring of
ours is that of the same paper, it has a line beside it: its time on the device, without what the host needs to launch.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parent.parent))  # where the benchmarks are

from cases import GRAPHS, MATRICES, SEED
from codes import CODES, SUCCESS, Code, Line
from files import write_graph, write_system
from measure import COLORING, RESULTS, Times, queued_ms, save, wall_ms

from mcprecond.backends import get_backend, gpu_problem
from mcprecond.coloring import COLORINGS, Graph, finish
from mcprecond.studies.measure import provenance

KIND = "run by benchmarks/opponents/run.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("code", choices=CODES)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--sources", type=Path)
    given.add_argument("--binary", type=Path)
    parser.add_argument("--cases", nargs="+", choices=[*GRAPHS, *MATRICES], default=["fenl_50", "grid2d_1024"])
    parser.add_argument("--arch", type=int, default=90, help="of the GPU, as in 90")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=600, help="seconds of a call")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    name, code = arguments.code, CODES[arguments.code]
    ours = code.ours if gpu_problem() is None else {}
    output = arguments.output or RESULTS / "opponents" / f"run-{name}.json"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        binary = arguments.binary or built(code, edited(code, arguments.sources, folder), folder, arguments.arch)
        cases = []
        for case in arguments.cases:
            file, facts = written(case, code, arguments.small, folder)
            lines = [
                facts | called(name, variant, binary.resolve(), file, arguments.repeats, arguments.timeout)
                for variant in code.variants
            ]
            file.unlink()
            if ours:
                lines += [facts | line for line in colored_by_us(GRAPHS[case](arguments.small), ours)]
            cases.append({"name": case, "lines": lines})
            print(cases[-1], flush=True)
            made = provenance(gpu_problem() is None)
            rooms = COLORING if ours else ()
            made["code"] = {part: digest for part, digest in made["code"].items() if part.split("/")[0] in rooms}
            versions = {key: version for key, version in made["versions"].items() if key in ("cuda", "driver")}
            versions[name] = digest_of(arguments.sources or arguments.binary)
            if ours:
                versions["mcprecond"] = made["versions"]["mcprecond"]
            about = {"benchmark": "opponents", "kind": KIND, "about": f"{name} on our files"}
            facts_of_run = {"seed": SEED, "small": arguments.small, "cases": cases}
            save(about | made | {"versions": versions} | facts_of_run, output)


def edited(code: Code, sources: Path, folder: Path) -> Path:
    """A copy of the sources with the edits of a code; the sources themselves where there are none.

    Raises
    ------
    ValueError
        If there is nothing to edit: it is another version.
    """
    if not code.edits:
        return sources.resolve()
    copy = shutil.copytree(sources, folder / "sources", ignore=shutil.ignore_patterns(".git"))
    left = dict(code.edits)
    for path in [path for path in copy.rglob("*") if path.suffix in (".cu", ".cuh", ".h", ".cpp")]:
        before = text = path.read_text(errors="surrogateescape")
        for pattern, replacement in code.edits.items():
            text, count = re.subn(pattern, replacement, text)
            if count:
                left.pop(pattern, None)
        if text != before:
            path.write_text(text, errors="surrogateescape")
    if left:
        raise ValueError(
            f"nothing in {sources} matches {', '.join(left)}; the record of this code is for another version"
        )
    return copy


def colored_by_us(matrix: Any, ours: dict[str, tuple[str, dict[str, Any]]]) -> list[Line]:
    """Lines of our colorings, checked, with times on the device, or where the host waits for it of both."""
    backend = get_backend("gpu")
    A = backend.sparse.csr_matrix(matrix)
    graph, lines = Graph.of(A), []
    for name, (method, options) in ours.items():
        run = partial(COLORINGS[method], graph, **options)
        coloring = finish(*run(), method, backend)
        try:
            ms = queued_ms(run, calls=5)
        except ValueError:
            ms = wall_ms(run, backend.synchronize)
        found = {"ms": ms, "colors": coloring.n_colors, "rounds": coloring.rounds, "valid": coloring.is_valid(A)}
        lines.append({"algo": f"mcprecond {method} {name}"} | found)
    return lines


def built(code: Code, sources: Path, folder: Path, arch: int) -> Path:
    """The binary, after it has been built."""
    build = folder / "build"
    build.mkdir()
    for command in code.commands(sources, build, arch):
        subprocess.run(command, check=True)
    binaries = sorted(build.glob(code.binary))
    if not binaries:
        raise FileNotFoundError(f"the build has made no {code.binary}; build it by hand and give --binary")
    return binaries[0]


def written(name: str, code: Code, small: bool, folder: Path) -> tuple[Path, Line]:
    """The file of a case, and its size."""
    if code.suffix:
        path, A = folder / f"{name}{code.suffix}", GRAPHS[name](small)
        write_graph(A, path)
        return path, {"kind": "color", "n": A.shape[0]}
    path, A = folder / f"{name}.mtx", MATRICES[name](small, "cpu")
    write_system(A, A @ np.random.default_rng(SEED).uniform(-1, 1, A.shape[0]), path)
    return path, {"kind": "pcg", "n": A.shape[0]}


def called(name: str, variant: str, binary: Path, file: Path, repeats: int, timeout: float) -> Line:
    """The line of a code on a file, from so many calls; what failed has an error in it."""
    code = CODES[name]
    line: Line = {"algo" if code.suffix else "precond": f"{name} {variant}".strip(), "repeats": repeats}
    try:
        runs = [once(code.call(str(binary), str(file), variant), code.parse, timeout) for _ in range(repeats)]
    except subprocess.TimeoutExpired:
        return line | {"error": f"timeout after {timeout:g} s"}
    except subprocess.CalledProcessError as error:
        return line | {"error": f"exit status {error.returncode}: {(error.stderr or error.stdout)[-500:]}"}
    except ValueError as error:
        return line | {"error": str(error)}
    return line | merged(runs)


def once(command: list[str], parse: Callable[[str], Line], timeout: float) -> Line:
    """What a call has printed; some codes leave files where they run, so that is a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout, cwd=folder)
    return parse(done.stdout)


def merged(runs: list[Line]) -> Line:
    """Medians of the times, and of the rest the worst."""
    line: dict[str, Any] = {}
    for key in runs[0]:
        values = [run[key] for run in runs]
        if key.endswith("ms"):
            line[key] = Times(values)
        elif key == "status":
            line[key] = next((value for value in values if value != SUCCESS), SUCCESS)
        else:
            line[key] = min(values) if key == "valid" else max(values)
    return line


def digest_of(path: Path) -> str:
    """What tells one version of a code from another: a digest of its binary, or of all its sources."""
    files = sorted(each for each in path.rglob("*") if each.is_file() and ".git" not in each.parts) or [path]
    return hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:12]


if __name__ == "__main__":
    main()
