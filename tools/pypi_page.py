"""README.md as PyPI shows it. Hatchling calls this for the metadata of wheel and sdist; see `[tool.hatch]`.

PyPI has no files of the repository: links and images that are relative there point to the repository here, at the tag
of the version. Its address is "Repository" in `[project.urls]` of `pyproject.toml`. As long as that names none, images
are left out, and links become their text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = r"(?![a-z]+:|//|#)[^)\s\"]+"  # neither of another place nor of this page
IMAGE = re.compile(rf"(!\[[^\]]*\]\(|<img\b[^>]*\bsrc=\")({RELATIVE})(\)|\"[^>]*>)")
LINK = re.compile(rf"\[([^\]]*(?:\[[^\]]*\][^\]]*)*)\]\(({RELATIVE})\)")


class PypiPage(MetadataHookInterface):
    """Sets the description of the package."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the field "readme", which `pyproject.toml` calls dynamic."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        page = page_of(text, repository, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": page}


def page_of(text: str, repository: str | None, tag: str) -> str:
    """The text without relative links and images."""
    if repository is None:
        return LINK.sub(r"\1", IMAGE.sub("", text))
    text = IMAGE.sub(rf"\g<1>{repository}/raw/{tag}/\g<2>\g<3>", text)
    return LINK.sub(rf"[\g<1>]({repository}/blob/{tag}/\g<2>)", text)
