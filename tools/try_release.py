"""Build the wheel and the sdist, and try them in fresh environments: what `make test-release` runs.

    python tools/try_release.py --output dist                     # with every Python from 3.11 on that is found
    python tools/try_release.py --output dist python3.12          # with these

Each Python gets the wheel and the sdist, with the newest versions of what they need and with the oldest ones, those of
`tests/oldest.txt`. In each environment `tools/smoke.py` runs in an empty folder. What the oldest Python got with the
wheel and the newest versions is written beside the wheel as a bill of materials, `mcprecond-VERSION.cdx.json`, in the
form of CycloneDX. The environments are removed afterwards; what was built stays.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "cli,pyamg,studies"
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


def main() -> None:
    """Build and try; end with 1 if anything fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", help="all that are found, from 3.11 on, by default")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where wheel and sdist go")
    asked = parser.parse_args()
    pythons = asked.pythons or pythons_found()
    failed = []
    with tempfile.TemporaryDirectory(prefix="mcprecond-") as folder:
        wheel, sdist = built(pythons[0], Path(folder) / "build", asked.output)
        compare_contents(wheel, sdist)
        cases = itertools.product(pythons, (wheel, sdist), (False, True))
        for number, (python, package, oldest) in enumerate(cases):
            name = f"Python {version_of(python)}, {package.name}, {'oldest' if oldest else 'newest'} versions"
            print(f"{name}: ", end="", flush=True)
            began = time.monotonic()
            bill = wheel.with_name("-".join(wheel.name.split("-")[:2]) + ".cdx.json") if number == 0 else None
            ran = tried(python, package, oldest, Path(folder) / str(number), bill)
            print(f"{'failed' if ran.returncode else 'passed'} in {time.monotonic() - began:.0f} s", flush=True)
            print(ran.stdout)  # of the smoke test: which versions it had; or what failed
            failed += [name] if ran.returncode else []
    if failed:
        sys.exit("\n".join(["failed:", *failed]))


def pythons_found() -> list[str]:
    """The interpreters of the versions that the package names, from the oldest on, on PATH or of pyenv."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    head = "Programming Language :: Python :: 3."
    minors = [c.removeprefix(head) for c in project["classifiers"] if c.startswith(head)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for minor in sorted(minors, key=int):
        # A name on PATH may be a shim of pyenv for a version that is not chosen: it has to run.
        candidates = [f"python3.{minor}", *map(str, sorted(pyenv.glob(f"3.{minor}.*/bin/python")))]
        found += [python for python in candidates if shutil.which(python) and version_of(python)][:1]
    if not found:
        sys.exit(f"no Python 3.{minors[0]} or newer is found")
    return found


def version_of(python: str) -> str:
    """Its version, or nothing if it does not run."""
    return run(
        [python, "-c", "import platform; print(platform.python_version())"], stderr=subprocess.DEVNULL
    ).stdout.strip()


def run(command: Sequence[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command, both of its outputs in one text."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **options}
    return subprocess.run(command, **options)  # type: ignore[call-overload]


def in_order(*commands: Sequence[str | Path], cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run commands until one fails, and return the last one that ran."""
    # What the tree or the user adds to an environment would hide what is missing.
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    for command in commands:
        ran = run(command, cwd=cwd, env=variables)
        if ran.returncode:
            break
    return ran


def environment(python: str, folder: Path) -> tuple[Sequence[str | Path], Path]:
    """The command that makes an environment, and its Python."""
    scripts = "Scripts" if os.name == "nt" else "bin"
    return [python, "-m", "venv", folder], folder / scripts / "python"


def built(python: str, folder: Path, output: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from the sdist, and return both."""
    make, own = environment(python, folder)
    shutil.rmtree(output, ignore_errors=True)
    ran = in_order(
        make, [own, *PIP, "install", "build", "twine"], [own, "-m", "build", "--outdir", output.resolve(), ROOT]
    )
    if ran.returncode == 0:
        ran = in_order([own, "-m", "twine", "check", "--strict", *output.resolve().iterdir()])
    if ran.returncode:
        sys.exit(ran.stdout)
    (wheel,), (sdist,) = output.glob("*.whl"), output.glob("*.tar.gz")
    return wheel.resolve(), sdist.resolve()


def compare_contents(wheel: Path, sdist: Path) -> None:
    """End if either one lacks a file of the package, or has one that git does not."""
    listed = run(["git", "ls-files", "mcprecond"], cwd=ROOT)
    expected = set(listed.stdout.split())
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if name.startswith("mcprecond/")}
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        in_sdist = {name for name in names if name.startswith("mcprecond/")}
    for package, found in ((wheel, in_wheel), (sdist, in_sdist)):
        if listed.returncode == 0 and found != expected:
            sys.exit(f"{package.name} and git differ: {sorted(found ^ expected)}")


def tried(
    python: str, package: Path, oldest: bool, folder: Path, listed: Path | None
) -> subprocess.CompletedProcess[str]:
    """Install a package with its extras into a fresh environment and run the smoke test in an empty folder; list what
    was installed, where a file is given for that.
    """
    make, own = environment(python, folder / "environment")
    empty = folder / "empty"
    empty.mkdir(parents=True)
    install = [own, *PIP, "install", f"{package}[{EXTRAS}]"]
    # Nothing is compiled in an installation: what has no wheel is missing. The sdist itself is built, of course.
    install += ["--only-binary", ":all:"] if package.suffix == ".whl" else ["--prefer-binary"]
    install += ["--constraint", ROOT / "tests" / "oldest.txt"] if oldest else []
    data = [
        path for path in (ROOT / "mcprecond").rglob("*") if path.suffix in (".cu", ".cuh") or path.name == "py.typed"
    ]
    names = sorted(path.relative_to(ROOT).as_posix() for path in data)
    version = package.name.split("-")[1].removesuffix(".tar.gz")
    ran = in_order(make, install, [own, ROOT / "tools" / "smoke.py", version, *names], cwd=empty)
    if ran.returncode == 0 and listed is not None:
        make, lister = environment(python, folder / "lister")
        list_all = [lister, "-m", "cyclonedx_py", "environment", own, "--of", "JSON", "--output-file", listed]
        listing = in_order(make, [lister, *PIP, "install", "cyclonedx-bom>=7,<8"], list_all)
        ran = listing if listing.returncode else ran
    shutil.rmtree(folder)
    return ran


if __name__ == "__main__":
    main()
