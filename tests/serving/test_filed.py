"""Files over HTTP: sent, translated, fetched; hostile ones are refused in a line, what is kept is bounded."""

import pytest
from formats import docx, members, packed, run, srt
from forms import KIND, form

from regard.serving.filed import Kept
from regard.serving.limits import Refusal


def send(server, name, data, **fields):
    body = form(name, data, **({"source": "en", "target": "de"} | fields))
    return server.ask("POST", "/translate_file", body, content_type=KIND)


def test_a_file_comes_back(server):
    film = srt("a b", "c d e")
    said = send(server, "my film.srt", film)
    assert said.status == 200, said.body
    url = said.tree["translatedFileUrl"]
    assert url.startswith(server.url)
    assert url.endswith(".my_film_de.srt")
    found = server.get(url.removeprefix(server.url))
    assert found.status == 200
    assert "attachment" in found.headers["content-disposition"]
    wanted = [server.translate(text)["translatedText"] for text in ("a b", "c d e")]
    assert found.body == film.replace(b"a b", wanted[0].encode()).replace(b"c d e", wanted[1].encode())
    assert server.get("/download_file/none.srt").status == 404


def test_an_office_document_comes_back(server):
    said = send(server, "a.docx", docx([run("a "), run("b", "<w:b/>")]))
    made = server.get(said.tree["translatedFileUrl"].removeprefix(server.url)).body
    assert members(made)["word/document.xml"].count(b"<w:b/>") == 1


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.exe", b"MZ", "file format not supported"),
        ("a.docx", b"PK", "no archive"),
        ("a.docx", packed({"../a": "x"}), "leads out"),
        ("a.docx", packed({"word/document.xml": b"\0" * 2**28}), "unpacks"),
        ("a.xliff", b'<!DOCTYPE a [<!ENTITY x "y">]><xliff>&x;</xliff>', "entities"),
        ("a.srt", b"", "missing file"),
    ],
)
def test_what_cannot_be_read_is_refused(server, name, data, said):
    answer = send(server, name, data)
    assert answer.status == 400
    assert said in answer.tree["error"]
    assert "\n" not in answer.tree["error"]


def test_what_is_too_large_is_refused(server):
    assert send(server, "a.txt", b"a" * 7_000_000).status == 413
    assert send(server, "a.txt", b"a b c d\n" * 100_000).status == 400  # more text than a request may have
    assert server.post("/translate_file", {"source": "en", "target": "de"}).status == 400


def test_what_is_kept_is_bounded():
    kept = Kept(most=10, seconds=100)
    first = kept.put("a", b"12345")
    second = kept.put("b", b"123456")
    with pytest.raises(Refusal, match="no such file"):
        kept.get(first)
    assert kept.get(second) == b"123456"
    assert kept.held == 6
    with pytest.raises(Refusal, match="at most 10"):
        kept.put("c", b"1" * 11)
    kept.seconds = -1
    with pytest.raises(Refusal):
        kept.get(second)
