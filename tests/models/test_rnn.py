"""LSTMs that read and write: against loops over LSTMCell and a loop for the attention."""

import pytest
import torch
from torch import nn

from regard.attention import record
from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.errors import UsageError
from regard.models import build
from regard.models.rnn import RNN

B, S, T, V, D, H = 2, 7, 5, 37, 12, 3
SHAPE = {
    "model.vocab_size": V,
    "model.d_model": D,
    "model.n_heads": H,
    "model.encoder_layers": 2,
    "model.decoder_layers": 3,
    "model.dropout": 0.0,
}


def make(kind: str, **over: object) -> RNN:
    torch.manual_seed(0)
    overrides = {"model.kind": kind} | {key.replace("__", "."): value for key, value in over.items()}
    model = build(merge(Config(), SHAPE | overrides))
    assert isinstance(model, RNN)
    return model.eval()


def run(lstm: nn.LSTM, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """An LSTM over x (T, D), a cell at a time."""
    out = []
    for step in x:
        gates = lstm.weight_ih_l0 @ step + lstm.bias_ih_l0 + lstm.weight_hh_l0 @ h + lstm.bias_hh_l0
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        out.append(h)
    return torch.stack(out)


def slowly(model: RNN, src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
    """Hidden states (T, D) of one pair without padding, by the formulas."""
    x, nothing = model.embedding(src[None])[0], torch.zeros(D)
    for layer in model.encoder:
        y = layer.around.norm(x)
        ahead = run(layer.ahead, y, nothing, nothing)
        back = run(layer.back, y.flip(0), nothing, nothing).flip(0)
        x = x + layer.join(torch.cat([ahead, back], -1))
    memory = model.encoder_norm(x)
    first, second = model.bridge(torch.cat([memory[0], memory[-1]])).view(2, len(model.decoder), D)
    x = model.embedding(tgt[None])[0]
    for layer, h, c in zip(model.decoder, first.tanh(), second, strict=True):
        x = x + run(layer.lstm, layer.around.norm(x), h, c)
    states = model.decoder_norm(x)
    if model.cross is None:
        return torch.tanh(model.join(states))
    keys, values = (part.view(len(src), H, -1) for part in model.cross.key_value(memory).chunk(2, -1))
    rows = []
    for state in states:
        q, context = model.cross.query(state).view(H, -1), []
        for head in range(H):
            weights = torch.stack([q[head] @ k / q.shape[1] ** 0.5 for k in keys[:, head]]).softmax(0)
            context.append(sum(w * v for w, v in zip(weights, values[:, head], strict=True)))
        rows.append(torch.tanh(model.join(torch.cat([model.cross.out(torch.cat(context)), state]))))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", ["rnn", "rnn-attention"])
def test_it_is_the_formula(kind: str) -> None:
    model = make(kind)
    src, tgt = torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    mask = torch.tensor([[True] * S, [True] * 4 + [False] * 3])
    with torch.no_grad():
        out = model(Tokens(src, mask), tgt)
        torch.testing.assert_close(out[0], slowly(model, src[0], tgt[0]), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(out[1], slowly(model, src[1, :4], tgt[1]), atol=1e-5, rtol=1e-4)


def test_without_attention_nothing_is_taped_and_the_source_is_heard_all_the_same() -> None:
    model, src, tgt = make("rnn"), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    mask = torch.ones(B, S) > 0
    with record() as tape:
        heard = model(Tokens(src, mask), tgt)
    assert tape.names() == []
    for place in range(S):
        other = src.clone()
        other[:, place] = 4 + (other[:, place] - 3) % (V - 4)
        assert not torch.allclose(model(Tokens(other, mask), tgt), heard, atol=1e-6), place


def test_the_attention_stands_above_the_last_layer() -> None:
    model, src, tgt = make("rnn-attention"), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    with record() as tape:
        model(Tokens(src, torch.ones(B, S) > 0), tgt)
    assert tape.names() == ["decoder.2.cross"]
    assert tape["decoder.2.cross"][0].shape == (B, H, T, S)


@pytest.mark.parametrize("kind", ["rnn", "rnn-attention"])
def test_any_number_of_layers_on_either_side(kind: str) -> None:
    model = make(kind, model__encoder_layers=3, model__decoder_layers=1)
    src, tgt = torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    assert model(Tokens(src, torch.ones(B, S) > 0), tgt).shape == (B, T, D)
    assert model.max_length is None


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match=r"positions.kind \(learned\) .* model.kind=rnn: .* order by itself"):
        make("rnn", positions__kind="learned")
    with pytest.raises(UsageError, match=r"attention.score \(dot\) .* no attention; it takes scaled-dot"):
        make("rnn", attention__score="dot")
    with pytest.raises(UsageError, match=r"model.kernel \(3\) .*=rnn-attention: it has no windows"):
        make("rnn-attention", model__kernel=3)
    assert make("rnn-attention", attention__score="dot", positions__kind="none").max_length is None
