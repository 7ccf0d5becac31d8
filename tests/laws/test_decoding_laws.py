"""Laws of decoding, for any model: neighbours change nothing, beam 1 is greedy, bounds are kept."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import Config, DecodeConfig, merge
from regard.data.inputs import Tokens, pad_sources
from regard.decoding.beam import beam_search
from regard.decoding.greedy import greedy
from regard.decoding.sampling import Sampling, sample
from regard.decoding.search import Hypothesis, Rules
from regard.models import build
from regard.models.table import TableModel

END, V = 2, 13

sentences = st.lists(st.integers(4, V - 1), min_size=1, max_size=9)
batches = st.lists(sentences, min_size=1, max_size=5)
configs = st.builds(
    DecodeConfig,
    beam=st.integers(1, 7),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    max_ratio=st.sampled_from([0.0, 0.5, 2.0]),
    max_extra=st.integers(1, 7),
    min_ratio=st.sampled_from([0.0, 0.5, 5.0]),
)
seeds = st.integers(0, 2**32)


def table(seed: int) -> TableModel:
    generator = torch.Generator().manual_seed(seed)
    return TableModel(2 * torch.randn(V, V, generator=generator), torch.randn(V, V, generator=generator))


def transformer(seed: int, positions: str = "sinusoidal") -> Any:
    overrides = {
        "model.d_model": 24,
        "model.n_heads": 3,
        "model.d_ff": 31,
        "model.encoder_layers": 1,
        "model.decoder_layers": 2,
        "model.vocab_size": V,
        "positions.kind": positions,
        "positions.max_length": 17,
    }
    torch.manual_seed(seed)
    model = build(merge(Config(), overrides)).eval()
    for parameter in model.parameters():
        parameter.data *= 1.5  # further from the flat beginning, so that choices are clear
    return model


def prepare(model: Any, sources: list[list[int]], config: DecodeConfig) -> tuple[Tokens, Rules]:
    inputs = pad_sources([[*ids, END] for ids in sources])
    return inputs, Rules.of(config, inputs.real.sum(1).tolist(), max_length=model.max_length)


def search(model: Any, sources: list[list[int]], config: DecodeConfig) -> list[list[Hypothesis]]:
    with torch.inference_mode():
        return beam_search(model, *prepare(model, sources, config), beam=config.beam, n_best=config.beam)


@given(seeds, batches, configs)
def test_a_beam_of_one_is_greedy(seed: int, sources: list[list[int]], config: DecodeConfig) -> None:
    given_to_both = prepare(table(seed), sources, config)
    narrow = beam_search(table(seed), *given_to_both, beam=1)
    assert [each for (each,) in narrow] == greedy(table(seed), *given_to_both)


@given(seeds, batches, configs)
def test_outputs_keep_their_bounds(seed: int, sources: list[list[int]], config: DecodeConfig) -> None:
    for ids, found in zip(sources, search(table(seed), sources, config), strict=True):
        most = config.max_extra + int(config.max_ratio * len(ids))
        for each in found:
            assert each.length <= most
            assert each.truncated == (len(each.ids) == most)
            assert each.truncated or len(each.ids) >= min(config.min_ratio * len(ids), most - 1)
            assert all(4 <= number < V for number in each.ids)


@given(seeds, batches, configs)
def test_n_best_are_sorted_and_distinct(seed: int, sources: list[list[int]], config: DecodeConfig) -> None:
    for found in search(table(seed), sources, config):
        assert 1 <= len(found) <= config.beam
        assert found == sorted(found, key=lambda each: -each.score)
        assert len({(*each.ids, each.truncated) for each in found}) == len(found)


@given(seeds, batches, configs)
def test_neighbours_change_nothing(seed: int, sources: list[list[int]], config: DecodeConfig) -> None:
    together = search(table(seed), sources, config)
    assert together == [search(table(seed), [ids], config)[0] for ids in sources]


def same(one: list[Hypothesis], other: list[Hypothesis]) -> bool:
    """Equal tokens; scores to the last bits that padding may move."""
    return [(each.ids, each.truncated) for each in one] == [
        (each.ids, each.truncated) for each in other
    ] and ([each.score for each in one] == pytest.approx([each.score for each in other], rel=1e-4, abs=1e-5))


@settings(max_examples=25)
@given(st.integers(0, 5), batches, configs, st.sampled_from(["sinusoidal", "learned"]))
def test_neighbours_change_nothing_in_a_transformer(
    seed: int, sources: list[list[int]], config: DecodeConfig, positions: str
) -> None:
    model = transformer(seed, positions)
    together = search(model, sources, config)
    assert all(
        same(found, search(model, [ids], config)[0]) for ids, found in zip(sources, together, strict=True)
    )


@settings(max_examples=25)
@given(st.integers(0, 5), batches, configs)
def test_a_score_is_what_teacher_forcing_gives(
    seed: int, sources: list[list[int]], config: DecodeConfig
) -> None:
    """Cached steps and one whole pass agree on log p of every output."""
    model = transformer(seed)
    for ids, found in zip(sources, search(model, sources, config), strict=True):
        inputs = pad_sources([[*ids, END]])
        for each in found:
            written = torch.tensor([each.ids if each.truncated else [*each.ids, END]])
            tgt_in = torch.cat([torch.tensor([[1]]), written[:, :-1]], 1)
            with torch.inference_mode():
                logp = model.project(model(inputs, tgt_in)).log_softmax(-1)
            total = logp.gather(2, written[..., None]).sum().item()
            wanted = total / written.shape[1] ** config.length_penalty
            assert each.score == pytest.approx(wanted, rel=1e-3, abs=1e-4)


@given(seeds, batches, configs, st.integers(0, 2**64))
def test_neighbours_change_no_draw(
    seed: int, sources: list[list[int]], config: DecodeConfig, random: int
) -> None:
    model, sampling = table(seed), Sampling(temperature=1.3, top_k=7, top_p=0.9, seed=random)
    together = sample(model, *prepare(model, sources, config), sampling=sampling, draws=2)
    for ids, found in zip(sources, together, strict=True):
        assert [found] == sample(model, *prepare(model, [ids], config), sampling=sampling, draws=2)


@given(seeds, batches, configs)
def test_drawing_from_the_likeliest_alone_is_greedy(
    seed: int, sources: list[list[int]], config: DecodeConfig
) -> None:
    given_to_both = prepare(table(seed), sources, config)
    drawn = sample(table(seed), *given_to_both, sampling=Sampling(top_k=1))
    assert [each for (each,) in drawn] == greedy(table(seed), *given_to_both)
