"""JSON that is written in pieces is the JSON of the whole, and holds no half characters."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.serving.answers import answer, as_json, in_json, refuse
from regard.serving.limits import Refusal

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
NAMES = st.sampled_from(["words", "maps", "heads", "weights", "text", "a"])
TREES = st.recursive(LEAVES, lambda tree: st.lists(tree) | st.dictionaries(NAMES, tree), max_leaves=30)


@given(TREES)
def test_in_pieces_or_whole(tree):
    assert as_json(tree) == json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    assert json.loads(in_json(tree)) == tree


def test_what_is_no_number_is_no_json():
    with pytest.raises(ValueError, match="Out of range"):
        in_json({"words": [{"a": float("nan")}]})


def test_half_a_character_is_replaced():
    assert json.loads(in_json({"a\ud800": "b\udfff\ud800\udc00"})) == {"a\ufffd": "b\ufffd\U00010000"}
    assert json.loads(bytes(refuse(Refusal(400, "\ud800 is not known")).body)) == {
        "error": "\ufffd is not known"
    }


def test_a_refusal_says_when_to_come_back():
    assert refuse(Refusal(429, "busy", retry_after=3)).headers["retry-after"] == "3"
    assert answer([1], 404).status_code == 404
