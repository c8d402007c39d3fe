"""The examples of the gallery solve what they say, as their libraries do by default, and can be drawn."""

from __future__ import annotations

import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "gallery"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
#: Packages that some of them need. `make test` has them; where one is missing, those are not tested.
NEEDED = {
    "skimage": {"random_walker", "image_matting", "image_blending"},
    "pymatting": {"image_matting"},
    "skfem": {"elasticity"},
}
MISSING = set().union(*(names for package, names in NEEDED.items() if importlib.util.find_spec(package) is None))
#: These examples are nightly tests. PyMatting compiles its functions when it is imported, which takes most of a minute.
SLOW = {"image_matting"}
TRIED = [pytest.param(name, marks=[pytest.mark.nightly] * (name in SLOW)) for name in sorted({*NAMES} - MISSING)]
#: The largest difference allowed between our solution and the library's; both may be solved by CG to a tolerance.
MOST = {"random_walker": 2e-3, "image_matting": 2e-3, "image_blending": 1e-4, "effective_resistances": 1e-4}


@pytest.fixture
def example(monkeypatch):
    """Import an example."""
    monkeypatch.syspath_prepend(EXAMPLES)
    yield importlib.import_module
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", TRIED)
def test_the_solution_is_that_of_the_library(name, example, device):
    module = example(name)
    problem = module.prepare(module.SIZES["test"])
    has_device = "device" in inspect.signature(module.solve).parameters
    found = module.solve(problem, device) if has_device else module.solve(problem)
    assert module.difference(found, module.by_default(problem)) <= MOST.get(name, 1e-5)


@pytest.mark.parametrize("name", TRIED)
def test_it_can_be_drawn(name, example, tmp_path):
    from matplotlib.figure import Figure

    module = example(name)
    problem = module.prepare(module.SIZES["test"])
    figure = Figure(layout="constrained")
    module.draw(figure, problem, module.solve(problem))
    figure.savefig(tmp_path / "picture.png")
    assert len(figure.axes) >= 1 and (tmp_path / "picture.png").stat().st_size > 5000


def test_each_runs_alone_and_saves_its_picture(tmp_path):
    """As a file that was downloaded, in a folder of its own; all end in the same way."""
    endings = {
        (EXAMPLES / f"{name}.py").read_text().split('if __name__ == "__main__":')[1].replace(name, "NAME")
        for name in NAMES
    }
    assert len(endings) == 1
    shutil.copy(EXAMPLES / "nonlinear_diffusion.py", tmp_path)
    command = [sys.executable, "nonlinear_diffusion.py"]
    run = subprocess.run(command, cwd=tmp_path, env=os.environ | {"MPLBACKEND": "agg"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "nonlinear_diffusion.png").stat().st_size > 5000


def test_pages_show_each_example_and_its_times():
    from report.sentences import of_gallery

    docs = EXAMPLES.parent.parent / "docs" / "gallery"
    said, index = of_gallery(), (docs / "index.md").read_text()
    for name in NAMES:
        page = (docs / f"{name}.md").read_text()
        assert f"examples/gallery/{name}.py" in page and f"{{{{ gallery_{name} }}}}" in page
        assert f"]({name}.md)" in index and f"gallery-{name}.png" in index
        assert " s on the CPU" in said[name]
