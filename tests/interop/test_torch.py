"""Solutions for tensors of PyTorch, and their derivatives beside differences and those of dense solves."""

from __future__ import annotations

import doctest
import functools
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import grid5, patterns, random_values, spd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mcprecond.interop.torch
from mcprecond import ILU0, MulticolorGS, MulticolorSGS, bicgstab, gmres, pcg
from mcprecond.interop.torch import solve

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/torch.md").read_text()
#: Each with a preconditioner for matrices that need not be symmetric.
GENERAL = [(gmres, None), (gmres, ILU0), (bicgstab, MulticolorGS), (functools.partial(gmres, restart=5), ILU0)]

#: Few, since kernels are compiled for each dtype.
CASES = [
    (np.float32, pcg, MulticolorSGS),
    (np.float64, pcg, MulticolorSGS),
    (np.float64, gmres, ILU0),
    (np.complex128, pcg, None),
    (np.complex128, gmres, None),
]


@pytest.fixture
def place(device):
    """Where the tensors of a test are, as PyTorch names it."""
    if device == "gpu":
        skip_without_gpu()
    return "cuda" if device == "gpu" else "cpu"


def skip_without_gpu():
    """Skip a test that needs one where PyTorch is a build for CPUs alone."""
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch finds no GPU")


def tensor_of(A, place, values=None, index=torch.int64):
    """A matrix of SciPy as a CSR tensor, perhaps with other values."""
    starts, columns = (torch.tensor(part, dtype=index, device=place) for part in (A.indptr, A.indices))
    values = torch.tensor(A.data, device=place) if values is None else values
    return torch.sparse_csr_tensor(starts, columns, values, A.shape, check_invariants=True)


def unsymmetric(n):
    """Diagonally dominant, of random values on a pattern that is not symmetric."""
    A = sp.random_array((n, n), density=0.3, rng=np.random.default_rng(0), format="csr")
    return sp.csr_matrix(A + sp.diags_array(A.sum(axis=1) + 1))


def right_hand_sides(A, count, place, seed=1):
    rng = np.random.default_rng(seed)
    shape = A.shape[:1] if count is None else (A.shape[0], count)
    values = random_values(rng, int(np.prod(shape)), A.dtype).astype(A.dtype).reshape(shape)
    return torch.tensor(values, device=place)


@pytest.mark.parametrize(("solver", "M"), GENERAL)
@pytest.mark.parametrize("count", [None, 2])
def test_derivatives_beside_differences(place, solver, M, count):
    """Each value of A by itself."""
    A = unsymmetric(7)
    b = right_hand_sides(A, count, place).requires_grad_()
    values = torch.tensor(A.data, device=place, requires_grad=True)

    def solution(values, b):
        return solve(tensor_of(A, place, values), b, M, solver=solver, rtol=1e-12)

    assert torch.autograd.gradcheck(solution, (values, b), nondet_tol=1e-9)


@pytest.mark.parametrize("M", [None, MulticolorSGS, "auto"])
@pytest.mark.parametrize("count", [None, 2])
def test_derivatives_of_conjugate_gradients_beside_differences(place, M, count):
    """Springs between neighbors: A stays symmetric whatever their stiffnesses."""
    A = grid5(3)
    rows = np.repeat(np.arange(9), np.diff(A.indptr))
    ends = sp.triu(A, 1).tocoo()
    springs = torch.rand(ends.nnz, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.5
    #: What each spring adds to each entry.
    shares = np.zeros((A.nnz, ends.nnz))
    for k, (i, j) in enumerate(zip(ends.row, ends.col, strict=True)):
        for p, q, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            shares[np.flatnonzero((rows == p) & (A.indices == q)), k] = sign
    shares, ground = (torch.tensor(part, device=place) for part in (shares, 1.0 * (rows == A.indices)))

    def solution(springs, b):
        return solve(tensor_of(A, place, shares @ springs + ground), b, M, rtol=1e-12)

    b = right_hand_sides(A, count, place).requires_grad_()
    assert torch.autograd.gradcheck(solution, (springs.to(place).requires_grad_(), b), nondet_tol=1e-9)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=patterns(),
    case=st.sampled_from(CASES),
    count=st.sampled_from([None, 1, 3]),
    index=st.sampled_from(["int32", "int64"]),
)
def test_gradients_beside_those_of_a_dense_solve(place, pattern, case, count, index):
    dtype, solver, M = case
    matrix = spd(pattern, dtype=dtype)
    if solver is gmres:
        scales = np.random.default_rng(0).uniform(0.5, 2, matrix.shape[0])
        matrix.data *= scales.astype(dtype).repeat(np.diff(matrix.indptr))
    A = tensor_of(matrix, place, index=getattr(torch, index)).requires_grad_()
    b = right_hand_sides(matrix, count, place).requires_grad_()
    dense, same = A.detach().to_dense().requires_grad_(), b.detach().clone().requires_grad_()
    x, expected = solve(A, b, M, solver=solver), torch.linalg.solve(dense, same)
    assert (x.shape, x.dtype, x.device) == (b.shape, b.dtype, b.device)
    weights = right_hand_sides(matrix, count, place, seed=2)
    for solution in (x, expected):
        (solution * weights).real.sum().backward()
    single = matrix.dtype.char in "fF"
    close = functools.partial(torch.testing.assert_close, rtol=2e-3 if single else 1e-7, atol=2e-3 if single else 1e-7)
    close(x, expected)
    close(b.grad, same.grad)
    assert torch.equal(A.grad.crow_indices(), A.crow_indices())
    assert torch.equal(A.grad.col_indices(), A.col_indices())
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    close(A.grad.values(), dense.grad[rows, matrix.indices])


def test_no_derivative_depends_on_the_preconditioner(place, backend, to_device):
    matrix = spd(grid5(12))
    on_device = to_device(matrix)
    made = []

    def make(A):
        made.append(MulticolorSGS(A, "greedy", omega=1.2))
        return made[-1]

    jacobi = backend.linalg.aslinearoperator(to_device(sp.csr_matrix(sp.diags_array(1 / matrix.diagonal()))))
    found = []
    for M in (None, "auto", MulticolorSGS, MulticolorSGS(on_device), make, jacobi):
        A, b = tensor_of(matrix, place).requires_grad_(), right_hand_sides(matrix, None, place).requires_grad_()
        solve(A, b, M).square().sum().backward()
        found.append((A.grad.values(), b.grad))
    assert len(made) == 1  # for both systems
    for of_A, of_b in found[1:]:
        torch.testing.assert_close(of_A, found[0][0], rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(of_b, found[0][1], rtol=1e-6, atol=1e-8)


def test_only_what_is_asked_for_is_computed(place):
    matrix = spd(grid5(4))
    solves = []

    def counting(*arguments, **options):
        solves.append(pcg(*arguments, **options))
        return solves[-1]

    A, b = tensor_of(matrix, place), right_hand_sides(matrix, None, place)
    assert not solve(A, b, solver=counting).requires_grad and len(solves) == 1
    b.requires_grad_()
    solve(A, b, solver=counting).sum().backward()  # whose gradient is one number that stands for all
    assert len(solves) == 3 and A.grad is None
    torch.testing.assert_close(matrix @ b.grad.cpu().numpy(), np.ones(16))


def test_nothing_is_copied(place, backend):
    """The solver reads the memory of the tensors, and x is in the memory that it wrote."""
    passed = []

    def recording(A, b, M, **options):
        result = pcg(A, b, M=M, **options)
        passed.append((A.data, b, result.x))
        return result

    matrix = spd(grid5(6))
    A, b = tensor_of(matrix, place, index=torch.int32), right_hand_sides(matrix, None, place)
    x = solve(A, b, solver=recording)
    addresses = [array.ctypes.data if backend.name == "cpu" else array.data.ptr for array in passed[0]]
    assert addresses == [A.values().data_ptr(), b.data_ptr(), x.data_ptr()]


@pytest.mark.gpu
def test_the_current_stream_of_pytorch_is_that_of_cupy():
    skip_without_gpu()
    import cupy

    matrix = spd(grid5(40))
    streams = []

    def recording(A, b, M, **options):
        streams.append(cupy.cuda.get_current_stream().ptr)
        return pcg(A, b, M=M, **options)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        A, b = tensor_of(matrix, "cuda").requires_grad_(), right_hand_sides(matrix, None, "cuda").requires_grad_()
        for solver in (recording, pcg):
            x = solve(A, b, MulticolorSGS, solver=solver)
            x.sum().backward()
    assert streams == [side.cuda_stream] * 2
    torch.cuda.synchronize()
    np.testing.assert_allclose(matrix @ x.detach().cpu().numpy(), b.detach().cpu().numpy(), atol=1e-8)
    np.testing.assert_allclose(matrix @ b.grad.cpu().numpy(), 2 * np.ones(1600), atol=1e-8)


@pytest.mark.parametrize("solver", [pcg, gmres, bicgstab])
def test_a_solution_that_is_none_is_an_error(place, solver):
    matrix = grid5(30)
    A, b = tensor_of(matrix, place), right_hand_sides(matrix, None, place).requires_grad_()
    with pytest.raises(RuntimeError, match=r"the solve did not reach rtol: .*not converged within maxiter"):
        solve(A, b, solver=solver, maxiter=1)

    def forwards_only(A, b, **options):
        forwards = b.sum() != 900  # the gradient consists of ones
        return solver(A, b, **options | ({} if forwards else {"maxiter": 1}))

    x = solve(A, b, solver=forwards_only)
    with pytest.raises(RuntimeError, match=r"the adjoint solve, which gives the gradients, did not reach rtol"):
        x.sum().backward()


def test_second_derivatives_are_refused(place):
    b = right_hand_sides(grid5(3), None, place).requires_grad_()
    x = solve(tensor_of(grid5(3), place), b)
    (gradient,) = torch.autograd.grad(x.square().sum(), b, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_wrong_arguments_are_named(place):
    A, b = tensor_of(grid5(3), place), torch.ones(9, dtype=torch.float64, device=place)
    for wrong, named in (
        ((grid5(3), b), r"A must be a tensor of PyTorch, got .*csr_matrix"),
        ((A, [1.0] * 9), r"b must be a tensor of PyTorch, got \["),
        ((A.to_dense(), b), r"A must be a tensor in CSR layout, got torch.strided; try A.to_sparse_csr"),
        ((A.to(torch.bfloat16), b), r"A must hold float32, .* got torch.bfloat16"),
        ((A, b.to_sparse()), r"b must be a dense tensor, got torch.sparse_coo"),
        ((A, b.float()), r"b holds torch.float32 and A torch.float64; convert one"),
        ((A, b, 3), r"M must be a preconditioner"),
    ):
        with pytest.raises(TypeError, match=named):
            solve(*wrong)
    for shape in ((4,), (9, 0), (9, 1, 1), (1, 9)):
        with pytest.raises(ValueError, match=r"b must have shape \(9,\) or \(9, k\) with"):
            solve(A, torch.ones(shape, dtype=torch.float64, device=place))
    with pytest.raises(ValueError, match=r"A must be square, got shape \(9, 8\)"):
        solve(torch.ones(9, 8, dtype=torch.float64, device=place).to_sparse_csr(), b)
    with pytest.raises(
        TypeError, match=r"solver must be pcg, minres, gmres, bicgstab or a function like these, got 'cg'"
    ):
        solve(A, b, solver="cg")
    with pytest.raises(ValueError, match="rtol must be a number at least 0"):
        solve(A, b, rtol=-1.0)


def test_the_example_of_the_docstring():
    results = doctest.testmod(mcprecond.interop.torch)
    assert results.attempted > 5 and results.failed == 0


def test_the_code_of_the_page(capsys):
    pytest.importorskip("jax")
    blocks = re.findall(r"^```py\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == PAGE.count("```py\n") == 3
    names = {}
    for code, printed in blocks:
        exec(code, names)
        assert capsys.readouterr().out == printed


def test_the_example_finds_what_the_page_says(capsys, monkeypatch):
    spec = importlib.util.spec_from_file_location("fit_coefficient", ROOT / "examples/fit_coefficient.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr("sys.argv", ["fit_coefficient.py"])
    example.main()
    assert f"```text\n{capsys.readouterr().out}```" in PAGE
