"""Labels: a text and what kind it is (`classify`), or words and what each of them is (`tag`).

A run: `examples` (files), `lesson` (columns, loss, scores). A folder: `labeller` (texts and words to labels).
Both tasks begin from nothing, or with the encoder of a folder of any task of encoders.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config import Config, merge
from regard.config.file import read_config
from regard.config.rules import between, one_of
from regard.errors import UsageError
from regard.tasks.encoder import EmbedConfig, Encoding, body_of
from regard.tasks.task import Evaluation, Judge

if TYPE_CHECKING:
    from regard.models.card import Facts
    from regard.models.folder import Loaded
    from regard.tasks.labels.examples import Labelled
    from regard.tasks.labels.labeller import Labels
    from regard.training.lesson import Job, Lesson


@dataclass(frozen=True)
class LabelsConfig:
    """What the labels are, and how much faster they learn than an encoder that was trained before."""

    count: int = 0  # of different labels; 0: taken from the examples
    pace: float = 0.1  # the rate of a trained encoder's last layer beside that of the labels
    decay: float = 0.85  # and of each layer beside the one above it
    hide: float = 0.0  # share of the tokens that are hidden while it learns
    grams: int = 0  # rows of a table of runs of tokens that speak for labels of texts by themselves; 0: none
    column: str = "upos"  # of CoNLL-U, that holds the tags: upos, xpos, deprel

    def __post_init__(self) -> None:
        between("labels.count", self.count, 0, 100_000)
        between("labels.grams", self.grams, 0, 4_000_000)
        for name in ("pace", "decay", "hide"):
            between(f"labels.{name}", getattr(self, name), 0, 1)
        one_of("labels.column", self.column, ("upos", "xpos", "deprel"))


class Labelling(Encoding):
    """Base of the two."""

    keys: ClassVar[Mapping[str, Any]] = {"embed": EmbedConfig, "labels": LabelsConfig}
    bases: ClassVar[Sequence[str]] = ("embed", "masked", "both", "classify", "tag")
    models: ClassVar[Sequence[str]] = ("encoder", "decoder")
    words: ClassVar[bool] = False  # whether each word has a label

    def build(self, config: Config) -> Any:
        """An encoder with an output for labels."""
        from regard.models.labeller import Labeller

        how = config.of(LabelsConfig)
        return Labeller(config, max(1, how.count), config.of(EmbedConfig).pooling, grams=how.grams)

    def read(self, files: Sequence[Path], valid: Sequence[Path] | None = None, **more: Any) -> "Labelled":
        """Files of one kind."""
        from regard.tasks.labels.examples import Labelled

        given = [name for name in more if more[name] is not None]
        if given:
            raise UsageError(f"task={self.name} takes no --{given[0].replace('_', '-')}")
        train, held = (tuple(map(Path, group or ())) for group in (files, valid))
        return Labelled(train, held, column="upos" if self.words else "")

    def preset(self, asked: Mapping[str, Any]) -> str | None:
        """The smallest: labels are few."""
        return "tiny"

    def settle(self, config: Config, asked: Mapping[str, Any], examples: Any, base: Config | None) -> Config:
        """An encoder without what fills gaps; a low rate where it was trained before."""
        if base is None and config.model.kind == "decoder":
            raise UsageError(
                "model.kind=decoder reads both ways only where it has learned to; begin with a folder of "
                "task=both (--from)"
            )
        chosen = self.fresh if base is None else self.further
        plain = {"model.output_transform": False, "model.output_bias": False, "labels.count": 0}
        if self.words:
            if asked.get("labels.grams"):
                raise UsageError("labels.grams is for labels of texts; words have none")
            plain["labels.grams"] = 0
        config = merge(config, plain | {key: value for key, value in chosen.items() if key not in asked})
        examples.by(config.of(LabelsConfig).column).refuse()
        return super().settle(config, asked, examples, base)

    fresh: ClassVar[dict[str, Any]] = {
        "positions.kind": "rotary",
        "train.lr": 4e-3,
        "train.average_span": 0.1,
    }
    further: ClassVar[Mapping[str, Any]] = {
        "train.optimizer": "adam",
        "train.lr": 1e-3,
        "train.batch_tokens": 1024,
        "train.weight_decay": 0.01,
        "train.average_span": 0.1,
        "attention.dropout": 0.1,
        "model.dropout": 0.1,
    }

    def adopt(self, model: Any, base: "Loaded") -> None:
        """The encoder of another folder; its output too, where it is for as many labels of the same task."""
        held: Any = base.model
        theirs, own = body_of(held).state_dict(), model.body.state_dict()
        model.body.load_state_dict({name: theirs[name] for name in own})
        if base.config.task == self.name and held.output.weight.shape == model.output.weight.shape:
            model.output.load_state_dict(held.output.state_dict())
            if model.grams is not None and held.grams is not None:
                model.grams.load_state_dict(held.grams.state_dict())

    def lesson(self, job: "Job") -> "Lesson":
        """Tokenizer, columns, cross-entropy, accuracy and macro F1."""
        from regard.tasks.labels.lesson import lesson_for

        return lesson_for(job, job.config.of(LabelsConfig))

    def card(self, facts: "Facts", folder: str) -> str:
        """With what was taken for what."""
        from regard.models.card import titled, write_card
        from regard.tasks.task import with_article

        use = [f"regard {self.verb} -m {{}} -i texts.txt", "regard evaluate -m {} test" + self.ending]
        return write_card(facts, folder, title=titled(with_article(self.noun).capitalize(), facts), use=use)

    ending: ClassVar[str] = ".tsv"

    def load(self, folder: Path, **options: Any) -> "Labels":
        """The model in a folder, ready to give labels."""
        from regard.tasks.labels.labeller import load_labels

        return load_labels(folder, words=self.words, **options)

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """Accuracy and macro F1."""
        from regard.tasks.labels.labeller import evaluation

        how = {name: options.pop(name) for name in ("device", "precision", "engine") if name in options}
        if options:
            raise UsageError(f"--{next(iter(options)).replace('_', '-')} means nothing to {self.noun}s")
        column = read_config(folder).of(LabelsConfig).column
        return evaluation(self.load(folder, **how), self.read(files).by(column))

    def compared(self, folder: Path, files: Sequence[Path]) -> Evaluation:
        """By the readable encoder."""
        return self.evaluate(folder, files, engine="readable")

    def judged(self, folder: Path, files: Sequence[Path], limit: int) -> Judge:
        """By accuracy, and macro F1; of the first `limit` examples."""
        from regard.tasks.labels.labeller import judge

        column = read_config(folder).of(LabelsConfig).column
        return judge(self.load(folder, engine="readable"), self.read(files).by(column), limit)

    def demo(self, **options: Any) -> None:
        """On phrases of CLDR."""
        from regard.tasks.encoder.demo import options_of
        from regard.tasks.labels import demo

        getattr(demo, self.name)(options_of(self, options, minutes=demo.MINUTES))

    def check(self, files: Sequence[Path], *, examples: int = 3) -> Any:
        """Line by line."""
        from regard.tasks.labels.check import check

        return check(self.read(files), examples=examples)


class Classify(Labelling):
    """A text, and what kind it is."""

    name = "classify"
    fresh: ClassVar[dict[str, Any]] = Labelling.fresh | {  # texts are few: less to learn them by heart with
        "model.encoder_layers": 1,
        "model.dropout": 0.4,
        "labels.hide": 0.3,
        "labels.grams": 2**18,
        "train.patience": 12,
        "train.lr": 2e-3,
    }
    epochs, seen = (
        12,
        80_000,
    )  # texts are read so often, or until so many were read: then they are known by heart

    def settle(self, config: Config, asked: Mapping[str, Any], examples: Any, base: Config | None) -> Config:
        """From nothing, no longer than the texts have something to teach."""
        config = super().settle(config, asked, examples, base)
        if base is not None or {"train.max_epochs", "train.max_steps"} & asked.keys():
            return config
        count = sum(examples.labels().values())
        return merge(config, {"train.max_epochs": max(self.epochs, self.seen // count)})

    noun = "classifier"
    verb = "classify"
    serves = "regard.serving.encoders:Classify"


class Tag(Labelling):
    """Words, and what each of them is."""

    name = "tag"
    noun = "tagger"
    verb = "tag"
    serves = "regard.serving.encoders:Tag"
    words = True
    ending = ".conllu"


CLASSIFY, TAG = Classify(), Tag()
