"""The page that PyPI shows has no link into files that are not there."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = """See [install](docs/install.md#gpu), [pip](https://pip.pypa.io) and [below](#below).

![A chart](docs/images/race.svg) and <img width="9" src="docs/images/a.png" alt="a"/>

[![badge](docs/b.svg)](docs/results.md), ![elsewhere](https://example.org/c.svg)
"""


def targets(page):
    """What a page links to and shows."""
    return re.findall(r"\]\(([^)\s]+)", page) + re.findall(r'src="([^"]*)', page)


@pytest.fixture
def page_of(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    from pypi_page import page_of

    return page_of


def test_links_and_images_point_to_the_repository(page_of):
    repository = "https://example.org/owner/name"
    assert targets(page_of(README, repository, "v1.2.3")) == [
        f"{repository}/blob/v1.2.3/docs/install.md#gpu",
        "https://pip.pypa.io",
        "#below",
        f"{repository}/raw/v1.2.3/docs/images/race.svg",
        f"{repository}/raw/v1.2.3/docs/b.svg",
        f"{repository}/blob/v1.2.3/docs/results.md",
        "https://example.org/c.svg",
        f"{repository}/raw/v1.2.3/docs/images/a.png",
    ]


def test_without_a_repository_they_are_left_out(page_of):
    page = page_of(README, None, "v1.2.3")
    assert targets(page) == ["https://pip.pypa.io", "#below", "https://example.org/c.svg"]
    assert page.startswith("See install, [pip](https://pip.pypa.io) and [below](#below).")


@pytest.fixture(scope="module")
def description(tmp_path_factory):
    """The description in the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Metadata-Version"] == "2.4"  # the newest that the upload can read
    return metadata.get_payload(decode=True).decode()


def test_the_wheel_describes_itself_by_readme(description):
    readme = (ROOT / "README.md").read_text()
    assert description.startswith("# mcprecond") and len(description) > 0.8 * len(readme)
    assert all(re.match(r"https?://|#", target) for target in targets(description))
