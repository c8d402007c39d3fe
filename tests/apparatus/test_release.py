"""What a release needs: forms and workflows that load, versions that agree with each other, and nothing said twice."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import mcprecond

ROOT = Path(__file__).resolve().parents[2]

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, HATCH = PYPROJECT["project"], PYPROJECT["tool"]["hatch"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml" for name in ("bug_report", "feature_request")]
TARGETS = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split())
#: The jobs that may write: packages to PyPI, and the pages.
PUBLISH = [("wheel", "publish"), ("docs", "publish")]
PYTHONS = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]


def test_pythons_are_named_alike():
    tests = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    assert tests["jobs"]["tests"]["strategy"]["matrix"]["python"] == PYTHONS
    for name in ("wheel", "nightly"):
        workflow = (ROOT / ".github/workflows" / f"{name}.yml").read_text()
        assert sorted(re.findall(r"^ +(3\.\d+)$", workflow, re.MULTILINE)) == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_oldest_versions_are_the_lower_bounds():
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["cli"], *extras["pyamg"], *extras["graphblas"], *extras["studies"]]
    bounds = {}
    for requirement in map(Requirement, wanted):
        (bounds[requirement.name],) = (Version(s.version) for s in requirement.specifier if s.operator == ">=")
    lines = (ROOT / "tests" / "oldest.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    for python in PYTHONS:
        asked = [pin for pin in pins if pin.marker is None or pin.marker.evaluate({"python_version": python})]
        pinned = {pin.name: Version(str(pin.specifier).removeprefix("==")) for pin in asked}
        assert len(pinned) == len(asked) and pinned.keys() == bounds.keys()
        assert all(pinned[name] >= bounds[name] for name in bounds)
        assert python != PYTHONS[0] or pinned == bounds


def test_the_version_is_in_one_place():
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    assert f'__version__ = "{mcprecond.__version__}"' in (ROOT / HATCH["version"]["path"]).read_text()
    assert mcprecond.__version__ == str(Version(mcprecond.__version__))
    assert "version" not in yaml.safe_load((ROOT / "CITATION.cff").read_text())


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_run_targets_of_make(file):
    workflow = yaml.safe_load(file.read_text())
    assert workflow["name"] == file.stem and workflow["permissions"] == {"contents": "read"}
    triggers = {"schedule"} if file.stem == "nightly" else {"push", "pull_request"}
    assert triggers <= set(workflow[True])  # to YAML "on" is a truth
    targets = set()
    for job in workflow["jobs"].values():
        for command in (step["run"] for step in job["steps"] if "run" in step):
            assert command.startswith("make ") and command.endswith(" PYTHON=python")
            of_matrix = job.get("strategy", {}).get("matrix", {}).get("target", [])
            targets |= {word.split()[0] for word in of_matrix} if "matrix.target" in command else {command.split()[1]}
    assert targets and targets <= TARGETS


def test_every_night_all_is_tested_that_needs_no_gpu():
    workflow = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())
    run = {word.split()[0] for word in workflow["jobs"]["nightly"]["strategy"]["matrix"]["target"]}
    tests = {target for target in TARGETS if target.startswith("test") and target != "test-gpu"}
    assert run == tests | {"audit", "coverage", "docs", "fuzz"}


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_and_may_only_read(file):
    """A tag can be moved to other code; a hash names the code, and the comment behind it the version."""
    text = file.read_text()
    uses = re.findall(r"uses: (.*)", text)
    assert uses and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in uses)
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    for name, job in yaml.safe_load(text)["jobs"].items():
        assert "permissions" not in job or (file.stem, name) in PUBLISH


@pytest.mark.parametrize(("workflow", "job"), PUBLISH)
def test_only_what_is_on_main_or_tagged_is_published(workflow, job):
    """What publishes runs nothing of the repository, and has no password."""
    publish = yaml.safe_load((ROOT / f".github/workflows/{workflow}.yml").read_text())["jobs"][job]
    assert "github.event_name == 'push'" in publish["if"] and publish["needs"] == workflow
    assert (workflow == "docs") != ("startsWith(github.ref, 'refs/tags/v')" in publish["if"])
    assert publish["permissions"].keys() == {"id-token"} | ({"pages"} if workflow == "docs" else set())
    assert publish["environment"] and all("uses" in step for step in publish["steps"])
    assert "secrets" not in str(publish)


def test_there_is_a_workflow_for_each_task():
    assert [file.stem for file in WORKFLOWS] == ["audit", "docs", "lint", "nightly", "tests", "wheel"]


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_forms_ask_what_they_must(file):
    form = yaml.safe_load(file.read_text())
    assert {"name", "description", "body"} <= set(form)
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names)
    assert all(field["attributes"]["label"] for field in form["body"])
    if file.stem == "bug_report":
        assert "mcprecond info" in form["body"][names.index("info")]["attributes"]["label"]
        assert form["body"][names.index("info")]["validations"] == {"required": True}


def test_the_citation_has_what_its_format_asks_for():
    """https://github.com/citation-file-format/citation-file-format/blob/1.2.0/schema-guide.md"""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
