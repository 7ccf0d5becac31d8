"""Small models with random weights: attention is there to be looked at, trained or not."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from command import ROOT

from regard.config import Config, DecodeConfig, merge
from regard.look.look import Look, look
from regard.models import build
from regard.tasks.translation.translator import Translator
from regard.text.tokenizer import Tokenizer

LINES = ["the small dog runs", "a man, a dog and a house.", "the cats run to the house!", "a river bank?"]
SENTENCE = "the man, a dog runs to 狗."
SHAPE = {
    "model.d_model": 12,
    "model.n_heads": 3,
    "model.d_ff": 29,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.dropout": 0.0,
}
Make = Callable[..., Translator]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(LINES * 9, vocab_size=0)


@pytest.fixture(scope="session")
def make(tokenizer: Tokenizer) -> Make:
    """`make(seed, **settings)`: a translator with random weights, large enough to disagree, and exact."""

    inner = [i for i in range(4, tokenizer.vocab_size) if not tokenizer.token(i).startswith("\u2581")]

    def maker(
        seed: int = 0, *, beam: int = 4, extra: int = 6, least: float = 0.0, **settings: object
    ) -> Translator:
        torch.manual_seed(seed)
        shape = SHAPE | {"model.vocab_size": tokenizer.vocab_size}
        over = {key.replace("__", "."): value for key, value in settings.items()}
        model = build(merge(Config(), shape | over)).eval()
        if not str(over.get("model.kind")).startswith("rnn"):  # its recurrence is in fp32 always
            model.double()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2.5)
            model.output_weight[inner] = 0.0  # mostly whole words are written
        decode = DecodeConfig(beam=beam, min_ratio=least, max_ratio=0.0, max_extra=extra, length_penalty=0.0)
        return Translator(model, tokenizer, decode)

    return maker


@pytest.fixture(scope="session")
def schema() -> dict[str, Any]:
    """The JSON schema in docs/look.md."""
    text = (ROOT / "docs" / "look.md").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text.partition("```json\n")[2].partition("```")[0])
    return found


@pytest.fixture(scope="session")
def seen(make: Make) -> Look:
    return look(make(1, extra=12, least=0.5), SENTENCE)
