"""SuiteSparse: from a server of our own, never from the network."""

import io
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.io

from mcprecond import problems


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        self.server.asked.append(self.path)


@pytest.fixture
def collection(tmp_path):
    """A server with the matrix Power/mesh, its address, and what it was asked for."""
    folder = tmp_path / "served" / "Power"
    folder.mkdir(parents=True)
    text = io.BytesIO()
    scipy.io.mmwrite(text, problems.circuit(5), precision=17)
    with tarfile.open(folder / "mesh.tar.gz", "w:gz") as archive:
        for name, content in (("mesh/mesh_b.mtx", b"not this one"), ("mesh/mesh.mtx", text.getvalue())):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    for name, content in (("words", b"not a matrix"), ("array", b"%%MatrixMarket matrix array real general\n1 1\n1\n")):
        with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
            entry = tarfile.TarInfo(f"{name}/{name}.mtx")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    whole = (folder / "mesh.tar.gz").read_bytes()
    (folder / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "other.tar.gz").write_bytes(whole)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "served")))
    server.asked = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", server.asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_downloaded_once(collection, tmp_path, monkeypatch):
    url, asked = collection
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for _ in range(2):
        A = problems.suitesparse("Power/mesh", url=url + "/")
        np.testing.assert_array_equal(A.toarray(), problems.circuit(5).toarray())
    assert len(asked) == 1
    kept = [path.relative_to(tmp_path / "cache").as_posix() for path in (tmp_path / "cache").rglob("*.*")]
    assert kept == ["mcprecond/suitesparse/Power/mesh.mtx"]


def test_no_such_matrix(collection, tmp_path):
    with pytest.raises(ValueError, match="the collection has no matrix 'Power/none'"):
        problems.suitesparse("Power/none", url=collection[0], cache=tmp_path / "cache")


@pytest.mark.parametrize("name", ["Power/cut", "Power/other"])
def test_nothing_is_kept_of_a_bad_archive(collection, tmp_path, name):
    with pytest.raises(ConnectionError, match="cannot be downloaded"):
        problems.suitesparse(name, url=collection[0], cache=tmp_path / "cache")
    assert list((tmp_path / "cache" / "Power").iterdir()) == []


@pytest.mark.parametrize("name", ["words", "array"])
def test_what_cannot_be_read_is_not_kept(collection, tmp_path, name):
    """Nor does it stand in the way of a better one."""
    url, asked = collection
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"/Power/{name}.tar.gz was downloaded and not kept: {name}.mtx "):
            problems.suitesparse(f"Power/{name}", url=url, cache=tmp_path / "cache")
        assert list((tmp_path / "cache" / "Power").iterdir()) == []
    assert len(asked) == 2


@pytest.mark.parametrize("argument", [{"url": None}, {"url": 3}, {"cache": 3}, {"cache": b"x"}])
def test_arguments_of_another_type(argument):
    with pytest.raises(TypeError, match=f"{next(iter(argument))} must be"):
        problems.suitesparse("Power/mesh", **argument)


def test_without_network_the_message_says_what_to_do(tmp_path):
    with pytest.raises(ConnectionError, match=r"cannot be downloaded .*put mesh\.mtx out of it at .*Power"):
        problems.suitesparse("Power/mesh", url="http://127.0.0.1:1", cache=tmp_path)


@pytest.mark.parametrize("name", ["mesh", "../mesh", "Power/../mesh", "Power/mesh/x", "Power/.mesh", "", 3, "P/m?x"])
def test_names_are_of_a_group_and_a_matrix(tmp_path, name):
    with pytest.raises(ValueError, match="name must be"):
        problems.suitesparse(name, cache=tmp_path)
