"""What the tasks of encoders share: the text is read as a whole, then it becomes a vector, words or labels.

`embed` gives vectors, `masked` fills gaps, `classify` and `tag` give labels. Each folder of theirs holds an
encoder that `regard embed` can use and that another of them can begin with. `reader` reads texts with it,
in the engine where `load` can.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config import Config, merge
from regard.config.rules import between, one_of
from regard.errors import UsageError
from regard.tasks.task import Judge, Task, task_of, with_article

if TYPE_CHECKING:
    from regard.models.folder import Loaded
    from regard.tasks.embed.embedder import Embedder

POOLINGS = ("mean", "first", "max")


@dataclass(frozen=True)
class EmbedConfig:
    """How the places of a text become one vector: see `regard.layers.pooling`."""

    pooling: str = "mean"
    normalise: bool = True  # vectors of length 1, so that their product is their cosine
    max_length: int = 0  # tokens of a text that are read; 0: as many as there are positions

    def __post_init__(self) -> None:
        one_of("embed.pooling", self.pooling, POOLINGS)
        between("embed.max_length", self.max_length, 0, 1_000_000)


class Encoding(Task):
    """Base of the tasks of encoders."""

    models: ClassVar[Sequence[str]] = ("encoder",)
    looks = "regard.look.encoded:look_at_reading"
    keys: ClassVar[Mapping[str, Any]] = {"embed": EmbedConfig}

    def settle(self, config: Config, asked: Mapping[str, Any], examples: Any, base: Config | None) -> Config:
        """An encoder, which has no layers that write; or what the base is, if that reads both ways."""
        kind = {} if "model.kind" in asked or base is not None else {"model.kind": "encoder"}
        config = super().settle(merge(config, kind), asked, examples, base)
        return config if config.model.kind == "decoder" else merge(config, {"model.decoder_layers": 0})

    def judge(self, folder: Path, files: Sequence[Path], **options: Any) -> Judge:
        """A measure of the first `limit` examples that can be taken many times."""
        asked = {name: value for name, value in options.items() if name not in ("limit", "batch_size")}
        if asked:
            raise UsageError(f"--{min(asked).replace('_', '-')} means nothing to {with_article(self.noun)}")
        return self.judged(folder, files, options.get("limit", 200))

    def judged(self, folder: Path, files: Sequence[Path], limit: int) -> Judge:
        """What `judge` gives."""
        raise NotImplementedError


def body_of(model: Any) -> Any:
    """The encoder in a model of these tasks: itself, or what its labels are made of."""
    return getattr(model, "body", model)


def open_embedder(
    folder: Path, *, precision: str = "auto", engine: str = "auto", **options: Any
) -> "Embedder":
    """Vectors from a folder of any of these tasks; `precision` and `engine` as `load.py` has them."""
    from regard.models.folder import load_folder
    from regard.tasks.embed.embedder import Embedder
    from regard.tasks.encoder.load import equip

    task = task_of(folder)
    if not isinstance(task, Encoding) and "embed" not in task.also:
        raise UsageError(f"{folder} holds {with_article(task.noun)}; use regard {task.verb}")
    loaded: Loaded = load_folder(folder, **options)
    embedder = Embedder(body_of(loaded.model), loaded.tokenizer, loaded.config.of(EmbedConfig))
    equip(embedder.reader, precision=precision, engine=engine)
    return embedder
