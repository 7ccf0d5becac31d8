"""One file a model; `build` finds the one that the config names."""

from torch import nn

from regard.config import Config
from regard.errors import UsageError
from regard.kinds import MODELS, TASKS


def build(config: Config) -> nn.Module:
    """A fresh model of the kind, shape and parts that the config names; a task may have one of its own."""
    own = getattr(TASKS[config.task], "build", None)
    made = (own or MODELS[config.model.kind])(config)
    if not isinstance(made, nn.Module):
        who = f"task={config.task}" if own else f"model.kind={config.model.kind}"
        raise UsageError(f"{who} made a {type(made).__name__}, not a torch module")
    return made
