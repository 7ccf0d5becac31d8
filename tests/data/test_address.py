"""Files that lie elsewhere: read and written as those of this machine, and one line for what is wrong."""

import gzip
import pickle
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from regard.cli.main import run
from regard.cli.streams import writing
from regard.data.address import Address, place
from regard.data.corpus import Corpus
from regard.data.lines import read_lines
from regard.errors import DataError, UsageError

LINES = [b"one", "zw\u00f6lf".encode(), b"", b"three"]


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing."""

    def log_message(self, *said: object) -> None: ...


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("elsewhere")
    data = b"".join(line + b"\n" for line in LINES)
    (place / "lines.txt").write_bytes(data)
    (place / "lines.txt.gz").write_bytes(gzip.compress(data))
    return place


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    """A plain web server on this machine: where it is."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["lines.txt", "lines.txt.gz"])
def test_lines_are_those_of_the_file_wherever_it_lies(server: str, folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    with fsspec.open(f"memory://{name}", "wb") as file:
        file.write(data)
    for url in (f"{server}/{name}", f"file://{folder / name}", f"memory://{name}"):
        assert list(read_lines(place(url))) == LINES, url
    address = place(f"{server}/{name}")
    assert Corpus.of([address]).fingerprint() == Corpus.of([folder / name]).fingerprint()
    assert isinstance(address, Address)
    assert str(pickle.loads(pickle.dumps(address))) == str(address)


def test_what_is_written_is_there_when_all_is_well() -> None:
    with writing(place("memory://out/a.txt")) as write:
        write("a line")
    assert list(read_lines(place("memory://out/a.txt"))) == [b"a line"]


def test_a_path_stays_a_path() -> None:
    for name in ("a,b.txt", "c:/d", "s3:/x", "-", "http:x"):
        assert type(place(name)) is type(Path(name)), name
    assert str(place("s3://bucket//a?x=http://y")) == "s3://bucket//a?x=http://y"


def test_one_line_for_what_is_wrong(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match=r"nothing\.txt is not there"):
        list(read_lines(place(f"{server}/nothing.txt")))
    with pytest.raises(DataError, match="cannot open strange://x"):
        list(read_lines(place("strange://x")))
    with pytest.raises(DataError, match="9/x is not there, or nobody answers"):
        list(read_lines(place("http://127.0.0.1:9/x")))
    with pytest.raises(UsageError, match="nothing can be written there"), writing(place(f"{server}/out")):
        pass
    assert run(["check", f"{server}/nothing.txt"]) == 2
    assert "is not there, or nobody answers" in capsys.readouterr().err


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket on a server of S3 on this machine."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    settings = {"ENDPOINT_URL": f"http://{host}:{port}", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
    for name, value in (settings | {"DEFAULT_REGION": "us-east-1"}).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    fsspec.filesystem("s3", skip_instance_cache=True).mkdir("pairs")
    yield "s3://pairs"
    server.stop()


def test_a_bucket_is_read_and_written(bucket: str) -> None:
    """What was not written to its end is not there."""
    with writing(place(f"{bucket}/a.txt.gz")) as write:
        write("one")
        write("zw\u00f6lf")
    assert list(read_lines(place(f"{bucket}/a.txt.gz"))) == LINES[:2]

    def fail() -> None:
        with writing(place(f"{bucket}/b.txt")) as write:
            write("one")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with pytest.raises(DataError, match="is not there"):
        list(read_lines(place(f"{bucket}/b.txt")))
