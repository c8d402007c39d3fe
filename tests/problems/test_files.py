"""Files that are cut off, changed, or made to do harm: one line that says what is wrong, and no traceback."""

from __future__ import annotations

import errno
import gzip
import io
import os
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graphs import grid5, spd

from mcprecond.problems.files import columns, matrix_market, npz, vector
from mcprecond.studies.whole_files import write_whole

BANNER = b"%%MatrixMarket matrix coordinate real general\n"
GREAT = 10**12


def saved(save, *arrays, **named) -> bytes:
    stream = io.BytesIO()
    save(stream, *arrays, **named)
    return stream.getvalue()


def header(shape, descr: str = "<f8") -> bytes:
    """The beginning of a .npy file, and eight bytes of its array."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"shape": shape, "fortran_order": False, "descr": descr})
    return stream.getvalue() + b"\0" * 8


def changed_npz(**members: bytes) -> bytes:
    """A file of save_npz with other members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(sp.save_npz, grid5(4)))) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            new.writestr(name, members.get(name.removesuffix(".npy"), old.read(name)))
    return stream.getvalue()


#: By name: the file's content, and a word of the complaint.
BAD = {
    "empty.mtx": (b"", "Missing banner"),
    "no-banner.mtx": (b"1 1 1\n1 1 1\n", "Missing banner"),
    "rows.mtx": (BANNER + b"%d 1 1\n1 1 1\n" % GREAT, "Unable to allocate"),
    "entries.mtx": (BANNER + b"3 3 %d\n1 1 1\n" % GREAT, "Unable to allocate"),
    "huge.mtx": (BANNER + b"3 3 %d\n1 1 1\n" % 10**30, "out of range"),
    "negative.mtx": (BANNER + b"-3 3 1\n1 1 1\n", "negative"),
    "sizes.mtx": (BANNER + b"3 3\n1 1 1\n", "Invalid integer"),
    "cut.mtx": (BANNER + b"3 3 3\n1 1 1\n", "cannot be read"),
    "outside.mtx": (BANNER + b"3 3 1\n4 4 1\n", "cannot be read"),
    "half-a-number.mtx": (BANNER + b"3 3 3\n1 1 1\n2 2 1.5E-", "cannot be read"),
    "latin.mtx": (BANNER + b"3 3 1\n\xff\xe9 1 1\n", "cannot be read"),
    "zero.mtx": (BANNER + b"2 2 1\n1 1 1.\0\0\0\0e\n", "it holds a zero byte"),
    "zero.mtx.gz": (gzip.compress(BANNER + b"2 2 1\n1 1 1.\0\0\0\0e\n"), "it holds a zero byte"),
    "dense.mtx": (b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", "dense"),
    "great-dense.mtx": (b"%%%%MatrixMarket matrix array real general\n%d 1\n1\n" % GREAT, "Unable to allocate"),
    "not-packed.mtx.gz": (BANNER + b"1 1 1\n1 1 1\n", "Not a gzipped file"),
    "cut.mtx.gz": (gzip.compress(BANNER + b"1 1 1\n1 1 1\n")[:-12], "ended before"),
    "entries.mtx.gz": (gzip.compress(BANNER + b"3 3 %d\n1 1 1\n" % GREAT), "Unable to allocate"),
    "empty.npz": (b"", "cannot be read"),
    "text.npz": (b"hello", "cannot be read"),
    "one-dimension.npz": (saved(sp.save_npz, sp.coo_array(np.ones(3))), "shape (3,), and a matrix has two"),
    "great.npz": (changed_npz(data=header((GREAT,))), "Unable to allocate"),
    "objects.npz": (changed_npz(data=header((1,), "|O")), "Object arrays cannot be loaded"),
    "great-shape.npz": (changed_npz(shape=saved(np.save, np.array([GREAT, GREAT]))), "cannot be read"),
    "format.npz": (changed_npz(format=saved(np.save, np.array(b"xyz"))), "cannot be read"),
    "outside.npz": (changed_npz(indices=saved(np.save, np.full(64, 1000))), "cannot be read"),
    "below.npz": (changed_npz(indices=saved(np.save, np.full(64, -1))), "cannot be read"),
    "falling.npz": (changed_npz(indptr=saved(np.save, np.arange(17)[::-1].copy())), "cannot be read"),
    "words.npz": (changed_npz(data=saved(np.save, np.full(64, "a"))), "cannot be read"),
    "plain.npz": (saved(np.savez, a=np.ones(3)), "cannot be read"),
}
BAD_VECTORS = {
    "empty.npy": (b"", "cannot be read as a vector"),
    "text.npy": (b"1 2 3", "cannot be read as a vector"),
    "archive.npy": (saved(np.savez, a=np.ones(3)), "cannot be read as a vector"),
    "objects.npy": (saved(np.save, np.array([None, 1])), "Object arrays cannot be loaded"),
    "great.npy": (header((GREAT,)), "Unable to allocate"),
    "cut.npy": (saved(np.save, np.ones(16))[:-8], "could only read 15 elements"),
    "cube.npy": (saved(np.save, np.ones((4, 2, 2))), "shape (4, 2, 2), and a vector has one"),
    "wide.npy": (saved(np.save, np.ones((2, 8))), "holds 8 columns; a vector has one"),
    "short.npy": (saved(np.save, np.ones(3)), "b must have shape (16,), got (3,)"),
    "words.npy": (saved(np.save, np.full(16, "a")), "b must hold"),
    "rows.mtx": (
        b"%%%%MatrixMarket matrix array real general\n%d 1\n1\n" % GREAT,
        "Unable to allocate",
    ),
    "skew.mtx": (
        b"%%MatrixMarket matrix array complex skew-symmetric\n1 1\n0.5 0.5\n",
        "takes 0 numbers, and it has 1",
    ),
    "half.mtx": (b"%%MatrixMarket matrix array real symmetric\n2 2\n1\n", "takes 3 numbers, and it has 1"),
    "b.txt": (b"1", "its name must end in .npy, .mtx or .mtx.gz"),
}


def is_refusal(answer: tuple[int, str, str]) -> str:
    """Exit code 2, nothing on stdout, one line on stderr, which is returned."""
    code, said, complaint = answer
    assert (code, said) == (2, "") and complaint.startswith("mcprecond: ") and complaint.count("\n") == 1, answer
    return complaint


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "hermitian", "skew-symmetric"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_arrays_of_all_symmetries_are_read(tmp_path, n, symmetry):
    X = np.random.default_rng(n).uniform(-1, 1, (n, n)) + (1j if symmetry == "hermitian" else 0) * np.tri(n, n, -1)
    adjoint = {"general": 0, "symmetric": X.T, "hermitian": X.conj().T, "skew-symmetric": -X.T}[symmetry]
    X = X + adjoint
    scipy.io.mmwrite(tmp_path / "X.mtx", X, comment="two\nlines", precision=17, symmetry=symmetry)
    np.testing.assert_array_equal(columns(tmp_path / "X.mtx"), X)


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_one_line(here, tmp_path, name):
    content, word = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)
    complaint = is_refusal(here("color", path))
    assert str(path) in complaint and word in complaint


@pytest.mark.parametrize("name", BAD_VECTORS)
def test_bad_vectors_are_refused_in_one_line(here, tmp_path, name):
    content, word = BAD_VECTORS[name]
    (tmp_path / name).write_bytes(content)
    sp.save_npz(tmp_path / "A.npz", spd(grid5(4)))
    assert word in is_refusal(here("solve", tmp_path / "A.npz", "--rhs", tmp_path / name))


def test_folders_and_files_that_may_not_be_read_or_written(here, tmp_path, monkeypatch):
    folder = tmp_path / "a.mtx"
    folder.mkdir()
    assert "is a folder, not a file" in is_refusal(here("color", folder))
    sp.save_npz(tmp_path / "A.npz", spd(grid5(4)))
    (tmp_path / "x.npy").mkdir()
    assert "cannot be written" in is_refusal(here("solve", tmp_path / "A.npz", "--output", tmp_path / "x.npy"))
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)  # root may do all
    assert "cannot be written" in is_refusal(here("solve", tmp_path / "A.npz", "--output", tmp_path / "y.npy"))

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied", "A.npz")

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    assert "Permission denied" in is_refusal(here("color", tmp_path / "A.npz"))


def test_a_disk_that_is_full(here, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    sp.save_npz(tmp_path / "A.npz", spd(grid5(40)))
    (tmp_path / "x.npy").symlink_to("/dev/full")
    code, _, complaint = here("solve", tmp_path / "A.npz", "--output", tmp_path / "x.npy")
    assert code == 2 and complaint.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("bogus",),
        ("solve",),
        ("--bogus",),
        ("solve", "FILE", "--rtol", "x"),
        ("solve", "FILE", "--rtol", "nan"),
        ("solve", "FILE", "--maxiter", "1.5"),
        ("solve", "FILE", "--maxiter", "-1"),
        ("color", "FILE", "--recolor", "-1"),
        ("color", "FILE", "--distance", "x"),
        ("fenl", "--n", "-3"),
        ("fenl", "--n", "x"),
        ("fenl", "--n", "100000000"),
        ("study", "bogus"),
        ("info", "--bogus"),
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_refused_in_one_line(here, tmp_path, arguments):
    sp.save_npz(tmp_path / "A.npz", spd(grid5(4)))
    is_refusal(here(*(tmp_path / "A.npz" if argument == "FILE" else argument for argument in arguments)))


def test_without_a_command_there_is_help(here):
    code, said, _ = here()
    assert code == 2 and "usage" in said and "solve" in said


def good_files() -> dict[str, bytes]:
    A = spd(grid5(4))
    text = saved(scipy.io.mmwrite, A)
    return {
        "a.mtx": text,
        "symmetric.mtx": saved(scipy.io.mmwrite, A, symmetry="symmetric"),
        "complex.mtx": saved(scipy.io.mmwrite, A.astype(complex)),
        "a.mtx.gz": gzip.compress(text, mtime=0),
        "a.npz": saved(sp.save_npz, A),
        "plain.npz": saved(sp.save_npz, A, compressed=False),
        "coo.npz": saved(sp.save_npz, A.tocoo(), compressed=False),
        "dia.npz": saved(sp.save_npz, sp.dia_matrix(A), compressed=False),
        "bsr.npz": saved(sp.save_npz, A.tobsr((2, 2)), compressed=False),
        "csc.npz": saved(sp.save_npz, A.tocsc(), compressed=False),
        "b.npy": saved(np.save, np.ones(16)),
        "b.mtx": saved(scipy.io.mmwrite, np.ones((16, 1))),
    }


def mutated(rng: np.random.Generator, content: bytes) -> bytes:
    """Cut off, or with some bytes changed, left out, or put in; of a compressed file mostly what is inside."""
    packed = content[:2] == b"\x1f\x8b" and rng.random() < 0.7
    data = bytearray(gzip.decompress(content) if packed else content)
    for _ in range(rng.integers(1, 5)):
        at, kind = int(rng.integers(0, len(data) + 1)), rng.integers(0, 6)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at : at + int(rng.integers(1, 20))]
        elif kind == 2:
            data[at : at + 1] = bytes(rng.integers(0, 256, 1, dtype=np.uint8))
        elif kind == 3:
            data[at:at] = bytes(rng.choice(list(b"0123456789-+.eE \n%nai"), int(rng.integers(1, 12))).astype(np.uint8))
        elif kind == 4:
            data[at : at + 1] = bytes(rng.choice(list(b"0123456789- \n"), 1).astype(np.uint8))
        else:
            data[at : at + 8] = int(rng.choice([0, -1, 2**31, 2**32, 2**62, -(2**62)])).to_bytes(
                8, "little", signed=True
            )
    return gzip.compress(bytes(data), mtime=0) if packed else bytes(data)


def read_and_checked(path) -> None:
    """What can be read is well-formed, whatever else it is."""
    found = vector(path) if path.name[0] == "b" and path.suffix != ".npz" else None
    if found is None:
        found = npz(path) if path.suffix == ".npz" else matrix_market(path)
        found.check_format(full_check=True)
        assert found.has_canonical_format and found.ndim == 2
    else:
        assert found.ndim == 1


@pytest.mark.parametrize("name", good_files())
def test_changed_files_are_read_or_refused(tmp_path, name):
    content, path = good_files()[name], tmp_path / name
    path.write_bytes(content)
    read_and_checked(path)
    rng = np.random.default_rng(sum(name.encode()))
    for _ in range(150):
        path.write_bytes(mutated(rng, content))
        complaint = ""
        try:
            read_and_checked(path)
        except (ValueError, MemoryError) as error:
            complaint = str(error)
        assert not complaint or (str(path) in complaint and "\n" not in complaint)


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "plain.npz"])
def test_changed_files_on_the_command_line(here, tmp_path, name):
    content, path = good_files()[name], tmp_path / name
    rng = np.random.default_rng(1)
    for k in range(30):
        path.write_bytes(mutated(rng, content))
        code, _, complaint = here(*(("color", path) if k % 2 else ("solve", path, "--maxiter", 5)))
        assert code in (0, 1, 2) and complaint.count("\n") == (code == 2)


def output_commands(folder) -> dict[str, tuple[str, ...]]:
    """Commands that write a file, by its name."""
    A = str(folder / "A.npz")
    return {
        "x.npy": ("solve", A, "--output"),
        "x.mtx": ("solve", A, "--output"),
        "colors.txt": ("color", A, "--output"),
        "colors.npy": ("color", A, "--output"),
        "A.png": ("plot", A, "--output"),
    }


@pytest.mark.parametrize("name", ["x.npy", "x.mtx", "colors.txt", "colors.npy", "A.png"])
def test_outputs_are_written_whole_or_not_at_all(here, tmp_path, monkeypatch, name):
    """A link stays one, and leads to the new file."""
    if name == "A.png":
        pytest.importorskip("matplotlib")
    sp.save_npz(tmp_path / "A.npz", spd(grid5(8)))
    (tmp_path / "kept").mkdir()
    target = tmp_path / "kept" / name
    target.write_bytes(b"old")
    (tmp_path / name).symlink_to(target)
    command = (*output_commands(tmp_path)[name], tmp_path / name)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:  # when all is written
        patched.setattr("pathlib.Path.replace", full)
        assert "No space left" in is_refusal(here(*command))
    assert target.read_bytes() == b"old" and [file.name for file in target.parent.iterdir()] == [name]
    assert here(*command)[0] == 0
    assert target.read_bytes() != b"old" and [file.name for file in target.parent.iterdir()] == [name]
    assert (tmp_path / name).is_symlink()


def test_a_file_in_a_folder_that_cannot_be_written_is_written_in_place(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda where, mode, **_: str(where) != str(tmp_path))
    with write_whole(path) as part:
        assert part == path
