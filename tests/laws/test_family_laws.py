"""Laws of every score with every kind of positions and norm, through the whole Transformer."""

import pytest
import torch
from forest import random_heads
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention import heads_off, record
from regard.config import POSITION_KINDS, Config, DecodeConfig, merge
from regard.config.model import ACTIVATIONS
from regard.data.inputs import Tokens
from regard.decoding.beam import beam_search
from regard.decoding.greedy import greedy
from regard.decoding.search import Rules
from regard.errors import UsageError
from regard.kinds import SCORES
from regard.models import build

V = 31
SHAPE = {
    "model.vocab_size": V,
    "model.d_model": 24,
    "model.n_heads": 6,
    "model.d_ff": 17,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "positions.clip": 2,
    "positions.max_length": 16,
}
EXAMPLES = settings(max_examples=50, deadline=None)
seeds, lengths = st.integers(0, 2**31 - 1), st.integers(2, 9)
variants = st.fixed_dictionaries(
    {
        "attention.score": st.sampled_from(list(SCORES)),
        "positions.kind": st.sampled_from(POSITION_KINDS),
        "model.norm_weights": st.sampled_from(["both", "gain", "none"]),
        "model.norm": st.sampled_from(["pre", "post", "pre-rms", "post-rms"]),
        "model.activation": st.sampled_from(ACTIVATIONS),
        "model.bias": st.booleans(),
        "model.kv_heads": st.sampled_from([0, 1, 2, 3]),
    }
)
Variant = dict[str, object]


def make(variant: Variant, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return build(merge(Config(), SHAPE | variant)).eval()


def ids(rows: int, length: int) -> Tensor:
    return torch.randint(4, V, (rows, length))


def forest(*real: int, width: int | None = None) -> Tensor:
    """Trees for sentences of these lengths; every kind but one pays no heed to them."""
    width = width or max(real)
    return torch.stack([random_heads(n, width=width, seed=i) for i, n in enumerate(real)])


@EXAMPLES
@given(variants, seeds, lengths, lengths, st.data())
def test_the_future_changes_nothing_past(
    variant: Variant, seed: int, source: int, target: int, data: st.DataObject
) -> None:
    model, src, tgt = make(variant, seed), ids(2, source), ids(2, target)
    cut = data.draw(st.integers(1, target - 1))
    changed, mask = tgt.clone(), torch.ones_like(src, dtype=torch.bool)
    changed[:, cut:] = (changed[:, cut:] + 7) % V
    trees = forest(source, source)
    with torch.no_grad():
        before, after = model(Tokens(src, mask, trees), tgt), model(Tokens(src, mask, trees), changed)
    torch.testing.assert_close(before[:, :cut], after[:, :cut], atol=1e-5, rtol=1e-4)


@EXAMPLES
@given(variants, seeds, lengths, lengths, st.integers(1, 5), st.integers(0, 3))
def test_padding_and_neighbours_change_nothing(
    variant: Variant, seed: int, source: int, target: int, padding: int, neighbours: int
) -> None:
    model, src, tgt = make(variant, seed), ids(1, source), ids(1, target)
    wide = torch.cat([torch.cat([src, ids(1, padding)], 1), ids(neighbours, source + padding)])
    mask = torch.ones_like(wide, dtype=torch.bool)
    mask[0, source:] = False
    with torch.no_grad():
        alone = model(Tokens(src, mask[:1, :source], forest(source)), tgt)
        trees = forest(source, *[source + padding] * neighbours, width=source + padding)
        together = model(Tokens(wide, mask, trees), torch.cat([tgt, ids(neighbours, target)]))
    torch.testing.assert_close(together[:1], alone, atol=1e-5, rtol=1e-4)


@EXAMPLES
@given(variants, seeds, lengths, lengths)
def test_cached_equals_uncached(variant: Variant, seed: int, source: int, target: int) -> None:
    model, src, tgt = make(variant, seed), ids(2, source), ids(2, target)
    mask = torch.ones_like(src, dtype=torch.bool)
    trees = forest(source, source)
    with torch.no_grad():
        whole, state = (
            model.project(model(Tokens(src, mask, trees), tgt)),
            model.start(Tokens(src, mask, trees)),
        )
        for t in range(target):
            logits, state = model.step(tgt[:, t], state)
            torch.testing.assert_close(logits, whole[:, t], atol=1e-4, rtol=1e-3)


@EXAMPLES
@given(variants, seeds, lengths, lengths)
def test_weights_sum_to_one_and_recording_changes_nothing(
    variant: Variant, seed: int, source: int, target: int
) -> None:
    model, src, tgt = make(variant, seed), ids(2, source), ids(2, target)
    mask = torch.ones_like(src, dtype=torch.bool)
    mask[1, source // 2 + 1 :] = False
    trees = forest(source, source // 2 + 1, width=source)
    with torch.no_grad():
        plain = model(Tokens(src, mask, trees), tgt)
        with record() as tape:
            taped = model(Tokens(src, mask, trees), tgt)
    torch.testing.assert_close(taped, plain, atol=1e-5, rtol=1e-4)
    assert len(tape.names()) == 6
    for name in tape.names():
        (weights,) = tape[name]
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]), atol=1e-5, rtol=0)


@EXAMPLES
@given(variants, seeds, st.integers(0, 5))
def test_a_head_that_is_off_contributes_nothing(variant: Variant, seed: int, head: int) -> None:
    """Off is the same as a column of zeros in the output projection, when decoding too."""
    model, src, tgt = make(variant, seed), ids(2, 7), ids(2, 5)
    mask, width = torch.ones_like(src, dtype=torch.bool), 24 // 6
    trees = forest(7, 7)
    with torch.no_grad():
        with heads_off({"decoder.1.self": {head}, "encoder.0.self": {head}}):
            state = model.start(Tokens(src, mask, trees))
            logits = []
            for t in range(5):
                each, state = model.step(tgt[:, t], state)
                logits.append(each)
        for layer in (model.decoder[1], model.encoder[0]):
            layer.attention.out.weight[:, head * width : (head + 1) * width] = 0
        expected = model.project(model(Tokens(src, mask, trees), tgt))
    torch.testing.assert_close(torch.stack(logits, 1), expected, atol=1e-4, rtol=1e-3)


def test_a_head_that_does_not_exist_cannot_be_off() -> None:
    model, src = make({}, 0), ids(1, 3)
    with heads_off({"decoder.1.cross": {6}}), pytest.raises(UsageError, match=r"heads 0 to 5.* head 6"):
        model(Tokens(src, src > 0), ids(1, 3))


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4, 6, 8, 12, 24])
def test_any_number_of_heads_that_divides(n_heads: int) -> None:
    model, src = make({"model.n_heads": n_heads}, 1), ids(2, 5)
    with record() as tape:
        assert model(Tokens(src, src > 0), ids(2, 4)).shape == (2, 4, 24)
    assert tape["decoder.0.cross"][0].shape == (2, n_heads, 4, 5)


@pytest.mark.parametrize("kind", POSITION_KINDS)
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_fewer_key_heads_under_beam_search(kind: str, kv_heads: int) -> None:
    """What the beam says of an output is what one uncached pass says; it is never worse than greedy."""
    model = make({"positions.kind": kind, "model.kv_heads": kv_heads}, 3)
    src = ids(3, 6)
    mask = torch.ones_like(src, dtype=torch.bool)
    rules = Rules.of(DecodeConfig(max_ratio=0, max_extra=4, length_penalty=0.0), mask.sum(1).tolist())
    inputs = Tokens(src, mask, forest(6, 6, 6))
    with torch.inference_mode():
        found = beam_search(model, inputs, rules, beam=3, n_best=1)
        first = greedy(model, inputs, rules)
        state = model.start(inputs)
        assert {each.k.shape[1] for each in state.memory} == {kv_heads}
        for row, (beam, single) in enumerate(zip(found, first, strict=True)):
            assert beam[0].score >= single.score - 1e-4
            assert beam[0].score == pytest.approx(_log_p(model, inputs, row, beam[0]), abs=1e-3)


def _log_p(model: torch.nn.Module, inputs: Tokens, row: int, output: object) -> float:
    """log p of an output by one uncached pass over the whole batch."""
    ended = [] if output.truncated else [2]  # type: ignore[attr-defined]
    wanted = [*output.ids, *ended]  # type: ignore[attr-defined]
    tgt = torch.tensor([[1, *wanted[:-1]]] * len(inputs))
    logp = model.project(model(inputs, tgt))[row].log_softmax(-1)
    return float(sum(logp[t, token] for t, token in enumerate(wanted)))


@pytest.mark.parametrize("kind", [kind for kind in POSITION_KINDS if kind != "learned"])
def test_positions_go_on_past_their_length(kind: str) -> None:
    """40 places where the tables have 16: the same as with tables that are long enough."""
    short, long = (
        make({"positions.kind": kind}, 5),
        make({"positions.kind": kind, "positions.max_length": 64}, 5),
    )
    src, tgt = ids(1, 40), ids(1, 40)
    trees = forest(40)
    with torch.no_grad():
        inputs = Tokens(src, None, trees)
        torch.testing.assert_close(short(inputs, tgt), long(inputs, tgt), atol=1e-5, rtol=1e-4)
