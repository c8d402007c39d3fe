"""Files that are not what their names say: readers raise ValueError, and the command line says so in one line."""

from __future__ import annotations

import gzip
import io
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from fuzz import matrices
from fuzz.trial import Trial
from mcprecond.problems import matrix_market
from mcprecond.problems.files import npz, vector

#: Bytes that reading a small file may take.
ROOM = 4 << 30
#: What a header may be changed to say.
SIZES = (
    b"-1",
    b"0",
    b"1",
    b"99999999",
    b"999999999999",
    b"9223372036854775807",
    b"9223372036854775808",
    b"1e9",
    b"x",
    b"",
)


def case(t: Trial) -> None:
    with tempfile.TemporaryDirectory() as folder:
        t.one_of(mutated, mutated, mutated, mutated, honest, odd_arrays)(t, Path(folder))


@contextmanager
def room() -> Iterator[None]:
    """So much memory and no more, so that a file that asks for all of it harms nobody."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def written(t: Trial, folder: Path) -> tuple[Path, Any]:
    """A right file: its path, and the matrix or vector in it."""
    dtype, symmetric = t.one_of("float64", "float64", "complex128"), t.chance(0.5)
    A, _ = matrices.dominant(t, dtype, symmetric=symmetric, most=30)
    A = sp.csr_matrix(A.tocsr())
    A.sum_duplicates()
    way = t.one_of("mtx", "mtx", "mtx.gz", "npz", "npy", "vector.mtx")
    path = folder / f"a.{way}"
    t.about(file=way)
    if way == "npz":
        sp.save_npz(path, t.one_of(A, A.tocsc(), A.tocoo(), sp.csr_array(A)), compressed=t.chance(0.5))
        return path, A
    if way in ("npy", "vector.mtx"):
        v = matrices.numbers(t, A.shape[0], dtype)
        if way == "npy":
            np.save(path, v)
        elif not len(v):  # SciPy's writer divides by it, or hangs
            path.write_text("%%MatrixMarket matrix array real general\n0 1\n")
        else:
            scipy.io.mmwrite(path, v[:, None], precision=17)
        return path, v
    text = io.BytesIO()
    kinds = ("general", "symmetric" if dtype == "float64" else "hermitian") if symmetric else ("general",)
    scipy.io.mmwrite(text, A, precision=17, symmetry=t.one_of(*kinds))
    path.write_bytes(gzip.compress(text.getvalue()) if way.endswith("gz") else text.getvalue())
    return path, A


def reader_of(path: Path) -> Callable[[Path], Any]:
    if "vector" in path.name or path.suffix == ".npy":
        return vector
    return npz if path.suffix == ".npz" else matrix_market


def honest(t: Trial, folder: Path) -> None:
    path, expected = written(t, folder)
    with room():
        found = reader_of(path)(path)
    if not expected.shape[0]:
        return  # a file of no entries does not tell what they would be
    if sp.issparse(expected):
        found, expected = found.toarray(), expected.toarray()
    t.equal(np.asarray(found), np.asarray(expected), "a file is not read as it was written")


def mutated(t: Trial, folder: Path) -> None:
    path, _ = written(t, folder)
    content = path.read_bytes()
    packed = path.name.endswith(".gz") and t.chance(0.7)
    if packed:
        content = gzip.decompress(content)
    for _ in range(int(t.rng.integers(1, 4))):
        content = t.one_of(flipped, cut, repeated, other_number, other_number, inserted, other_word)(t, content)
    path.write_bytes(gzip.compress(content) if packed else content)
    if t.chance(0.05):
        path = path.with_name("missing" + "".join(path.suffixes))
    told = {"content": repr(content[:120])}
    try:
        with room():
            found = reader_of(path)(path)
    except (ValueError, FileNotFoundError, MemoryError) as error:
        t.check(
            str(path) in str(error) or path.name in str(error),
            "the message does not name the file",
            message=str(error)[:200],
            **told,
        )
        t.check(path.exists() or isinstance(error, FileNotFoundError), "a missing file is not told", **told)
    else:
        t.check(sp.issparse(found) or isinstance(found, np.ndarray), "a reader returns something else", **told)
        if sp.issparse(found):
            good = (
                found.indptr[0] == 0
                and (np.diff(found.indptr) >= 0).all()
                and found.indptr[-1] == len(found.indices) == len(found.data)
            )
            t.check(good and found.ndim == 2, "a reader returns a matrix with wrong row offsets", **told)
            inside = not len(found.indices) or (found.indices.min() >= 0 and found.indices.max() < found.shape[1])
            t.check(inside, "a reader returns a matrix with columns outside of it", **told)
    if t.chance(0.3):
        command_line(t, path, told)


def flipped(t: Trial, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(int(t.rng.integers(1, 5))):
        if changed:
            changed[t.rng.integers(len(changed))] = int(t.rng.integers(256))
    return bytes(changed)


def cut(t: Trial, content: bytes) -> bytes:
    return content[: int(t.rng.integers(0, len(content) + 1))]


def repeated(t: Trial, content: bytes) -> bytes:
    begin = int(t.rng.integers(0, len(content) + 1))
    return content + content[begin:]


def inserted(t: Trial, content: bytes) -> bytes:
    place = int(t.rng.integers(0, len(content) + 1))
    return content[:place] + t.rng.bytes(int(t.rng.integers(1, 20))) + content[place:]


def other_number(t: Trial, content: bytes) -> bytes:
    """A word of the first lines, which say how large all is, becomes another number."""
    lines = content.split(b"\n")
    k = int(t.rng.integers(min(len(lines), 5)))
    words = lines[k].split(b" ")
    words[int(t.rng.integers(len(words)))] = t.one_of(*SIZES)
    lines[k] = b" ".join(words)
    return b"\n".join(lines)


def other_word(t: Trial, content: bytes) -> bytes:
    pairs = (
        (b"real", b"complex"),
        (b"complex", b"real"),
        (b"coordinate", b"array"),
        (b"array", b"coordinate"),
        (b"general", b"hermitian"),
        (b"symmetric", b"skew-symmetric"),
        (b"real", b"pattern"),
        (b"real", b"integer"),
        (b"csr", b"csc"),
        (b"csr", b"bsr"),
        (b"<f8", b"|O"),
        (b"<f8", b"<i2"),
        (b"<i4", b"<f4"),
        (b"False", b"True"),
    )
    old, new = t.one_of(*pairs)
    return content.replace(old, new, 1)


def odd_arrays(t: Trial, folder: Path) -> None:
    """Archives and arrays that are right by themselves, and no matrix or vector."""
    A, _ = matrices.dominant(t, "float64", symmetric=True, most=20)
    A = sp.csr_matrix(A.tocsr())
    fields: dict[str, Any] = {
        "format": "csr",
        "shape": np.array(A.shape),
        "data": A.data,
        "indices": A.indices,
        "indptr": A.indptr,
    }
    n = A.shape[0]
    changes: dict[str, Any] = {
        "one dimension": {"shape": np.array([n])},
        "three": {"shape": np.array([n, n, 1])},
        "negative": {"shape": np.array([-1, n])},
        "large": {"shape": np.array([2**40, 2**40])},
        "no format": {"format": "xyz"},
        "offsets": {"indptr": A.indptr[::-1].copy()},
        "columns": {"indices": A.indices + n},
        "negative columns": {"indices": A.indices - 1},
        "text": {"data": np.array(["x"] * A.nnz)},
        "not square": {"shape": np.array([n, n + 1])},
        "last offset": {"indptr": np.r_[A.indptr[:-1], A.indptr[-1] + 1000].astype(A.indptr.dtype)},
        "float columns": {"indices": A.indices + 0.5},
        "two-dimensional": {"data": A.data[:, None]},
    }
    path = folder / "a.npz"
    if t.chance(0.7):
        wrong = t.one_of(*changes)
        np.savez(path, **(fields | changes[wrong]))
        reader: Callable[[Path], Any] = npz
    else:
        path = folder / "a.npy"
        arrays = {
            "objects": np.array([None, 1]),
            "text": np.array(["a", "b"]),
            "matrix": np.ones((3, 2)),
            "scalar": np.array(1.0),
            "records": np.zeros(3, "f8,i4"),
        }
        wrong = t.one_of(*arrays)
        np.save(path, arrays[wrong], allow_pickle=True)
        reader = vector
    t.about(file=path.name, wrong=wrong)
    # Whoever takes a vector looks at its shape and dtype.
    may_be_read = wrong in ("not square", "large", "float columns", "scalar", "records", "text") or n == 0
    try:
        with room():
            found = reader(path)
    except (ValueError, FileNotFoundError, MemoryError):
        t.check(True, "")
    else:
        t.check(may_be_read, "what is no matrix or vector is read as one", found=repr(found)[:80])
    command_line(t, path, {})


def command_line(t: Trial, path: Path, told: dict[str, Any]) -> None:
    """Exit code 0, 1 or 2, and for 2 one line."""
    try:
        from mcprecond import cli
        from mcprecond.cli import terminal
    except ImportError:  # no rich
        return
    matrix = path.parent / "good.mtx"
    if not matrix.exists():
        scipy.io.mmwrite(matrix, sp.csr_matrix(sp.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(9, 9))))
    commands = {
        "color": ["color", str(path)],
        "solve": ["solve", str(path), "--coloring", "greedy", "--maxiter", "50"],
        "rhs": ["solve", str(matrix), "--coloring", "greedy", "--rhs", str(path)],
    }
    name = t.one_of(*commands)
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    consoles = terminal.out.file, terminal.err.file
    try:
        sys.argv = ["mcprecond", *commands[name]]
        with redirect_stdout(out), redirect_stderr(err), room():
            terminal.out.file, terminal.err.file = out, err
            code: Any = 0
            try:
                cli.main()
            except SystemExit as end:
                code = end.code
    finally:
        sys.argv = before
        terminal.out.file, terminal.err.file = consoles
    lines = [line for line in err.getvalue().splitlines() if line.strip()]
    t.check(code in (0, 1, 2, None), "the command line ends otherwise", code=code, command=name, **told)
    t.check(code != 2 or len(lines) == 1, "bad input takes not one line", lines=lines[:3], command=name, **told)
