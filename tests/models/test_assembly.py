"""The parts of every model: the first weights, and what the config asks of attention."""

import pytest
import torch

from regard.config import ATTENDING, REPLACED, Config, merge
from regard.data.inputs import Tokens
from regard.kinds import MODELS
from regard.models import build
from regard.models.assembly import needed_mask
from regard.models.transformer import count_parameters

SMALL = {"model.vocab_size": 29, "model.d_model": 48, "model.d_ff": 192, "model.n_heads": 3}


def make(kind: str, **over: object) -> torch.nn.Module:
    torch.manual_seed(0)
    return build(merge(Config(), SMALL | {"model.kind": kind} | over))


def test_every_kind_of_the_config_has_a_model() -> None:
    assert {*ATTENDING, *REPLACED} <= set(MODELS)
    assert all(issubclass(MODELS[kind], torch.nn.Module) for kind in MODELS)


def test_a_recurrence_begins_orthogonal_with_its_forget_gates_open() -> None:
    lstm = make("rnn").decoder[0].lstm
    for gate, part in enumerate(lstm.weight_hh_l0.chunk(4)):
        torch.testing.assert_close(part @ part.T, torch.eye(48), atol=1e-5, rtol=0)
        bias = lstm.bias_ih_l0.chunk(4)[gate] + lstm.bias_hh_l0.chunk(4)[gate]
        assert bias.unique().tolist() == [1.0 if gate == 1 else 0.0]
    bound = (6 / (48 + 48)) ** 0.5
    for part in lstm.weight_ih_l0.chunk(4):
        assert bound * 0.97 < part.abs().max().item() <= bound


def test_a_gated_convolution_keeps_the_variance() -> None:
    """Gehring et al. 2017, 3.5: noise in, noise of about the same size out."""
    window = make("conv").encoder[0].window
    out = window(torch.randn(3, 999, 48))
    assert 0.7 < out.var().item() < 1.4


@pytest.mark.parametrize("kind", REPLACED)
def test_a_preset_gives_about_as_many_weights_as_a_transformer(kind: str) -> None:
    ours, theirs = (count_parameters(make(each)) for each in (kind, "transformer"))
    assert 0.8 < ours / theirs < 1.2


@pytest.mark.parametrize("kind", REPLACED)
def test_the_same_seed_gives_the_same_weights_and_a_sketch_costs_nothing(kind: str) -> None:
    one, other = make(kind).state_dict(), make(kind).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    with torch.device("meta"):
        sketch = build(merge(Config(), SMALL | {"model.kind": kind}))
    assert {name: t.shape for name, t in sketch.state_dict().items()} == {n: t.shape for n, t in one.items()}


@pytest.mark.parametrize("kind", ["transformer", *REPLACED])
def test_a_norm_learns_what_the_config_says_and_nothing_else_changes(kind: str) -> None:
    whole = make(kind).state_dict()
    for word, left in (("gain", ("weight",)), ("none", ())):
        bare = make(kind, **{"model.norm_weights": word}).state_dict()
        norms = {name for name in whole if "norm." in name}
        assert norms
        kept = {name for name in norms if name.endswith(left)} if left else set()
        assert bare.keys() == whole.keys() - norms | kept
        assert all(torch.equal(bare[name], whole[name]) for name in bare)


def test_a_mask_is_made_where_there_is_padding() -> None:
    assert needed_mask(Tokens(torch.ones(2, 3), torch.ones(2, 3) > 0)) is None
    mask = needed_mask(Tokens(torch.ones(1, 2), torch.tensor([[True, False]])))
    assert mask is not None
    assert mask.shape == (1, 1, 1, 2)


@pytest.mark.parametrize("kind", ["transformer", "decoder", *REPLACED])
def test_a_model_without_biases_has_none_in_its_products(kind: str) -> None:
    whole, bare = make(kind).state_dict(), make(kind, **{"model.bias": False}).state_dict()
    gone = set(whole) - set(bare)
    assert set(bare) < set(whole)
    assert all(name.endswith("bias") for name in gone)
    assert any(name.endswith("out.bias") for name in gone) or kind in ("rnn", "conv")
    assert all(torch.equal(bare[name], whole[name]) for name in bare)


def test_muon_takes_a_gate_for_two_matrices() -> None:
    layer = make("decoder", **{"model.activation": "swiglu"}).decoder[0].feed_forward
    assert layer.matrices == {"inner.weight": 2}
    bound = (6 / (48 + 192)) ** 0.5  # of one product, not of both as one
    for part in layer.inner.weight.chunk(2):
        assert bound * 0.97 < part.abs().max().item() <= bound
