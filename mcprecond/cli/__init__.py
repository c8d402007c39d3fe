"""The command line. Exit codes: 0 converged, 1 not converged, 2 bad input, 130 interrupted."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from mcprecond.cli import terminal
from mcprecond.cli.comparing import advise, demo
from mcprecond.cli.drawing import plot
from mcprecond.cli.machine import info, warmup
from mcprecond.cli.parsing import parser
from mcprecond.cli.solving import color, solve

#: The functions behind the commands, by name.
COMMANDS: dict[str, Callable[..., None]] = {
    function.__name__: function for function in (demo, color, solve, info, warmup, advise, plot)
}
#: What bad input and machines that are too small raise.
REFUSALS = (ValueError, TypeError, OSError, MemoryError, ImportError, OverflowError, RuntimeError)


def main() -> None:
    """Run a command; bad input ends in one line, not in a traceback."""
    logger = logging.getLogger("mcprecond")
    logger.addHandler(terminal.LOG_HANDLER)
    logger.setLevel(logging.INFO)
    try:
        arguments = vars(parser(COMMANDS).parse_args())
        name = arguments.pop("command")
        if name is None:
            parser(COMMANDS).print_help()
            sys.exit(2)
        COMMANDS[name](**arguments)
        sys.exit(0)
    except REFUSALS as error:
        terminal.refuse(str(error) or type(error).__name__)
    except KeyboardInterrupt:
        terminal.err.print("interrupted", style="red")
        sys.exit(130)
