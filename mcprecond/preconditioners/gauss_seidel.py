"""Multicolor Gauss-Seidel: sweeps over the color blocks, color by color, all rows of a color at once."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

from mcprecond.backends.arguments import integer, one_of, real
from mcprecond.backends.inputs import vector
from mcprecond.backends.updates import one_at_a_time
from mcprecond.preconditioners.colored import MOST_OF_DIAGONAL, Colored
from mcprecond.preconditioners.setup import admit, admit_values, color_and_store
from mcprecond.storage import ColorBlocks
from mcprecond.sweeps.relaxation import Relaxation
from mcprecond.sweeps.substitution import Chunks, Substitution
from mcprecond.tuning.least_time import ColoringArgument
from mcprecond.typing import Device, Matrix, StoredDType, Sweep

SWEEPS: tuple[Sweep, ...] = ("forward", "backward", "symmetric")
LARGEST_BLOCK = 9  # unknowns per node: far beyond, a block no longer fits into the registers of a thread


class Sweeps:
    """What sweeps write: of substitution, and of relaxation. `substitutes` says which is made now.

    Parameters
    ----------
    blocks, columns, pitch
        As for `Substitution`.
    substitutes : bool
    """

    def __init__(self, blocks: ColorBlocks, columns: int, pitch: int, *, substitutes: bool) -> None:
        self._new = blocks, columns, pitch
        _ = self.substitution if substitutes else self.relaxation

    @cached_property
    def substitution(self) -> Substitution:
        """Symmetric sweeps from zero."""
        return Substitution(*self._new)

    @cached_property
    def relaxation(self) -> Relaxation:
        """All other sweeps."""
        return Relaxation(*self._new)


class MulticolorGS(Colored):
    """Multicolor Gauss-Seidel or SOR preconditioner, from a zero guess.

    With A = L + D + U in the order of the colors, ``M @ r`` is one or more sweeps on A z = r:

    - forward: ``inv(M) = w inv(D + w L)``,
    - backward: ``inv(M) = w inv(D + w U)``,
    - symmetric: ``inv(M) = w (2 - w) inv(D + w U) D inv(D + w L)``.

    Setup, updates and applications are run-to-run deterministic, unless a coloring that races is asked for; see
    `deterministic`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats, no zero on the diagonal. Not changed, and not needed afterwards.
    coloring : str, AutoColoring, Coloring or array of int, shape (n,)
        A method of `color`, whose colors are then put into the order that promises the fewest iterations; or a coloring
        of A, which is checked, its colors in the order of their numbers. "auto" and an `AutoColoring` choose by
        predicted time; `choice` says what and why.
    sweep : {"symmetric", "forward", "backward"}
        "symmetric" keeps a symmetric A symmetric and a Hermitian one Hermitian, as CG needs it.
    omega : float
        Relaxation factor w, 0 < w < 2.
    sweeps : int
        How many sweeps one application makes.
    dtype : {float32, float64}, or {complex64, complex128} for complex A, optional
        Of the stored triangles; that of A by default. With float32 `pcg` iterates in float32 where Eisenstat's form
        fits, to the accuracy of float64. For other solvers the values take half of the memory; on a GPU the sweeps then
        keep 20 bits of what they compute, with the range of float64.
    block_size : int, optional
        b from 1 to 9: unknowns b i .. b i + b - 1 belong to node i. For b > 1 the nodes are colored (`coloring` is one
        of their graph, of shape (n / b,)), D consists of the b x b blocks of the diagonal, and L and U of all other
        blocks. Fewer colors, fewer iterations and less index traffic where unknowns come in nodes, as in elasticity.
        By default that of the blocks of a BSR matrix, if they are square and small enough, and 1 for other formats.
    device : {"cpu", "gpu"}, optional
        "gpu" for a SciPy matrix: vectors stay NumPy arrays, the sweeps run on the GPU.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, has a zero or missing diagonal entry or a singular diagonal
        block (names the row), the coloring is not one of A, or another argument is out of range.

    References
    ----------
    Deveci, Boman, Devine, Rajamanickam: Parallel Graph Coloring for Manycore Architectures, IPDPS 2016, Section V-C.
    Saad: Iterative Methods for Sparse Linear Systems, 2nd ed., Section 12.4.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from scipy.sparse.linalg import gmres
    >>> from mcprecond import MulticolorGS
    >>> A = scipy.sparse.diags_array([-1.5, 3.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
    >>> x, info = gmres(A, np.ones(100), M=MulticolorGS(A, sweep="forward"))
    >>> info
    0
    """

    remedy_for_asymmetry = "use sweep='symmetric'"

    def __init__(
        self,
        A: Matrix,
        coloring: ColoringArgument = "auto",
        *,
        sweep: Sweep = "symmetric",
        omega: float = 1.0,
        sweeps: int = 1,
        dtype: StoredDType | None = None,
        block_size: int | None = None,
        device: Device | None = None,
    ) -> None:
        self.sweep, self.omega = one_of(sweep, "sweep", SWEEPS), real(omega, "omega", 0, 2)
        if self.omega in (0, 2):
            raise ValueError(f"omega must be between 0 and 2, both excluded, got {omega!r}")
        self.sweeps = integer(sweeps, "sweeps", 1)
        block_size = block_size_of(A) if block_size is None else integer(block_size, "block_size", 1, LARGEST_BLOCK)
        self.symmetric = sweep == "symmetric"
        matrix, origin = admit(A, device)
        self.blocks, self.choice = color_and_store(matrix, coloring, block_size=block_size, dtype=dtype)
        self.blocks.refuse_singular_diagonal()
        super().__init__(origin)

    @property
    def eisenstat_incompatibility(self) -> str | None:  # type: ignore[override]
        if self.sweep != "symmetric":
            return "M is not symmetric"
        if self.omega * MOST_OF_DIAGONAL < 1:
            return f"omega is below 1 / {MOST_OF_DIAGONAL}, so that digits of a product with A would cancel"
        return "M makes several sweeps" if self.sweeps > 1 else None

    @property
    def splitting(self) -> tuple[Any, Any, float]:
        """See `Colored`: D / w."""
        D, Dinv, omega = self.blocks.diagonal, self.blocks.dinv, self.dtype.type(self.omega)
        return (D, Dinv, 1.0) if omega == 1 else (D / omega, Dinv * omega, self.omega)

    @property
    def keeps_diagonal(self) -> bool:
        return self.omega == 1

    @one_at_a_time
    def update(self, A: Matrix) -> None:
        """Take new values from a matrix with the same pattern: no new coloring, no new storage.

        Parameters
        ----------
        A : sparse matrix, as in the constructor

        Raises
        ------
        TypeError, ValueError
            As the constructor; also if the pattern differs (names a row), in which case nothing changes. After a
            singular diagonal, a lack of memory or Ctrl-C this object may be halfway between two matrices. Then all use
            of it is a RuntimeError until an update succeeds.
        """
        self.blocks.take(admit_values(A, self.origin, self.backend))
        self.blocks.refuse_singular_diagonal()
        self.blocks.is_halfway = False

    def new_state(self, columns: int = 1) -> Chunks:
        return Chunks(partial(Sweeps, substitutes=self._substitutes), self.blocks, columns)

    @property
    def _substitutes(self) -> bool:
        """Whether an application is symmetric substitution, and nothing else."""
        return self.sweep == "symmetric" and self.sweeps == 1

    def enqueue(self, state: Chunks, r: Any, z: Any) -> None:
        """See `Operator`. The first sweep starts from zero, so it reads each triangle once at most."""
        omega = self.omega
        for chunk, b, x in state.of(r, z):
            if self._substitutes:
                chunk.substitution.solve(b, x, omega=omega, scale=omega * (2 - omega))
            else:
                chunk.relaxation.sweep(x, b, self.sweep, sweeps=self.sweeps, omega=omega, from_zero=True)

    def smooth(self, x: Any, b: Any) -> Any:
        """Sweep on A x = b from a given x, forwards, backwards, or forwards and then backwards, `sweeps` times.

        Each step is ``x_i <- (1 - w) x_i + w (b_i - sum of a_ij x_j over j != i) / a_ii``, as in PyAMG's relaxation
        methods, but in the order of the colors.

        Parameters
        ----------
        x, b : array, shape (n,) or (n, 1)
            Where A comes from. Not changed.

        Returns
        -------
        array, shape (n,)

        Raises
        ------
        TypeError, ValueError
            If x or b is on the other device, has another length, or is not made of finite real numbers.

        Examples
        --------
        >>> import numpy as np, scipy.sparse
        >>> from mcprecond import MulticolorGS
        >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(3, 3), format="csr")
        >>> MulticolorGS(A, [0, 1, 0], sweep="forward").smooth(np.zeros(3), np.ones(3))
        array([0.5, 1. , 0.5])
        """
        n, xp = self.shape[0], self.backend.xp
        x, b = (xp.asarray(vector(v, n, self.origin, self.dtype, name)) for v, name in ((x, "x"), (b, "b")))
        self.enqueue_sweep(x, b, sweeps=self.sweeps)
        return x if self._stays else self.backend.to_host(x)

    def enqueue_sweep(
        self,
        x: Any,
        b: Any,
        direction: Sweep | None = None,
        *,
        sweeps: int = 1,
        from_zero: bool = False,
        state: Chunks | None = None,
    ) -> None:
        """Sweep on A x = b in place: launch the kernels, check nothing, and do not wait.

        For smoothers and solvers of others. A call may be captured into a CUDA graph after one that was not, which
        allocates and compiles.

        Parameters
        ----------
        x, b : array, shape (n,), or (n, k) in C order
            Two different arrays of the operator's dtype, on the device where it sweeps.
        direction : {"forward", "backward", "symmetric"}, optional
            That of the operator by default.
        sweeps : int
            How many.
        from_zero : bool
            Whether to start from zero, whatever x holds; the first sweep then reads one triangle only.
        state : optional
            One of `new_state`. By default one is borrowed: what is captured may then be replayed on the current stream
            only.

        Examples
        --------
        >>> import numpy as np, scipy.sparse
        >>> from mcprecond import MulticolorGS
        >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(3, 3), format="csr")
        >>> M, x, b = MulticolorGS(A, [0, 1, 0]), np.zeros(3), np.ones(3)
        >>> M.enqueue_sweep(x, b, "forward", from_zero=True)
        >>> M.enqueue_sweep(x, b, "backward")
        >>> x
        array([1., 1., 1.])
        """
        if state is None:
            with self.lend_state(x.shape[1] if x.ndim == 2 else 1) as state:
                self.enqueue_sweep(x, b, direction, sweeps=sweeps, from_zero=from_zero, state=state)
            return
        for chunk, *vectors in state.of(x, b):
            chunk.relaxation.sweep(
                *vectors, direction or self.sweep, sweeps=sweeps, omega=self.omega, from_zero=from_zero
            )

    def _transposed(self, conjugate: bool) -> MulticolorGS:
        """The same sweeps for Aᵀ: its lower triangle is the transpose of U."""
        turned: dict[Sweep, Sweep] = {"symmetric": "symmetric", "forward": "backward", "backward": "forward"}
        transposed: MulticolorGS = self._with(
            blocks=self._transposed_blocks(conjugate, divides=True), sweep=turned[self.sweep]
        )
        return transposed

    def built_for(self, A: Any) -> MulticolorGS:
        options: dict[str, Any] = {"omega": self.omega, "sweeps": self.sweeps, "block_size": self.blocks.block_size}
        return MulticolorGS(A, self.coloring, sweep=self.sweep, **options)


class MulticolorSGS(MulticolorGS):
    """Multicolor symmetric Gauss-Seidel (SSOR for omega != 1): ``inv(M) = w (2 - w) inv(D + w U) D inv(D + w L)``.

    The triangles L and U are those of A in the order of the colors. For symmetric (or Hermitian) positive definite A,
    M is so too, and fits CG.

    Setup, updates and applications are run-to-run deterministic, unless a coloring that races is asked for; see
    `deterministic`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats, no zero on the diagonal. Not changed, and not needed afterwards.
    coloring : str, AutoColoring, Coloring or array of int, shape (n,)
        A method of `color`, whose colors are then put into the order that promises the fewest iterations; or a coloring
        of A, which is checked, its colors in the order of their numbers. "auto" and an `AutoColoring` choose by
        predicted time; `choice` says what and why.
    omega : float
        Relaxation factor w, 0 < w < 2.
    sweeps : int
        How many symmetric sweeps one application makes.
    dtype : {float32, float64}, or {complex64, complex128} for complex A, optional
        Of the stored triangles; that of A by default. With float32 `pcg` iterates in float32, to the accuracy of
        float64.
    block_size : int, optional
        b from 1 to 9: unknowns b i .. b i + b - 1 belong to node i. For b > 1 the nodes are colored, and D consists of
        the b x b blocks of the diagonal. By default that of the blocks of a BSR matrix, if they are square and small
        enough, and 1 for other formats.
    device : {"cpu", "gpu"}, optional
        "gpu" for a SciPy matrix: vectors stay NumPy arrays, the sweeps run on the GPU.

    Raises
    ------
    TypeError, ValueError
        If A is not a square sparse matrix of finite floats, has a zero or missing diagonal entry or a singular diagonal
        block (names the row), the coloring is not one of A, or another argument is out of range.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import MulticolorSGS, pcg
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
    >>> x, info = pcg(A, np.ones(100), M=MulticolorSGS(A))
    >>> info
    0
    """

    def __init__(
        self,
        A: Matrix,
        coloring: ColoringArgument = "auto",
        *,
        omega: float = 1.0,
        sweeps: int = 1,
        dtype: StoredDType | None = None,
        block_size: int | None = None,
        device: Device | None = None,
    ) -> None:
        super().__init__(
            A,
            coloring,
            omega=omega,
            sweeps=sweeps,
            dtype=dtype,
            block_size=block_size,
            device=device,
        )


def block_size_of(A: Any) -> int:
    """The size of the square blocks of a BSR matrix; 1 for all else, and where blocks are too large."""
    rows, columns = A.blocksize if getattr(A, "format", None) == "bsr" else (1, 1)
    return int(rows) if rows == columns <= LARGEST_BLOCK else 1


def smooth(
    A: Matrix,
    x: Any,
    b: Any,
    sweeps: int = 1,
    *,
    coloring: ColoringArgument = "auto",
    sweep: Sweep = "forward",
    omega: float = 1.0,
    block_size: int | None = None,
    device: Device | None = None,
) -> Any:
    """Return x after so many sweeps of multicolor Gauss-Seidel or SOR on A x = b.

    To smooth again and again with the same A, keep a `MulticolorGS` and call its `smooth`.

    Parameters
    ----------
    A : sparse matrix or array of SciPy or CuPy, shape (n, n)
        Real or complex floats, no zero on the diagonal.
    x, b : array, shape (n,) or (n, 1)
        On the device of A. Not changed.
    sweeps : int
        How many; a symmetric one counts as one.
    coloring, sweep, omega, block_size, device
        As in `MulticolorGS`.

    Returns
    -------
    array, shape (n,)

    Raises
    ------
    TypeError, ValueError
        As `MulticolorGS` and `MulticolorGS.smooth`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from mcprecond import smooth
    >>> A = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(3, 3), format="csr")
    >>> smooth(A, np.zeros(3), np.ones(3), coloring=[0, 1, 0])
    array([0.5, 1. , 0.5])
    """
    M = MulticolorGS(A, coloring, sweep=sweep, omega=omega, sweeps=sweeps, block_size=block_size, device=device)
    return M.smooth(x, b)
