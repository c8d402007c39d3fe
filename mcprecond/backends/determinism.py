"""The level of determinism: whether results have to be the same in every run, and on other GPUs as well.

A sum of floats depends on the order of its terms. Kernels add up in a fixed order, by threads and blocks. So two GPUs
agree if they use the same number of blocks, and if the package makes the same choices on both.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Literal, get_args

from mcprecond.backends.arguments import one_of

Determinism = Literal["run_to_run", "gpu_to_gpu"]
LEVELS: tuple[Determinism, ...] = get_args(Determinism)
VARIABLE = "MCPRECOND_DETERMINISTIC"

#: What each GPU is taken for at the level "gpu_to_gpu", by the names of CUDA: an H200.
REFERENCE = {
    "MultiProcessorCount": 132,
    "MaxThreadsPerMultiProcessor": 2048,
    "L2CacheSize": 60 * 2**20,
    "MemoryClockRate": 3_201_000,
    "GlobalMemoryBusWidth": 6144,
}


class deterministic:
    """Have results the same in every run, or on every GPU, from now on or in a ``with`` block.

    All defaults are run-to-run deterministic: the same call gives the same bits in every run on a machine, whatever
    else runs there, with any number of threads on the CPU. What is not, has to be asked for by name: colorings whose
    threads race ("eb", "vb" and others, see `COLORINGS`) and ``color(balance=True)``.

    The level holds for the whole process: the last one that was asked for and has not ended counts, in whichever order
    the blocks of threads end. A preconditioner that was set up before keeps the choices of that time: set the level
    first. The variable MCPRECOND_DETERMINISTIC sets it when the package is imported.

    Parameters
    ----------
    level : {"run_to_run", "gpu_to_gpu"}, optional
        - "run_to_run": what would differ from run to run raises a ValueError.
        - "gpu_to_gpu": besides, GPUs of the same compute capability give the same bits, as an H100 and an H200 do, for
          the same versions of CuPy and CUDA. Sums have a fixed number of parts, and whatever is chosen by the number of
          multiprocessors, the cache or the speed of the memory is chosen as for an H200. The inverse of a coarsest
          level is computed on the host; if it is singular, by NumPy, whose bits may depend on its threads and on the
          processor.
        - None, the default: what is asked for by name may race.

    Raises
    ------
    TypeError, ValueError
        If the level is none of these.

    Examples
    --------
    >>> import mcprecond
    >>> from mcprecond import problems
    >>> A = problems.laplacian((8, 8))
    >>> with mcprecond.deterministic("gpu_to_gpu"):
    ...     mcprecond.color(A, "jp").n_colors
    4
    >>> with mcprecond.deterministic("run_to_run"):
    ...     mcprecond.color(A, "eb")
    Traceback (most recent call last):
        ...
    ValueError: coloring method 'eb' races: ...
    """

    def __init__(self, level: Determinism | None = None) -> None:
        self.level = None if level is None else one_of(level, "level", LEVELS)
        self._has_begun = False
        self._ask()

    def _ask(self) -> None:
        global _asked_for
        with _LOCK:
            _asked_for = (*_asked_for, self)

    def __enter__(self) -> deterministic:
        if self._has_begun:
            self._ask()
        self._has_begun = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _asked_for
        with _LOCK:
            self._has_begun = True
            places = [place for place, one in enumerate(_asked_for) if one is self]
            if places:
                _asked_for = _asked_for[: places[-1]] + _asked_for[places[-1] + 1 :]

    def __repr__(self) -> str:
        return f"deterministic({self.level!r})"


def level_of(environ: Mapping[str, str]) -> Determinism | None:
    """The level that the environment names.

    >>> level_of({VARIABLE: "run_to_run"}), level_of({})
    ('run_to_run', None)
    """
    chosen = environ.get(VARIABLE)
    return one_of(chosen, VARIABLE, LEVELS) if chosen else None


def refuse_races(what: str, instead: str) -> None:
    """Raise ValueError if results are to be the same in every run: `what` races, and `instead` says what does not."""
    if level := current_level():
        asked = f"deterministic({level!r}) was asked for"
        raise ValueError(f"{what}: results differ from run to run, and {asked}; {instead}")


def is_same_on_all_gpus() -> bool:
    """Whether GPUs are to agree."""
    return current_level() == "gpu_to_gpu"


def current_level() -> Determinism | None:
    """The level that counts now. Each launch asks for it: a lock here might stay locked after Ctrl-C."""
    asked_for = _asked_for
    return asked_for[-1].level if asked_for else _OF_ENVIRONMENT


_LOCK = threading.Lock()
#: An entry for each call and each further block, until it ends; a call without a block does not end. The tuple is
#: replaced as a whole, under the lock.
_asked_for: tuple[deterministic, ...] = ()
_OF_ENVIRONMENT = level_of(os.environ)
