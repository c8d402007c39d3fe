"""Matrices of the SuiteSparse Matrix Collection, fetched once and kept."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from pathlib import Path

import scipy.sparse as sp

from mcprecond.backends.arguments import shown
from mcprecond.problems.files import matrix_market

URL = "https://suitesparse-collection-website.herokuapp.com/MM"
#: Seconds without a byte before giving up.
PATIENCE = 60


def suitesparse(name: str, *, cache: str | os.PathLike[str] | None = None, url: str = URL) -> sp.csr_matrix:
    """Return a matrix of the SuiteSparse Matrix Collection; the first call downloads it.

    Parameters
    ----------
    name : str
        "Group/Name", as the collection shows it.
    cache : path, optional
        The folder that keeps the files, as ``Group/Name.mtx``; what is there is not downloaded. By default
        ``mcprecond/suitesparse`` in ``$XDG_CACHE_HOME`` or else in ``~/.cache``.
    url : str
        Where the archives are: ``url/Group/Name.tar.gz``.

    Returns
    -------
    scipy.sparse.csr_matrix of float64 or complex128
        As `matrix_market` returns it.

    Raises
    ------
    ValueError
        If the name is not of this form, the collection has no such matrix, it is dense, or its file cannot be read;
        then the file is not kept.
    TypeError
        If url or cache is of another type.
    ConnectionError
        If the file is not there yet and cannot be downloaded; the message says where to put it by hand.

    References
    ----------
    Davis, Hu: The University of Florida Sparse Matrix Collection, ACM TOMS 38, 2011.

    Examples
    --------
    What needs no network:

    >>> import pathlib, tempfile
    >>> from mcprecond import problems
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "HB", "one.mtx")
    ...     path.parent.mkdir()
    ...     _ = path.write_text("%%MatrixMarket matrix coordinate real general\\n1 1 1\\n1 1 4.0\\n")
    ...     A = problems.suitesparse("HB/one", cache=folder)
    >>> A.shape
    (1, 1)
    """
    # No part may begin with a dot, so that the path stays inside of the folder.
    if not isinstance(name, str) or not re.fullmatch(r"[\w-][\w.+-]*/[\w-][\w.+-]*", name, re.ASCII):
        raise ValueError(f"name must be 'Group/Name', such as 'AMD/G3_circuit', got {shown(name)}")
    if not isinstance(url, str):
        raise TypeError(f"url must be a string, got {shown(url)}")
    if cache is not None and not isinstance(cache, str | os.PathLike):
        raise TypeError(f"cache must be the path of a folder or None, got {shown(cache)}")
    path = (default_cache() if cache is None else Path(cache)) / f"{name}.mtx"
    if path.is_file():
        return matrix_market(path)
    return _download(name, f"{url.rstrip('/')}/{name}.tar.gz", path)


def default_cache() -> Path:
    """The folder that keeps matrices unless another one is given."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "mcprecond" / "suitesparse"


def _download(name: str, address: str, path: Path) -> sp.csr_matrix:
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE) as response:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Under its name the file is complete and can be read, whatever happens on the way.
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                part = Path(folder, path.name)
                _unpack(response, f"{path.stem}/{path.name}", part)
                try:
                    A = matrix_market(part)
                except ValueError as error:
                    why = str(error).replace(str(part), path.name)
                    raise ValueError(f"{address} was downloaded and not kept: {why}") from error
                part.replace(path)
                return A
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            raise ValueError(f"the collection has no matrix {name!r} ({address} was not found)") from error
        raise ConnectionError(_by_hand(address, path, error)) from error
    except (OSError, EOFError, zlib.error, tarfile.TarError, http.client.HTTPException) as error:
        raise ConnectionError(_by_hand(address, path, error)) from error


def _by_hand(address: str, path: Path, error: Exception) -> str:
    return f"{address} cannot be downloaded ({error}); fetch it elsewhere and put {path.name} out of it at {path}"


def _unpack(archive: object, member: str, path: Path) -> None:
    """Write one file of an archive while it arrives; others, such as right-hand sides, are left out."""
    with tarfile.open(fileobj=archive, mode="r|gz") as files:  # type: ignore[call-overload]
        for entry in files:
            if entry.name == member and (content := files.extractfile(entry)) is not None:
                with content, path.open("wb") as out:
                    shutil.copyfileobj(content, out)
                return
    raise tarfile.TarError(f"no {member} in the archive")
