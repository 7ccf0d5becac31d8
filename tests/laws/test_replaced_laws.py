"""Laws of the models that attention replaced: the future, padding, neighbours, the cache, the tape, heads."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import record
from regard.attention.switch import heads_off
from regard.config import REPLACED, Config, merge
from regard.data.inputs import Tokens
from regard.kinds import SCORES
from regard.models import build

V = 31
SHAPE = {
    "model.vocab_size": V,
    "model.d_model": 12,
    "model.n_heads": 3,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
}
KINDS = (*REPLACED, "ssru")  # the last one has a recurrence in its decoder alone
ATTENDING = [kind for kind in KINDS if kind != "rnn"]
lengths = st.integers(1, 9)
seeds = st.integers(0, 2**31 - 1)


@st.composite
def variants(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> dict[str, object]:
    """Settings of one of the kinds; only what it follows."""
    kind = draw(st.sampled_from(kinds))
    variant: dict[str, object] = {"model.kind": kind, "model.norm": draw(st.sampled_from(["pre", "post"]))}
    variant["model.norm_weights"] = draw(st.sampled_from(["both", "gain", "none"]))
    if kind != "rnn":
        variant["attention.score"] = draw(st.sampled_from(sorted(SCORES)))
    if kind == "conv":
        variant["model.kernel"] = draw(st.integers(1, 6))
        variant["positions.kind"] = draw(st.sampled_from(["sinusoidal", "learned", "none"]))
    return variant


def make(variant: dict[str, object], seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return build(merge(Config(), SHAPE | variant)).eval()


def ids(rows: int, length: int) -> torch.Tensor:
    return torch.randint(4, V, (rows, length))


@settings(max_examples=30, deadline=None)
@given(variants(), seeds, lengths, st.integers(2, 9), st.data())
def test_changing_the_future_changes_no_past_output(
    variant: dict[str, object], seed: int, source: int, target: int, data: st.DataObject
) -> None:
    model = make(variant, seed)
    src, tgt = ids(2, source), ids(2, target)
    cut = data.draw(st.integers(1, target - 1))
    changed = tgt.clone()
    changed[:, cut:] = (changed[:, cut:] + 7) % V
    mask = torch.ones_like(src, dtype=torch.bool)
    before, after = model(Tokens(src, mask), tgt), model(Tokens(src, mask), changed)
    torch.testing.assert_close(before[:, :cut], after[:, :cut], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(before[:, cut:], after[:, cut:], atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(variants(), seeds, lengths, lengths, st.integers(1, 5), st.integers(0, 3))
def test_padding_and_neighbours_change_nothing(
    variant: dict[str, object], seed: int, source: int, target: int, padding: int, neighbours: int
) -> None:
    model = make(variant, seed)
    src, tgt = ids(1, source), ids(1, target)
    alone = model(Tokens(src), tgt)
    wide = torch.cat([src, ids(1, padding)], 1)
    wide = torch.cat([wide, ids(neighbours, source + padding)])
    mask = torch.ones_like(wide, dtype=torch.bool)
    mask[0, source:] = False
    together = model(Tokens(wide, mask), torch.cat([tgt, ids(neighbours, target)]))
    torch.testing.assert_close(together[:1], alone, atol=1e-5, rtol=1e-4)


@settings(max_examples=30, deadline=None)
@given(variants(), seeds, lengths, lengths, st.data())
def test_cached_equals_uncached_whatever_becomes_of_the_rows(
    variant: dict[str, object], seed: int, source: int, target: int, data: st.DataObject
) -> None:
    model = make(variant, seed)
    src, tgt = ids(3, source), ids(3, target)
    mask = torch.arange(source) < torch.tensor([source, max(1, source - 2), 1])[:, None]
    whole, state = model.project(model(Tokens(src, mask), tgt)), model.start(Tokens(src, mask))
    rows = torch.arange(3)
    for t in range(target):
        logits, state = model.step(tgt[rows, t], state)
        torch.testing.assert_close(logits, whole[rows, t], atol=1e-4, rtol=1e-4)
        kept = torch.tensor(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4)))
        state, rows = state.select(kept), rows[kept]


@settings(max_examples=15, deadline=None)
@given(variants(kinds=tuple(ATTENDING)), seeds, lengths, lengths)
def test_weights_of_a_row_sum_to_one(variant: dict[str, object], seed: int, source: int, target: int) -> None:
    """But those of the first place of an LSTM-N, which has nothing behind it to look at."""
    model = make(variant, seed)
    src, tgt = ids(2, source), ids(2, target)
    mask = torch.ones_like(src, dtype=torch.bool)
    with record() as tape:
        recorded = model(Tokens(src, mask), tgt)
    torch.testing.assert_close(recorded, model(Tokens(src, mask), tgt), atol=1e-5, rtol=1e-4)
    assert "decoder.1.cross" in tape.names()
    for name in tape.names():
        (weights,) = tape[name]
        sums = torch.ones(2, 3, weights.shape[2])
        if name.endswith("self") and variant["model.kind"] == "lstmn":
            sums[:, :, 0] = 0
        torch.testing.assert_close(weights.sum(-1), sums)


@pytest.mark.parametrize("kind", ATTENDING)
def test_heads_that_are_off_let_nothing_of_the_source_through(kind: str) -> None:
    """Where decoding starts from nothing else than attention, the source is no longer heard."""
    model = make({"model.kind": kind}, 0)
    src, other, tgt = ids(2, 5), ids(2, 5), ids(2, 4)
    mask = torch.ones_like(src, dtype=torch.bool)
    every = {f"decoder.{i}.cross": range(3) for i in range(2)}
    with torch.no_grad(), heads_off(every):
        deaf, also = model(Tokens(src, mask), tgt), model(Tokens(other, mask), tgt)
        state = model.start(Tokens(src, mask))
        logits, _ = model.step(tgt[:, 0], state)
        torch.testing.assert_close(logits, model.project(deaf)[:, 0], atol=1e-5, rtol=1e-4)
    assert torch.allclose(deaf, also, atol=1e-6) == (kind != "rnn-attention")
    assert not torch.allclose(deaf, model(Tokens(src, mask), tgt), atol=1e-3)
