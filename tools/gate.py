"""Whether a refactoring has changed what is computed: machine code of CUDA kernels, and bits on the CPU. No GPU needed.

python tools/gate.py record FILE.json     before: note the code and the resources of every kernel, and the CPU's results
python tools/gate.py compare FILE.json    after: say what is different now, and exit with 1 if anything is

Code that has moved to another file, kernel or set of macros and is the same otherwise is listed and is no difference.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tools")]  # this very code, whatever is installed

import cpu_bits  # noqa: E402
import machine_code  # noqa: E402

FORMAT = 1
Entry = tuple[str, str]  # a variant and a kernel
Record = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--only-cuda", action="store_true", help="leave out the CPU's results")
    only.add_argument("--only-cpu", action="store_true", help="leave out the kernels")
    parser.add_argument("--processes", type=int, default=2, help="for compiling (default: 2)")
    arguments = parser.parse_args()
    os.environ["MCPRECOND_NUM_THREADS"] = str(cpu_bits.THREADS)  # on any machine; the package is not imported yet
    parts = {"cuda", "cpu"} - ({"cpu"} if arguments.only_cuda else {"cuda"} if arguments.only_cpu else set())
    if arguments.action == "record":
        arguments.file.write_text(json.dumps(record(parts, arguments.processes), indent=1) + "\n")
        return
    before = json.loads(arguments.file.read_text())
    if before.get("format") != FORMAT:
        sys.exit(f"{arguments.file} has format {before.get('format')}, not {FORMAT}: record it again on the old code")
    if missing := parts - before.keys():
        print(f"not recorded, so not compared: {', '.join(sorted(missing))}")
    if not parts & before.keys():
        sys.exit("there is nothing to compare")
    notes, differences = compare(before, record(parts & before.keys(), arguments.processes))
    print("\n".join([*notes, *differences]))
    sys.exit(f"{len(differences)} differences" if differences else None)


def record(parts: set[str], processes: int) -> Record:
    """What is computed now. What compiles and where it runs is noted for each part, since results depend on it."""
    found: Record = {"format": FORMAT}
    if "cuda" in parts:
        from cupy.cuda import nvrtc

        start = time.perf_counter()
        found["cuda"] = {"made with": {"NVRTC": ".".join(map(str, nvrtc.getVersion()))}}
        found["cuda"]["kernels"] = machine_code.of_all_variants(processes)
        print(f"{count(found['cuda']['kernels'])} kernels, {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if "cpu" in parts:
        start = time.perf_counter()
        libraries = {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
        found["cpu"] = {"made with": {"processor": processor()} | libraries}
        found["cpu"]["cases"] = cpu_bits.of_all_cases()
        print(f"{len(found['cpu']['cases'])} cases, {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return found


def processor() -> str:
    """The name of the CPU, by which LLVM chooses instructions."""
    import llvmlite.binding

    return f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()}"


def count(variants: dict[str, machine_code.Kernels]) -> int:
    return sum(map(len, variants.values()))


def compare(before: Record, now: Record) -> tuple[list[str], list[str]]:
    """What has moved or was made in another way, and what is different, in lines."""
    notes: list[str] = []
    differences: list[str] = []
    for part in sorted(now.keys() & {"cuda", "cpu"}):
        made, made_now = before[part]["made with"], now[part]["made with"]
        for name in sorted(made.keys() | made_now.keys()):
            if made.get(name) != made_now.get(name):
                notes.append(f"note: {name} was {made.get(name)}, is {made_now.get(name)}: results may differ for that")
    if "cuda" in now:
        moved, changed = compare_kernels(before["cuda"]["kernels"], now["cuda"]["kernels"])
        notes += moved
        differences += changed
        notes.append(f"kernels: {count(now['cuda']['kernels'])} now, {count(before['cuda']['kernels'])} before")
    if "cpu" in now:
        cases, cases_now = before["cpu"]["cases"], now["cpu"]["cases"]
        for name in sorted(cases.keys() | cases_now.keys()):
            if name not in cases_now or name not in cases:
                differences.append(f"{'new' if name in cases_now else 'gone'}: {name}")
            elif cases[name] != cases_now[name]:
                differences.append(f"other bits: {name}")
        notes.append(f"cases on the CPU: {len(cases_now)} now, {len(cases)} before")
    return notes, differences


def compare_kernels(
    before: dict[str, machine_code.Kernels], now: dict[str, machine_code.Kernels]
) -> tuple[list[str], list[str]]:
    """What has moved, and what is different. What has gone and is found again under another name has moved."""
    old = {(variant, kernel): found for variant, kernels in before.items() for kernel, found in kernels.items()}
    new = {(variant, kernel): found for variant, kernels in now.items() for kernel, found in kernels.items()}
    moved: list[str] = []
    different: list[str] = []
    gone, appeared = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    # First by the code; then, where that is another, by the names of kernel, architecture and macros in another file.
    for alike in (
        lambda entry, found: (architecture(entry), *found.values()),
        lambda entry, _: (*entry[0].split()[1:], entry[1]),
    ):
        by_key: defaultdict[Any, list[Entry]] = defaultdict(list)
        for entry in reversed(appeared):
            by_key[alike(entry, new[entry])].append(entry)
        for entry in list(gone):
            if candidates := by_key[alike(entry, old[entry])]:
                other = candidates.pop()
                gone.remove(entry)
                appeared.remove(other)
                moved.append(f"moved: {label(entry)} -> {label(other)}")
                different += changes(other, old[entry], new[other])
    for entry in sorted(old.keys() & new.keys()):
        different += changes(entry, old[entry], new[entry])
    different += [f"gone: {label(entry)}" for entry in gone] + [f"new: {label(entry)}" for entry in appeared]
    return moved, different


def architecture(entry: Entry) -> str:
    return entry[0].split()[1]


def label(entry: Entry) -> str:
    variant, kernel = entry
    return f"{kernel} of {variant}"


def changes(entry: Entry, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """One line where code or resources differ."""
    if old == new:
        return []
    resources = [
        f"{name} {old.get(name)} -> {new.get(name)}" for name in new if name != "code" and old.get(name) != new[name]
    ]
    return [f"other code: {label(entry)}" + "".join(f", {change}" for change in resources)]


if __name__ == "__main__":
    main()
