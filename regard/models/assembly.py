"""From a config to the parts that every trained model has: tied embeddings, attention, first weights.

`transformer.py`, `rnn.py`, `lstmn.py` and `conv.py` are made of these. Before this file: the layers.
"""

import torch
from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.heads import MultiHead
from regard.attention.kernel import build_kernel
from regard.attention.masks import padding_mask
from regard.attention.positions import Positions, build_relations
from regard.config import Config
from regard.layers.embedding import Embedding


class Tied(nn.Module):
    """Base of all trained models: one matrix for source, target and output."""

    def __init__(self, config: Config, positions: Positions | None = None) -> None:
        super().__init__()
        shape, positions = config.model, positions or Positions()
        self.max_length = positions.max_length
        self.embedding = Embedding(
            shape.vocab_size,
            shape.d_model,
            positions=positions,
            dropout=shape.dropout,
            scaled=shape.scale_embedding,
        )

    @property
    def output_weight(self) -> Tensor:
        """The output layer's matrix (V, D)."""
        return self.embedding.weight

    def project(self, hidden: Tensor) -> Tensor:
        """hidden (..., D) -> logits (..., V)."""
        return self.embedding.project(hidden)

    def draw_weights(self, config: Config) -> None:
        """The first weights, without those of norms that go without; the last thing that building does."""
        self.apply(initialise)
        for norm in (module for module in self.modules() if isinstance(module, nn.LayerNorm)):
            if config.model.norm_weights != "both":
                norm.register_parameter("bias", None)
            if config.model.norm_weights == "none":
                norm.register_parameter("weight", None)


def closing_norm(config: Config) -> nn.Module:
    """What ends a stack of layers: a norm where each layer has its own in front (`model.norm=pre`)."""
    return nn.LayerNorm(config.model.d_model) if config.model.norm == "pre" else nn.Identity()


def needed_mask(src_mask: Tensor) -> Tensor | None:
    """The padding mask (B, 1, 1, S), or None where there is no padding to hide."""
    return None if bool(src_mask.all()) else padding_mask(src_mask)


def memory_of(decoder: nn.ModuleList, memory: Tensor) -> tuple[KeyValue, ...]:
    """The keys and values that the cross-attention of each decoder layer makes of memory (B, S, D)."""
    heads = (layer.cross for layer in decoder)
    return tuple(each.keys_values(memory) for each in heads if isinstance(each, MultiHead))


def heads_for(config: Config, name: str, role: str) -> MultiHead:
    """The attention that the config asks for; role is "encoder", "decoder" or "cross"."""
    shape = config.model
    n_heads = shape.n_heads if role == "encoder" else shape.decoder_heads or shape.n_heads
    return MultiHead(
        shape.d_model,
        n_heads,
        kv_heads=shape.kv_heads,
        name=name,
        kernel=build_kernel(config.attention, role),
        score=config.attention.score,
        dropout=config.attention.dropout,
        positions=build_relations(config.positions, role, n_heads, shape.d_model // n_heads),
    )


def initialise(module: nn.Module) -> None:
    """Xavier uniform for products, zero for biases; query, key and value each count as one product.

    A recurrence is orthogonal, gate by gate, and its forget gates begin open (Jozefowicz et al. 2015);
    a gated convolution keeps the variance of what goes in (Gehring et al. 2017, 3.5).
    """
    if isinstance(module, MultiHead):
        for part in module.key_value.weight.chunk(2):
            nn.init.xavier_uniform_(part)
    elif isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LSTM | nn.LSTMCell):
        for name, weight in module.named_parameters():
            _initialise_gates(name, weight)
    elif isinstance(module, nn.Conv1d):
        fan_in = module.in_channels * module.kernel_size[0]
        nn.init.normal_(module.weight, std=(4 / fan_in) ** 0.5)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


@torch.no_grad()
def _initialise_gates(name: str, weight: Tensor) -> None:
    """The four gates of torch's LSTM, stacked as input, forget, cell, output."""
    for gate, part in enumerate(weight.chunk(4)):
        if "bias" in name:
            nn.init.constant_(part, 1.0 if gate == 1 and "bias_ih" in name else 0.0)
        elif "weight_hh" in name:
            nn.init.orthogonal_(part)
        else:
            nn.init.xavier_uniform_(part)
