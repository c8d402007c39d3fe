"""Matrices of the SuiteSparse Matrix Collection, fetched once and kept."""

from __future__ import annotations

import hashlib
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
from typing import Any

import scipy.sparse as sp

from mcprecond.backends.arguments import describe
from mcprecond.problems.files import matrix_market

URL = "https://suitesparse-collection-website.herokuapp.com/MM"
#: Seconds without a byte before giving up.
PATIENCE = 60
#: A matrix file, and what comes before it in its archive, may have so many bytes; those of the collection have less. A
#: small archive may be made to expand without end.
MOST_BYTES = 100 * 2**30


def suitesparse(
    name: str, *, cache: str | os.PathLike[str] | None = None, url: str = URL, sha256: str | None = None
) -> sp.csr_matrix:
    """Return a matrix of the SuiteSparse Matrix Collection; the first call downloads it.

    Parameters
    ----------
    name : str
        "Group/Name", as the collection shows it.
    cache : path, optional
        The folder that keeps the files, as ``Group/Name.mtx``; what is there is not downloaded. By default
        ``mcprecond/suitesparse`` in ``$XDG_CACHE_HOME`` or else in ``~/.cache``.
    url : str
        Where the archives are: ``url/Group/Name.tar.gz``. A download by https is not redirected to plain http.
    sha256 : str, optional
        The SHA-256 of ``Name.mtx``, 64 hexadecimal digits, where it is known; another file is refused.

    Returns
    -------
    scipy.sparse.csr_matrix of float64 or complex128
        As `matrix_market` returns it.

    Raises
    ------
    ValueError
        If the name is not of this form, the collection has no such matrix, it is dense, or its file cannot be read;
        then the file is not kept. If the file in the folder is another one than was downloaded: its SHA-256 is kept
        beside it, as ``Group/Name.mtx.sha256``. A file that was put there by hand has none. If it is not the file whose
        SHA-256 is given.
    TypeError
        If url, cache or sha256 is of another type.
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
        raise ValueError(f"name must be 'Group/Name', such as 'AMD/G3_circuit', got {describe(name)}")
    if not isinstance(url, str):
        raise TypeError(f"url must be a string, got {describe(url)}")
    if cache is not None and not isinstance(cache, str | os.PathLike):
        raise TypeError(f"cache must be the path of a folder or None, got {describe(cache)}")
    if sha256 is not None and not isinstance(sha256, str):
        raise TypeError(f"sha256 must be a string or None, got {describe(sha256)}")
    if sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must have 64 hexadecimal digits, got {describe(sha256)}")
    path = (default_cache() if cache is None else Path(cache)) / f"{name}.mtx"
    if path.is_file():
        _check_kept(path, sha256)
        return matrix_market(path)
    return _download(name, f"{url.rstrip('/')}/{name}.tar.gz", path, sha256)


def default_cache() -> Path:
    """The folder that keeps matrices unless another one is given."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "mcprecond" / "suitesparse"


def _digest_file(path: Path) -> Path:
    """Beside the matrix, in the form that `sha256sum --check` reads."""
    return path.with_name(f"{path.name}.sha256")


def _check_kept(path: Path, sha256: str | None) -> None:
    """Raise ValueError if a file is not what was downloaded, or not what the caller expects."""
    expected = {} if sha256 is None else {"the one that is asked for": sha256.lower()}
    if _digest_file(path).is_file():
        expected["what was downloaded"] = _digest_file(path).read_text().partition(" ")[0]
    if not expected:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    for what, digest in expected.items():
        if digest != found:
            raise ValueError(
                f"{path} is not {what}: its SHA-256 is {found}, and not {digest}; remove it and {path.name}.sha256, "
                "and the next call downloads it"
            )


def _download(name: str, address: str, path: Path, sha256: str | None) -> sp.csr_matrix:
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE) as response:
            if address.startswith("https:") and not response.url.startswith("https:"):
                raise OSError(f"it is redirected to {response.url}, which is not encrypted")
            path.parent.mkdir(parents=True, exist_ok=True)
            # Under its name the file is complete and can be read, whatever happens on the way.
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                part = Path(folder, path.name)
                digest = unpack(response, f"{path.stem}/{path.name}", part)
                try:
                    if sha256 is not None and digest != sha256.lower():
                        raise ValueError(f"the SHA-256 of {path.name} is {digest}, and not {sha256.lower()}")
                    A = matrix_market(part)
                except ValueError as error:
                    why = str(error).replace(str(part), path.name)
                    raise ValueError(f"{address} was downloaded and not kept: {why}") from error
                # The digest comes first: a matrix never stands there without one.
                noted = _digest_file(part)
                noted.write_text(f"{digest}  {path.name}\n")
                noted.replace(_digest_file(path))
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


def unpack(archive: Any, member: str, path: Path) -> str:
    """Write one file of an archive while it arrives, and return its SHA-256; others, such as right-hand sides, are left
    out.
    """
    free, passed = shutil.disk_usage(path.parent).free, 0
    with tarfile.open(fileobj=archive, mode="r|gz") as files:
        for entry in files:
            passed += entry.size
            if passed > MOST_BYTES:
                raise tarfile.TarError(f"{entry.name} in the archive is too large, of {entry.size} bytes")
            if entry.name != member:
                continue
            if not entry.isreg() or (content := files.extractfile(entry)) is None:
                raise tarfile.TarError(f"{member} in the archive is not a file")
            if entry.size > free:
                raise tarfile.TarError(f"{member} has {entry.size} bytes, and {free} are free")
            digest = hashlib.sha256()
            with content, path.open("wb") as out:
                while chunk := content.read(2**20):
                    digest.update(chunk)
                    out.write(chunk)
            if path.stat().st_size != entry.size:
                raise tarfile.TarError(f"{member} is cut off")
            return digest.hexdigest()
    raise tarfile.TarError(f"no {member} in the archive")
