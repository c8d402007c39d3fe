"""PETSc's BiCGStab, for distributed matrices that are not symmetric, with a preconditioner of each rank's rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcprecond.interop import petsc_memory
from mcprecond.solvers.result import Reason

#: PETSc's types of what each rank applies, by names of preconditioners; Jacobi's is PETSc's own.
OF_RANKS = {"jacobi": "", "sgs": "MulticolorSGS", "dilu": "MulticolorDILU", "ilu0": "ILU0"}


class BiCGStabAcross:
    """BiCGStab with a preconditioner on the right, for one solve.

    Parameters
    ----------
    mat : PETSc.Mat
        Of type AIJ.
    name : str
        The preconditioner, one of `OF_RANKS`.
    device : {"cpu", "gpu"}
        Where ranks apply it.
    """

    def __init__(self, mat: Any, name: str, device: str) -> None:
        from petsc4py import PETSc

        self.mat, self.ksp = mat, PETSc.KSP().create(mat.getComm())
        self.ksp.setType("bcgs")
        self.ksp.setOperators(mat)
        self.ksp.setPCSide(PETSc.PC.Side.RIGHT)
        self.ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
        pc = self.ksp.getPC()
        pc.setType("python" if OF_RANKS[name] else name)
        if OF_RANKS[name]:
            pc.setPythonType(f"mcprecond.interop.petsc.{OF_RANKS[name]}")
            pc.getPythonContext().arguments = {"device": device}
        self.ksp.setUp()
        self.x, self._b = mat.createVecs()
        self.norm_of_b = 0.0

    def solve(self, b: Any, x0: Any, rtol: float, atol: float, maxiter: int) -> tuple[Any, Reason, list[float], float]:
        """Solve A x = b, see `CGAcross.solve`, and free what is PETSc's. Collective."""
        from petsc4py import PETSc

        petsc_memory.take_numbers(self._b, b)
        if x0 is not None:
            petsc_memory.take_numbers(self.x, x0)
        self.ksp.setInitialGuessNonzero(x0 is not None)
        self.ksp.setTolerances(rtol=rtol, atol=atol, max_it=maxiter)
        self.ksp.setConvergenceHistory()
        self.ksp.solve(self._b, self.x)
        code, residuals = self.ksp.getConvergedReason(), self.ksp.getConvergenceHistory()
        self.norm_of_b, r = self._b.norm(), self._b.duplicate()
        self.mat.mult(self.x, r)
        r.aypx(-1.0, self._b)
        norm, count = r.norm(), self.ksp.getIterationNumber()
        if norm <= max(rtol * self.norm_of_b, atol):
            reason = Reason.CONVERGED
        elif code == PETSc.KSP.ConvergedReason.DIVERGED_MAX_IT:
            reason = Reason.MAX_ITERATIONS
        else:
            reason = Reason.STAGNATED if code > 0 else Reason.BREAKDOWN
        found = np.array(self.x.getArray(readonly=True))
        for each in (self.ksp, self.x, self._b, r):
            each.destroy()
        return found, reason, residuals[: count + 1].tolist(), norm
