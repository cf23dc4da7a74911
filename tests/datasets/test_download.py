"""Downloads from a local server, the only one they were ever tried on; nothing unverified is kept."""

import gzip
import http.server
import threading

import pytest
import tiny_images
from altering import altered

from p2p_labeldp import datasets
from p2p_labeldp.datasets import catalogue, download
from p2p_labeldp.errors import ConfigurationError, TransportError


class Served(http.server.BaseHTTPRequestHandler):
    """Answers from the server's table of contents."""

    def do_GET(self):
        content = self.server.contents.get(self.path.lstrip("/"))
        self.server.asked.append(self.path)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write((content or b"")[: self.server.cut])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """Serves what is put into ``contents``; its address is ``url``."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served) as served:
        served.contents, served.asked, served.cut = {}, [], None
        served.url = f"http://127.0.0.1:{served.server_port}/"
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def offer_mnist(server, **changes):
    contents = {**tiny_images.CONTENTS["mnist"], **changes}
    server.contents |= {f"{name}.gz": gzip.compress(content) for name, content in contents.items()}


def fetched(server, directory, name="mnist"):
    return download.fetch(catalogue.find(name), directory, sources=[server.url])


def left(directory):
    return sorted(path.name for path in directory.rglob("*") if path.is_file())


@pytest.mark.usefixtures("tiny")
def test_files_arrive_verified_and_are_not_fetched_twice(server, tmp_path):
    offer_mnist(server)
    assert len(fetched(server, tmp_path / "new")) == 4
    assert datasets.read_images("mnist", directory=tmp_path / "new").verified
    asked = len(server.asked)
    assert fetched(server, tmp_path / "new") == []
    assert len(server.asked) == asked == 4


@pytest.mark.usefixtures("tiny")
def test_only_what_is_missing_is_fetched(server, tiny):
    (tiny / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    offer_mnist(server)
    assert [path.name for path in fetched(server, tiny)] == ["t10k-labels-idx1-ubyte.gz"]
    assert server.asked == ["/t10k-labels-idx1-ubyte.gz"]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("fault", ["altered", "truncated", "longer", "no gzip", "404", "cut off", "nobody"])
def test_what_is_not_the_published_content_is_not_kept(server, tmp_path, fault):
    name = "train-images-idx3-ubyte"
    content = tiny_images.CONTENTS["mnist"][name]
    offer_mnist(server)
    compressed = server.contents[f"{name}.gz"]
    sources = [server.url]
    match fault:
        case "altered":
            server.contents[f"{name}.gz"] = gzip.compress(altered(content))
        case "truncated":
            server.contents[f"{name}.gz"] = compressed[:-20]
        case "longer":
            server.contents[f"{name}.gz"] = gzip.compress(content + bytes(9))
        case "no gzip":
            server.contents[f"{name}.gz"] = b"<html></html>"
        case "404":
            del server.contents[f"{name}.gz"]
        case "cut off":
            server.cut = 10
        case "nobody":
            sources = ["http://127.0.0.1:9/"]
    with pytest.raises(TransportError) as caught:
        download.fetch(catalogue.find("mnist"), tmp_path / "new", sources=sources)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{sources[0]}{name}.gz ")
    assert left(tmp_path / "new") == []


@pytest.mark.usefixtures("tiny")
def test_the_next_source_is_tried(server, tmp_path):
    offer_mnist(server)
    said = []
    sources = [f"{server.url}gone/", server.url]
    assert len(download.fetch(catalogue.find("mnist"), tmp_path / "new", sources=sources, say=said.append)) == 4
    assert said[:2] == [f"{source}train-images-idx3-ubyte.gz" for source in sources]


@pytest.mark.usefixtures("tiny")
def test_an_archive_gives_its_wanted_members_and_nothing_else(server, tmp_path):
    server.contents["cifar-10-binary.tar.gz"] = tiny_images.archive(tiny_images.CONTENTS["cifar-10"])
    assert len(fetched(server, tmp_path / "new", "cifar-10")) == 6
    assert datasets.read_images("cifar-10", directory=tmp_path / "new").verified
    assert left(tmp_path) == sorted(left(tmp_path / "new") + left(tmp_path / "data"))
    assert "escaped" not in left(tmp_path)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("fault", ["altered", "truncated", "lacking", "no archive"])
def test_an_archive_that_is_not_the_published_one_leaves_nothing(server, tmp_path, fault):
    contents = dict(tiny_images.CONTENTS["cifar-10"])
    if fault == "altered":
        contents["test_batch.bin"] = altered(contents["test_batch.bin"])
    if fault == "lacking":
        del contents["data_batch_5.bin"]
    packed = tiny_images.archive(contents)
    if fault == "truncated":
        packed = packed[: len(packed) // 2]
    server.contents["cifar-10-binary.tar.gz"] = b"nothing" if fault == "no archive" else packed
    with pytest.raises(TransportError, match=r"cifar-10-binary\.tar\.gz (arrived|lacks)"):
        fetched(server, tmp_path / "new", "cifar-10")
    assert left(tmp_path / "new") == []


def test_an_altered_file_in_the_way_is_not_overwritten(server, tiny):
    path = tiny / "mnist" / "train-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(bytes(tiny_images.TRAIN + 8)))
    with pytest.raises(ConfigurationError, match="is unverified; remove it first"):
        fetched(server, tiny)
    assert server.asked == []


@pytest.mark.usefixtures("tiny")
def test_a_directory_that_cannot_be_written_to_is_said_so(server, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="--data-dir: "):
        fetched(server, tmp_path / "file")
