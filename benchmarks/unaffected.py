"""Ignore changes of code that do not change what was measured, when results are compared with the present code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

CHANGES: list[dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["change"]


def settled(code: Mapping[str, str]) -> dict[str, str]:
    """The hashes of `code` as they were before the changes that unaffected.toml lists."""
    found = dict(code)
    for change in reversed(CHANGES):
        if found.get(change["part"]) == change["after"]:
            found[change["part"]] = change["before"]
    return found
