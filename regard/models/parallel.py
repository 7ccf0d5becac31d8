"""The Transformer that writes the whole output at once: a decoder without the causal mask.

    x_j = E[id_j] √D + p_j + m_i,  i = ⌊j S / T⌋

A place of the T that are written begins with what is known of it (its token, or the mask), where it stands
(p, sinusoids), and what the encoder made of the source's place that lies across from it (m; uniform copy, Gu
et al. 2018). `Parallel` is the conditional masked language model (Ghazvininejad et al. 2019): how long the
output is, it foresees from the source. The other one is `ctc.py`. Written with by
`regard.decoding.maskpredict`; taught by `regard.training.filling`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.absolute import sinusoids
from regard.attention.cache import KeyValue
from regard.attention.dropout import dropout
from regard.attention.linear import Linear
from regard.attention.masks import padding_mask
from regard.config import Config
from regard.data.inputs import Tokens
from regard.errors import UsageError
from regard.models.assembly import remembered
from regard.models.transformer import EncoderDecoder

REACH = 64  # tokens that an output is foreseen to be longer or shorter than its source, at most


@dataclass(frozen=True)
class Read:
    """What the encoder made of a batch of sources; a value, one row an output."""

    hidden: Tensor  # (B, S, D)
    real: Tensor  # (B, S)
    memory: tuple[KeyValue, ...]  # keys and values, one a decoder layer: (B, H, S, K)

    @property
    def lengths(self) -> Tensor:
        """Tokens of each source (B,), its end counted."""
        return self.real.sum(1)

    def select(self, rows: Tensor) -> "Read":
        """The given rows, in that order; rows may be repeated or dropped."""
        memory = tuple(layer.select(rows) for layer in self.memory)
        return Read(self.hidden.index_select(0, rows), self.real.index_select(0, rows), memory)


class AtOnce(EncoderDecoder):
    """Base of the kinds that write all places at once."""

    causal: ClassVar[bool] = False
    begins_with: ClassVar = ("transformer", "blockwise")  # kinds whose weights it can start from
    own: ClassVar[tuple[str, ...]] = ()  # parts that those do not have
    defaults: ClassVar = {"decode.beam": 1}

    def start(self, inputs: Tokens) -> Read:
        """Run the encoder once."""
        hidden = self.encode(inputs)
        return Read(hidden, inputs.real, remembered(self.decoder, hidden))

    def write(self, ids: Tensor, real: Tensor, state: Read) -> Tensor:
        """What is known of each output (B, T), real where `real` (B, T) is True -> hidden (B, T, D)."""
        embedding = self.target_embedding
        copied = across(real.sum(1), state.lengths, ids.shape[1])  # (B, T)
        x = F.embedding(ids, embedding.weight) * embedding.scale
        x = x + sinusoids(ids.shape[1], x.shape[2]).to(x)
        x = x + state.hidden.gather(1, copied[..., None].expand(-1, -1, x.shape[2]))
        x = dropout(x, embedding.dropout, training=self.training)
        own = None if bool(real.all()) else padding_mask(real)
        seen = None if bool(state.real.all()) else padding_mask(state.real)
        for layer, memory in zip(self.decoder, state.memory, strict=True):
            x, _ = layer(x, memory, memory_mask=seen, mask=own)
        hidden: Tensor = self.decoder_norm(x)
        return hidden

    def logits(self, ids: Tensor, real: Tensor, state: Read) -> Tensor:
        """The logits (B, T, V) in fp32 of every place of the outputs."""
        return self.project(self.write(ids, real, state)).float()

    def guess(self, ids: Tensor, real: Tensor, state: Read, banned: Tensor) -> tuple[Tensor, Tensor]:
        """The likeliest of what is not banned (V,), and its log p, at every place: (B, T) both."""
        logp = self.logits(ids, real, state).log_softmax(-1)
        best, chosen = logp.masked_fill(banned, float("-inf")).max(-1)
        return chosen, best

    def adopt(self, other: Any) -> None:
        """Take over the weights of a model to start from; what that does not have stays as it was drawn."""
        missing, strange = self.load_state_dict(other.state_dict(), strict=False)
        lacking = [name for name in missing if not name.startswith(self.own or ("-",))]
        if lacking or (strange and isinstance(other, type(self))):
            raise UsageError(
                f"the model to start from has no {(lacking or strange)[0]}; its shape is another"
            )


def across(lengths: Tensor, sources: Tensor, most: int) -> Tensor:
    """For each of `most` places of outputs of these lengths (B,), the place of its source (B,): (B, most).

    >>> across(torch.tensor([6, 2]), torch.tensor([3, 4]), 6).tolist()
    [[0, 0, 1, 1, 2, 2], [0, 2, 3, 3, 3, 3]]
    """
    places = torch.arange(most, device=lengths.device)
    found = places * sources[:, None] // lengths.clamp(min=1)[:, None]
    return torch.minimum(found, sources[:, None] - 1)


class Parallel(AtOnce):
    """Hidden tokens are foreseen from the others and the source; so is the length of the output."""

    native = "encoder and decoder masked"
    objective = "regard.training.filling:MaskPredict"
    way = "regard.decoding.maskpredict:WAY"
    own: ClassVar[tuple[str, ...]] = ("longer.",)

    def build_more(self, config: Config) -> None:
        """What foresees by how many tokens an output is longer than its source."""
        self.longer = Linear(config.model.d_model, 2 * REACH + 1)

    def lengths(self, state: Read) -> Tensor:
        """Logits (B, 2 REACH + 1) of the outputs' lengths: tokens without the end, against the source's."""
        real = state.real[..., None]
        mean = (state.hidden * real).sum(1) / real.sum(1)  # (B, D)
        logits: Tensor = self.longer(mean)
        return logits.float()


__all__ = ["REACH", "AtOnce", "Parallel", "Read", "across"]
