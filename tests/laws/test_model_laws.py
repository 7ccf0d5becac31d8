"""Laws of the model: the future, padding, neighbours, order, the sum of weights."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import attend, record, weigh
from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.models import build

V = 31
SHAPE = {
    "model.vocab_size": V,
    "model.d_model": 12,
    "model.n_heads": 3,
    "model.d_ff": 17,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
}
lengths = st.integers(1, 9)
seeds = st.integers(0, 2**31 - 1)
variants = st.fixed_dictionaries(
    {
        "model.norm": st.sampled_from(["pre", "post"]),
        "positions.kind": st.sampled_from(["sinusoidal", "learned", "none"]),
        "attention.score": st.sampled_from(["scaled-dot", "dot"]),
    }
)


def make(variant: dict[str, str], seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return build(merge(Config(), SHAPE | variant)).eval()


def ids(rows: int, length: int) -> torch.Tensor:
    return torch.randint(4, V, (rows, length))


@settings(max_examples=40, deadline=None)
@given(variants, seeds, lengths, st.integers(2, 9), st.data())
def test_changing_the_future_changes_no_past_output(
    variant: dict[str, str], seed: int, source: int, target: int, data: st.DataObject
) -> None:
    model = make(variant, seed)
    src, tgt = ids(2, source), ids(2, target)
    cut = data.draw(st.integers(1, target - 1))
    changed = tgt.clone()
    changed[:, cut:] = (changed[:, cut:] + 7) % V
    mask = torch.ones_like(src, dtype=torch.bool)
    before, after = model(Tokens(src, mask), tgt), model(Tokens(src, mask), changed)
    torch.testing.assert_close(before[:, :cut], after[:, :cut], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(before[:, cut:], after[:, cut:], atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(variants, seeds, lengths, lengths, st.integers(1, 5), st.integers(0, 3))
def test_padding_and_neighbours_change_nothing(
    variant: dict[str, str], seed: int, source: int, target: int, padding: int, neighbours: int
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


@settings(max_examples=40, deadline=None)
@given(variants, seeds, lengths, lengths)
def test_cached_equals_uncached(variant: dict[str, str], seed: int, source: int, target: int) -> None:
    model = make(variant, seed)
    src, tgt = ids(2, source), ids(2, target)
    mask = torch.ones_like(src, dtype=torch.bool)
    whole, state = model.project(model(Tokens(src, mask), tgt)), model.start(Tokens(src, mask))
    for t in range(target):
        logits, state = model.step(tgt[:, t], state)
        torch.testing.assert_close(logits, whole[:, t], atol=1e-4, rtol=1e-4)


@settings(max_examples=20, deadline=None)
@given(variants, seeds, lengths, lengths)
def test_weights_of_a_row_sum_to_one(variant: dict[str, str], seed: int, source: int, target: int) -> None:
    model = make(variant, seed)
    src = ids(2, source)
    with record() as tape:
        model(Tokens(src), ids(2, target))
    for name in tape.names():
        torch.testing.assert_close(tape[name][0].sum(-1), torch.ones(2, 3, tape[name][0].shape[2]))


@settings(max_examples=30, deadline=None)
@given(seeds, lengths)
def test_permuting_the_inputs_permutes_the_outputs(seed: int, length: int) -> None:
    torch.manual_seed(seed)
    x = torch.randn(1, 2, length, 5)
    order = torch.randperm(length)
    torch.testing.assert_close(attend(x, x, x)[:, :, order], attend(*[x[:, :, order]] * 3))


@settings(max_examples=30, deadline=None)
@given(seeds, lengths, lengths)
def test_a_masked_row_weighs_only_what_it_sees(seed: int, queries: int, keys: int) -> None:
    torch.manual_seed(seed)
    mask = torch.rand(1, 1, queries, keys) > 0.5
    weights = weigh(torch.randn(1, 2, queries, 5), torch.randn(1, 2, keys, 5), mask=mask)
    assert (weights[(~mask).expand_as(weights)] == 0).all()
    expected = mask.any(-1).float().expand(1, 2, queries)
    torch.testing.assert_close(weights.sum(-1), expected)
