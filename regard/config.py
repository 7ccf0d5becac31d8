"""One tree of frozen dataclasses: every setting, its default and the rule it must keep.

TOML and dotted overrides come in (`merge`), JSON goes out (`to_json`). A key that is unknown is
refused with the nearest known one.
"""

import dataclasses
import difflib
import json
import re
import tomllib
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import UsageError

_CODE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")  # BCP 47, roughly


def _rule(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(message)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    _rule(value in allowed, f"{name} ({value}) must be one of {', '.join(allowed)}")


def _between(name: str, value: float, low: float, high: float) -> None:
    _rule(low <= value <= high, f"{name} ({value:g}) must be between {low:g} and {high:g}")


POSITION_KINDS = ("sinusoidal", "learned", "relative", "structural", "rotary", "alibi", "none")
_ON_SCORES = ("relative", "structural", "alibi")

# What attention replaced: kinds of model beside the Transformer.
REPLACED = ("rnn", "rnn-attention", "lstmn", "conv")

# What each kind cannot follow: a key, the values that it takes all the same, why not others. What stands in
# every preset (model.d_ff, model.n_heads) may be given to all and is not heard where it means nothing; so may
# sinusoidal positions, which are the default.
_Limits = dict[str, tuple[tuple[Any, ...], str]]
_NO_WINDOW: _Limits = {"model.kernel": ((5,), "it has no windows")}
_NO_SELF: _Limits = {"attention.kind": (("full",), "it has no self-attention")}
_OWN_ORDER: _Limits = {"positions.kind": (("sinusoidal", "none"), "a recurrence knows order by itself")}
_LIMITS: dict[str, _Limits] = {
    "transformer": _NO_WINDOW,
    "rnn": _OWN_ORDER
    | _NO_SELF
    | _NO_WINDOW
    | {
        "attention.score": (("scaled-dot",), "it has no attention"),
        "attention.dropout": ((0.0,), "it has no attention"),
    },
    "rnn-attention": _OWN_ORDER | _NO_SELF | _NO_WINDOW,
    "lstmn": _OWN_ORDER | _NO_WINDOW | {"attention.kind": (("full",), "it looks at all that it has read")},
    "conv": _NO_SELF
    | {"positions.kind": (("sinusoidal", "learned", "none"), "positions act on its embeddings alone")},
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
    norm: str = "pre"
    norm_weights: str = "both"  # what a norm learns: a gain and a bias, a gain, or nothing
    vocab_size: int = 0  # 0: taken from the tokenizer
    target_vocab_size: int = 0  # 0: as vocab_size
    decoder_heads: int = 0  # 0: as n_heads
    decoder_d_ff: int = 0  # 0: as d_ff
    activation: str = "relu"
    tied: str = "all"  # which of the source, target and output matrices are one
    output_bias: bool = False
    scale_embedding: bool = True

    def __post_init__(self) -> None:
        _one_of("model.kind", self.kind, ("transformer", *REPLACED))
        _one_of("model.norm", self.norm, ("pre", "post"))
        _one_of("model.norm_weights", self.norm_weights, ("both", "gain", "none"))
        for name in ("d_model", "n_heads", "encoder_layers", "decoder_layers", "d_ff"):
            _between(f"model.{name}", getattr(self, name), 1, 65536)
        _rule(
            self.dropout == -1 or 0 <= self.dropout <= 0.95,
            f"model.dropout ({self.dropout:g}) must be between 0 and 0.95, or -1 for chosen by the data",
        )
        _between("model.kernel", self.kernel, 1, 1024)
        _between("model.vocab_size", self.vocab_size, 0, 4_000_000)
        _rule(
            self.d_model % self.n_heads == 0,
            f"n_heads ({self.n_heads}) must divide d_model ({self.d_model})",
        )
        _between("model.kv_heads", self.kv_heads, 0, 65536)
        _rule(
            self.kv_heads == 0 or self.n_heads % self.kv_heads == 0,
            f"kv_heads ({self.kv_heads}) must divide n_heads ({self.n_heads})",
        )
        self._check_asymmetry()

    def _check_asymmetry(self) -> None:
        """The rules of what imported models have and ours do without."""
        _one_of("model.activation", self.activation, ("relu", "swish", "gelu"))
        _one_of("model.tied", self.tied, ("all", "embeddings", "target", "none"))
        _between("model.target_vocab_size", self.target_vocab_size, 0, 4_000_000)
        for name in ("decoder_heads", "decoder_d_ff"):
            _between(f"model.{name}", getattr(self, name), 0, 65536)
        _rule(
            self.decoder_heads == 0 or self.d_model % self.decoder_heads == 0,
            f"decoder_heads ({self.decoder_heads}) must divide d_model ({self.d_model})",
        )
        _rule(
            self.target_vocab_size in (0, self.vocab_size) or self.tied in ("target", "none"),
            f"a target vocabulary of its own ({self.target_vocab_size}, the source has {self.vocab_size}) "
            f"needs model.tied target or none, not {self.tied}",
        )


@dataclass(frozen=True)
class AttentionConfig:
    """How queries meet keys."""

    kind: str = "full"
    score: str = "scaled-dot"
    dropout: float = 0.0
    window: int = 256  # local: places seen to the left, and in an encoder to the right too
    block: int = 64  # bigbird: places in a block
    window_blocks: int = 3  # bigbird: blocks seen around a block, itself counted
    global_blocks: int = 2  # bigbird: blocks at the beginning that see all and are seen by all
    random_blocks: int = 3  # bigbird: blocks drawn at random for each block, head and layer
    seed: int = 0  # bigbird: of the random blocks
    rank: int = 256  # linformer: rows that keys and values are projected to
    share: str = "heads"  # linformer: who shares a projection
    max_length: int = 4096  # linformer: longest sequence that is projected

    def __post_init__(self) -> None:
        _one_of("attention.kind", self.kind, ("full", "local", "bigbird", "linformer"))
        _one_of("attention.share", self.share, ("heads", "layers", "none"))
        for name in ("window", "block", "rank", "max_length"):
            _between(f"attention.{name}", getattr(self, name), 1, 1_000_000)
        for name in ("window_blocks", "global_blocks", "random_blocks"):
            _between(f"attention.{name}", getattr(self, name), 0, 65536)
        _between("attention.seed", self.seed, 0, 2**32)
        _rule(
            self.window_blocks % 2 == 1,
            f"attention.window_blocks ({self.window_blocks}) must be odd: a block and as many on either side",
        )
        _rule(
            self.rank <= self.max_length,
            f"attention.rank ({self.rank}) must be at most attention.max_length ({self.max_length})",
        )
        _one_of("attention.score", self.score, ("scaled-dot", "dot", "cosine", "additive", "general"))
        _between("attention.dropout", self.dropout, 0, 0.95)


@dataclass(frozen=True)
class PositionsConfig:
    """How the model knows the order of its tokens."""

    kind: str = "sinusoidal"
    max_length: int = 1024  # longest sequence that learned positions can hold
    clip: int = 16  # relative and structural: distances beyond this one count as this one

    def __post_init__(self) -> None:
        _one_of("positions.kind", self.kind, POSITION_KINDS)
        _between("positions.clip", self.clip, 1, 65536)
        _between("positions.max_length", self.max_length, 1, 1_000_000)


@dataclass(frozen=True)
class TextConfig:
    """How text becomes ids."""

    vocab_size: int = 0  # 0: chosen by the size of the data
    source: str = ""  # language codes, for the server to find the model by
    target: str = ""

    def __post_init__(self) -> None:
        _between("text.vocab_size", self.vocab_size, 0, 4_000_000)
        for name in ("source", "target"):
            code = getattr(self, name)
            _rule(
                not code or (len(code) <= 35 and _CODE.fullmatch(code) is not None),
                f"text.{name} ({code}) must be a language code such as en or pt-BR",
            )


@dataclass(frozen=True)
class DataConfig:
    """Which pairs are trained on."""

    max_length: int = 256  # tokens on either side; longer pairs are left out
    max_ratio: float = 9.0  # tokens of one side per token of the other; more is left out

    def __post_init__(self) -> None:
        _between("data.max_length", self.max_length, 2, 1_000_000)
        _between("data.max_ratio", self.max_ratio, 1, 1_000_000)


@dataclass(frozen=True)
class TrainConfig:
    """How the model is trained. A bound that is 0 does not bind; the first one reached ends it."""

    seed: int = 1
    minutes: float = 0.0  # time budget, everything included; the schedule ends with it
    max_steps: int = 0
    max_epochs: int = 0
    optimizer: str = "muon"
    lr: float = 8e-3  # the peak
    warmup: int = 0  # steps; 0: a twentieth of the run
    schedule: str = "linear"  # after the warm-up: to zero at the end of the run, or never
    batch_tokens: int = 3072  # padded tokens of the longer side in one batch
    accumulate: int = 1  # batches in one step
    clip: float = 1.0  # largest gradient norm; 0: no clipping
    weight_decay: float = 0.0
    label_smoothing: float = 0.1
    precision: str = "auto"
    recompute: str = "auto"  # encoder layers in the backward pass, instead of holding what they made
    average: str = "ema"
    average_span: float = 0.05  # share of the run that the average looks back over
    valid_every: int = 0  # steps; 0: chosen, about twenty times in a run
    patience: int = 0  # validations without a better loss before stopping; 0: never
    log_every: int = 20  # steps between the lines of metrics.jsonl
    save_every: float = 120.0  # seconds between checkpoints
    keep: int = 2  # checkpoints kept
    tensorboard: bool = False

    def __post_init__(self) -> None:
        _one_of("train.optimizer", self.optimizer, ("adam", "muon"))
        _one_of("train.schedule", self.schedule, ("linear", "cosine", "inverse-sqrt", "constant"))
        _one_of("train.precision", self.precision, ("auto", "fp32", "bf16"))
        _one_of("train.recompute", self.recompute, ("auto", "always", "never"))
        _one_of("train.average", self.average, ("ema", "last", "none"))
        _between("train.lr", self.lr, 0, 10)
        _between("train.label_smoothing", self.label_smoothing, 0, 0.95)
        _between("train.average_span", self.average_span, 0, 1)
        _between("train.batch_tokens", self.batch_tokens, 1, 10_000_000)
        for name in ("accumulate", "log_every", "keep"):
            _between(f"train.{name}", getattr(self, name), 1, 1_000_000)
        for name in ("minutes", "max_steps", "max_epochs", "warmup", "clip", "weight_decay"):
            _between(f"train.{name}", getattr(self, name), 0, 1e12)
        for name in ("seed", "valid_every", "patience", "save_every"):
            _between(f"train.{name}", getattr(self, name), 0, 1e12)


@dataclass(frozen=True)
class DecodeConfig:
    """How translations are searched for; kept in the folder's generation.json."""

    beam: int = 5
    length_penalty: float = 1.4  # a hypothesis scores log p / length ** penalty
    max_ratio: float = 2.0  # longest output: max_extra + max_ratio * source length
    max_extra: int = 32
    min_ratio: float = 0.0
    max_source: int = 1024  # tokens of the longest line that is translated; a longer one is refused

    def __post_init__(self) -> None:
        _between("decode.beam", self.beam, 1, 1000)
        _between("decode.length_penalty", self.length_penalty, 0, 10)
        _between("decode.max_ratio", self.max_ratio, 0, 1000)
        _between("decode.max_extra", self.max_extra, 1, 100_000)
        _between("decode.min_ratio", self.min_ratio, 0, 1000)
        _between("decode.max_source", self.max_source, 1, 10_000_000)


@dataclass(frozen=True)
class Config:
    """The whole tree."""

    model: ModelConfig = field(default_factory=ModelConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    positions: PositionsConfig = field(default_factory=PositionsConfig)
    text: TextConfig = field(default_factory=TextConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)

    def __post_init__(self) -> None:
        for key, (taken, why) in _LIMITS[self.model.kind].items():
            table, _, leaf = key.partition(".")
            value = getattr(getattr(self, table), leaf)
            _rule(
                value in taken,
                f"{key} ({value}) means nothing to model.kind={self.model.kind}: {why}; "
                f"it takes {', '.join(map(str, taken))}",
            )
        self._check_positions()

    def _check_positions(self) -> None:
        """The rules between positions and what attends."""
        shape, kind = self.model, self.positions.kind
        for heads in (shape.n_heads, shape.decoder_heads or shape.n_heads):
            width = shape.d_model // heads
            _rule(
                kind != "rotary" or width % 2 == 0,
                f"positions.kind=rotary turns pairs of dimensions: the head width ({width}) must be even",
            )
        _rule(
            self.attention.kind == "full" or kind not in _ON_SCORES,
            f"positions.kind={kind} acts on the score of every pair, and attention.kind="
            f"{self.attention.kind} does not compute them all; take sinusoidal, learned, rotary or none",
        )


def known_keys() -> dict[str, Any]:
    """Every dotted key with its default, in the order of the tree."""
    return {
        f"{table.name}.{leaf.name}": leaf.default
        for table in dataclasses.fields(Config)
        for leaf in dataclasses.fields(typing.cast(Any, table.type))
    }


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys: {"a": {"b": 1}} becomes {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def read_toml(path: Path) -> dict[str, Any]:
    """The dotted overrides in a TOML file."""
    try:
        return flatten(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"cannot read config {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"config {path} is not TOML: {error}") from error


def parse_set(assignment: str) -> tuple[str, Any]:
    """`a.b=c` from the command line as (key, value); the value is read as TOML, or as a word."""
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set takes KEY=VALUE, not {assignment!r}")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    return key.strip(), value


def _fit(key: str, value: Any, wanted: type) -> Any:
    """`value` as the type that `key` holds; whole numbers pass for fractions, nothing else bends."""
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not wanted:
        names = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}
        raise UsageError(f"{key} takes {names[wanted.__name__]}, not {value!r}")
    return value


def merge(config: Config, overrides: dict[str, Any]) -> Config:
    """`config` with dotted overrides laid over it, checked key by key and rule by rule.

    >>> merge(Config(), {"model.d_model": 512}).model.d_model
    512
    """
    known = known_keys()
    tables: dict[str, dict[str, Any]] = {}
    for key, value in overrides.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
            raise UsageError(f"unknown config key {key}; did you mean {near[0]}?")
        table, _, leaf = key.partition(".")
        tables.setdefault(table, {})[leaf] = _fit(key, value, type(known[key]))
    changed = {name: dataclasses.replace(getattr(config, name), **leaves) for name, leaves in tables.items()}
    return dataclasses.replace(config, **changed)


def to_dict(config: Config) -> dict[str, Any]:
    """The tree as plain dictionaries."""
    return dataclasses.asdict(config)


def to_json(config: Config) -> str:
    """The tree as JSON text."""
    return json.dumps(to_dict(config), indent=2) + "\n"


def from_dict(tree: dict[str, Any]) -> Config:
    """A config from what `to_dict` gave."""
    return merge(Config(), flatten(tree))
