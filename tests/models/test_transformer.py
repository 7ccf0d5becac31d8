"""The Transformer: against torch's encoder and decoder stacks, and against itself step by step."""

import pytest
import torch
from torch import nn

from regard.attention import record
from regard.config import Config, merge
from regard.data.inputs import Tokens
from regard.errors import DataError
from regard.models import build
from regard.models.transformer import Transformer, count_parameters

B, S, T, V = 2, 7, 5, 37
SHAPE = {
    "model.vocab_size": V,
    "model.d_model": 12,
    "model.n_heads": 3,
    "model.d_ff": 29,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.dropout": 0.0,
}


def make(**over: object) -> Transformer:
    torch.manual_seed(0)
    model = build(merge(Config(), SHAPE | {key.replace("__", "."): value for key, value in over.items()}))
    assert isinstance(model, Transformer)
    return model.eval()


def sentences() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    src, tgt = torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T))
    mask = torch.tensor([[True] * S, [True] * 4 + [False] * 3])
    return src, mask, tgt


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_teacher_forcing_equals_steps(norm: str) -> None:
    model = make(model__norm=norm)
    src, mask, tgt = sentences()
    whole = model.project(model(Tokens(src, mask), tgt))
    state = model.start(Tokens(src, mask))
    for t in range(T):
        logits, state = model.step(tgt[:, t], state)
        torch.testing.assert_close(logits, whole[:, t], atol=1e-5, rtol=1e-4)
    assert state.length == T


UNTIED = [
    {"model__tied": "target", "model__target_vocab_size": 41, "model__output_bias": True},
    {"model__tied": "none", "model__activation": "swish", "model__decoder_d_ff": 31},
    {"model__tied": "embeddings", "model__scale_embedding": False, "model__decoder_heads": 4},
]


@pytest.mark.parametrize("over", UNTIED, ids=lambda each: each["model__tied"])
def test_models_as_imported_ones_are(over: dict[str, object]) -> None:
    """Steps equal teacher forcing; every matrix that is its own counts, and only those."""
    model = make(**over)
    src, mask, tgt = sentences()
    if model.output_bias is not None:
        nn.init.normal_(model.output_bias)
    whole = model.project(model(Tokens(src, mask), tgt))
    assert whole.shape[-1] == over.get("model__target_vocab_size", V)
    state = model.start(Tokens(src, mask))
    for t in range(T):
        logits, state = model.step(tgt[:, t], state)
        torch.testing.assert_close(logits, whole[:, t], atol=1e-5, rtol=1e-4)
    own = {name for name, _ in model.named_parameters()}
    assert ("own_target.weight" in own) == (over["model__tied"] in ("target", "none"))
    assert ("own_output" in own) == (over["model__tied"] in ("embeddings", "none"))


def test_select_reorders_repeats_and_drops() -> None:
    model = make()
    src, mask, tgt = sentences()
    _, state = model.step(tgt[:, 0], model.start(Tokens(src, mask)))
    plain, _ = model.step(tgt[:, 1], state)
    rows = torch.tensor([1, 1, 0])
    picked, _ = model.step(tgt[rows, 1], state.select(rows))
    torch.testing.assert_close(picked, plain[rows])


def test_initialisation_is_the_papers() -> None:
    """Xavier for every product, zero biases, embeddings of size D^-1/2."""
    model = make(model__d_model=96, model__d_ff=192)
    heads = model.encoder[0].attention
    bound = (6 / (96 + 96)) ** 0.5
    for matrix in (heads.query.weight, *heads.key_value.weight.chunk(2), heads.out.weight):
        assert bound * 0.97 < matrix.abs().max().item() <= bound
    assert heads.query.bias.abs().max() == 0


def test_the_tape_names_every_attention() -> None:
    model = make()
    src, mask, tgt = sentences()
    with record() as tape:
        model(Tokens(src, mask), tgt)
    assert tape.names() == [
        *(f"encoder.{i}.self" for i in range(2)),
        *(f"decoder.{i}.{kind}" for i in range(2) for kind in ("self", "cross")),
    ]
    assert tape["decoder.1.cross"][0].shape == (B, 3, T, S)


def test_learned_positions_bound_the_length() -> None:
    model = make(positions__kind="learned", positions__max_length=6)
    src, mask, tgt = sentences()
    assert model.max_length == 6
    with pytest.raises(DataError, match="7 tokens is longer than the 6"):
        model(Tokens(src, mask), tgt)


def test_parameters_of_the_base_preset_are_the_papers() -> None:
    """N=6, D=512, F=2048: 44.1M in the layers (the paper's 65M with a 37k vocabulary)."""
    model = make(
        model__d_model=512,
        model__n_heads=8,
        model__d_ff=2048,
        model__encoder_layers=6,
        model__decoder_layers=6,
        model__norm="post",
    )
    theirs = nn.Transformer(512, 8, 6, 6, 2048, batch_first=True)
    closing = 2 * 2 * 512  # torch closes both stacks with a norm that post-norm does not have
    assert count_parameters(model) - V * 512 == sum(p.numel() for p in theirs.parameters()) - closing
