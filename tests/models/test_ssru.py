"""A Transformer with a recurrence in its decoder: steps are the whole, rows are moved, and it learns."""

import torch
import torch.nn.functional as F

from regard.attention import record
from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.models import build
from regard.models.ssru import SSRUTransformer

B, S, T, V, D, H = 2, 7, 5, 37, 12, 3


def make(**over: object) -> SSRUTransformer:
    torch.manual_seed(0)
    shape = {"model.kind": "ssru", "model.vocab_size": V, "model.d_model": D, "model.n_heads": H}
    layers = {"model.encoder_layers": 1, "model.decoder_layers": 2, "model.d_ff": 23, "model.dropout": 0.0}
    more = {key.replace("__", "."): value for key, value in over.items()}
    model = build(merge(Config(), {**shape, **layers, **more}))
    assert isinstance(model, SSRUTransformer)
    return model.eval()


def data() -> tuple[Tokens, torch.Tensor]:
    real = torch.tensor([[True] * S, [True] * 4 + [False] * 3])
    return Tokens(torch.randint(4, V, (B, S)), real), torch.randint(4, V, (B, T))


def test_steps_are_the_whole_and_rows_can_be_moved() -> None:
    model, (inputs, tgt) = make(model__norm="post"), data()
    wanted = model.project(model(inputs, tgt))
    state = model.start(inputs)
    for t in range(T):
        logits, state = model.step(tgt[:, t], state)
        torch.testing.assert_close(logits, wanted[:, t], atol=1e-5, rtol=1e-4)
        state = state.select(torch.tensor([1, 0]))
        tgt, wanted = tgt.flip(0), wanted.flip(0)
    assert [tuple(memory.shape) for memory in state.past] == [(B, D), (B, D)]


def test_its_heads_are_those_of_the_source_and_of_the_look_at_it() -> None:
    model, (inputs, tgt) = make(), data()
    with record() as tape:
        model(inputs, tgt)
    assert tape.names() == ["encoder.0.self", "decoder.0.cross", "decoder.1.cross"]


def test_it_learns() -> None:
    model, (inputs, tgt) = make().train(), data()
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for _ in range(25):
        logits = model.project(model(inputs, tgt[:, :-1]))
        losses.append(loss := F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten()))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert losses[-1] < losses[0] / 4
