"""The shape of the model, and what each kind of model cannot follow.

A kind is a word of `MODELS` (`regard.kinds`); one that is added from outside has no limits but its own.
"""

from dataclasses import dataclass
from typing import Any

from regard.config.rules import between, one_of, rule
from regard.kinds import MODELS

# What attention replaced: kinds of model beside the Transformer.
REPLACED = ("rnn", "rnn-attention", "lstmn", "conv")
# The Transformer that writes all places at once, and the one that writes several and checks them.
AT_ONCE = ("parallel", "ctc")
ATTENDING = ("transformer", "ssru", "blockwise", *AT_ONCE)

# What each kind cannot follow: a key, the values that it takes all the same, why not others. What stands in
# every preset (model.d_ff, model.n_heads) may be given to all and is not heard where it means nothing; so may
# sinusoidal positions, which are the default.
_Limits = dict[str, tuple[tuple[Any, ...], str]]
_BARE: _Limits = {
    "model.embedding_norm": ((False,), "its embeddings go into the layers as they are"),
    "model.output_transform": ((False,), "its output is one product"),
}
_NO_WINDOW: _Limits = {"model.kernel": ((5,), "it has no windows")} | _BARE
_NO_SELF: _Limits = {"attention.kind": (("full",), "it has no self-attention")}
_OWN_ORDER: _Limits = {"positions.kind": (("sinusoidal", "none"), "a recurrence knows order by itself")}
_NO_PAIRS: _Limits = {"model.bigrams": ((0,), "it has no table of neighbours")}
_ONE_BY_ONE: _Limits = {
    "model.upsample": ((2,), "nothing of it is up-sampled"),
    "model.draft": ((4,), "it writes one token at a time"),
}
_AT_ONCE: _Limits = {
    "positions.kind": (
        ("sinusoidal", "learned", "relative", "rotary", "alibi", "none"),
        "what is written at once has no tree",
    ),
    "model.draft": ((4,), "it writes all places at once"),
}
LIMITS: dict[str, _Limits] = {
    "transformer": _NO_WINDOW | _NO_PAIRS | _ONE_BY_ONE,
    "ssru": _NO_WINDOW | _NO_PAIRS | _ONE_BY_ONE,
    "blockwise": _NO_WINDOW
    | _NO_PAIRS
    | {
        "model.upsample": ((2,), "nothing of it is up-sampled"),
        "attention.kind": (("full",), "it goes back to what it has read before"),
    },
    "parallel": _NO_WINDOW
    | _NO_PAIRS
    | _AT_ONCE
    | {"model.upsample": ((2,), "its length is predicted, or ends where the end comes")},
    "ctc": _NO_WINDOW | _NO_PAIRS | _AT_ONCE,
    "decoder": _NO_WINDOW | _ONE_BY_ONE,
    "encoder": {
        "model.kernel": ((5,), "it has no windows"),
        "model.bigrams": ((0,), "it has no table of neighbours"),
        "model.tied": (("all",), "it has one matrix"),
        "model.target_vocab_size": ((0,), "it has one vocabulary"),
    },
    "speech": _BARE
    | _NO_PAIRS
    | _ONE_BY_ONE
    | {
        "model.tied": (("all",), "it has one matrix"),
        "model.target_vocab_size": ((0,), "it has one vocabulary"),
        "model.output_bias": ((False,), "its output is one product"),
    },
    "rnn": _OWN_ORDER
    | _NO_PAIRS
    | _NO_SELF
    | _NO_WINDOW
    | {
        "attention.score": (("scaled-dot",), "it has no attention"),
        "attention.dropout": ((0.0,), "it has no attention"),
    },
    "rnn-attention": _OWN_ORDER | _NO_PAIRS | _NO_SELF | _NO_WINDOW,
    "lstmn": _OWN_ORDER
    | _NO_PAIRS
    | _NO_WINDOW
    | {"attention.kind": (("full",), "it looks at all that it has read")},
    "sagan": _NO_WINDOW
    | _NO_PAIRS
    | {
        "attention.kind": (("full",), "its maps are small"),
        "positions.kind": (("sinusoidal", "none"), "its convolutions know where they are"),
    },
    "conv": _NO_SELF
    | _BARE
    | _NO_PAIRS
    | {"positions.kind": (("sinusoidal", "learned", "none"), "positions act on its embeddings alone")},
}

# What stands between the two products of a feed-forward layer; the last two open a gate.
ACTIVATIONS = ("relu", "swish", "gelu", "gelu-tanh", "relu2", "swiglu", "geglu")

# The fewest layers that each kind can do with, where that is more than none.
LAYERS: dict[str, dict[str, int]] = {
    "decoder": {"decoder_layers": 1},
    "encoder": {"encoder_layers": 1},
    **{kind: {"encoder_layers": 1, "decoder_layers": 1} for kind in (*ATTENDING, "speech", *REPLACED)},
}


@dataclass(frozen=True)
class ModelConfig:
    """The shape of the model."""

    kind: str = "transformer"
    kernel: int = 5  # places in a window of model.kind=conv
    d_model: int = 256
    n_heads: int = 4
    kv_heads: int = 0  # heads of keys and values, shared by groups of heads; 0: as many as n_heads
    encoder_layers: int = 3
    decoder_layers: int = 3
    d_ff: int = 1024
    dropout: float = -1.0  # -1: chosen by the amount of data when training; no dropout elsewhere
    norm: str = "pre"  # where it stands; with -rms behind it nothing is moved and there is no bias
    norm_weights: str = "both"  # what a norm learns: a gain and a bias, a gain, or nothing
    norm_eps: float = 1e-5  # added to what a norm divides by
    vocab_size: int = 0  # 0: taken from the tokenizer
    target_vocab_size: int = 0  # 0: as vocab_size
    decoder_heads: int = 0  # 0: as n_heads
    decoder_d_ff: int = 0  # 0: as d_ff
    activation: str = "relu"
    tied: str = "all"  # which of the source, target and output matrices are one
    output_bias: bool = False
    bias: bool = True  # of the products in attention and feed-forward
    scale_embedding: bool = True
    embedding_norm: bool = False  # model.kind=encoder: a norm between the embeddings and the first layer
    output_transform: bool = (
        False  # model.kind=encoder: a product, the activation and a norm before the output
    )
    upsample: float = 2.0  # model.kind=ctc: places to write in, for each token of the source
    draft: int = 4  # model.kind=blockwise: tokens that are proposed together
    bigrams: int = 0  # rows of a table of pairs of neighbours that is added to the embeddings; 0: none

    def __post_init__(self) -> None:
        one_of("model.kind", self.kind, MODELS)
        one_of("model.norm", self.norm, ("pre", "post", "pre-rms", "post-rms"))
        one_of("model.norm_weights", self.norm_weights, ("both", "gain", "none"))
        for name in ("d_model", "n_heads", "d_ff"):
            between(f"model.{name}", getattr(self, name), 1, 65536)
        for name in ("encoder_layers", "decoder_layers"):
            between(f"model.{name}", getattr(self, name), LAYERS.get(self.kind, {}).get(name, 0), 256)
        rule(
            self.dropout == -1 or 0 <= self.dropout <= 0.95,
            f"model.dropout ({self.dropout:g}) must be between 0 and 0.95, or -1 for chosen by the data",
        )
        between("model.upsample", self.upsample, 1, 16)
        between("model.draft", self.draft, 2, 16)
        between("model.bigrams", self.bigrams, 0, 4_000_000)
        between("model.kernel", self.kernel, 1, 1024)
        between("model.norm_eps", self.norm_eps, 1e-12, 1)
        between("model.vocab_size", self.vocab_size, 0, 4_000_000)
        rule(
            self.d_model % self.n_heads == 0,
            f"n_heads ({self.n_heads}) must divide d_model ({self.d_model})",
        )
        between("model.kv_heads", self.kv_heads, 0, 65536)
        rule(
            self.kv_heads == 0 or self.n_heads % self.kv_heads == 0,
            f"kv_heads ({self.kv_heads}) must divide n_heads ({self.n_heads})",
        )
        self._check_asymmetry()

    def _check_asymmetry(self) -> None:
        """The rules of what imported models have and ours do without."""
        one_of("model.activation", self.activation, ACTIVATIONS)
        one_of("model.tied", self.tied, ("all", "embeddings", "target", "none"))
        between("model.target_vocab_size", self.target_vocab_size, 0, 4_000_000)
        for name in ("decoder_heads", "decoder_d_ff"):
            between(f"model.{name}", getattr(self, name), 0, 65536)
        rule(
            self.decoder_heads == 0 or self.d_model % self.decoder_heads == 0,
            f"decoder_heads ({self.decoder_heads}) must divide d_model ({self.d_model})",
        )
        rule(
            self.target_vocab_size in (0, self.vocab_size) or self.tied in ("target", "none"),
            f"a target vocabulary of its own ({self.target_vocab_size}, the source has {self.vocab_size}) "
            f"needs model.tied target or none, not {self.tied}",
        )
