"""Studies on real matrices: files in their formats, what becomes of them, and PyAMG's own."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graphs import grid5

from benchmarks.papers import __main__ as command
from benchmarks.papers import real_matrices, studies
from benchmarks.papers.real_matrices import fitting, graph_of, is_definite, readers_of, system_of

GRID = grid5(6)
WIND = sp.csr_matrix(GRID + sp.diags([0.5], [2], shape=GRID.shape))


def text_of(A: sp.spmatrix, **options) -> bytes:
    stream = io.BytesIO()
    scipy.io.mmwrite(stream, A, **options)
    return stream.getvalue()


@pytest.fixture
def folder(tmp_path):
    """A folder like one that was filled by hand: each format, an archive with a right-hand side, and no matrices."""
    (tmp_path / "general.mtx").write_bytes(text_of(WIND, symmetry="general"))
    (tmp_path / "whole.mtx").write_bytes(text_of(GRID.astype(np.int64), symmetry="symmetric"))
    (tmp_path / "pattern.mtx").write_bytes(text_of(sp.triu(WIND), field="pattern", symmetry="general"))
    (tmp_path / "rectangular.mtx").write_bytes(text_of(GRID[:5], symmetry="general"))
    (tmp_path / "zipped.mtx.gz").write_bytes(gzip.compress(text_of(2 * GRID, symmetry="symmetric")))
    (tmp_path / "negative.mtx").write_bytes(text_of(-GRID, symmetry="symmetric"))
    (tmp_path / "saddle.mtx").write_bytes(text_of(GRID - 3 * sp.eye(36), symmetry="symmetric"))
    (tmp_path / "torn.mtx").write_bytes(b"%%MatrixMarket matrix coordinate real general\n2 2 9\n1 1 1.0\n")
    (tmp_path / "notes.txt").write_text("no matrix")
    (tmp_path / "Group").mkdir()
    with tarfile.open(tmp_path / "Group" / "packed.tar.gz", "w:gz") as archive:
        for name, content in (("packed_b", text_of(np.ones((36, 1)))), ("packed", text_of(GRID, symmetry="symmetric"))):
            entry = tarfile.TarInfo(f"packed/{name}.mtx")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return tmp_path


def test_files_are_read_in_their_formats(folder):
    read = {name: reader for name, reader in readers_of(folder).items() if name != "torn"}
    found = {name: reader() for name, reader in read.items()}
    expected = {"general": WIND, "whole": GRID, "zipped": 2 * GRID, "packed": GRID, "negative": -GRID}
    for name, A in expected.items():
        np.testing.assert_array_equal(found[name].toarray(), A.toarray())
    assert {*found} == {*expected, "pattern", "rectangular", "saddle"}
    assert (found["pattern"].data == 1).all()


def test_graphs_have_the_pattern_of_both_triangles(folder):
    told = []
    found = fitting(readers_of(folder), graph_of, told.append)
    assert {*found} == {"general", "whole", "zipped", "packed", "negative", "pattern", "saddle"}
    assert [message.split(":")[0] for message in told] == ["rectangular is left out", "torn is left out"]
    for name in ("general", "pattern"):
        np.testing.assert_array_equal(found[name]().toarray(), (WIND + WIND.T != 0).toarray())


def test_solvers_get_what_is_positive_definite_and_say_what_is_not(folder):
    told = []
    found = fitting(readers_of(folder), system_of, told.append)
    assert {*found} == {"whole", "zipped", "packed"}
    why = dict(message.split(" is left out: ") for message in told)
    assert why["general"] == "it is not symmetric" and "not square" in why["rectangular"]
    assert why["negative"] == why["saddle"] == "it is not positive definite" and "pattern" in why["pattern"]
    assert "cannot be read" in why["torn"] and len(why) == 6
    with pytest.raises(ValueError, match="complex"):
        system_of(sp.csr_matrix(1j * GRID))
    assert not is_definite(sp.csr_matrix(np.ones((2, 2)))) and is_definite(GRID)
    with pytest.raises(ValueError, match="none of these matrices fits the study: general"):
        fitting({"general": lambda: WIND}, system_of, None)


def test_folders_without_a_matrix_or_with_two_of_a_name_are_refused(folder):
    with pytest.raises(ValueError, match="no folder with files"):
        readers_of(folder / "nowhere")
    (folder / "Group" / "whole.mtx").write_bytes(text_of(GRID))
    with pytest.raises(ValueError, match="two matrices called whole"):
        readers_of(folder)


def test_an_archive_without_its_matrix_is_said_to_be_one(folder):
    (folder / "Group" / "packed.tar.gz").rename(folder / "other.tar.gz")
    with pytest.raises(ValueError, match=r"other.tar.gz cannot be read: no other/other.mtx"):
        readers_of(folder)["other"]()


def test_pyamg_ships_matrices():
    pytest.importorskip("pyamg")
    readers, told = readers_of("pyamg"), []
    assert len(fitting(readers, graph_of, None)) == len(real_matrices.IN_PYAMG)
    found = fitting(readers, system_of, told.append)
    assert {*found} == {f"pyamg {n}" for n in ("airfoil", "bar", "knot", "local_disc_galerkin_diffusion", "unit_cube")}
    assert len(told) == 3  # one is complex, one unsymmetric, one singular


@pytest.mark.nightly
def test_every_study_with_stand_ins_takes_the_matrices_of_a_folder(folder, monkeypatch, capsys):
    monkeypatch.setattr(studies, "REPEATS", 1)
    output = folder / "results"
    called = [
        "benchmarks.papers",
        "--matrices",
        str(folder),
        "--matrix",
        "whole",
        "--matrix",
        "zip",
        "--output",
        str(output),
    ]
    monkeypatch.setattr(sys, "argv", called)
    command.main()
    there = {path.name: json.loads(path.read_text())["cases"] for path in output.glob("*.json")}
    assert {*there} == {f"{name}-cpu-matrices.json" for name in studies.ON_MATRICES}
    for rows in there.values():
        assert {row["matrix"] for row in rows} == {"whole", "zipped"} and all(row["verified"] for row in rows)
    monkeypatch.setattr(sys, "argv", ["benchmarks.papers", "multigrid", "--matrices", str(folder)])
    with pytest.raises(SystemExit):
        command.main()
    assert "multigrid makes its own matrices" in capsys.readouterr().err


def test_neighborhoods_that_are_huge_go_without_two_methods(monkeypatch):
    monkeypatch.setattr(studies, "HUGE", 30)
    monkeypatch.setattr(studies, "REPEATS", 1)
    star = sp.csr_matrix((np.ones(40), (np.zeros(40, int), np.arange(40))), shape=(40, 40))
    setting = studies.Setting(readers={"star": lambda: star, "grid": lambda: GRID})
    methods = {(row["matrix"], row["method"]) for row in setting.by_all_methods("a study", setting.graphs()).rows}
    assert not {("star", "is_hash"), ("star", "gm")} & methods and ("star", "eb") in methods
    assert ("grid", "is_hash") in methods and ("grid", "gm") in methods
