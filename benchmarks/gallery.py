"""The examples of the gallery, beside what is done without this package.

    python benchmarks/gallery.py cpu
    python benchmarks/gallery.py gpu smoke image_blending

writes benchmarks/results/gallery-cpu.json or gallery-gpu.json. Times are those of `solve` and `by_default` of an
example at its size "timed", setups included, after a call that compiles. What is done without this package runs on the
CPU.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from functools import partial
from pathlib import Path
from typing import Any

from measure import MULTIGRID, measure_each, parser_of, timed_row

from mcprecond.backends import get_backend

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "gallery"
ENOUGH = 5.0  # seconds of repeated calls


def main() -> None:
    names = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(names))
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"no example {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    sys.path.insert(0, str(EXAMPLES))
    chosen = {name: importlib.import_module(name) for name in arguments.names or names}
    if arguments.device == "gpu":
        chosen = {name: example for name, example in chosen.items() if has_device(example)}
    given = arguments.device, "test" if arguments.small else "timed", arguments.repeats
    cases = {name: partial(measure, example, *given) for name, example in chosen.items()}
    measure_each("gallery", arguments, cases, MULTIGRID)


def has_device(example: Any) -> bool:
    """Whether an example can be told where to run."""
    return "device" in inspect.signature(example.solve).parameters


def measure(example: Any, device: str, size: str, repeats: int) -> dict[str, Any]:
    synchronize, options = get_backend(device).synchronize, {"device": device} if has_device(example) else {}
    problem = example.prepare(example.SIZES[size])
    found = example.solve(problem, **options)
    return {
        "size": example.SIZES[size],
        "beside": example.BESIDE,
        "difference": example.difference(found, example.by_default(problem)),
        "ours": timed_row(lambda: example.solve(problem, **options), synchronize, repeats, ENOUGH),
        "default": timed_row(lambda: example.by_default(problem), lambda: None, repeats, ENOUGH),
    }


if __name__ == "__main__":
    main()
