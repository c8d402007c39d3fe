"""Where the command `mcprecond` begins: what the command line prints with may not be installed."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say in one line what it needs."""
    try:
        from mcprecond.cli import main as run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "rich":
            raise
        print("mcprecond: the command line needs rich; from a clone: pip install '.[cli]'", file=sys.stderr)
        sys.exit(2)
    run()
