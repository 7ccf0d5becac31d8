"""One tree of frozen dataclasses: every setting, its default and the rules between its tables.

TOML and dotted overrides come in (`merge`), plain dictionaries go out (`to_dict`). A key that is unknown is
refused with the nearest known one; one that an older folder does not have means its default. A task or a
kind of model may bring tables of its own (`keys`): `config.of(Table)` gives them.
"""

import dataclasses
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from regard.config.attention import AttentionConfig
from regard.config.data import DataConfig
from regard.config.decode import DecodeConfig
from regard.config.model import LIMITS, ModelConfig
from regard.config.positions import ON_SCORES, PositionsConfig
from regard.config.rules import nearest, one_of, rule
from regard.config.text import TextConfig
from regard.config.toml import flatten
from regard.config.train import TrainConfig
from regard.errors import UsageError, shown
from regard.kinds import MODELS, TASKS

Table = TypeVar("Table")
TASK = "task"  # the one key that stands in no table


@dataclass(frozen=True)
class Config:
    """The whole tree."""

    task: str = "translation"
    model: ModelConfig = field(default_factory=ModelConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    positions: PositionsConfig = field(default_factory=PositionsConfig)
    text: TextConfig = field(default_factory=TextConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    own: tuple[tuple[str, Any], ...] = ()  # by name, the tables that the task or the model brings with it

    def __post_init__(self) -> None:
        one_of("task", self.task, TASKS)
        for key, (taken, why) in LIMITS.get(self.model.kind, {}).items():
            table, _, leaf = key.partition(".")
            value = getattr(getattr(self, table), leaf)
            rule(
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
            rule(
                kind != "rotary" or width % 2 == 0,
                f"positions.kind=rotary turns pairs of dimensions: the head width ({width}) must be even",
            )
        rule(
            self.attention.kind == "full" or kind not in ON_SCORES,
            f"positions.kind={kind} acts on the score of every pair, and attention.kind="
            f"{self.attention.kind} does not compute them all; take sinusoidal, learned, rotary or none",
        )

    def of(self, table: type[Table]) -> Table:
        """A table that the task or the model brings with it; its defaults where nothing was set."""
        return next((held for _, held in self.own if isinstance(held, table)), None) or table()


def _tables() -> dict[str, Any]:
    """The tables that every config has."""
    return {each.name: each.type for each in dataclasses.fields(Config) if each.name not in (TASK, "own")}


def own_tables(task: str, kind: str = "") -> dict[str, Any]:
    """The tables that a task and a kind of model bring with them: name and dataclass."""
    found: dict[str, Any] = dict(getattr(TASKS[task], "keys", {}))
    if kind and MODELS.foreign(kind):
        found |= getattr(MODELS[kind], "keys", {})
    for name, table in found.items():
        if name in _tables() or not dataclasses.is_dataclass(table):
            raise UsageError(f"task={task} brings a table of keys {name}, which is taken or no dataclass")
    return found


def known_keys(task: str = "", kind: str = "") -> dict[str, Any]:
    """Every dotted key with its default, in the order of the tree; with those that a task or kind brings."""
    tables = _tables() | (own_tables(task, kind) if task else {})
    return {
        f"{name}.{leaf.name}": leaf.default
        for name, table in tables.items()
        for leaf in dataclasses.fields(typing.cast(Any, table))
    }


def _fit(key: str, value: Any, wanted: type) -> Any:
    """`value` as the type that `key` holds; whole numbers pass for fractions, nothing else bends."""
    if wanted is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    if type(value) is not wanted:
        names = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}
        given = repr(shown(value)) if isinstance(value, str) else shown(value)
        given = str(value) if isinstance(value, float) else given  # 256.0 is no whole number
        raise UsageError(f"{key} takes {names.get(wanted.__name__, wanted.__name__)}, not {given}")
    return value


def merge(config: Config, overrides: Mapping[str, Any]) -> Config:
    """`config` with dotted overrides laid over it, checked key by key and rule by rule.

    >>> merge(Config(), {"model.d_model": 512}).model.d_model
    512
    """
    task = _fit(TASK, overrides.get(TASK, config.task), str)
    one_of(TASK, task, TASKS)
    kind = shown(overrides.get("model.kind", config.model.kind))
    known = known_keys()
    strange = any(key not in known and key != TASK for key in overrides)
    own = own_tables(task, kind if kind in MODELS else "") if strange or config.own else {}
    known = known_keys(task, kind if kind in MODELS else "") if own else known
    tables: dict[str, dict[str, Any]] = {}
    for key, value in overrides.items():
        if key == TASK:
            continue
        if key not in known:
            raise UsageError(f"unknown config key {shown(key)}; did you mean {nearest(shown(key), known)}?")
        table, _, leaf = key.partition(".")
        tables.setdefault(table, {})[leaf] = _fit(key, value, type(known[key]))
    held = dict(config.own)
    ours = {name: getattr(config, name) for name in _tables()} | {
        name: held.get(name) or table() for name, table in own.items()
    }
    changed = {name: dataclasses.replace(ours[name], **leaves) for name, leaves in tables.items()}
    kept = tuple((name, changed.pop(name, ours[name])) for name in own)
    return dataclasses.replace(config, task=task, own=kept, **changed)


def to_dict(config: Config) -> dict[str, Any]:
    """The tree as plain dictionaries."""
    tree = dataclasses.asdict(config)
    del tree["own"]
    return tree | {name: dataclasses.asdict(table) for name, table in config.own}


def to_json(config: Config) -> str:
    """The tree as JSON text."""
    return json.dumps(to_dict(config), indent=2) + "\n"


def from_dict(tree: dict[str, Any]) -> Config:
    """A config from what `to_dict` gave, now or in an older version: what is missing has its default."""
    return merge(Config(), flatten(tree))
