"""Strangers' JSON and TOML: bounded in size, depth and digits, and read in one place."""

import ast
import json
from pathlib import Path

import pytest
from command import ROOT
from hypothesis import given
from hypothesis import strategies as st

from regard import foreign
from regard.errors import ModelError, UsageError

# Files that read JSON by themselves: the reader itself, what our own libraries and processes wrote a moment
# ago, what a checksum vouches for, and requests, whose bounds are regard/serving/limits.py's.
READERS = {
    "foreign.py",
    "compare/family.py",
    "compare/trial.py",
    "process/memo.py",
    "serving/about.py",
    "serving/beside.py",
    "serving/body.py",
    "serving/schema.py",
    "text/running.py",
    "text/vocabulary.py",
    "training/checkpoint.py",
    "training/state.py",
    "training/trainer.py",
}

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_VALUES)
def test_ordinary_json_is_read_as_it_is(value):
    assert foreign.loads(json.dumps(value)) == value
    assert foreign.loads(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" * 33 + "]" * 33, "nested too deeply"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested too deeply"),
        ("9" * 400, "a number of 400 digits"),
        ("-" + "9" * 5000, "digits"),
        ("[" + "0," * 3_000_001 + "0]", "more than 3,000,000 values"),
        ("{", "Expecting"),
        ("", "Expecting"),
        (b"\xff", "codec"),
        (b'"\xed\xa0\x80"', "codec"),
    ],
    ids=lambda value: str(value[:9]),
)
def test_what_is_no_json_or_too_much_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        foreign.loads(text)


def test_depth_is_bounded_where_it_is_said():
    assert foreign.loads("[" * 32 + "]" * 32)


def test_the_file_is_named(tmp_path: Path):
    path = tmp_path / "settings.json"
    for text, words in [("[]", "holds a list, not an object"), ("{", "is no JSON"), ("9" * 99, "digits")]:
        path.write_text(text)
        with pytest.raises(ModelError, match=words) as caught:
            foreign.read_json(path)
        assert str(path) in str(caught.value)
    path.write_text('{"a": 1}')
    assert foreign.read_json(path) == {"a": 1}
    with pytest.raises(ModelError, match="more than 7 bytes"):
        foreign.read_json(path, most=7)
    with pytest.raises(ModelError, match="is no file"):
        foreign.read_json(tmp_path)


@pytest.mark.parametrize(
    "text", ["9" * 5000, "[" * 5000, "{a=" * 3000 + "1" + "}" * 3000], ids=["digits", "lists", "tables"]
)
def test_toml_of_strangers(tmp_path: Path, text: str):
    with pytest.raises(UsageError, match="no value of a setting"):
        foreign.toml_value(text)
    path = tmp_path / "f.toml"
    path.write_text(f"x = {text}")
    with pytest.raises(UsageError, match="is not TOML"):
        foreign.read_toml_file(path)


def test_a_config_of_megabytes_is_none(tmp_path: Path):
    path = tmp_path / "f.toml"
    path.write_bytes(b"#" * (foreign.MOST_SETTINGS + 1))
    with pytest.raises(UsageError, match="no file of settings"):
        foreign.read_toml_file(path)


def test_json_is_read_in_one_place():
    found = set()
    for path in (ROOT / "regard").rglob("*.py"):
        calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if any(
            isinstance(call, ast.Attribute) and ast.unparse(call) in ("json.loads", "json.load")
            for call in calls
        ):
            found.add(str(path.relative_to(ROOT / "regard")))
    assert found <= READERS
