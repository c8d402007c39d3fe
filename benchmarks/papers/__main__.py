"""Run studies of the papers' questions. An interrupted one goes on when it is called again with the same --output.

Example: python -m benchmarks.papers time-quality --small --output results

With --matrices FOLDER a study takes the matrices of a folder in place of those that it generates.

Several in one call share the graphs that they have in common.

Exit codes: 0 if every case is a proper coloring or has converged, 1 if not, 2 for bad input, 130 if interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.papers.peclet import peclet
from benchmarks.papers.real_matrices import SHIPPED
from benchmarks.papers.studies import ON_MATRICES, STUDIES, run
from mcprecond.studies.table import Table, difference

ADVECTION = "peclet"  # the one that is of no paper, and keeps nothing


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [*STUDIES, ADVECTION]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(known)}; by default those of --matrices")
    parser.add_argument("--gpu", action="store_true", help="run it on the GPU")
    parser.add_argument("--small", action="store_true", help="small problems: seconds on two cores, once compiled")
    parser.add_argument(
        "--matrix", action="append", default=[], help="only matrices with this in their name; can be given again"
    )
    parser.add_argument(
        "--matrices",
        metavar="FOLDER",
        help=f"real matrices: .mtx, .mtx.gz and .tar.gz files of a folder, or '{SHIPPED}' for those that PyAMG ships",
    )
    parser.add_argument("--output", type=Path, help="folder for a .json and a .csv file, written after every case")
    parser.add_argument(
        "--renew", action="store_true", help="replace files of --output that another machine or other code has written"
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    arguments = parser.parse_args()
    failed: list[str] = []
    names = arguments.names or (ON_MATRICES if arguments.matrices else ())
    if not names or (unknown := set(names).difference(known)):
        parser.error(f"no study {', '.join(sorted(unknown))}" if names else "which study? see --help")
    for name in names:
        try:
            failed += run_one(name, arguments)
        except (ValueError, OSError, ImportError) as error:
            parser.error(str(error))
    if failed:
        sys.exit(f"improper or not converged: {', '.join(failed)}")


def run_one(name: str, arguments: argparse.Namespace) -> list[str]:
    """Run a study and print its rows; returns the cases that are improper or have not converged."""
    device = "gpu" if arguments.gpu else "cpu"
    kind = "-matrices" if arguments.matrices else "-small" if arguments.small else ""
    path = arguments.output and arguments.output / f"{name}-{device}{kind}.json"

    if arguments.renew and path and path.exists() and difference(json.loads(path.read_text()), name):
        path.unlink()

    def told(message: str) -> None:
        print(f"{name}: {message}", file=sys.stderr)

    try:
        if name == ADVECTION:
            print_rows(peclet(6 if arguments.small else 16, device=device), arguments.json)
            return []
        found = run(
            name,
            device=device,
            small=arguments.small,
            only=arguments.matrix,
            path=path,
            progress=told,
            matrices=arguments.matrices,
        )
    except KeyboardInterrupt:
        kept = f"{path} has what was done; call again to go on" if path else "nothing is kept without --output"
        print(f"interrupted; {kept}", file=sys.stderr)
        sys.exit(130)
    print_rows(found, arguments.json)
    return [f"{row['matrix']}: {row['method']}" for row in found.rows if not row["verified"]]


def print_rows(found: Table, as_json: bool) -> None:
    print(json.dumps(found.rows, indent=1) if as_json else found)


if __name__ == "__main__":
    main()
