"""Regard: translators, language models and encoders of your own, and the attention family under them.

The public names are below; each is loaded when it is first used, so that `import regard` costs nothing
and the command line answers at once.

    regard.train(..., task="language")  files -> a model folder; a translator where no task is named
    regard.load("runs/demo")            a model folder -> a Translator, a Writer, what its task makes of it
    regard.look("runs/demo", "...")     a sentence -> what every head looked at
    regard.attend(query, key, value)    attention itself
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.process.loading import watch

__version__ = "0.1.0"

if TYPE_CHECKING:
    from regard.attention.attend import attend
    from regard.attention.basic import basic_self_attention
    from regard.attention.heads import MultiHead
    from regard.attention.record import record
    from regard.attention.switch import heads_off
    from regard.config import Config
    from regard.data.corpus import Corpus
    from regard.errors import RegardError
    from regard.look.look import look
    from regard.models.transformer import Transformer
    from regard.tasks.task import load
    from regard.tasks.train import train
    from regard.tasks.translation.translator import Translator
    from regard.text.phrasebook import phrases
    from regard.text.tokenizer import Tokenizer

__all__ = [
    "Config",
    "Corpus",
    "MultiHead",
    "RegardError",
    "Tokenizer",
    "Transformer",
    "Translator",
    "__version__",
    "attend",
    "basic_self_attention",
    "heads_off",
    "load",
    "look",
    "phrases",
    "record",
    "train",
]

_HOMES = {
    "Config": "regard.config",
    "Corpus": "regard.data.corpus",
    "MultiHead": "regard.attention.heads",
    "RegardError": "regard.errors",
    "Tokenizer": "regard.text.tokenizer",
    "Transformer": "regard.models.transformer",
    "Translator": "regard.tasks.translation.translator",
    "attend": "regard.attention.attend",
    "basic_self_attention": "regard.attention.basic",
    "heads_off": "regard.attention.switch",
    "load": "regard.tasks.task",
    "look": "regard.look.look",
    "phrases": "regard.text.phrasebook",
    "record": "regard.attention.record",
    "train": "regard.tasks.train",
}

watch()


def __getattr__(name: str) -> Any:
    """Load a public name on first use (PEP 562) and keep it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
