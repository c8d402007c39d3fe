"""What holds for the whole package in this process."""

from __future__ import annotations

from mcprecond.backends.arguments import integer
from mcprecond.backends.team.threads import MOST_THREADS, get_threads, set_threads
from mcprecond.backends.threads import default_threads


def configure(*, threads: int | None = None) -> int:
    """Set how many threads compute on the CPU, from the next loop on.

    Loops that are too short to be shared run on the caller's thread in any case, and results have the same bits with
    any number of threads.

    Parameters
    ----------
    threads : int, optional
        From 1 to 256. What the first of the variables MCPRECOND_NUM_THREADS, NUMBA_NUM_THREADS and OMP_NUM_THREADS
        says by default, or one for each CPU that the process may use.

    Returns
    -------
    int
        The number from now on.

    Raises
    ------
    TypeError, ValueError
        If `threads` is no integer, or out of range.

    Examples
    --------
    >>> import mcprecond
    >>> mcprecond.configure(threads=1)
    1
    >>> threads = mcprecond.configure()  # the default again
    """
    chosen = default_threads() if threads is None else integer(threads, "threads", 1, MOST_THREADS)
    set_threads(chosen)
    return get_threads()
