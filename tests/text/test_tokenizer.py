"""The tokenizer: its round trip, its twin in plain Python, and what text and files may not do to it."""

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ModelError
from regard.text import tokenizer as module
from regard.text.normalise import normalise
from regard.text.tokenizer import Tokenizer

texts = st.text(st.characters(exclude_categories=("Cs",)))
near_text = st.text(st.sampled_from("aeinrstdkmM.,: (12\u00a0äé€для年\u200d\u2581</s>")).filter(bool)


def sentencepiece(tokenizer: Tokenizer, text: str) -> list[str]:
    """The pieces that sentencepiece's BPE makes with this vocabulary: it knows no pairs and no cuts.

    Again and again the two neighbours that make the first piece of the vocabulary are joined, the
    leftmost of equals; what is left without a piece is spelled in bytes.
    """
    rank = {tokenizer.token(number): number for number in range(260, tokenizer.vocab_size)}
    symbols = list("\u2581" + normalise(text).replace(" ", "\u2581")) if normalise(text) else []
    while True:
        joins = [(rank[a + b], i) for i, (a, b) in enumerate(itertools.pairwise(symbols)) if a + b in rank]
        if not joins:
            break
        _, i = min(joins)
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
    return [p for s in symbols for p in ([s] if s in rank else [f"<0x{byte:02X}>" for byte in s.encode()])]


@given(texts)
def test_decode_of_encode_is_the_normalised_text(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == normalise(text)


@given(st.lists(st.one_of(texts, near_text)))
def test_a_batch_is_its_lines(tokenizer: Tokenizer, batch: list[str]) -> None:
    ids = [tokenizer.encode(text) for text in batch]
    assert tokenizer.encode_batch(batch) == ids
    assert tokenizer.decode_batch(ids) == [normalise(text) for text in batch]


@given(st.one_of(texts, near_text))
def test_encodes_as_sentencepiece_would(tokenizer: Tokenizer, text: str) -> None:
    assert [tokenizer.token(number) for number in tokenizer.encode(text)] == sentencepiece(tokenizer, text)


def test_encodes_its_own_text_as_sentencepiece_would(tokenizer: Tokenizer, lines: list[str]) -> None:
    for line in lines[::5]:
        assert [tokenizer.token(number) for number in tokenizer.encode(line)] == sentencepiece(
            tokenizer, line
        )


def test_layout_of_ids(tokenizer: Tokenizer) -> None:
    assert [tokenizer.token(number) for number in range(4)] == ["<pad>", "<s>", "</s>", "<mask>"]
    assert (tokenizer.pad_id, tokenizer.begin_id, tokenizer.end_id, tokenizer.mask_id) == (0, 1, 2, 3)
    assert [tokenizer.token(4 + byte) for byte in range(256)] == [f"<0x{byte:02X}>" for byte in range(256)]
    assert tokenizer.vocab_size == 1000


@given(
    st.lists(st.sampled_from(["<pad>", "<s>", "</s>", "<mask>", "<0x41>", "<unk>", " ", "a"])).map("".join)
)
def test_special_text_is_plain_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert all(number > tokenizer.mask_id for number in ids)
    assert 4 + 0x41 not in ids
    assert tokenizer.decode(ids) == normalise(text)


def test_digits_and_punctuation_stand_alone(tokenizer: Tokenizer) -> None:
    pieces = [tokenizer.token(number) for number in tokenizer.encode("Tuesday, March 31, 2026 (12.50)")]
    assert [p for p in pieces if any(c.isdigit() for c in p)] == list("3120261250")
    for piece in (tokenizer.token(number) for number in range(260, tokenizer.vocab_size)):
        bare = piece.removeprefix("\u2581")
        assert len(bare) <= 1 or not any(c in ".,:()" or c.isdigit() or c in "\u2581\u00a0" for c in bare)


@given(st.lists(st.integers(0, 999)))
def test_decode_takes_any_ids(tokenizer: Tokenizer, ids: list[int]) -> None:
    text = tokenizer.decode(ids)
    assert text.encode().decode() == text
    assert text == tokenizer.decode([number for number in ids if number > 3])


def test_malformed_bytes_become_replacement_characters(tokenizer: Tokenizer) -> None:
    broken = [4 + byte for byte in "é".encode()[:1]]
    whole = [4 + byte for byte in "é".encode()]
    assert tokenizer.decode(broken + whole + broken) == "\ufffdé\ufffd"


def test_json_and_back(tokenizer: Tokenizer, lines: list[str]) -> None:
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.to_json() == tokenizer.to_json()
    assert again.encode_batch(lines) == tokenizer.encode_batch(lines)


def breakages(text: str) -> Iterator[str]:
    """A tokenizer.json broken in many ways."""
    yield from ("", "{}", "[]", "null", '"x"', text[: len(text) // 2], text.replace("<pad>", "<unk>", 1))
    tree = json.loads(text)
    model = tree["model"]
    vocab = dict(model["vocab"])
    yield json.dumps(tree | {"model": None})
    yield json.dumps(tree | {"model": model | {"type": "Unigram"}})
    yield json.dumps(tree | {"model": model | {"vocab": {}}})
    yield json.dumps(tree | {"model": model | {"vocab": vocab | {"zzz": 5000}}})
    yield json.dumps(tree | {"model": model | {"vocab": vocab | {"zzz": 7}}})
    yield json.dumps(tree | {"model": model | {"vocab": vocab | {"zzz": "a"}}})
    yield json.dumps(tree | {"model": model | {"merges": [["a", "NOT THERE"]]}})
    yield json.dumps(tree | {"model": model | {"merges": ["ab"]}})
    yield json.dumps(tree | {"model": model | {"merges": [["a"]]}})
    yield json.dumps(tree | {"model": model | {"merges": 3}})


def test_a_broken_file_is_one_line_of_error(tokenizer: Tokenizer) -> None:
    for text in breakages(tokenizer.to_json()):
        with pytest.raises(ModelError, match=r"^tokenizer\.json [^\n]+$"):
            Tokenizer.from_json(text)


def test_the_memory_of_words_is_bounded(
    tokenizer: Tokenizer, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Tokenizer.from_json(tokenizer.to_json())
    monkeypatch.setattr(module, "REMEMBERED", 100)
    for start in range(0, 300, 3):
        assert small.encode_batch(lines[start : start + 3]) == tokenizer.encode_batch(
            lines[start : start + 3]
        )
        assert sum(map(len, small._words)) < 100 + 3 * max(map(len, lines))


def test_a_long_line(tokenizer: Tokenizer) -> None:
    for text in ("kilometers " * 50_000, "x" * 200_000, "\u72d7" * 100_000):
        assert tokenizer.decode(tokenizer.encode(text)) == normalise(text)


FORKS = """
import os, warnings
from regard.text.tokenizer import Tokenizer
tokenizer = Tokenizer.train(["the cat", "the dog"] * 99, 0)
many = [f"the cat {n}" for n in range(999)]
tokenizer.encode_batch(many)
child = os.fork()
if child == 0:
    os._exit(0 if len(tokenizer.encode_batch(many + ["dog cat"])) == 1000 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_encodes_in_silence() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
