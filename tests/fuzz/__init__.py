"""An adversary: random cases from a seed, through the public API, against references in NumPy and SciPy alone.

    make fuzz
    python tests/fuzz --device cpu --seconds 600 --seed 1
    python tests/fuzz --device cpu --category scale --only 1000017   # one case again, as a failure prints it

- `trial.py` is what a case gets: random numbers, a device, and the checks that it makes.
- `matrices.py` draws patterns, matrices and vectors; the definitions are in `tests/reference`, dense or in loops.
- `categories/` has a module for each kind of case: `case(trial)`.
- `worker.py` runs cases in a process of its own; `driver.py` hands them out, and notices crashes and hangs.
"""
