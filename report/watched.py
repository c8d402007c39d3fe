"""What was seen in runs that were not recorded, from watched.toml: figures of ours that no file of results has."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from report.tables import table

Entry = dict[str, Any]
#: By the page that shows them.
WATCHED: dict[str, dict[str, Entry]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def shown(entry: Entry) -> str:
    """One of them in a sentence."""
    return f"{entry['found']} ({entry['where']}; watched {entry['date']}, `{entry['commit']}`)"


def listed(entries: Iterable[Entry]) -> str:
    """A table of several."""
    return table(
        ["what", "matrix", "found", "watched", "commit"],
        [[e["what"], e["where"], e["found"], str(e["date"]), f"`{e['commit']}`"] for e in entries],
        names=5,
    )
