"""From what a person asked for to one config: defaults or a base model's, then preset, file and overrides.

The task has the last word: it knows which of its settings follow from others. After this file: `run.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config import Config, flatten, merge, read_toml, to_dict
from regard.errors import UsageError
from regard.kinds import MODELS
from regard.presets import preset
from regard.training.budget import DEFAULT_MINUTES
from regard.training.lesson import Learnable
from regard.training.metrics import require_tensorboard

# What a model that is trained further brings with it; another shape would be another model.
INHERITED = ("model", "attention", "positions", "text", "decode", "own")
_OF_A_KIND = ("model.kind", "model.upsample", "model.draft")
FURTHER = 0.1  # of the rate: for a model that has learned the task already
_STILL_FREE = ("model.dropout", "attention.dropout", "text.source", "text.target", "decode.")


def settle(
    task: Learnable,
    preset_name: str | None,
    file: Path | None,
    overrides: Mapping[str, Any] | None,
    *,
    examples: Any = None,
    base: Config | None = None,
) -> Config:
    """The config of a run, its bounds made known."""
    asked = {"task": task.name} | (read_toml(file) if file else {}) | dict(overrides or {})
    if asked["task"] != task.name:
        raise UsageError(f"the settings are for task={asked['task']}, and {task.name} was asked for")
    if preset_name is None and base is None:
        preset_name = task.preset(asked)
    asked = (preset(preset_name) if preset_name else {}) | asked
    config = merge(Config(), task.defaults())
    if base is not None:
        if base.task not in (task.name, *task.bases):
            raise UsageError(f"the model to train further is of task={base.task}, not of {task.name}")
        config = replace(config, task=task.name, **{name: getattr(base, name) for name in INHERITED})
        _refuse_other_shape(asked, base)
    config = merge(config, asked)
    if goes_further(task.name, config, base) and "train.lr" not in asked:
        config = merge(config, {"train.lr": config.train.lr * FURTHER})
    if not (config.train.minutes or config.train.max_steps or config.train.max_epochs):
        config = merge(config, {"train.minutes": DEFAULT_MINUTES})
    if config.train.tensorboard:
        require_tensorboard()
    return task.settle(config, asked, examples, base)


def goes_further(task: str, config: Config, base: Config | None) -> bool:
    """Whether the base has learned the same task in the same kind of model: nothing of it begins anew."""
    return base is not None and (base.task, base.model.kind) == (task, config.model.kind)


def _refuse_other_shape(asked: Mapping[str, Any], base: Config) -> None:
    """A shape is kept. A kind of model may name others that it starts from, and brings keys of its own."""
    held, kind = flatten(to_dict(base)), str(asked.get("model.kind"))
    if kind in MODELS and base.model.kind in getattr(MODELS[kind], "begins_with", ()):
        held = {key: value for key, value in held.items() if key not in _OF_A_KIND}
    for key, value in asked.items():
        inherited = key.partition(".")[0] in INHERITED and not key.startswith(_STILL_FREE)
        if inherited and key in held and held[key] != value:
            raise UsageError(f"{key} is {held[key]} in the model to train further, and cannot become {value}")
