"""Measure all that the pages show, in parts.

    python -m benchmarks.everything cpu                  # as `make measure-cpu`
    python -m benchmarks.everything gpu --seconds 570 --parts multigrid table-v
    python -m benchmarks.everything gpu --list

runs the parts of parts.toml that the code of now has not measured yet, until the time is up: call it again to go on.
benchmarks/measured.json says which parts are done, with which code. A part that fails is named at the end, and does not
keep others from running. A busy machine is refused, since its times mean nothing.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.unaffected import settled
from mcprecond.studies.measure import clocks
from mcprecond.studies.sources import code
from mcprecond.version import __version__

FOLDER = Path(__file__).parent
PARTS: dict[str, Any] = tomllib.loads(FOLDER.joinpath("parts.toml").read_text())
DONE = FOLDER / "measured.json"
#: Others may use so many processors, or a twentieth of all; for so many seconds there is a look.
MOST_BUSY, LOOK = 0.5, 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "gpu"])
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="these alone, also if they are done")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--list", action="store_true", help="say what is left, and measure nothing")
    arguments = parser.parse_args()
    device, end = arguments.device, time.monotonic() + arguments.seconds
    chosen = arguments.parts or left(device)
    if arguments.list:
        print("\n".join(chosen))
        return
    failed = []
    for name in chosen:
        if (used := busy()) > max(MOST_BUSY, (os.cpu_count() or 1) / 20):
            sys.exit(f"other processes use {used:.1f} processors, and times would mean nothing; call again later")
        print(f"{name}, {device}", flush=True)
        try:
            subprocess.run(command_of(name, device), check=True, timeout=max(end - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            sys.exit(f"the time is up in {name}; call again to go on")
        except subprocess.CalledProcessError:
            failed.append(name)
            continue
        done = json.loads(DONE.read_text()) if DONE.exists() else {}
        done[f"{name}, {device}"] = stamp(device) | {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}
        DONE.write_text(json.dumps(dict(sorted(done.items())), indent=1) + "\n")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def left(device: str) -> list[str]:
    """The parts for a device that the code of now has not measured."""
    done = json.loads(DONE.read_text()) if DONE.exists() else {}
    return [
        name
        for name, part in PARTS.items()
        if device in part["devices"] and not stamp(device).items() <= done.get(f"{name}, {device}", {}).items()
    ]


def stamp(device: str) -> dict[str, str]:
    """The version, and a hash of all code for a device."""
    text = json.dumps(settled(code(device == "gpu")), sort_keys=True)
    return {"version": __version__, "code": hashlib.sha256(text.encode()).hexdigest()[:12]}


def command_of(name: str, device: str) -> list[str]:
    """The process of a part."""
    first, *others = shlex.split(PARTS[name]["command"].format(device=device))
    return [sys.executable, *([first] if first == "-m" else [str(FOLDER / first)]), *others]


def busy() -> float:
    """How many processors other processes use."""
    before = clocks()
    time.sleep(LOOK)
    after = clocks()
    if before is None or after is None:
        return 0.0
    wall, ours, used = (b - a for a, b in zip(before, after, strict=True))
    return (used - ours) / wall


if __name__ == "__main__":
    main()
