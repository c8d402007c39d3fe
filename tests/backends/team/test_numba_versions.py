"""The versions of Numba on which the LLVM that is written by hand has been tested, and that users may install."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numba
from packaging.requirements import Requirement
from packaging.version import Version

#: The oldest and the newest one with which the tests of these modules have passed.
TESTED = Version("0.61.0"), Version("0.68.1")
ROOT = Path(__file__).resolve().parents[3]


def test_the_installed_numba_is_no_newer_than_the_newest_that_was_tested():
    newest = TESTED[-1]
    assert Version(numba.__version__).release[:2] <= newest.release[:2], (
        f"Numba {numba.__version__} is installed, and the LLVM in mcprecond/backends/team was tested up to {newest}. "
        "If all tests pass with the newer one, enter it here and raise the upper bound in pyproject.toml; if not, "
        "mcprecond/backends/team/README.md says what depends on Numba's internals."
    )


def test_users_get_what_was_tested():
    requirements = map(Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    (allowed,) = (requirement.specifier for requirement in requirements if requirement.name == "numba")
    (oldest, newest) = TESTED
    assert str(allowed) == f"<{newest.major}.{newest.minor + 1},>={oldest.major}.{oldest.minor}"
