"""A Transformer with heads that propose the next few tokens at once (blockwise decoding, Stern et al. 2018).

    d_i = h + W_i relu(V_i [h; E[y]]),  i = 1 .. k - 1

h is the last hidden state, y the token that it says; d_i, through the output layer, says the i-th token after
y. What is proposed is read in one pass and kept as far as it is what the model itself would have said, so
that the output is that of greedy search, in fewer passes: `regard.decoding.blockwise`. Started from a
Transformer, that one is not changed; the heads alone are taught: `regard.training.drafting`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.linear import Linear
from regard.config import Config
from regard.models.transformer import Transformer, TransformerState


class Draft(nn.Module):
    """One head."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.inner = Linear(2 * d_model, 2 * d_model)
        self.outer = Linear(2 * d_model, d_model)

    def forward(self, hidden: Tensor, said: Tensor) -> Tensor:
        """hidden and the vectors of what it says (..., D) -> (..., D)."""
        out: Tensor = hidden + self.outer(F.relu(self.inner(torch.cat([hidden, said], -1))))
        return out


class Blockwise(Transformer):
    """A Transformer that proposes `model.draft` tokens at a time, its own next one counted."""

    native = "encoder and decoder drafting"
    objective = "regard.training.drafting:Drafted"
    way = "regard.decoding.blockwise:WAY"
    begins_with: ClassVar = ("transformer",)
    defaults: ClassVar = {"decode.beam": 1}
    frozen = False  # the Transformer that it was started from stays as it is

    def build_more(self, config: Config) -> None:
        """The heads."""
        self.drafts = nn.ModuleList(Draft(config.model.d_model) for _ in range(config.model.draft - 1))

    def adopt(self, other: Any) -> None:
        """Take over a Transformer and leave it as it is; one that has heads goes on with all of itself."""
        heads = "drafts.0.inner.weight" in other.state_dict()
        self.load_state_dict(other.state_dict(), strict=heads)
        if not heads:
            self.frozen = True
            for name, weight in self.named_parameters():
                weight.requires_grad_(name.startswith("drafts."))
            self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """What is not taught has no dropout either."""
        super().train(mode)
        for name, part in self.named_children():
            if self.frozen and name != "drafts":
                part.eval()
        return self

    def draft(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """hidden (..., D) and the ids (...) that it says -> what the heads make of them (..., k - 1, D)."""
        embedding = self.target_embedding
        said = F.embedding(ids, embedding.weight) * embedding.scale
        return torch.stack([head(hidden, said) for head in self.drafts], -2)

    def read(self, ids: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Read several ids (B, T) after what was read: hidden (B, T, D)."""
        x = self.target_embedding(ids, state.length)
        past: list[KeyValue] = []
        for i, layer in enumerate(self.decoder):
            own = state.past[i] if state.past else None
            x, seen = layer(x, state.memory[i], memory_mask=state.memory_mask, past=own)
            past.append(seen)
        return self.decoder_norm(x), replace(state, past=tuple(past))


def back_to(state: TransformerState, length: int) -> TransformerState:
    """The state when it had read so many tokens."""
    return replace(state, past=tuple(layer.first(length) for layer in state.past))


__all__: Sequence[str] = ["Blockwise", "Draft", "back_to"]
