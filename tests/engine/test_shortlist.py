"""The shortlist against naive loops: what is counted, what is allowed, and that neighbours change nothing."""

import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from command import complaint
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.attention.record import record
from regard.cli.main import run
from regard.cli.shortlist import Options
from regard.config import Config, DecodeConfig, merge
from regard.data.inputs import Tokens, pad_sources
from regard.decoding.beam import beam_search
from regard.decoding.search import Rules
from regard.engine import path
from regard.engine.engine import Engine
from regard.engine.shortlist import BEST, FILE, FREQUENT, Shortlist, learn
from regard.errors import DataError, ModelError, UsageError
from regard.models import build
from regard.tasks.translation.load import load_translator
from regard.tasks.translation.translator import load_readable
from regard.text.tokenizer import OUR_SPECIALS, Tokenizer

VOCAB = 283
END = OUR_SPECIALS.end
native = pytest.mark.skipif(path.available() is not None, reason="the native library is not built")


def transformer(**overrides: object) -> Any:
    plain = {"model.d_model": 33, "model.n_heads": 3, "model.d_ff": 47, "model.vocab_size": VOCAB}
    small = {"model.encoder_layers": 1, "model.decoder_layers": 2}
    torch.manual_seed(11)
    model = build(merge(Config(), {**plain, **small, **overrides})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def sentences(lengths: tuple[int, ...] = (5, 1, 7, 3, 11, 2)) -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    return [[*torch.randint(4, VOCAB, (n,), generator=generator).tolist(), END] for n in lengths]


def made_shortlist(always: list[int], copies: bool = True) -> Shortlist:
    """Lists of 0 to 12 ids for each source token, some of them never written or always allowed."""
    generator = torch.Generator().manual_seed(5)
    lists = [torch.randint(0, VOCAB, (s % 13,), generator=generator).unique().tolist() for s in range(VOCAB)]
    starts = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    ids = np.array([i for each in lists for i in each], np.int32)
    return Shortlist(starts, ids, np.array(always, np.int32), VOCAB, OUR_SPECIALS.never, copies)


ALWAYS = ([END], [END, *range(30, 200, 3)], [*range(4, VOCAB), END])


def rules_for(model: Any, sources: list[list[int]]) -> Rules:
    decode = DecodeConfig(max_ratio=1.0, max_extra=4, min_ratio=0.3)
    return Rules.of(decode, map(len, sources), max_length=model.max_length, vocab_size=VOCAB)


class Masked:
    """The readable model of one sentence that may write the ids of one list alone.

    What is left out has the mass of a sample, grown; it stands at an id that is never written.
    """

    def __init__(self, model: Any, short: Shortlist, source: list[int]) -> None:
        self.model, self.max_length = model, model.max_length
        allowed = {*short.always.tolist(), *short.of(source).tolist()}
        self.closed = torch.full((VOCAB,), -torch.inf).index_fill(0, torch.tensor([*allowed]), 0.0)
        self.sample = [i for i in short.sample().tolist() if i not in allowed]
        self.left = VOCAB - len(allowed) - len(short.never)

    def start(self, inputs: Tokens) -> Any:
        return self.model.start(inputs)

    def step(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits, state = self.model.step(ids, state)
        narrow = logits + self.closed
        if self.sample:
            share = np.log(self.left / len(self.sample))
            narrow[:, OUR_SPECIALS.never[0]] = logits[:, self.sample].logsumexp(-1) + share
        return narrow, state


@native
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("always", ALWAYS)
@pytest.mark.parametrize("copies", [False, True])
def test_each_sentence_is_written_with_its_own_list_as_the_readable_search_does_it(
    beam: int, always: list[int], copies: bool
):
    model, sources, short = transformer(), sentences(), made_shortlist(always, copies)
    engine = Engine(model, precision="fp32", shortlist=short)
    found = engine.search(sources, rules_for(model, sources), beam=beam, n_best=beam)
    for source, outputs in zip(sources, found, strict=True):
        with torch.inference_mode():
            (wanted,) = beam_search(
                Masked(model, short, source),
                pad_sources([source]),
                rules_for(model, [source]),
                beam=beam,
                n_best=beam,
            )
        assert [each.ids for each in outputs] == [each.ids for each in wanted]
        assert [each.score for each in outputs] == pytest.approx([each.score for each in wanted], abs=1e-4)


@native
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_neighbours_batches_and_threads_change_nothing(precision: str):
    model, sources, short = transformer(), sentences(), made_shortlist(ALWAYS[1])
    rules = rules_for(model, sources)
    whole = Engine(model, precision=precision, threads=1, shortlist=short).search(sources, rules, beam=3)
    for threads, batch_size in ((1, 1), (2, 1), (2, 4), (3, 32)):
        engine = Engine(model, precision=precision, threads=threads, shortlist=short)
        assert engine.search(sources, rules, beam=3, batch_size=batch_size) == whole
        alone = [engine.search([each], rules_for(model, [each]), beam=3)[0] for each in sources]
        assert alone == whole


@native
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_a_list_of_everything_changes_nothing(precision: str):
    model, sources = transformer(), sentences()
    rules = rules_for(model, sources)
    short = made_shortlist([i for i in range(VOCAB) if i not in OUR_SPECIALS.never])
    found = Engine(model, precision=precision, shortlist=short).search(sources, rules, beam=3)
    wanted = Engine(model, precision=precision).search(sources, rules, beam=3)
    assert [each[0].ids for each in found] == [each[0].ids for each in wanted]


@native
def test_a_shortlist_outside_the_vocabulary_is_refused():
    with pytest.raises(ModelError, match="outside the vocabulary of 283"):
        Engine(transformer(), shortlist=made_shortlist([END, VOCAB]))


tables = st.lists(st.lists(st.integers(4, 40), max_size=5), min_size=41, max_size=41)


@given(tables, st.lists(st.integers(0, 40), min_size=1, max_size=7), st.booleans())
def test_own_ids_are_the_union_of_the_lists_without_what_is_always_allowed(
    lists: list[list[int]], source: list[int], copies: bool
):
    starts = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    ids = np.array([i for each in lists for i in each], np.int32)
    short = Shortlist(starts, ids, np.array([2, 9], np.int32), 41, (0, 1, 3), copies)
    wanted = set().union(*(lists[token] for token in source), source if copies else ()) - {0, 1, 2, 3, 9}
    assert short.of(source).tolist() == sorted(wanted)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["a b c d e f g h", "A B C D E F G H"] * 9, VOCAB)


def naive_counts(
    model: Any, layer: int, pairs: list[tuple[list[int], list[int]]], tokenizer: Tokenizer
) -> dict[tuple[int, int], float]:
    """Place by place: the four source tokens looked at most for the word so far, by their weights."""
    counts: dict[tuple[int, int], float] = defaultdict(float)
    for src, tgt in pairs:
        with torch.inference_mode(), record() as tape:
            model(pad_sources([[*src, END]]), torch.tensor([[OUR_SPECIALS.begin, *tgt]]))
        weights = tape[f"decoder.{layer}.cross"][0][0].mean(0)  # (T, S)
        row = [0.0] * len(src)
        for new, token in zip(weights.tolist(), [*tgt, END], strict=True):
            begins = token == END or tokenizer.token(token).startswith("▁")
            row = [new[i] + (0.0 if begins else row[i]) for i in range(len(src))]
            for at in sorted(range(len(src)), key=lambda i: -row[i])[:4]:
                counts[src[at], token] += row[at]
    return counts


def test_counts_are_those_of_a_naive_loop(tokenizer: Tokenizer):
    size = tokenizer.vocab_size
    model = transformer(**{"model.vocab_size": size, "model.decoder_layers": 1})
    sources, targets = sentences((5, 1, 7, 3, 11, 2, 4)), sentences((2, 7, 3, 5, 1, 4, 6))
    pairs = [
        ([i % size for i in s[:-1]], [260 + i % (size - 260) for i in t[:-1]])
        for s, t in zip(sources, targets, strict=True)
    ]
    short = learn(model, tokenizer, pairs, best=3, frequent=2)
    counts = naive_counts(model, 0, pairs, tokenizer)
    totals: dict[int, float] = defaultdict(float)
    for (_, tgt), weight in counts.items():
        totals[tgt] += weight
    frequent = sorted(totals, key=lambda tgt: -totals[tgt])[:2]
    always = {END, *range(4, 260), *frequent}
    assert set(short.always.tolist()) == always
    for token in range(size):
        row = sorted(
            (-weight, tgt) for (src, tgt), weight in counts.items() if src == token and tgt not in always
        )
        found = short.ids[short.starts[token] : short.starts[token + 1]].tolist()
        assert found == [tgt for _, tgt in row[:3]]


def test_the_layer_that_tells_most_is_taken(tokenizer: Tokenizer):
    size = tokenizer.vocab_size
    model = transformer(**{"model.vocab_size": size})
    places = range(260, size - 2)
    pairs = [([i, i + 1, 9, 11, 13, 17], [i, i + 1]) for i in places]
    short = learn(model, tokenizer, pairs, best=100, frequent=1)

    def entropy(layer: int) -> float:
        counts = naive_counts(model, layer, pairs, tokenizer)
        sums: dict[int, float] = defaultdict(float)
        for (src, _), weight in counts.items():
            sums[src] += weight
        total = -sum(weight * np.log(weight / sums[src]) for (src, _), weight in counts.items())
        return float(total / sum(sums.values()))

    best = min(range(2), key=entropy)
    wanted = [
        pair for pair in sorted(naive_counts(model, best, pairs, tokenizer)) if pair[1] not in short.always
    ]
    sources = np.repeat(np.arange(size), np.diff(short.starts))
    assert sorted(zip(sources.tolist(), short.ids.tolist(), strict=True)) == wanted


def test_nothing_to_learn_from_is_told(tokenizer: Tokenizer):
    model = transformer(**{"model.vocab_size": tokenizer.vocab_size})
    with pytest.raises(DataError, match="no pair"):
        learn(model, tokenizer, [([], [5])])
    with pytest.raises(UsageError, match=r"best \(0\) must be at least 1"):
        learn(model, tokenizer, [([4], [5])], best=0)


@pytest.fixture
def listed(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A copy of the small model with a shortlist from its own store."""
    folder = tmp_path / "listed"
    shutil.copytree(model, folder)
    assert run(["shortlist", "-m", str(folder), "--frequent", "2"]) == 0
    assert "--shortlist" in capsys.readouterr().err
    return folder


@native
def test_a_folder_translates_with_its_shortlist(listed: Path):
    lines = ["a b c", "", "h g", "d d d e"]
    narrow = load_translator(listed, shortlist=True)
    assert narrow.translate(lines) == load_translator(listed).translate(lines)
    short = Shortlist.load(listed, narrow.tokenizer)
    allowed = {*short.always.tolist(), *short.of([*narrow.tokenizer.encode("a b"), END]).tolist()}
    assert set(narrow.tokenizer.encode("A B")) <= allowed
    assert allowed.isdisjoint(OUR_SPECIALS.never)


def test_what_was_saved_is_loaded(listed: Path):
    tokenizer = load_readable(listed).tokenizer
    short = Shortlist.load(listed, tokenizer)
    before = {name: getattr(short, name).copy() for name in ("starts", "ids", "always")}
    short.save(listed, tokenizer)
    again = Shortlist.load(listed, tokenizer)
    assert all((getattr(again, name) == array).all() for name, array in before.items())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, f: f.update(tokenizer="0" * 64), "of another vocabulary: its checksum is 000000000000"),
        (lambda t, f: f.clear(), "of another vocabulary"),
        (lambda t, f: t.update(ids=t["ids"] + 10_000), "is damaged"),
        (lambda t, f: t.update(starts=t["starts"][:-1].clone()), "is damaged"),
        (lambda t, f: t.update(starts=-t["starts"]), "is damaged"),
        (lambda t, f: t.update(always=t["always"].float()), "is damaged"),
        (lambda t, f: t.pop("always"), "is no shortlist"),
    ],
)
def test_a_shortlist_that_does_not_fit_is_refused(listed: Path, change: Any, words: str):
    path = listed / FILE
    tensors = safetensors.torch.load_file(path)
    facts = dict(safetensors.safe_open(path, "pt").metadata())
    change(tensors, facts)
    safetensors.torch.save_file(tensors, path, facts)
    with pytest.raises(ModelError, match=words):
        load_translator(listed, shortlist=True)


def test_the_command_line_says_what_is_wrong(model: Path, tmp_path: Path, regard: Any):
    folder = tmp_path / "copy"
    shutil.copytree(model, folder)
    done = regard("translate", "-m", folder, "--shortlist", input="a b\n")
    assert "has no shortlist.safetensors; make one with regard shortlist" in complaint(done)
    (folder / FILE).write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(ModelError, match="is no shortlist"):
        load_translator(folder, shortlist=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pairs", "0"], "--pairs (0) must be at least 1"),
        (["nowhere.tsv"], "nowhere.tsv does not exist"),
        ([], "holds no token store to learn from; name the pairs: SRC TGT"),
    ],
)
def test_mistakes_are_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
):
    folder = tmp_path / "copy"
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("store"))
    assert run(["shortlist", "-m", str(folder), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert run(["translate", "-m", str(folder), "--shortlist", "--sample"]) == 2
    assert "it means nothing to --sample" in capsys.readouterr().err


def test_pairs_may_be_named(model: Path, letter_files: tuple[Path, Path], tmp_path: Path):
    folder = tmp_path / "copy"
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("store"))
    assert run(["shortlist", "-m", str(folder), *map(str, letter_files), "--pairs", "50"]) == 0
    assert (folder / FILE).exists()


def test_without_the_library_it_is_left_aside_and_said(listed: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(path, "compiled", lambda: "it was not built")
    assert "without the shortlist: no native engine" in str(load_translator(listed, shortlist=True).note)
    with pytest.raises(UsageError, match="means nothing to --engine readable"):
        load_translator(listed, shortlist=True, engine="readable")


def test_the_command_begins_with_the_same_numbers() -> None:
    """They stand in both places, because the command must not import torch before it is used."""
    options = Options(Path("folder"))
    assert (options.best, options.frequent) == (BEST, FREQUENT)
