"""Cases in a process of their own, so that one that crashes or hangs ends no more than itself.

    python -m fuzz.worker cpu     # what to do comes in as a line of JSON; what happens goes out as lines of JSON

A job is ``{"category", "first", "count", "seconds"}``: case seeds from `first` on, so many, or until time is up.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from fuzz.categories import case_of
from fuzz.trial import Device, Failure, Trial

#: Steps of a traceback that a failure shows.
SHOWN = 4


def run_case(category: str, seed: int, device: Device) -> dict[str, Any]:
    """Run one case: how many checks it made, and what failed."""
    trial = Trial(category, seed, device)
    found: dict[str, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ResourceWarning)  # which is nobody's answer
            case_of(category)(trial)
    except Failure as failure:
        found = {"failed": failure.what, "facts": shown(failure.facts)}
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = [f"{os.path.basename(f.filename)}:{f.lineno} {f.name}" for f in frames if "fuzz/" not in f.filename]
        own = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in frames if "fuzz/" in f.filename]
        named = [step.split(" ")[-1] for step in where[:1]]
        text = str(error).splitlines()[0][:160] if str(error) else ""
        found = {
            "failed": f"{type(error).__name__} out of {' '.join(named) or 'the case itself'}: {without_numbers(text)}",
            "facts": shown(trial.facts) | {"message": text, "at": [*own[-2:], *where[-SHOWN:]]},
        }
    return {"checks": trial.checks, "notes": dict(trial.notes), **found}


def without_numbers(text: str) -> str:
    """A message as all failures of its kind have it."""
    return re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", text)[:80]


def shown(facts: dict[str, Any]) -> dict[str, str]:
    return {name: str(value).replace("\n", " ")[:160] for name, value in facts.items()}


def run_jobs(jobs: list[dict[str, Any]], device: Device, say: Callable[[dict[str, Any]], None]) -> None:
    for number, job in enumerate(jobs):
        started, k = time.monotonic(), 0
        count, seconds = job.get("count"), job.get("seconds")
        while (count is None or k < count) and (seconds is None or time.monotonic() - started < seconds):
            seed = job["first"] + k
            say({"job": number, "seed": seed})
            began = time.monotonic()
            found = run_case(job["category"], seed, device)
            say(found | {"seconds": time.monotonic() - began})
            k += 1
            if found.get("failed", "").startswith("CUDA"):
                say({"spoiled": True})  # after such an error a process gets no other answer from its GPU
                os._exit(0)


def main() -> None:
    name = sys.argv[1]
    # What anybody prints goes to stderr; the way back to the driver is ours.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    faulthandler.enable()
    if name == "emulated":
        import emulated

        emulated.pytest_configure()
    device = Device(name)
    run_jobs(json.loads(sys.stdin.readline()), device, lambda event: print(json.dumps(event), file=lines, flush=True))
    print(json.dumps({"end": True}), file=lines, flush=True)
    # Not by the way of an interpreter's end, where threads of a case that went wrong may wait for ever.
    os._exit(0)


if __name__ == "__main__":
    main()
