"""Mask-predict against a loop that looks at one output at a time."""

import pytest
import torch

from regard.config import Config, DecodeConfig, merge
from regard.data.inputs import pad_sources
from regard.decoding.maskpredict import WAY
from regard.decoding.search import Hypothesis, Rules
from regard.decoding.way import Spelling, Wanted
from regard.errors import DataError
from regard.models import build
from regard.models.parallel import REACH, Parallel
from regard.text.tokenizer import OUR_SPECIALS

V = 29
SOURCES = [[5, 7, 2], [11, 13, 17, 19, 23, 2], [6, 2]]
BANNED = [*OUR_SPECIALS.never, OUR_SPECIALS.end]


@pytest.fixture(scope="module")
def model() -> Parallel:
    torch.manual_seed(3)
    shape = {"model.vocab_size": V, "model.d_model": 16, "model.n_heads": 2, "model.d_ff": 23}
    made = build(merge(Config(), shape | {"model.kind": "parallel", "model.dropout": 0.0})).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    assert isinstance(made, Parallel)
    made.requires_grad_(False)
    return made


def rules(**decode: object) -> Rules:
    return Rules.of(DecodeConfig(**decode), map(len, SOURCES))


def one_by_one(model: Parallel, source: list[int], length: int, passes: int) -> tuple[list[int], float]:
    """The paper's loop, for one output."""
    state = model.start(pad_sources([source]))
    ids, sure = [OUR_SPECIALS.mask] * length, [0.0] * length
    hidden = list(range(length))
    for number in range(passes):
        if number:
            count = length * (passes - number) // passes
            hidden = sorted(range(length), key=lambda place: sure[place])[:count]
            if not hidden:
                break
        seen = [OUR_SPECIALS.mask if place in hidden else token for place, token in enumerate(ids)]
        logp = model.logits(torch.tensor([seen]), torch.ones(1, length) > 0, state)[0].log_softmax(-1)
        logp[:, BANNED] = float("-inf")
        for place in hidden:
            ids[place], sure[place] = int(logp[place].argmax()), float(logp[place].max())
    return ids, sum(sure) / length


def search(model: Parallel, **options: object) -> list[list[Hypothesis]]:
    n_best = options.pop("n_best", 1)
    wanted = Wanted(DecodeConfig(**options), n_best)
    WAY.check(wanted)
    with torch.inference_mode():
        return WAY.search(model, pad_sources(SOURCES), rules(), wanted)


@pytest.mark.parametrize("passes", [1, 4, 10])
def test_agrees_with_a_naive_loop(model: Parallel, passes: int) -> None:
    found = search(model, iterations=passes, lengths=3, n_best=3)
    for source, outputs in zip(SOURCES, found, strict=True):
        logits = model.lengths(model.start(pad_sources([source])))[0].tolist()
        lengths = {len(source) - 1 + place - REACH: logit for place, logit in enumerate(logits)}
        most = (len(source) - 1) * 2 + 31
        best = sorted((n for n in lengths if 1 <= n <= most), key=lambda n: -lengths[n])[:3]
        wanted = sorted((one_by_one(model, source, n, passes) for n in best), key=lambda each: -each[1])
        assert [each.ids for each in outputs] == [ids for ids, _ in wanted]
        assert [each.score for each in outputs] == pytest.approx([score for _, score in wanted], rel=1e-4)


def test_batches_change_nothing(model: Parallel) -> None:
    together = search(model, lengths=2, n_best=2)
    for source, outputs in zip(SOURCES, together, strict=True):
        bounds = Rules.of(DecodeConfig(), [len(source)])
        asked = Wanted(DecodeConfig(lengths=2), 2)
        (alone,) = WAY.search(model, pad_sources([source]), bounds, asked)
        assert [each.ids for each in alone] == [each.ids for each in outputs]


def test_an_output_is_cut_where_the_end_comes(model: Parallel) -> None:
    for (found,) in search(model, length="predict", iterations=2):
        assert OUR_SPECIALS.end not in found.ids
    decode = DecodeConfig(length="end", iterations=1)
    with torch.inference_mode():
        outputs = WAY.search(model, pad_sources(SOURCES), rules(), Wanted(decode))
        state = model.start(pad_sources(SOURCES[:1]))
        places = (len(SOURCES[0]) - 1) * 3 // 2 + 8
        seen = torch.full((1, places), OUR_SPECIALS.begin)
        logp = model.logits(seen, torch.ones(1, places) > 0, state)[0].log_softmax(-1).clone()
        logp[:, list(OUR_SPECIALS.never)] = float("-inf")
    ids = logp.argmax(-1).tolist()
    ended = OUR_SPECIALS.end in ids
    assert outputs[0][0].ids == (ids[: ids.index(OUR_SPECIALS.end)] if ended else ids)
    assert outputs[0][0].truncated is not ended


@pytest.mark.parametrize("length", [1, 7])
def test_a_length_is_kept_exactly(model: Parallel, length: int) -> None:
    assert [len(found.ids) for (found,) in _with_length(model, length)] == [length] * 3


def _with_length(model: Parallel, length: int) -> list[list[Hypothesis]]:
    with torch.inference_mode():
        return WAY.search(model, pad_sources(SOURCES), rules(), Wanted(DecodeConfig(), length=length))


@pytest.mark.parametrize("most", [1, 4, 11])
def test_no_output_has_more_characters_than_were_asked_for(model: Parallel, most: int) -> None:
    spelling = Spelling(torch.arange(V) % 5 + 1, torch.arange(V) % 2)
    with torch.inference_mode():
        asked = Wanted(DecodeConfig(), max_chars=most, spelling=spelling)
        found = WAY.search(model, pad_sources(SOURCES), rules(), asked)
    assert all(spelling.count(each.ids) <= most for (each,) in found)


def test_a_length_above_the_bound_is_one_line_with_the_numbers(model: Parallel) -> None:
    with pytest.raises(
        DataError, match=r"length \(900\) is above the longest output of a line of 1 tokens, 34"
    ):
        _with_length(model, 900)
