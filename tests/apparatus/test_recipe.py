"""The recipe for conda-forge says what pyproject.toml says."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import mcprecond

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
#: What conda-forge calls otherwise than PyPI does.
CONDA = {"cupy-cuda13x": "cupy", "matplotlib": "matplotlib-base"}


def bounds(requirements):
    """Name -> specifier of requirements as either of them writes it."""
    found = [Requirement(requirement.replace("[ctk]", "")) for requirement in requirements]
    return {CONDA.get(each.name, each.name): each.specifier for each in found}


def without_python(requirements):
    return [requirement for requirement in requirements if not requirement.startswith(("python ", "pip"))]


def test_versions():
    assert RECIPE["context"]["version"] == mcprecond.__version__
    assert PROJECT["requires-python"] == f">={RECIPE['context']['python_min']}"
    assert RECIPE["source"]["path"] == "../dist/mcprecond-${{ version }}.tar.gz"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("host", PYPROJECT["build-system"]["requires"]),
        ("run", [*PROJECT["dependencies"], *EXTRAS["cli"]]),
        ("run_constraints", [*EXTRAS["gpu"], *EXTRAS["pyamg"], *EXTRAS["graphblas"], *EXTRAS["studies"]]),
    ],
)
def test_dependencies(key, expected):
    assert bounds(without_python(RECIPE["requirements"][key])) == bounds(expected)


def test_the_command_and_the_license():
    (name, function), *others = PROJECT["scripts"].items()
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {function}"] and not others
    assert RECIPE["build"]["noarch"] == "python"
    assert (RECIPE["about"]["license"], [RECIPE["about"]["license_file"]]) == (
        PROJECT["license"],
        PROJECT["license-files"],
    )
    assert (ROOT / RECIPE["about"]["license_file"]).is_file()
    assert "recipe" in PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
