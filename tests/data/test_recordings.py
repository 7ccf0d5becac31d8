"""The layouts in which people keep recordings, and what is wrong with a line of them."""

import json
from pathlib import Path

import pytest

from regard.data.recordings import Fault, look_through, of_part, read_spoken
from regard.errors import DataError
from regard.tasks.speech import TASK
from regard.tasks.speech.examples import Recordings


def read(path: Path) -> list[tuple[str, str]]:
    return [(str(each.path), each.text) for each in read_spoken(path)]


@pytest.mark.parametrize("header", ["", "file\ttext\n", "path\tsentence\n"])
def test_a_table(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"{header}x/1.wav\tone\n\n2.flac\ttwo  words \n", encoding="utf-8")
    assert read(path) == [(str(tmp_path / "x/1.wav"), "one"), (str(tmp_path / "2.flac"), "two words")]


def test_a_header_may_name_more_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("speaker\ttext\tfile\nanna\tone\t1.wav\n", encoding="utf-8")
    assert read(path) == [(str(tmp_path / "1.wav"), "one")]


def test_ljspeech(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("LJ1|Mr. A|Mister A\nLJ2|two\n", encoding="utf-8")
    wavs = tmp_path / "wavs"
    assert read(tmp_path) == [(str(wavs / "LJ1.wav"), "Mister A"), (str(wavs / "LJ2.wav"), "two")]


def test_audiofolder(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text('file_name,transcription\na.mp3,"one, two"\n', encoding="utf-8")
    assert read(tmp_path) == [(str(tmp_path / "a.mp3"), "one, two")]
    (tmp_path / "metadata.csv").unlink()
    line = json.dumps({"file_name": "b/a.mp3", "text": "three"})
    (tmp_path / "metadata.jsonl").write_text(line + "\n", encoding="utf-8")
    assert read(tmp_path) == [(str(tmp_path / "b/a.mp3"), "three")]


def test_librispeech(tmp_path: Path) -> None:
    folder = tmp_path / "84" / "121123"
    folder.mkdir(parents=True)
    (folder / "84-121123.trans.txt").write_text("84-121123-0000 GO ON\n", encoding="utf-8")
    assert read(tmp_path) == [(str(folder / "84-121123-0000.flac"), "GO ON")]


def test_parts_of_a_folder(tmp_path: Path) -> None:
    """LibriSpeech's and audiofolder's; what is no part, or has a list of its own, is taken whole."""
    root = tmp_path / "LibriSpeech"
    for name in ("train-clean-100", "train-other-500", "dev-clean", "84"):
        (root / name).mkdir(parents=True)
    for path in (tmp_path, root):
        assert of_part(path, "train") == [root / "train-clean-100", root / "train-other-500"]
        assert of_part(path, "valid") == of_part(path, "test") == [root / "dev-clean"]
    assert of_part(root / "84", "train") == [root / "84"]
    assert of_part(tmp_path / "list.tsv", "train") == [tmp_path / "list.tsv"]
    (root / "metadata.csv").touch()
    assert of_part(root, "train") == [root]
    (root / "metadata.csv").unlink()
    found = TASK.read([tmp_path])
    assert (len(found.train), found.valid) == (2, (root / "dev-clean",))
    for path in (root / "84", tmp_path / "list.tsv", tmp_path / "only"):
        (tmp_path / "only" / "dev-clean").mkdir(parents=True, exist_ok=True)  # no part to train on
        assert TASK.read([path]) == Recordings((path,))
    (root / "dev-clean").rename(root / "test-clean")
    assert TASK.read([root]).valid == ()  # what is to test on chooses nothing
    assert of_part(root, "test") == [root / "test-clean"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", "1.wav\n", "line 1: 1 column where there are 2"),
        ("a.tsv", "1.wav\tone\n2.wav\t \n", "line 2: the text is missing"),
        ("a.tsv", "\tone\n", "line 1: the file is missing"),
        ("a.csv", "one two\n", "neither file_name"),
        ("a.jsonl", "{\n", "no object with file_name"),
    ],
)
def test_a_line_that_says_too_little(tmp_path: Path, name: str, content: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        list(read_spoken(path))
    assert any(isinstance(found, Fault) for found in look_through(path))


def test_a_cell_that_is_too_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"file_name,text\n1.wav,{'a' * 200_000}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.csv line 2 is no line of a table"):
        list(read_spoken(path))


def test_what_is_no_list_of_recordings(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no metadata"):
        list(read_spoken(tmp_path))
    with pytest.raises(DataError, match="does not exist"):
        list(read_spoken(tmp_path / "no.tsv"))
    (tmp_path / "a.wav").touch()
    with pytest.raises(DataError, match="is a recording"):
        list(read_spoken(tmp_path / "a.wav"))
