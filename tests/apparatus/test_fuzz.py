"""A few cases of each category of the adversary, always the same ones; and what becomes of cases that go wrong."""

from __future__ import annotations

import pytest
from fuzz.categories import SHARES, case_of
from fuzz.driver import Run
from fuzz.trial import Device, Trial

#: These cases have failed before. In the first two the product A x overflowed, by which `pcg` bounds the rounding error
#: of the residual. In the others squares overflowed that decide between CONVERGED and CONVERGED_IN_RESIDUAL.
FAILED_ONCE = [
    ("pcg", 720107168),
    ("scale", 10003290),
    ("scale", 10003306),
    ("scale", 202611290000032),
    ("scale", 202611290000042),
    ("scale", 202611290000061),
]
#: The number of cases of each category. In a first run most of the time is spent compiling.
CASES = 2  # `make fuzz` has thousands


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return {}


@pytest.fixture
def run(runs, device) -> Run:
    """All cases, by one process, once for a device."""
    if device not in runs:
        runs[device] = Run(device, SHARES, seed=0, patience=300, say=lambda line: None)
        runs[device].for_cases(CASES)
    return runs[device]


@pytest.mark.nightly
@pytest.mark.parametrize("category", SHARES)
def test_nothing_fails(category, run):
    tally = run.tallies[category]
    assert tally.cases == CASES
    assert tally.checks > 0
    assert not tally.kinds, run.table()


@pytest.mark.parametrize(("category", "seed"), FAILED_ONCE)
def test_a_case_that_failed_once_does_not_fail_again(category, seed, device):
    trial = Trial(category, seed, Device(device))
    case_of(category)(trial)
    assert trial.checks > 0


def test_whatever_goes_wrong_is_reported_and_the_run_goes_on():
    said: list[str] = []
    run = Run("cpu", {"broken": 1}, seed=0, patience=4, say=said.append)
    run.for_cases(6)
    tally = run.tallies["broken"]
    assert tally.cases == 6 and tally.failures == 4 and tally.checks == 7
    found = {what: kind["repeat"] for what, kind in tally.kinds.items()}
    expected = [
        "two and two are five",
        "KeyError out of the case itself: 'what nobody expects'",
        "crashes: SIGSEGV",
        "hangs",
    ]
    assert list(found) == expected
    for seed, repeat in enumerate(found.values(), start=1):
        assert repeat == f"python tests/fuzz --device cpu --category broken --only {seed}"
        assert any(repeat in line for line in said)
    assert all(what in run.table() for what in expected)


def test_a_traceback_names_no_folders_of_this_machine():
    from fuzz.driver import without_folders

    line = 'File "/home/someone/project/tests/fuzz/categories/files.py", line 82 in written'
    assert without_folders(line) == 'File "fuzz/categories/files.py", line 82 in written'
    assert without_folders('File "<frozen runpy>", line 3 in run') == 'File "<frozen runpy>", line 3 in run'
