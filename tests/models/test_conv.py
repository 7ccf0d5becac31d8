"""Word windows as a model: against torch's conv1d and softmax in plain loops over the layers."""

import pytest
import torch
import torch.nn.functional as F

from regard.attention import record
from regard.attention.positions import sinusoids
from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.errors import DataError, UsageError
from regard.models import build
from regard.models.conv import Convolution

B, S, T, V, D, H, K = 2, 7, 5, 37, 12, 3, 3


def make(**over: object) -> Convolution:
    torch.manual_seed(0)
    overrides = {
        "model.kind": "conv",
        "model.kernel": K,
        "model.vocab_size": V,
        "model.d_model": D,
        "model.n_heads": H,
        "model.encoder_layers": 2,
        "model.decoder_layers": 2,
    } | {key.replace("__", "."): value for key, value in over.items()}
    model = build(merge(Config(), overrides))
    assert isinstance(model, Convolution)
    return model.eval()


def test_it_is_the_formula() -> None:
    model, src, tgt = make(), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    x = model.embedding.weight[src] * D**0.5 + sinusoids(S, D)
    for layer in model.encoder:
        conv = layer.window.conv
        x = x + F.glu(F.conv1d(layer.around.norm(x).mT, conv.weight, conv.bias, padding=K // 2), 1).mT
    memory = model.encoder_norm(x)
    x = model.embedding.weight[tgt] * D**0.5 + sinusoids(T, D)
    for layer in model.decoder:
        conv = layer.window.conv
        wide = F.conv1d(layer.around.norm(x).mT, conv.weight, conv.bias, padding=K - 1)  # (B, 2D, T + K - 1)
        x = x + F.glu(wide[..., :T], 1).mT
        k, v = layer.cross.key_value(memory).chunk(2, -1)
        q = layer.cross.query(layer.around_cross.norm(x))
        q, k, v = (part.view(B, -1, H, D // H).transpose(1, 2) for part in (q, k, v))
        seen = (q @ k.mT / (D // H) ** 0.5).softmax(-1) @ v
        x = x + layer.cross.out(seen.transpose(1, 2).flatten(2))
    out = model(Tokens(src, torch.ones(B, S) > 0), tgt)
    torch.testing.assert_close(out, model.decoder_norm(x), atol=1e-5, rtol=1e-4)


def test_every_decoder_layer_looks_at_the_source() -> None:
    model, src, tgt = make(), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    with record() as tape:
        model(Tokens(src, torch.ones(B, S) > 0), tgt)
    assert tape.names() == ["decoder.0.cross", "decoder.1.cross"]
    assert tape["decoder.1.cross"][0].shape == (B, H, T, S)


def test_learned_positions_bound_the_length() -> None:
    model = make(positions__kind="learned", positions__max_length=6)
    assert model.max_length == 6
    with pytest.raises(DataError, match="7 tokens is longer than the 6"):
        model(Tokens(torch.randint(4, V, (B, S)), torch.ones(B, S) > 0), torch.randint(4, V, (B, T)))


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match=r"model.kernel \(0\) must be between 1 and 1024"):
        make(model__kernel=0)
