"""Hostile archives and XML are refused in one line, before they cost anything."""

import io
import zipfile

import pytest
from formats import docx, packed, run

from regard.errors import DataError
from regard.files import archive
from regard.files.file import open_data
from regard.files.nodes import read_xml

BOMB = b"\0" * (2**20 * 250)


def refused(data: bytes, form: str = "docx") -> str:
    with pytest.raises(DataError) as error:
        open_data(data, form, "a")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "a/../../b", "C:\\a", "..\\a"])
def test_names_that_lead_out(name):
    assert "leads out" in refused(packed({name: "x", "word/document.xml": "<a/>"}))


def test_a_bomb():
    assert "unpacks" in refused(packed({"word/document.xml": BOMB}))


def test_many_members(monkeypatch):
    monkeypatch.setattr(archive, "MEMBERS", 5)
    assert "6 members" in refused(packed({f"m{n}": "" for n in range(6)}))


def test_a_member_that_lies_about_its_size():
    data = bytearray(packed({"word/document.xml": "<a>" + "x" * 5000 + "</a>"}))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (9).to_bytes(4, "little")  # its size, in the directory
    refused(bytes(data))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_one_that_is_there_twice():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("word/document.xml", "<a/>")
        made.writestr("word/document.xml", "<b/>")
    assert "twice" in refused(out.getvalue())


def test_encrypted():
    data = bytearray(docx([run("a")]))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            data[at + place] |= 1
            at = data.find(mark, at + 1)
    assert "password" in refused(bytes(data))


ENTITIES = b'<!DOCTYPE a [<!ENTITY l "lol"><!ENTITY m "&l;&l;&l;&l;">]><xliff>&m;</xliff>'
OUTSIDE = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><xliff>&x;</xliff>'


@pytest.mark.parametrize("data", [ENTITIES, OUTSIDE])
def test_entities(data):
    assert "entities" in refused(data, "xliff")
    assert "entities" in refused(packed({"word/document.xml": data}))


def test_deep_xml():
    deep = b"<a>" * 300 + b"</a>" * 300
    with pytest.raises(DataError):
        read_xml(deep)
