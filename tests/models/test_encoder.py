"""The encoder against torch's own layers with copied weights; neighbours and padding change nothing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard.config import Config, merge
from regard.data.inputs import Tokens, pad_sources
from regard.errors import UsageError
from regard.models import build
from regard.models.encoder import Encoder

V, D, H, F, N = 31, 22, 2, 13, 3


def config(**more: object) -> Config:
    settings = {
        "task": "masked",
        "model.kind": "encoder",
        "model.vocab_size": V,
        "model.d_model": D,
        "model.n_heads": H,
        "model.d_ff": F,
        "model.encoder_layers": N,
        "model.decoder_layers": 0,
        "model.dropout": 0.0,
        "model.activation": "gelu",
        "positions.kind": "learned",
        "positions.max_length": 17,
    }
    return merge(Config(), settings | {key.replace("__", "."): value for key, value in more.items()})


def made(**more: object) -> Encoder:
    torch.manual_seed(7)
    model = build(config(**more)).eval()
    assert isinstance(model, Encoder)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)
    return model


def torchs(model: Encoder, *, first: bool) -> nn.TransformerEncoder:
    """torch's encoder with the same weights."""
    layer = nn.TransformerEncoderLayer(
        D, H, F, dropout=0.0, activation="gelu", batch_first=True, norm_first=first
    )
    theirs = nn.TransformerEncoder(
        layer, N, norm=nn.LayerNorm(D) if first else None, enable_nested_tensor=False
    )
    own = model.state_dict()
    for i, each in enumerate(theirs.layers):
        here = f"encoder.{i}"
        state = {}
        for part in ("weight", "bias"):
            joined = [own[f"{here}.attention.{which}.{part}"] for which in ("query", "key_value")]
            state[f"self_attn.in_proj_{part}"] = torch.cat(joined)
            state[f"self_attn.out_proj.{part}"] = own[f"{here}.attention.out.{part}"]
            state[f"linear1.{part}"] = own[f"{here}.feed_forward.inner.{part}"]
            state[f"linear2.{part}"] = own[f"{here}.feed_forward.outer.{part}"]
            state[f"norm1.{part}"] = own[f"{here}.around_attention.norm.{part}"]
            state[f"norm2.{part}"] = own[f"{here}.around_feed_forward.norm.{part}"]
        each.load_state_dict(state)
    if first:
        theirs.norm.load_state_dict({part: own[f"encoder_norm.{part}"] for part in ("weight", "bias")})
    return theirs.eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("normed", [True, False])
def test_it_computes_what_torchs_layers_do(norm: str, normed: bool) -> None:
    model = made(model__norm=norm, model__embedding_norm=normed, model__norm_eps=1e-5)
    inputs = pad_sources([[5, 6, 7, 8, 9], [3, 4], [1, 2, 3]])
    own = model.state_dict()
    x = own["embedding.weight"][inputs.ids] * D**0.5 + own["embedding.positions.table"][: inputs.ids.shape[1]]
    if normed:
        x = nn.functional.layer_norm(x, (D,), own["embedding.norm.weight"], own["embedding.norm.bias"])
    theirs = torchs(model, first=norm == "pre")
    with torch.no_grad():
        wanted = theirs(x, src_key_padding_mask=~inputs.real)
        found = model.encode(inputs)
    assert torch.allclose(found[inputs.real], wanted[inputs.real], atol=1e-4)


def test_the_output_goes_through_its_transform() -> None:
    model = made(model__output_transform=True, model__output_bias=True)
    hidden = torch.randn(2, 3, D)
    own = model.state_dict()
    inner = nn.functional.gelu(hidden @ own["transform.inner.weight"].t() + own["transform.inner.bias"])
    normed = nn.functional.layer_norm(inner, (D,), own["transform.norm.weight"], own["transform.norm.bias"])
    wanted = normed @ own["embedding.weight"].t() + own["output_bias"]
    assert torch.allclose(model.project(hidden), wanted, atol=1e-5)


@pytest.mark.parametrize("positions", ["learned", "rotary", "relative", "alibi", "sinusoidal"])
@settings(max_examples=9)
@given(seed=st.integers(0, 50), neighbours=st.lists(st.integers(1, 13), max_size=3))
def test_neighbours_and_padding_change_nothing(positions: str, seed: int, neighbours: list[int]) -> None:
    if positions == "rotary":
        model = made(positions__kind=positions, model__n_heads=1)
    else:
        model = made(positions__kind=positions)
    draw = torch.Generator().manual_seed(seed)
    rows = [torch.randint(0, V, (n,), generator=draw).tolist() for n in (5, *neighbours)]
    with torch.no_grad():
        alone = model.encode(Tokens(torch.tensor(rows[:1])))
        among = model.encode(pad_sources(rows))
    assert torch.allclose(among[0, :5], alone[0], atol=1e-5)


@pytest.mark.parametrize(
    ("key", "value"), [("model__embedding_norm", True), ("model__output_transform", True)]
)
def test_other_kinds_refuse_what_only_an_encoder_has(key: str, value: bool) -> None:
    with pytest.raises(UsageError, match="means nothing to model"):
        config(task="translation", model__kind="transformer", model__decoder_layers=1, **{key: value})
