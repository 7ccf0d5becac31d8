"""A Transformer that foresees the tokens after the next one (blockwise decoding, Stern et al. 2018).

    c_i = attend(Q [s_{i-1}; E[y_i]], K, V)
    s_i = s_{i-1} + W relu(U [s_{i-1}; E[y_i]; c_i]),  i = 1, 2, ...

s_0 is the last hidden state and y_1 the token that it says; K and V are the source as the last decoder layer
sees it. s_i, through an output layer of few dimensions, says y_{i+1}. So each token that is foreseen knows
those before it and looks at the source itself. What is proposed is read in one pass and kept as far as it is
what the model itself would have said, so that the output is that of greedy search, in fewer passes:
`regard.decoding.blockwise`. Started from a Transformer, that one is not changed; what foresees alone is
taught: `regard.training.drafting`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.cache import KeyValue
from regard.attention.heads import MultiHead
from regard.attention.linear import Linear, gaussian
from regard.config import Config
from regard.models.transformer import Transformer, TransformerState

RANK = 64  # dimensions of the output layer at most: it is read for every token that is proposed


class Drafter(nn.Module):
    """One step ahead."""

    matrices: ClassVar = {"output_weight": 0}  # a vector a token

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.query = Linear(2 * d_model, d_model)
        self.inner = Linear(3 * d_model, 2 * d_model)
        self.outer = Linear(2 * d_model, d_model)
        self.narrow = Linear(d_model, min(RANK, d_model))
        self.output_weight = gaussian(vocab_size, min(RANK, d_model))  # (V, R)

    def forward(self, both: Tensor, seen: Tensor) -> Tensor:
        """What was foreseen before with its token's vector (..., 2 D), what was seen (..., D): (..., D)."""
        before = both[..., : seen.shape[-1]]
        foreseen: Tensor = before + self.outer(F.relu(self.inner(torch.cat([both, seen], -1))))
        return foreseen

    def project(self, foreseen: Tensor) -> Tensor:
        """(..., D) -> logits (..., V)."""
        return F.linear(self.narrow(foreseen), self.output_weight)

    @torch.no_grad()
    def begin(self, output: Tensor) -> None:
        """Say what an output layer (V, D) would say, as nearly as so few dimensions can."""
        _, directions = torch.linalg.eigh(output.double().T @ output.double())  # the largest come last
        self.narrow.weight.copy_(directions[:, -len(self.narrow.weight) :].T)
        self.output_weight.copy_(output @ self.narrow.weight.T)
        if self.narrow.bias is not None:
            self.narrow.bias.zero_()


class Blockwise(Transformer):
    """A Transformer that proposes `model.draft` tokens at a time, its own next one counted."""

    native = "encoder and decoder drafting"
    objective = "regard.training.drafting:Drafted"
    way = "regard.decoding.blockwise:WAY"
    begins_with: ClassVar = ("transformer",)
    defaults: ClassVar = {"decode.beam": 1}
    frozen = False  # the Transformer that it was started from stays as it is

    def build_more(self, config: Config) -> None:
        """What foresees."""
        self.drafter = Drafter(config.model.d_model, len(self.output_weight))
        self.ahead = config.model.draft - 1  # tokens that are foreseen

    def adopt(self, other: Any) -> None:
        """Take over a Transformer and leave it as it is; one that foresees goes on with all of itself."""
        foresees = "drafter.inner.weight" in other.state_dict()
        self.load_state_dict(other.state_dict(), strict=foresees)
        if not foresees:
            self.frozen = True
            self.drafter.begin(self.output_weight)
            for name, weight in self.named_parameters():
                weight.requires_grad_(name.startswith("drafter."))
            self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """What is not taught has no dropout either."""
        super().train(mode)
        for name, part in self.named_children():
            if self.frozen and name != "drafter":
                part.eval()
        return self

    def foresee(self, before: Tensor, ids: Tensor, state: TransformerState) -> Tensor:
        """What comes after `ids` (B, T), of which `before` (B, T, D) said or foresaw each: (B, T, D)."""
        embedding = self.target_embedding
        last: Any = self.decoder[-1]
        cross: MultiHead = last.cross
        said = F.embedding(ids, embedding.weight) * embedding.scale
        both = torch.cat([before, said.to(before.dtype)], -1)
        query = self.drafter.query(both).unflatten(-1, (cross.n_heads, -1)).transpose(1, 2)  # (B, H, T, K)
        group = cross.n_heads // cross.kv_heads
        k, v = (each.repeat_interleave(group, 1) for each in (state.memory[-1].k, state.memory[-1].v))
        seen = attend(query, k, v, mask=state.memory_mask, score=cross.score)
        foreseen: Tensor = self.drafter(both, seen.transpose(1, 2).flatten(2))
        return foreseen

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


__all__: Sequence[str] = ["Blockwise", "Drafter", "back_to"]
