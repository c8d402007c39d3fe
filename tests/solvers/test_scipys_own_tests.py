"""The tests that SciPy ships for its iterative solvers, as installed, with ours in the place of cg, minres, bicgstab
and gmres.

The modules of SciPy are loaded once more while their package has our solvers, and their tests are run from here, where
the fixtures `solver` and `case` name our solvers only.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import scipy.sparse.linalg._isolve as package

import mcprecond

OURS = {"cg": mcprecond.pcg, "minres": mcprecond.minres, "bicgstab": mcprecond.bicgstab, "gmres": mcprecond.gmres}
OTHERS = "TestQMR", "test_show"  # are about qmr and tfqmr
#: Tests that ours should not pass.
DIFFERENT = {
    "test_callback": "SciPy's callback gets the norm of M (b - A x); with M on the right it is that of b - A x",
    "test_defective_precond_breakdown": "a number has to be 0, and the method finds it up to rounding, about 1e-31",
}


def scipys_tests(name: str) -> ModuleType:
    """A module of SciPy's tests with our solvers."""
    spec: Any = importlib.util.find_spec(f"scipy.sparse.linalg._isolve.tests.{name}")
    if spec is None:
        pytest.skip("this SciPy comes without its tests", allow_module_level=True)
    if "make_xp_pytest_param" in Path(spec.origin).read_text():
        reason = "from 1.18 on SciPy's tests are about batches of systems and other array libraries, which ours refuse"
        pytest.skip(reason, allow_module_level=True)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest.mark, "_config", None)  # by which marks of others would be refused
        for name, ours in OURS.items():
            patch.setattr(package, name, ours)
        spec.loader.exec_module(module)
    return module


SCIPYS = scipys_tests("test_iterative")
SCIPYS._SOLVERS[:] = OURS.values()
OF_MINRES = scipys_tests("test_minres")
OF_MINRES.minres = lambda *arguments, **options: tuple(mcprecond.minres(*arguments, **options))  # they index it


@pytest.fixture(params=OURS.values(), ids=OURS)
def solver(request):
    return request.param


OUR_CASES = [case for case in SCIPYS.cases if case.solver in OURS.values()]
for _case in OUR_CASES:
    if _case.solver is mcprecond.bicgstab:
        _case.convergence = True  # after a breakdown ours goes on in another way


@pytest.fixture(params=OUR_CASES, ids=[case.name for case in OUR_CASES])
def case(request):
    return request.param


def adopt(test: Any) -> Any:
    """A test without marks of SciPy's own apparatus; where its parameter is the solver, it takes the fixture."""
    test.pytestmark = [
        mark
        for mark in getattr(test, "pytestmark", [])
        if mark.name in ("filterwarnings", "xfail") or (mark.name == "parametrize" and mark.args[0] != "solver")
    ]
    if test.__name__ == "test_invalid_atol":  # None is CuPy's default
        test.pytestmark = [
            pytest.mark.parametrize("atol", [atol for atol in mark.args[1] if atol is not None])
            if mark.name == "parametrize" and mark.args[0] == "atol"
            else mark
            for mark in test.pytestmark
        ]
    if reason := DIFFERENT.get(test.__name__):
        test = pytest.mark.xfail(reason=reason, strict=True)(test)
    return test


for _name, _found in (vars(SCIPYS) | vars(OF_MINRES)).items():
    if _name.startswith("test_") and _name not in OTHERS:
        globals()[_name] = adopt(_found)
    elif _name.startswith("Test") and _name not in OTHERS:
        for _method in [method for name, method in vars(_found).items() if name.startswith("test_")]:
            adopt(_method)
        globals()[_name] = _found


def test_all_of_ours_are_tried():
    assert {case.solver for case in OUR_CASES} == set(OURS.values())
    assert len(OUR_CASES) > 50 and {"test_convergence", "TestGMRES", "test_asymmetric_fail"} <= globals().keys()
