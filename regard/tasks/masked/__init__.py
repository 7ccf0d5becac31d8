"""Masked language models: a text with a gap in, what may stand there out (Devlin et al. 2019, 3.1).

A run: `hiding` (which words are hidden), `lesson` (rows of running text, loss, scores). A folder: `filler`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config import Config, merge
from regard.config.rules import between
from regard.errors import UsageError
from regard.tasks.encoder import EmbedConfig, Encoding, body_of
from regard.tasks.task import Evaluation, Judge

if TYPE_CHECKING:
    from regard.data.texts import Running
    from regard.models.folder import Loaded
    from regard.tasks.masked.filler import Filler
    from regard.training.lesson import Job, Lesson


@dataclass(frozen=True)
class MaskedConfig:
    """How much is hidden, and in how long a row."""

    share: float = 0.2  # of the words
    length: int = 128  # tokens of a row, begin and end with them

    def __post_init__(self) -> None:
        between("masked.share", self.share, 0.01, 0.9)
        between("masked.length", self.length, 8, 65536)


class Masked(Encoding):
    """A text with gaps, and what stood there."""

    name = "masked"
    noun = "model that fills gaps"
    verb = "fill"
    given = "'the [MASK] sat'"
    serves = "regard.serving.encoders:Fill"
    keys: ClassVar[Mapping[str, Any]] = {"embed": EmbedConfig, "masked": MaskedConfig}
    bases: ClassVar[Sequence[str]] = ("embed", "classify", "tag")

    def read(self, files: Sequence[Path], valid: Sequence[Path] | None = None, **more: Any) -> "Running":
        """Files and folders of running text."""
        from regard.data.texts import Running, Texts

        given = [name for name in more if more[name] is not None]
        if given:
            raise UsageError(f"task={self.name} takes no --{given[0].replace('_', '-')}")
        return Running(Texts(tuple(map(Path, files))), Texts(tuple(map(Path, valid))) if valid else None)

    def preset(self, asked: Mapping[str, Any]) -> str | None:
        """The one that a short time can fill."""
        return "tiny"

    def settle(self, config: Config, asked: Mapping[str, Any], examples: Any, base: Config | None) -> Config:
        """Rows that the positions have room for; a low rate where the encoder was trained before."""
        fresh = {"positions.kind": "rotary", "model.output_bias": True, "train.label_smoothing": 0.0}
        further = {"train.optimizer": "adam", "train.lr": 2e-4, "train.label_smoothing": 0.0}
        chosen = fresh if base is None else further
        config = merge(config, {key: value for key, value in chosen.items() if key not in asked})
        length = config.of(MaskedConfig).length
        if config.positions.kind == "learned" and length > config.positions.max_length:
            raise UsageError(
                f"masked.length ({length}) must be at most positions.max_length "
                f"({config.positions.max_length})"
            )
        return super().settle(config, asked, examples, base)

    def adopt(self, model: Any, base: "Loaded") -> None:
        """All that the other has: what it lacks begins anew."""
        theirs, own = body_of(base.model).state_dict(), model.state_dict()
        model.load_state_dict(own | {name: tensor for name, tensor in theirs.items() if name in own})

    def lesson(self, job: "Job") -> "Lesson":
        """Rows of running text, words hidden in them, the loss where they were."""
        from regard.tasks.masked.lesson import lesson_for

        return lesson_for(job, job.config.of(MaskedConfig))

    def load(
        self, folder: Path, *, precision: str = "auto", engine: str = "auto", **options: Any
    ) -> "Filler":
        """The model in a folder, ready to fill; options as `regard.tasks.encoder.load` has them."""
        from regard.models.folder import load_folder
        from regard.tasks.encoder.load import equip
        from regard.tasks.masked.filler import Filler

        loaded = load_folder(folder, **options)
        longest = loaded.config.of(EmbedConfig).max_length
        filler = Filler(loaded.model, loaded.tokenizer, max_length=longest)
        equip(filler.reader, precision=precision, engine=engine)
        return filler

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """The loss of hidden words, its perplexity, and how often the likeliest was right."""
        from regard.tasks.masked.lesson import evaluation

        device = options.pop("device", "cpu")
        if options:
            raise UsageError(f"--{next(iter(options)).replace('_', '-')} means nothing to {self.noun}")
        return evaluation(folder, self.read(files).train, device)

    def judged(self, folder: Path, files: Sequence[Path], limit: int) -> Judge:
        """By the loss of hidden words, its perplexity and the accuracy; of the first `limit` rows."""
        from regard.tasks.masked.lesson import judge

        return judge(folder, self.read(files).train, limit)

    def check(self, files: Sequence[Path], *, examples: int = 3) -> Any:
        """Document by document."""
        from regard.data.text_check import check

        return check(files, examples=examples)

    def demo(self, **options: Any) -> None:
        """On phrases of CLDR."""
        from regard.tasks.encoder.demo import options_of
        from regard.tasks.masked.demo import MINUTES, demo

        demo(options_of(self, options, minutes=MINUTES))


TASK = Masked()
