"""Laplacians, the power grid, and matrices from files."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graphs import grid5, spd
from scipy.sparse.csgraph import connected_components

from mcprecond import problems
from mcprecond.problems import files, graphs, placing

STAND_INS = {"G3_circuit", "audikw_1", "Bump_2911", "Queen_4147"}


def host(A, device):
    return A if device == "cpu" else A.get()


def line(n, neighbors):
    return sp.diags_array([neighbors, 0.0, neighbors], offsets=[-1, 0, 1], shape=(n, n)) + sp.eye_array(n)


@pytest.mark.parametrize(
    ("shape", "points"), [((3, 4), None), ((3, 4), 9), ((2, 3, 4), 7), ((2, 3, 4), 27), ((1, 5), 5)]
)
def test_laplacian_is_a_sum_or_a_product_of_lines(device, shape, points):
    A = host(problems.laplacian(shape, points=points, device=device), device).toarray()
    size = int(np.prod(shape))
    if points in (9, 27):
        around = np.eye(1)
        for n in shape:
            around = np.kron(around, line(n, 1.0).toarray())
        expected = points * np.eye(size) - around
    else:
        expected = 2 * len(shape) * np.eye(size)
        for axis, n in enumerate(shape):
            before, after = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
            step = line(n, 1.0).toarray() - np.eye(n)
            expected -= np.kron(np.kron(np.eye(before), step), np.eye(after))
    np.testing.assert_array_equal(A, expected)
    assert np.linalg.eigvalsh(A).min() > 0


def test_laplacian_of_a_cube_is_that_of_the_graphs():
    assert (problems.laplacian((5, 5, 5), points=27) != graphs.grid3d(5, 27)).nnz == 0
    assert (problems.laplacian((6, 6)) != graphs.grid2d(6)).nnz == 0


@pytest.mark.parametrize(
    ("shape", "points", "error"),
    [
        (8, None, TypeError),
        ("33", None, TypeError),
        ((8,), None, ValueError),
        ((2, 0), None, ValueError),
        ((2, 2), 7, ValueError),
        ((2, 2, 2), 9, ValueError),
        ((2, 2.0), 5, TypeError),
        (None, None, TypeError),
        (np.zeros((2, 2)), None, TypeError),
        ((2, 10**30), None, ValueError),
        ((2, 2), 5.0, TypeError),
        ((2, 2), "5", TypeError),
        ((2, "2"), None, TypeError),
        ((2, True), None, TypeError),
    ],
)
def test_bad_laplacians(shape, points, error):
    with pytest.raises(error, match=r"shape|points"):
        problems.laplacian(shape, points=points)


@pytest.mark.parametrize("n", [1, 2, 9, 30])
@pytest.mark.parametrize("seed", [0, 1])
def test_circuit_is_a_grounded_network(device, n, seed):
    A = host(problems.circuit(n, seed=seed, device=device), device)
    assert abs(A - A.T).max() == 0
    assert np.linalg.eigvalsh(A.toarray()).min() > 0
    assert connected_components(A)[0] == 1
    assert (A.diagonal() > 0).all() and (A - sp.diags(A.diagonal())).max() <= 0
    assert (host(problems.circuit(n, seed=seed, device=device), device) != A).nnz == 0


def test_circuit_has_the_sparsity_and_the_range_of_values():
    A = problems.circuit(300, seed=3)
    assert A.nnz / A.shape[0] == pytest.approx(7660826 / 1585478, abs=0.05)
    values = abs(A.data)
    assert values.max() / values.min() > 1e3
    assert (problems.circuit(300, seed=4) != A).nnz > 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 0},
        {"n": 2.0},
        {"n": 10**30},
        {"n": "2"},
        {"n": None},
        {"n": True},
        {"n": 2, "seed": -1},
        {"n": 2, "seed": 1.5},
        {"n": 2, "seed": "x"},
        {"n": 2, "device": "tpu"},
        {"n": 2, "device": None},
        {"n": 2, "device": np.zeros(2)},
    ],
)
def test_bad_circuits(arguments):
    with pytest.raises((TypeError, ValueError), match=r"n must|seed must|device must"):
        problems.circuit(**arguments)


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "hermitian"])
def test_matrix_market_round_trip(tmp_path, suffix, symmetry):
    A = spd(grid5(5), dtype=np.complex128) if symmetry == "hermitian" else problems.circuit(5)
    scipy.io.mmwrite(tmp_path / "a.mtx", A, symmetry=symmetry, precision=17)
    path = tmp_path / f"b{suffix}"
    text = (tmp_path / "a.mtx").read_bytes()
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    B = problems.matrix_market(str(path))
    np.testing.assert_array_equal(B.toarray(), A.toarray())
    assert B.dtype == A.dtype and B.format == "csr" and B.has_canonical_format


def test_pattern_and_repeated_entries(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n2 3 3\n2 3\n1 1\n2 3\n")
    A = problems.matrix_market(path)
    np.testing.assert_array_equal(A.toarray(), [[1.0, 0, 0], [0, 0, 2]])
    assert A.nnz == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not a matrix\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 4.0\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 4.0\n",
        "%%MatrixMarket matrix array real general\n1 1\n4.0\n",
    ],
)
def test_bad_matrix_market_files(tmp_path, text):
    path = tmp_path / "a.mtx"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"a\.mtx (cannot be read|holds)"):
        problems.matrix_market(path)


def test_not_compressed_although_named_so(tmp_path):
    path = tmp_path / "a.mtx.gz"
    path.write_text("%%MatrixMarket")
    with pytest.raises(ValueError, match="cannot be read"):
        problems.matrix_market(path)


def test_npz(tmp_path):
    A = problems.circuit(4)
    sp.save_npz(tmp_path / "a.npz", A.tocoo().astype(np.float32))
    np.testing.assert_array_equal(files.npz(tmp_path / "a.npz").toarray(), A.toarray().astype(np.float32))
    sp.save_npz(tmp_path / "c.npz", (1j * A).astype(np.complex64))
    C = files.npz(tmp_path / "c.npz")
    assert C.dtype == np.complex128 and (C.toarray() == (1j * A).astype(np.complex64).toarray()).all()
    np.savez(tmp_path / "b.npz", a=np.ones(3))
    with pytest.raises(ValueError, match=r"b\.npz cannot be read"):
        files.npz(tmp_path / "b.npz")


@pytest.mark.parametrize("read", [problems.matrix_market, files.npz])
def test_missing_file(tmp_path, read):
    with pytest.raises(FileNotFoundError, match="none"):
        read(tmp_path / "none")


def test_catalog_names_the_published_matrices_in_order_of_size():
    entries = problems.catalog()
    published = [entry.published for entry in entries if entry.published]
    assert published == ["Fenl_50", "audikw_1", "Fenl_100", "G3_circuit", "Bump_2911", "Queen_4147", "Fenl_180"]
    assert [entry.rows for entry in entries] == sorted(entry.rows for entry in entries)


def test_a_stand_in_says_that_it_is_one_and_has_about_the_size():
    entries = {entry.published: entry for entry in problems.catalog() if entry.published}
    assert {name for name, entry in entries.items() if entry.stand_in} == STAND_INS
    for name in STAND_INS:
        entry = entries[name]
        assert f"stand-in for {name} of {entry.published_rows:,} rows" in str(entry)
        assert entry.rows == pytest.approx(entry.published_rows, rel=0.04)
        assert entry.entries == pytest.approx(entry.published_entries, rel=0.05)
    assert str(entries["Fenl_50"]).endswith("entries; Fenl_50")


@pytest.mark.parametrize("call", ["circuit(1259)", "laplacian((1024, 1024))", "fenl(50)", "graphs.rmat"])
def test_catalog_has_the_sizes_right(call):
    (entry,) = (entry for entry in problems.catalog() if entry.call.startswith(call))
    A = entry.matrix()
    assert A.shape == (entry.rows, entry.rows)
    assert A.nnz == pytest.approx(entry.entries, rel=1e-3 if call.startswith(("circuit", "graphs")) else 0)


@pytest.mark.parametrize("n", [3, 7])
def test_sizes_by_formula_are_those_assembled(n):
    from mcprecond.problems.catalog import _elasticity, _fenl

    for entry in (_elasticity(n, "", 0, 0), _elasticity(n, "", 0, 0, "tetrahedra"), _fenl(n)):
        A = entry.matrix()
        assert (A.shape[0], A.nnz) == (entry.rows, entry.entries)


@pytest.mark.gpu
def test_too_many_entries_for_the_gpu(monkeypatch):
    monkeypatch.setattr(placing, "INT32_LIMIT", 64)
    assert problems.laplacian((3, 3), device="gpu").nnz == 33
    with pytest.raises(ValueError, match="64 entries are too many for int32"):
        problems.laplacian((4, 4), device="gpu")
