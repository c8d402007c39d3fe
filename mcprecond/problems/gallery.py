"""PyAMG's gallery, passed through."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from mcprecond.backends import get_backend
from mcprecond.backends.arguments import describe
from mcprecond.problems.files import canonical
from mcprecond.problems.placing import place_matrix


def gallery(name: str, *args: Any, device: str = "cpu", **options: Any) -> Any:
    """Return a matrix of PyAMG's gallery; needs the extra ``pyamg``.

    Parameters
    ----------
    name : str
        A function of ``pyamg.gallery`` that makes a sparse matrix: "poisson", "linear_elasticity", "stencil_grid",
        "advection_2d", "load_example", "sprand" and others.
    *args, **options
        Of that function.
    device : {"cpu", "gpu"}
        SciPy or CuPy. Assembled on the CPU.

    Returns
    -------
    csr_matrix of SciPy or CuPy
        float64 or complex128, sorted, without repeated entries. Of functions that return more than a
        matrix (near null spaces, a right-hand side) the matrix alone.

    Raises
    ------
    ImportError
        If PyAMG is not installed.
    ValueError
        If the gallery has no such function, it makes no sparse matrix, or the device is unknown or missing.
    TypeError, ValueError
        What the function raises.

    References
    ----------
    Bell, Olson, Schroder, Southworth: PyAMG: Algebraic Multigrid Solvers in Python, JOSS 8(87), 2023.

    Examples
    --------
    >>> from mcprecond import problems
    >>> A = problems.gallery("poisson", (30, 20))
    >>> A.shape, A.nnz
    ((600, 600), 2900)
    """
    backend = get_backend(device)
    try:
        from pyamg import gallery as pyamg_gallery
    except ImportError as error:
        raise ImportError("problems.gallery needs PyAMG; from a clone: pip install '.[pyamg]'") from error
    make = getattr(pyamg_gallery, name, None) if isinstance(name, str) and not name.startswith("_") else None
    if not callable(make):
        known = ", ".join(key for key, value in sorted(vars(pyamg_gallery).items()) if callable(value))
        raise ValueError(f"PyAMG's gallery has no function {describe(name)}; it has {known}")
    found = make(*args, **options)
    if isinstance(found, dict):
        found = found.get("A")
    elif isinstance(found, tuple):
        found = found[0]
    if not sp.issparse(found):
        raise ValueError(f"pyamg.gallery.{name} makes no sparse matrix but {type(found).__name__}")
    return place_matrix(canonical(found), backend)
