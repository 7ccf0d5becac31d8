"""One file a model; `build` finds the one that the config names."""

from collections.abc import Callable

from torch import nn

from regard.config import Config
from regard.models.conv import Convolution
from regard.models.lstmn import LSTMN
from regard.models.rnn import RNN
from regard.models.transformer import Transformer

MODELS: dict[str, Callable[[Config], nn.Module]] = {
    "transformer": Transformer,
    "rnn": RNN,
    "rnn-attention": RNN,
    "lstmn": LSTMN,
    "conv": Convolution,
}


def build(config: Config) -> nn.Module:
    """A fresh model of the kind, shape and parts that the config names."""
    return MODELS[config.model.kind](config)
