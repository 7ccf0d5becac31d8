"""Text in, text out: order, empty lines, windows, limits, and the model left as it was."""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import regard
from regard.config import Config, DecodeConfig, merge
from regard.decoding.sampling import Sampling
from regard.errors import DataError, UsageError
from regard.models import build, folder
from regard.models.table import TableModel
from regard.tasks.translation.translator import Translation, Translator, load_readable
from regard.text.normalise import normalise
from regard.text.tokenizer import Tokenizer

LINES = ["a cat", "", "the dog sees a cat", "dog", "   \t ", "the the the cat a dog sees", "sees"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["the cat sees a dog", "a dog sees the cat"] * 9, 0)


def copier(tokenizer: Tokenizer, *, max_length: int | None = None) -> TableModel:
    """A model that writes its source out again: what it reads at a place is all but certain there."""
    size = tokenizer.vocab_size
    echo = 30.0 * torch.eye(size)
    echo[0, 2] = 30.0
    return TableModel(torch.zeros(size, size), echo, max_length=max_length)


@pytest.fixture
def translator(tokenizer: Tokenizer) -> Translator:
    return Translator(copier(tokenizer), tokenizer, DecodeConfig(beam=3))


@pytest.mark.parametrize("batch_size", [1, 2, 32])
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("window", [0, 1, 3])
def test_as_many_lines_out_as_in_and_in_order(
    translator: Translator, batch_size: int, beam: int, window: int
) -> None:
    found = list(translator.stream(LINES, batch_size=batch_size, beam=beam, window=window))
    assert [each.text for each in found] == [normalise(line) for line in LINES]
    assert not any(each.truncated for each in found)


def test_an_empty_line_never_meets_the_model(tokenizer: Tokenizer) -> None:
    class Untouchable(TableModel):
        def start(self, inputs):  # type: ignore[no-untyped-def]
            raise AssertionError("the model was asked")

    translator = Translator(Untouchable(torch.zeros(9, 9)), tokenizer)
    assert list(translator.stream(["", " \t", "\ufeff"])) == [Translation("", 0.0, False)] * 3
    assert translator.translate([]) == []
    assert translator.hypotheses([""], n_best=2) == [[Translation("", 0.0, False)]]


def test_endless_input_is_answered_a_window_at_a_time(translator: Translator) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        for read in itertools.count(1):
            yield f"a cat {read}"

    answers = translator.stream(endless(), batch_size=2, beam=1)
    assert next(answers).text == "a cat 1"
    assert read == 40  # 20 batches
    assert [each.text for each in itertools.islice(answers, 40)][-1] == "a cat 41"
    assert read == 80


def test_a_window_of_one_answers_at_once(translator: Translator) -> None:
    asked: list[str] = []

    def typing() -> Iterator[str]:
        for line in LINES:
            asked.append(line)
            yield line

    for number, _ in enumerate(translator.stream(typing(), window=1), 1):
        assert len(asked) == number


def test_lines_before_a_failure_of_the_input_are_answered(translator: Translator) -> None:
    def broken() -> Iterator[str]:
        yield from LINES[:3]
        raise DataError("line 4 is no UTF-8")

    answers = translator.stream(broken())
    assert [next(answers).text for _ in range(3)] == LINES[:3]
    with pytest.raises(DataError, match="line 4 is no UTF-8"):
        next(answers)


def test_a_line_longer_than_the_positions_is_named_after_the_others_are_answered(
    tokenizer: Tokenizer,
) -> None:
    translator = Translator(copier(tokenizer, max_length=7), tokenizer, DecodeConfig(beam=2))
    lines = ["a", "cat", "the dog", "a " * 7, "dog"]
    answers = translator.stream(lines, batch_size=2, window=3)
    assert [next(answers).text for _ in range(3)] == lines[:3]
    with pytest.raises(DataError, match=r"line 4 has 8 tokens.* takes 7 .*split") as error:
        next(answers)
    assert error.value.exit_code == 2


def test_a_line_that_just_fits_is_translated_within_the_positions(tokenizer: Tokenizer) -> None:
    translator = Translator(copier(tokenizer, max_length=7), tokenizer)
    (found,) = translator.stream(["a " * 6])
    assert (found.text, found.truncated, found.tokens) == ("a a a a a a", False, 7)


def test_without_a_limit_long_lines_are_fine(translator: Translator) -> None:
    line = " ".join(["cat"] * 700)
    assert translator.translate(["dog", line, "a"], beam=1) == ["dog", line, "a"]


def test_a_line_beyond_the_folders_own_limit_is_refused_whatever_the_positions(tokenizer: Tokenizer) -> None:
    translator = Translator(copier(tokenizer), tokenizer, DecodeConfig(beam=1, max_source=5))
    assert translator.translate(["a a a a"]) == ["a a a a"]
    with pytest.raises(DataError, match=r"line 2 has 6 tokens.* takes 5 \(decode.max_source"):
        translator.translate(["a", "a a a a a"])


def test_a_cut_output_is_marked(tokenizer: Tokenizer) -> None:
    decode = DecodeConfig(beam=2, max_ratio=0.0, max_extra=2)
    found = list(Translator(copier(tokenizer), tokenizer, decode).stream(["a a a a", "a"]))
    assert [(each.text, each.truncated, each.tokens) for each in found] == [("a a", True, 2), ("a", False, 2)]


def test_n_best_have_scores_and_the_first_is_the_answer(tokenizer: Tokenizer) -> None:
    size = tokenizer.vocab_size
    model = TableModel(torch.randn(size, size, generator=torch.Generator().manual_seed(3)))
    translator = Translator(model, tokenizer, DecodeConfig(beam=5, max_ratio=0, max_extra=9))
    for line, each in zip(LINES, translator.hypotheses(LINES, n_best=4), strict=True):
        assert len(each) == (4 if normalise(line) else 1)
        whole = [one.score for one in each if not one.truncated]
        assert whole == sorted(whole, reverse=True)
    (answer,) = translator.stream(["a cat"], n_best=4)
    assert answer.n_best[0] == dataclasses.replace(answer, n_best=())
    assert translator.translate(["a cat"]) == [answer.text]
    assert math.isfinite(answer.score)


def test_sampling_takes_the_place_of_searching(translator: Translator) -> None:
    assert translator.translate(LINES, sampling=Sampling(top_k=1)) == translator.translate(LINES)
    (drawn,) = translator.hypotheses(["a cat"], n_best=7, sampling=Sampling(temperature=50.0))
    assert len(drawn) == 7


def test_a_line_break_that_the_model_writes_is_a_space(tokenizer: Tokenizer) -> None:
    size, newline, end = tokenizer.vocab_size, 4 + 0x0A, 2
    chain = torch.zeros(size, size)
    chain[1, newline] = chain[newline, newline + 3] = chain[newline + 3, end] = 30.0  # \n, \r
    assert Translator(TableModel(chain), tokenizer).translate(["a"], beam=1) == ["  "]


def test_ids_that_only_pad_the_vocabulary_are_never_written(tokenizer: Tokenizer) -> None:
    size = tokenizer.vocab_size + 13
    chain = torch.zeros(size, size)
    chain[:, tokenizer.vocab_size :] = 9.0
    translator = Translator(TableModel(chain), tokenizer, DecodeConfig(max_extra=5, max_ratio=0))
    assert len(translator.translate(["a", "cat"])) == 2


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"beam": 0}, r"beam \(0\)"),
        ({"n_best": 0}, r"n_best \(0\)"),
        ({"n_best": 4}, r"n_best \(4\) must be at most beam \(3\)"),
        ({"batch_size": 0}, r"batch_size \(0\)"),
        ({"window": -1}, r"window \(-1\)"),
        ({"length_penalty": -1.0}, r"length_penalty \(-1\)"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_at_once(
    translator: Translator, options: dict[str, int], rule: str
) -> None:
    with pytest.raises(UsageError, match=rule):
        translator.stream(["a"], **options)  # type: ignore[arg-type]


def test_one_string_is_not_a_list_of_lines(translator: Translator) -> None:
    with pytest.raises(UsageError, match=r"list of lines.*\['a cat'\]"):
        translator.stream("a cat")
    assert [translator.translate("a cat")] == translator.translate(["a cat"])


def small(tokenizer: Tokenizer) -> Config:
    return merge(
        Config(),
        {
            "model.d_model": 24,
            "model.n_heads": 3,
            "model.d_ff": 31,
            "model.encoder_layers": 1,
            "model.decoder_layers": 2,
            "model.vocab_size": tokenizer.vocab_size,
            "decode.max_extra": 7,
        },
    )


def test_a_model_in_training_is_evaluated_and_goes_on_training(tokenizer: Tokenizer) -> None:
    model = build(small(tokenizer)).train()
    translator = Translator(model, tokenizer)
    first = translator.translate(LINES, beam=2)
    assert first == translator.translate(LINES, beam=2)  # no dropout
    assert model.training
    assert all(p.requires_grad and not p.is_inference() for p in model.parameters())


def test_batch_size_and_order_change_no_translation(tokenizer: Tokenizer) -> None:
    torch.manual_seed(7)
    translator = Translator(build(small(tokenizer)), tokenizer)
    wanted = {line: translator.hypotheses([line], n_best=3)[0] for line in LINES}
    for batch_size, lines in itertools.product((1, 3, 32), (LINES, LINES[::-1])):
        for line, found in zip(
            lines, translator.hypotheses(lines, n_best=3, batch_size=batch_size), strict=True
        ):
            assert [each.text for each in found] == [each.text for each in wanted[line]]
            assert [each.score for each in found] == pytest.approx([each.score for each in wanted[line]])


def test_a_folder_becomes_a_translator(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = small(tokenizer)
    model = build(config).eval()
    folder.save(tmp_path, config=config, model=model, tokenizer=tokenizer, card="")
    before = Translator(model, tokenizer, config.decode).hypotheses(LINES, n_best=3)
    assert load_readable(tmp_path).hypotheses(LINES, n_best=3) == before
    assert regard.load(str(tmp_path)).translate(["a cat"]) == [before[0][0].text]


@pytest.mark.parametrize("call", ["translate", "stream", "hypotheses", "texts"])
def test_a_keyword_that_means_nothing_is_refused(translator: Translator, call: str) -> None:
    with pytest.raises(UsageError, match=r"^beem means nothing to translating, which also takes .*length"):
        getattr(translator, call)(["a"], beem=3)
