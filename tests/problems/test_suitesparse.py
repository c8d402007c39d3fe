"""SuiteSparse: from a server of our own, never from the network."""

import contextlib
import hashlib
import io
import shutil
import sys
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

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
    kept = {path.relative_to(tmp_path / "cache").as_posix() for path in (tmp_path / "cache").rglob("*.*")}
    assert kept == {"mcprecond/suitesparse/Power/mesh.mtx", "mcprecond/suitesparse/Power/mesh.mtx.sha256"}


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_kept_file_is_what_was_downloaded(collection, tmp_path):
    problems.suitesparse("Power/mesh", url=collection[0], cache=tmp_path)
    path = tmp_path / "Power" / "mesh.mtx"
    assert path.with_name("mesh.mtx.sha256").read_text() == f"{digest_of(path)}  mesh.mtx\n"
    path.write_text(path.read_text().replace("\n", "\n% changed\n", 1))
    with pytest.raises(ValueError, match=r"mesh\.mtx is not what was downloaded: its SHA-256 is"):
        problems.suitesparse("Power/mesh", url=collection[0], cache=tmp_path)
    path.with_name("mesh.mtx.sha256").unlink()  # as if it had been put there by hand
    assert problems.suitesparse("Power/mesh", url=collection[0], cache=tmp_path).shape == problems.circuit(5).shape


def test_the_file_with_this_digest_or_none(collection, tmp_path):
    url, asked = collection
    with pytest.raises(ValueError, match=r"downloaded and not kept: the SHA-256 of mesh\.mtx is"):
        problems.suitesparse("Power/mesh", url=url, cache=tmp_path, sha256="0" * 64)
    assert list((tmp_path / "Power").iterdir()) == []
    problems.suitesparse("Power/mesh", url=url, cache=tmp_path)
    digest = digest_of(tmp_path / "Power" / "mesh.mtx")
    for given in (digest, digest.upper()):
        problems.suitesparse("Power/mesh", url=url, cache=tmp_path, sha256=given)
    with pytest.raises(ValueError, match="is not the one that is asked for"):
        problems.suitesparse("Power/mesh", url=url, cache=tmp_path, sha256="0" * 64)
    assert len(asked) == 2


def test_nothing_is_unpacked_that_is_too_large(collection, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["mcprecond.problems.suitesparse"], "MOST_BYTES", 100)
    with pytest.raises(ConnectionError, match=r"mesh/mesh\.mtx in the archive is too large"):
        problems.suitesparse("Power/mesh", url=collection[0], cache=tmp_path)
    assert list((tmp_path / "Power").iterdir()) == []


def test_nothing_is_unpacked_beyond_the_free_space(collection, tmp_path, monkeypatch):
    full = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    with pytest.raises(ConnectionError, match="and 10 are free"):
        problems.suitesparse("Power/mesh", url=collection[0], cache=tmp_path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_a_link_is_not_followed(collection, tmp_path, kind):
    (tmp_path / "secret.mtx").write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 4.0\n")
    with tarfile.open(tmp_path / "served" / "Power" / "link.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("link/link.mtx")
        entry.type, entry.linkname = kind, str(tmp_path / "secret.mtx")
        archive.addfile(entry)
    with pytest.raises(ConnectionError, match="in the archive is not a file"):
        problems.suitesparse("Power/link", url=collection[0], cache=tmp_path / "cache")


def test_https_is_not_given_up(tmp_path, monkeypatch):
    redirected = SimpleNamespace(url="http://elsewhere/mesh.tar.gz")
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: contextlib.nullcontext(redirected))
    with pytest.raises(ConnectionError, match=r"redirected to http://elsewhere/mesh\.tar\.gz, which is not encr"):
        problems.suitesparse("Power/mesh", url="https://here", cache=tmp_path)


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


@pytest.mark.parametrize("argument", [{"url": None}, {"url": 3}, {"cache": 3}, {"cache": b"x"}, {"sha256": 3}])
def test_arguments_of_another_type(argument):
    with pytest.raises(TypeError, match=f"{next(iter(argument))} must be"):
        problems.suitesparse("Power/mesh", **argument)


@pytest.mark.parametrize("digest", ["", "0" * 63, "g" * 64])
def test_what_is_no_digest(digest, tmp_path):
    with pytest.raises(ValueError, match="sha256 must have 64 hexadecimal digits"):
        problems.suitesparse("Power/mesh", cache=tmp_path, sha256=digest)


def test_without_network_the_message_says_what_to_do(tmp_path):
    with pytest.raises(ConnectionError, match=r"cannot be downloaded .*put mesh\.mtx out of it at .*Power"):
        problems.suitesparse("Power/mesh", url="http://127.0.0.1:1", cache=tmp_path)


@pytest.mark.parametrize("name", ["mesh", "../mesh", "Power/../mesh", "Power/mesh/x", "Power/.mesh", "", 3, "P/m?x"])
def test_names_are_of_a_group_and_a_matrix(tmp_path, name):
    with pytest.raises(ValueError, match="name must be"):
        problems.suitesparse(name, cache=tmp_path)
