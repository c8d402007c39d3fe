"""What the package brings along: versions, licenses and a bill of materials, from what is installed.

    python tools/supply.py licenses cli pyamg      # a table, and exit status 1 if a license is not among ALLOWED
    python tools/supply.py pins cli pyamg          # name==version, for pip-audit
    python tools/supply.py bill cli pyamg          # CycloneDX 1.5 as JSON

The arguments behind the command are names of extras of mcprecond, as in mcprecond[cli]. The script imports the package
`packaging`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution

#: Licenses that ask for nothing but a notice, as SPDX names them.
ALLOWED = {"0BSD", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MIT-CMU", "Apache-2.0", "ISC", "Zlib", "CC0-1.0", "PSF-2.0"}
ALLOWED |= {"Python-2.0", "HPND", "LLVM-exception", "MIT-0"}
#: What metadata of some packages say instead; the first pattern that is found counts.
OTHER_NAMES = {
    r"MIT": "MIT",
    r"Apache|^ASL 2": "Apache-2.0",
    r"BSD 2|BSD-2|2-clause": "BSD-2-Clause",
    r"BSD": "BSD-3-Clause",
    r"Python Software Foundation|PSF": "PSF-2.0",
    r"ISC": "ISC",
    r"Historical Permission Notice": "HPND",
}
ITSELF = "mcprecond"


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(extras: Iterable[str]) -> dict[str, Distribution]:
    """The package and all that it needs with these extras, by name.

    Raises
    ------
    SystemExit
        If one is not installed.
    """
    from packaging.requirements import Requirement

    found: dict[str, Distribution] = {}
    left = [(ITSELF, frozenset(extras))]
    seen = set()
    while left:
        name, wanted = left.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"{name} is not installed here, and so nothing can be said of it") from None
        for line in found[name].requires or []:
            required = Requirement(line)
            if required.marker is None or any(required.marker.evaluate({"extra": e}) for e in ("", *wanted)):
                left.append((normalized(required.name), frozenset(required.extras)))
    return dict(sorted(found.items()))


def license_of(package: Distribution) -> str:
    """The license as an SPDX expression where metadata tell, or what they say; "unknown" if they are silent."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return expression
    classifiers = [c for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    said = [c.rpartition(" :: ")[2] for c in classifiers if not c.endswith("OSI Approved")]
    said += [metadata["License"].splitlines()[0]] if metadata.get("License") else []
    for words in said:
        for pattern, spdx in OTHER_NAMES.items():
            if re.search(pattern, words):
                return spdx
    return said[0] if said else "unknown"


def is_allowed(license_: str) -> bool:
    """Whether all licenses of an expression are, or for "or" those on one side."""
    # In an expression with parentheses all of them have to be.
    choices = [re.sub(r"[()]", "", license_).replace(" OR ", " AND ")] if "(" in license_ else license_.split(" OR ")
    return any(all(part in ALLOWED for part in re.split(" AND | WITH ", choice)) for choice in choices)


def bill(packages: dict[str, Distribution]) -> dict[str, object]:
    """A bill of materials in the form of CycloneDX."""

    def component(name: str, package: Distribution) -> dict[str, object]:
        address = f"pkg:pypi/{name}@{package.version}"
        license_ = license_of(package)
        stated = {"expression": license_} if is_allowed(license_) else {"license": {"name": license_}}
        return {
            "type": "library",
            **{"bom-ref": address, "name": name, "version": package.version, "purl": address},
            "licenses": [stated],
        }

    components = {name: component(name, package) for name, package in packages.items()}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        **{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1},
        "metadata": {"component": components.pop(ITSELF)},
        "components": list(components.values()),
    }


def main(what: str, *extras: str) -> None:
    packages = needed(extras)
    if what == "bill":
        print(json.dumps(bill(packages), indent=1))
    elif what == "pins":
        print("\n".join(f"{name}=={package.version}" for name, package in packages.items() if name != ITSELF))
    elif what == "licenses":
        licenses = {name: license_of(package) for name, package in packages.items()}
        for name, license_ in licenses.items():
            print(
                f"{name:<24} {packages[name].version:<14} {license_}{'' if is_allowed(license_) else '   NOT ALLOWED'}"
            )
        if refused := [name for name, license_ in licenses.items() if not is_allowed(license_)]:
            raise SystemExit(f"look at the licenses of {', '.join(refused)}; see ALLOWED in tools/supply.py")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["help"]))
