"""The driver of the machine, and the extra for it."""

from __future__ import annotations

import ctypes
import re
import sys
import tomllib
from pathlib import Path

import pytest

from mcprecond.backends import drivers, gpu_problem
from mcprecond.backends.drivers import cuda_of_driver, what_to_install


@pytest.mark.parametrize(
    ("driver", "extras"),
    [(13020, ["gpu"]), (13000, ["gpu"]), (12090, ["gpu-cuda12"]), (12000, ["gpu-cuda12"]), (0, ["gpu", "gpu-cuda12"])],
)
def test_the_extra_is_the_one_for_the_driver(driver, extras, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("mcprecond.backends.cuda_of_driver", lambda: driver)
    assert re.findall(r"pip install '\.\[(.*?)\]'", gpu_problem()) == extras


def test_a_driver_that_no_cupy_takes_has_to_be_renewed():
    assert what_to_install(11080).startswith("the driver is for CUDA 11, so install driver 580 or newer")


def test_the_extras_are_those_of_the_package():
    extras = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]
    said = " ".join(map(what_to_install, (0, 11000, 12000, 13000)))
    assert set(re.findall(r"\.\[(.*?)\]", said)) == {name for name in extras if name.startswith("gpu")}


class Driver:
    """Stands for the library of the driver."""

    def __init__(self, name):
        self.asked = name

    def cuDriverGetVersion(self, number):
        ctypes.cast(number, ctypes.POINTER(ctypes.c_int))[0] = 12040
        return 0


def test_the_driver_is_asked_without_cupy(monkeypatch):
    monkeypatch.setattr(drivers.ctypes, "CDLL", Driver)
    assert cuda_of_driver() == 12040


def test_without_a_driver(monkeypatch):
    def refuse(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(drivers.ctypes, "CDLL", refuse)
    assert cuda_of_driver() == 0
