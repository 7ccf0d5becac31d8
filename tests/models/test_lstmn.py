"""The LSTM-N as a model: its layers are checked in tests/layers; here what stands around them."""

import pytest
import torch

from regard.attention import record
from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.errors import UsageError
from regard.models import build
from regard.models.lstmn import LSTMN

B, S, T, V, D, H = 2, 7, 5, 37, 12, 3


def make(**over: object) -> LSTMN:
    torch.manual_seed(0)
    overrides = {
        "model.kind": "lstmn",
        "model.vocab_size": V,
        "model.d_model": D,
        "model.n_heads": H,
        "model.encoder_layers": 1,
        "model.decoder_layers": 2,
    } | {key.replace("__", "."): value for key, value in over.items()}
    model = build(merge(Config(), overrides))
    assert isinstance(model, LSTMN)
    return model.eval()


def test_the_next_word_comes_from_context_and_state() -> None:
    model, src, tgt = make(), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    mask = torch.tensor([[True] * S, [True] * 4 + [False] * 3])
    with record() as tape:
        out = model(Tokens(src, mask), tgt)
    x = model.embedding(src)
    for layer in model.encoder:
        x, _ = layer(x)
    memory = model.encoder_norm(x)
    state = model.embedding(tgt)
    for layer in model.decoder:
        state, _ = layer(state)
    state = model.decoder_norm(state)
    _, values = model.cross.key_value(memory).chunk(2, -1)
    values = values.view(B, S, H, -1).transpose(1, 2)
    context = (tape["decoder.1.cross"][0] @ values).transpose(1, 2).flatten(2)
    expected = torch.tanh(model.join(torch.cat([model.cross.out(context), state], -1)))
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-4)
    assert (tape["decoder.1.cross"][0][1, :, :, 4:] == 0).all()


def test_the_tape_names_every_attention() -> None:
    model, src, tgt = make(), torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    mask = torch.ones(B, S) > 0
    with record() as tape:
        model(Tokens(src, mask), tgt)
    assert tape.names() == ["encoder.0.self", "decoder.0.self", "decoder.1.self", "decoder.1.cross"]
    assert tape["encoder.0.self"][0].shape == (B, H, S, S)
    assert (tape["decoder.0.self"][0].triu() == 0).all()  # strictly the past
    state = model.start(Tokens(src, mask))
    with record() as steps:
        for t in range(3):
            _, state = model.step(tgt[:, t], state)
    assert [w.shape[-1] for w in steps["decoder.1.self"]] == [1, 2, 3]
    torch.testing.assert_close(steps["decoder.1.self"][2][:, :, 0], tape["decoder.1.self"][0][:, :, 2, :3])


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match=r"positions.kind \(learned\) means nothing to model.kind=lstmn"):
        make(positions__kind="learned")
