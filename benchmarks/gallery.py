"""The examples of the gallery, beside what is done without this package.

    python benchmarks/gallery.py cpu
    python benchmarks/gallery.py gpu smoke image_blending

writes benchmarks/results/gallery-cpu.json or gallery-gpu.json. Times are those of `solve` and `by_default` of an
example at its size "timed", setups included, after a call that compiles. What is done without this package runs on the
CPU.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path

from measure import MULTIGRID, RESULTS, record, save, timed_row

from mcprecond.backends import get_backend

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "gallery"
REPEATS, ENOUGH = 5, 5.0


def main() -> None:
    names = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "devices")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("names", nargs="*", help=", ".join(names))
    parser.add_argument("--size", default="timed", choices=["test", "shown", "timed"])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"no example {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    sys.path.insert(0, str(EXAMPLES))
    synchronize, cases = get_backend(arguments.device).synchronize, []
    for name in arguments.names or names:
        example = importlib.import_module(name)
        on_device = {"device": arguments.device}
        if "device" not in inspect.signature(example.solve).parameters:
            if arguments.device == "gpu":
                continue
            on_device = {}
        problem = example.prepare(example.SIZES[arguments.size])
        found = example.solve(problem, **on_device)
        case = {"name": name, "size": example.SIZES[arguments.size], "beside": example.BESIDE}
        case["difference"] = example.difference(found, example.by_default(problem))
        case["ours"] = timed_row(lambda: example.solve(problem, **on_device), synchronize, REPEATS, ENOUGH)
        case["default"] = timed_row(lambda: example.by_default(problem), lambda: None, REPEATS, ENOUGH)
        cases.append(case)
        print(case, flush=True)
        path = arguments.output or RESULTS / f"gallery-{arguments.device}.json"
        save(record("gallery", arguments.device, cases, MULTIGRID, small=arguments.size != "timed"), path)


if __name__ == "__main__":
    main()
