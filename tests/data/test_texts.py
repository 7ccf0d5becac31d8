"""Documents out of files and folders: nothing is lost, what is no text is told, what is held out is apart."""

import gzip
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import texts as module
from regard.data.texts import MANY, Document, Texts, hold_out, parts
from regard.errors import DataError
from regard.text.running import RunningText

LETTERS = st.text(alphabet=st.sampled_from("ab \n\t\r€𝄞é'"), min_size=1, max_size=400)


def joined(documents: list[Document]) -> list[str]:
    """The text of each document, put together from its parts."""
    found = [""]
    for part in parts(documents):
        found[-1] += part.text
        if part.last:
            found.append("")
    return found[:-1]


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 7)
    monkeypatch.setattr(module, "PART", 11)
    monkeypatch.setattr(module, "LONGEST_PART", 53)


@pytest.mark.usefixtures("short_parts")
@settings(max_examples=50, deadline=None)
@given(text=LETTERS.filter(str.strip), zipped=st.booleans(), share=st.floats(0, 1))
def test_parts_are_the_text(tmp_path_factory, text, zipped, share):
    path = tmp_path_factory.mktemp("texts") / "a"
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    (document,) = Texts((path,)).documents
    assert len(document) == len(text)
    cut = int(share * len(text))
    halves = [Document(path, "", 0, cut), Document(path, "", cut, len(text))]
    assert joined([document]) == [text]
    assert joined(halves) == [text[:cut], text[cut:]]


@pytest.mark.usefixtures("short_parts")
def test_ids_of_parts_are_those_of_the_whole(tmp_path):
    text = "the  cat sat\n\n on the mat  \n\tand the cat's\nhat " * 5
    (tmp_path / "a").write_text(text)
    tokenizer = RunningText.learn([text], "subwords", 300)
    found = [tokenizer.encode(part.text) for part in parts(Texts((tmp_path / "a",)).documents)]
    assert len(found) > 3
    assert list(chain.from_iterable(found)) == tokenizer.encode(text)


def test_folder_in_the_order_of_its_names(tmp_path):
    for name, content in {
        "b.txt": b"bee",
        "a/z.md": b"zed",
        "a/y.gz": gzip.compress(b"why"),
        "c.bin": b"\0\1",
        "d.latin": "é".encode("latin-1"),
        "e.empty": b"",
        ".hidden": b"no",
        ".git/f": b"no",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    texts = Texts((tmp_path,))
    assert joined(list(texts.documents)) == ["bee", "why", "zed"]
    assert [path.name for path in texts.left_out] == ["c.bin", "d.latin", "e.empty"]
    assert texts.summary() == "3 documents, 9 characters; 3 files that hold no text left out"


def test_a_mark_of_byte_order_is_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfhello")
    assert joined(list(Texts((tmp_path / "a",)).documents)) == ["hello"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; it should hold text"),
        (b" \n\n", "is empty; it should hold text"),
        (b"ab\0c", "byte 3 is NUL; is this a text file?"),
        (b"ab\xffc", r"byte 3 \(0xff\) is not UTF-8"),
        ("é".encode()[:1], r"byte 1 \(0xc3\) is not UTF-8"),
        (b"x" * 9 + "€".encode()[:2] + b"y", r"byte 10 \(0xe2\) is not UTF-8"),
        (gzip.compress(b"text" * 9, mtime=0)[:-9], "truncated or damaged gzip"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, content, message, short_parts):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        _ = Texts((path,)).documents


def test_paths_that_hold_nothing(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        _ = Texts((tmp_path / "none",)).documents
    (tmp_path / "x.pyc").write_bytes(b"\0")
    with pytest.raises(DataError, match="holds no text file"):
        _ = Texts((tmp_path,)).documents


def test_fingerprint_is_of_the_content(tmp_path):
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_bytes(gzip.compress(b"one"))
    (tmp_path / "c").write_text("two")
    one, same, other = (Texts((tmp_path / name,)).fingerprint() for name in "abc")
    assert one == same != other


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3000)), min_size=1, max_size=90))
def test_what_is_held_out_is_never_trained_on(sizes):
    lengths = dict(sizes)  # a text has one length
    documents = [Document(Path(str(i)), f"{text:03}", 0, lengths[text]) for i, (text, _) in enumerate(sizes)]
    kept, held = hold_out(documents)

    def places(some):
        return {(each.digest, place) for each in some for place in range(each.begin, each.end)}

    assert not places(kept) & places(held)
    assert places(kept) | places(held) == places(documents)
    total = sum(map(len, documents))
    assert sum(map(len, held)) <= 0.1 * total + len(documents)
    assert bool(held) == (total >= 2000) or len(documents) >= MANY


def test_one_long_text_gives_its_last_tenth(tmp_path):
    kept, held = hold_out([Document(Path("a"), "a", 0, 1_115_394)])
    assert (kept[0].begin, kept[0].end, held[0].begin, held[0].end) == (0, 1_003_854, 1_003_854, 1_115_394)


def test_of_many_documents_whole_ones_are_held_out():
    documents = [Document(Path(str(i)), f"{i % 40:03}", 0, 100) for i in range(80)]
    kept, held = hold_out(documents)
    assert len(kept) == 72  # four texts, two copies of each
    assert len(held) == 4
