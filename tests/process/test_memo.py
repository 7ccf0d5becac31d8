import json
from pathlib import Path

import pytest

from regard.process import memo

QUESTION = {"about": "a thing", "kernel": "7", "boot": "first"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "regard"


def test_what_is_kept_is_recalled(home: Path) -> None:
    assert memo.recall(QUESTION) is None
    memo.keep(QUESTION, {"fast": True})
    assert memo.recall(QUESTION) == {"fast": True}
    assert [path.suffix for path in home.iterdir()] == [".json"]


@pytest.mark.parametrize("other", [{"kernel": "8"}, {"boot": "second"}, {"about": "another"}])
def test_another_question_has_no_answer(other: dict[str, str]) -> None:
    memo.keep(QUESTION, {"fast": True})
    assert memo.recall(QUESTION | other) is None


def test_another_boot_takes_the_place_of_the_old_one(home: Path) -> None:
    memo.keep(QUESTION, {"fast": True})
    memo.keep(QUESTION | {"boot": "second"}, {"fast": False})
    assert memo.recall(QUESTION) is None
    assert len(list(home.iterdir())) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"question": 1}', "\udcff", "[" * 100_000])
def test_what_is_broken_is_not_known(home: Path, text: str) -> None:
    memo.keep(QUESTION, {"fast": True})
    (path,) = home.iterdir()
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    assert memo.recall(QUESTION) is None
    path.write_text(json.dumps({"question": QUESTION, "answer": 3}))
    assert memo.recall(QUESTION) is None


def test_a_place_that_cannot_be_used_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "file", Path("/proc/nowhere")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(place))
        memo.keep(QUESTION, {"fast": True})
        assert memo.recall(QUESTION) is None


def test_the_home_folder_is_used_where_no_cache_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    memo.keep(QUESTION, {"fast": True})
    assert list((tmp_path / ".cache" / "regard").iterdir())
