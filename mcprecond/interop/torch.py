"""PyTorch: solutions of sparse systems, with derivatives with respect to the right-hand side and the matrix.

The module is imported without torch; its function needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mcprecond.backends import backend_of
from mcprecond.backends.arguments import describe
from mcprecond.interop.adjoint import System, refuse_unfit
from mcprecond.interop.streams import stream_at
from mcprecond.solvers import pcg
from mcprecond.solvers.setup import admit_system

__all__ = ["solve"]


def solve(
    A: Any,
    b: Any,
    M: Any = None,
    *,
    solver: Callable[..., Any] = pcg,
    rtol: float | None = None,
    maxiter: int | None = None,
) -> Any:
    """Solve A x = b for tensors of PyTorch, with derivatives with respect to b and to the values of A.

    Gradients are found by one more solve, of the adjoint system. They are those of the exact solution, so that their
    accuracy is that of both solves; where one of them does not converge, an error is raised. There are first
    derivatives in reverse mode: ``backward`` and ``torch.autograd.grad``.

    Tensors are on the CPU, or on the GPU, where all runs on the current stream of PyTorch. They pass by DLPack in both
    directions, without copies. Column indices of 64 bits are converted to 32 bits.

    Parameters
    ----------
    A : torch.Tensor in CSR layout, shape (n, n)
        float32, float64, complex64 or complex128. It may require gradients, as may the values that
        ``torch.sparse_csr_tensor`` makes it of, but for complex ones, through which PyTorch does not differentiate
        there. Its values must stay as they are until ``backward``.
    b : torch.Tensor, shape (n,) or (n, k)
        Of the dtype of A and on its device. Columns are a batch of right-hand sides. `pcg` solves for up to 256 of them
        together, other solvers for one after the other.
    M : preconditioner, LinearOperator, function or "auto", optional
        As for the solver. A class such as `MulticolorSGS`, or another function, is called with A as a matrix of SciPy
        or CuPy, and returns the preconditioner; the adjoint system has the adjoint of this one. "auto" is for `pcg`. No
        derivative depends on M.
    solver : {pcg, minres, gmres, bicgstab} or function
        `pcg` is for symmetric or Hermitian positive definite A: the adjoint system has the same matrix, and is solved
        with the same setup. Any other function is called as ``solver(A, b, M=M, rtol=rtol, maxiter=maxiter)``, and
        returns a `SolveResult`: `minres`, `gmres`, `bicgstab`, or ``functools.partial(gmres, restart=50)``.
    rtol : float, optional
        Of both solves. 1e-10 in double precision and 1e-5 in single precision by default.
    maxiter : int, optional
        Of both solves. The default is that of the solver.

    Returns
    -------
    torch.Tensor
        x, of the shape and dtype of b.

    Raises
    ------
    TypeError, ValueError
        If A is no square tensor in CSR layout, or b is no tensor of its dtype, device and rows, or as the solver, which
        calls a gradient b.
    RuntimeError
        If a solve does not converge (says why, and what to try), or if a gradient is differentiated once more.
    ModuleNotFoundError
        If PyTorch is not installed.

    References
    ----------
    Giles: An Extended Collection of Matrix Derivative Results for Forward and Reverse Mode Algorithmic Differentiation,
    Oxford University Computing Laboratory, report 08/01, 2008.

    Examples
    --------
    The matrix of three springs in a row, with the stiffnesses k, and its derivatives:

    >>> import torch
    >>> from mcprecond import MulticolorSGS
    >>> from mcprecond.interop.torch import solve
    >>> k = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64, requires_grad=True)
    >>> values = torch.stack([k[0] + k[1], -k[1], -k[1], k[1] + k[2], -k[2], -k[2], k[2]])
    >>> A = torch.sparse_csr_tensor([0, 2, 5, 7], [0, 1, 0, 1, 2, 1, 2], values, (3, 3))
    >>> b = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    >>> x = solve(A, b, M=MulticolorSGS)
    >>> x.detach()
    tensor([1.0000, 1.5000, 1.7500], dtype=torch.float64)
    >>> x[2].backward()  # x[2] = 1 / k[0] + 1 / k[1] + 1 / k[2]
    >>> k.grad, b.grad
    (tensor([-1.0000, -0.2500, -0.0625], dtype=torch.float64), tensor([1.0000, 1.5000, 1.7500], dtype=torch.float64))
    """
    import torch

    for name, tensor in (("A", A), ("b", b)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a tensor of PyTorch, got {describe(tensor)}")
    if A.layout != torch.sparse_csr:
        raise TypeError(f"A must be a tensor in CSR layout, got {A.layout}; try A.to_sparse_csr()")
    if A.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        raise TypeError(f"A must hold float32, float64, complex64 or complex128 values, got {A.dtype}; try A.double()")
    if b.layout != torch.strided:
        raise TypeError(f"b must be a dense tensor, got {b.layout}; try b.to_dense()")
    if b.device != A.device:
        raise TypeError(f"b is on {b.device} and A on {A.device}; try b.to(A.device)")
    refuse_unfit(A, b, solver)
    return _solution()(A, b, M, solver, rtol, maxiter)


@functools.cache
def _solution() -> Callable[..., Any]:
    """The solution as a function that PyTorch differentiates."""
    import torch

    class Solution(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, A: Any, b: Any, *arguments: Any) -> Any:
            with _current_stream(b):
                ctx.system = System(*admit_system(A.detach()), *arguments)
                x = torch.from_dlpack(ctx.system.solve(_array(b))).reshape(b.shape)
            ctx.save_for_backward(A, x)
            return x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, gradient: Any) -> Any:
            A, x = ctx.saved_tensors
            with _current_stream(x):
                w = torch.from_dlpack(ctx.system.solve_adjoint(_array(gradient))).reshape(x.shape)
            of_A = _gradient_of_matrix(A.detach(), x, w) if ctx.needs_input_grad[0] else None
            return of_A, w, None, None, None, None

    return Solution.apply


def _gradient_of_matrix(A: Any, x: Any, w: Any) -> Any:
    """-w x^H in the places of the entries of A, column by column so that no more than a few numbers for each entry are
    in memory.
    """
    import torch

    starts, columns = A.crow_indices(), A.col_indices()
    rows = torch.repeat_interleave(starts.diff(), output_size=columns.numel())
    values = torch.zeros_like(A.values())
    for w_of_one, x_of_one in zip(w.reshape(len(w), -1).T, x.conj().reshape(len(x), -1).T, strict=True):
        values.addcmul_(w_of_one.index_select(0, rows), x_of_one.index_select(0, columns), value=-1)
    return torch.sparse_csr_tensor(starts, columns, values, A.shape, check_invariants=False)


def _array(tensor: Any) -> Any:
    """The memory of a tensor as an array; a copy where its numbers are yet to be conjugated or negated."""
    return backend_of(tensor).xp.from_dlpack(tensor.detach().resolve_conj().resolve_neg())


@contextmanager
def _current_stream(tensor: Any) -> Iterator[None]:
    """Let CuPy work where PyTorch works: on its current stream of the GPU that a tensor is on."""
    if not tensor.is_cuda:
        yield
        return
    import cupy
    import torch

    with cupy.cuda.Device(tensor.device.index), stream_at(torch.cuda.current_stream(tensor.device).cuda_stream):
        yield
