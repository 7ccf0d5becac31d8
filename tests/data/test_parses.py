"""CoNLL-U over lines and over tokens: what is read, what is refused, and what the store keeps."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention.structural import Trees
from regard.config import DataConfig
from regard.data.batch import collate
from regard.data.corpus import Corpus
from regard.data.parses import Parse, Parses, token_heads
from regard.data.store import open_store
from regard.errors import DataError, UsageError
from regard.text.tokenizer import Tokenizer


def conllu(*sentences: list[tuple[str, int]]) -> str:
    """Sentences of (form, head) as a file."""
    rows = [
        ["\t".join([str(i), form, *"____", str(head), *"___"]) for i, (form, head) in enumerate(s, 1)]
        for s in sentences
    ]
    return "".join("\n".join(["# a comment", *row]) + "\n\n" for row in rows)


def read(text: str) -> Parses:
    return Parses((text.encode().split(b"\n"), "t.conllu"))


def test_a_sentence_is_its_words_and_heads() -> None:
    parses = read(conllu([("Ein", 2), ("Hund", 0), ("!", 2)]))
    assert parses.of("Ein Hund!", "x line 1") == Parse(("Ein", "Hund", "!"), (2, 0, 2))
    parses.finish("x")


def row(number: str, form: str, head: int | str = "_") -> str:
    return "\t".join([number, form, *"____", str(head), *"___"])


@pytest.mark.parametrize(
    "rows",
    [
        [row("1-2", "zum")],
        [row("1-2", "zum"), row("1", "zu", 0)],
        [row("1-2", "zum"), row("1-2", "zum"), row("1", "zu", 0), row("2", "dem", 1)],
        [row("2-1", "zum"), row("1", "zu", 0)],
        [row("1-" + "9" * 5000, "zum")],
        [row("1-2-3", "zum")],
    ],
    ids=range(6),
)
def test_words_that_stand_for_words_which_are_missing(rows: list[str]) -> None:
    with pytest.raises(DataError, match=r"t\.conllu line"):
        read("\n".join(rows)).of("zum", "x line 1")


def test_a_sentence_of_a_hundred_thousand_words_in_a_chain_is_read() -> None:
    words = [("a", head) for head in range(100_000)]
    parse = read(conllu(words)).of("a" * 100_000, "x line 1")
    assert parse is not None
    assert parse.heads == tuple(range(100_000))


def test_blank_lines_have_no_sentence_and_several_sentences_may_make_a_line() -> None:
    parses = read(conllu([("Ja", 0), (".", 1)], [("Da", 2), ("kommt", 0)], [("Nein", 0)]))
    assert parses.of("  ", "x line 1") is None
    assert parses.of("Ja. Da  kommt", "x line 2") == Parse(("Ja", ".", "Da", "kommt"), (0, 1, 4, 0))
    assert parses.of("Nein", "x line 3") == Parse(("Nein",), (0,))


def test_a_word_for_two_has_the_place_of_the_higher_and_empty_nodes_none() -> None:
    rows = [
        "1-2\tzum\t_\t_\t_\t_\t_\t_\t_\t_",
        "1\tzu\t_\t_\t_\t_\t2\t_\t_\t_",
        "2\tdem\t_\t_\t_\t_\t3\t_\t_\t_",
    ]
    rows += [
        "2.1\tnix\t_\t_\t_\t_\t_\t_\t_\t_",
        "3\tHaus\t_\t_\t_\t_\t0\t_\t_\t_",
        "4\there\t_\t_\t_\t_\t1\t_\t_\t_",
    ]
    assert read("\n".join(rows)).of("zum Haus here", "x") == Parse(("zum", "Haus", "here"), (2, 0, 1))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (conllu([("Eine", 0)]), "Ein", r"t.conllu line 2: its words are 'Eine' and x line 7 is 'Ein'"),
        (conllu([("a", 0), ("c", 1)]), "a b", "must spell the lines"),
        ("", "a", "t.conllu ends before x line 7"),
        (conllu([("a", 2), ("b", 1)]), "a b", "line 2: word 1 never reaches the root"),
        (conllu([("a", 5)]), "a", "not in the sentence of 1"),
        (conllu([("a", -1)]), "a", "not in the sentence of 1"),
        ("1\ta\t_\t0", "a", "line 1: 4 columns where CoNLL-U has 10"),
        (conllu([("a", 0)]).replace("\t0\t", "\t_\t"), "a", "line 2: .*with heads"),
        (conllu([("a", 0)]).replace("1\ta", "2\ta"), "a", "line 2: ID 2 where 1 comes next"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(text: str, line: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        read(text).of(line, "x line 7")
    assert "\n" not in str(caught.value)


def test_a_sentence_too_many_and_bytes_that_are_no_text() -> None:
    with pytest.raises(DataError, match=r"t.conllu line 2: a sentence too many; x has ended"):
        read(conllu([("a", 0)])).finish("x")
    with pytest.raises(DataError, match=r"t.conllu line 1 is not UTF-8"):
        Parses(([b"1\t\xff"], "t.conllu")).finish("x")


def test_tokens_take_the_place_of_their_word() -> None:
    parse = Parse(("I", "can", "not", "é", "!"), (4, 3, 4, 0, 4))
    tokens = ["▁I", "▁cannot", "▁", "<0xC3>", "<0xA9>", "!"]
    assert token_heads(parse, "I cannot é!", tokens) == [2, 2, 6, 3, 4, 2]


words = st.lists(st.text("abcäß狗'-", min_size=1, max_size=6), min_size=1, max_size=9)


@given(words, st.integers(0, 2**31 - 1), st.lists(st.booleans(), min_size=9, max_size=9))
def test_every_token_of_any_line_finds_the_root(forms: list[str], seed: int, glued: list[bool]) -> None:
    """Words may stand together without a space, and tokens may reach over them."""
    order = np.random.default_rng(seed).permutation(len(forms))
    heads = [0] * len(forms)
    for number, word in enumerate(order[1:], 1):
        heads[word] = int(order[(seed + number) % number]) + 1
    line = "".join(form + ("" if joined else " ") for form, joined in zip(forms, glued, strict=False))
    tokenizer = Tokenizer.train(["ab ca cab", "ba-ab 'ca"] * 4, 0)
    ids = tokenizer.encode(line)
    found = token_heads(Parse(tuple(forms), tuple(heads)), line, [tokenizer.token(each) for each in ids])
    assert len(found) == len(ids)
    depth = Trees.of(torch.tensor([[*found, len(found) + 1]])).depth[0]
    assert depth[:-1].min() >= 1
    assert depth[-1] == 0


@pytest.fixture
def files(tmp_path: Path) -> Corpus:
    (tmp_path / "a.en").write_text("a cat sat\n\nyes\n" + "x " * 40 + "\n")
    (tmp_path / "a.de").write_text("eine Katze\n\nja\nz\n")
    trees = conllu([("a", 2), ("cat", 3), ("sat", 0)], [("yes", 0)], [("x", 0)] * 40)
    (tmp_path / "a.conllu").write_text(trees)
    return Corpus((tmp_path / "a.en",), (tmp_path / "a.de",), parses=(tmp_path / "a.conllu",))


def test_pairs_come_with_their_parses(files: Corpus) -> None:
    assert [pair.parse and pair.parse.heads for pair in files.pairs()][:3] == [(2, 3, 0), None, (0,)]
    assert all(pair.parse is None for pair in Corpus(files.sources, files.targets).pairs())


def test_trees_are_part_of_the_data(files: Corpus) -> None:
    before = files.fingerprint()
    assert before != Corpus(files.sources, files.targets).fingerprint()
    files.parses[0].write_text(
        files.parses[0].read_text().replace("cat\t_\t_\t_\t_\t3", "cat\t_\t_\t_\t_\t1")
    )
    assert files.fingerprint() != before
    with pytest.raises(DataError, match="never reaches the root"):
        files.check_files()


def test_there_are_as_many_files_of_parses_as_of_sources(files: Corpus) -> None:
    with pytest.raises(UsageError, match="2 files of parses but 1 of sources"):
        Corpus(files.sources, files.targets, parses=files.parses * 2)


def test_several_files_keep_their_own(files: Corpus) -> None:
    twice = Corpus(files.sources * 2, files.targets * 2, parses=files.parses * 2)
    assert [pair.parse for pair in twice.pairs()] == [pair.parse for pair in files.pairs()] * 2


def test_the_store_keeps_heads_of_kept_pairs_and_is_reused(files: Corpus, tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["a", "e"], 0)  # words are several tokens
    rules = DataConfig(max_length=30)
    store = open_store(files, tokenizer, rules, tmp_path / "store")
    assert len(store) == 2  # the blank pair and the long one are left out
    batch = collate(store, np.array([1, 0]), pad_id=0, begin_id=1, end_id=2).inputs
    assert batch.heads is not None
    assert batch.heads.shape == batch.ids.shape
    depths = Trees.of(batch.heads).depth.tolist()
    assert depths[0][:4] == [1, 1, 1, 1][: len("yes") + 1]
    pieces = "".join(tokenizer.token(int(each)) for each in store.pair(0)[0])
    assert len(set(depths[1])) == 4, pieces  # a, cat, sat and the root have four depths
    made = (tmp_path / "store" / "heads.bin").stat()
    again = open_store(files, tokenizer, rules, tmp_path / "store")
    assert (tmp_path / "store" / "heads.bin").stat().st_mtime_ns == made.st_mtime_ns
    assert torch.equal(
        collate(again, np.array([1, 0]), pad_id=0, begin_id=1, end_id=2).inputs.heads, batch.heads
    )


def test_a_store_with_a_damaged_tree_is_made_again(files: Corpus, tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["a", "e"], 0)
    open_store(files, tokenizer, DataConfig(max_length=30), tmp_path / "store")
    path = tmp_path / "store" / "heads.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[:-4] + b"\0\0\0\0")
    open_store(files, tokenizer, DataConfig(max_length=30), tmp_path / "store")
    assert path.read_bytes() == whole
