"""Pictures and what they show: a folder a class in, a classifier of pictures out.

A run: `lesson` (pixels, loss, scores), `augment` (varied pictures), `figure` (what a card shows). A folder:
`classifier` (pictures to labels). `demo`: on glyphs of the fonts that matplotlib ships.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config import Config, merge
from regard.config.image import ImageConfig
from regard.errors import UsageError
from regard.tasks.task import Evaluation, Family, Judge, Task

if TYPE_CHECKING:
    from regard.models.card import Facts
    from regard.models.folder import Loaded
    from regard.tasks.image.classifier import Classifier
    from regard.tasks.image.lesson import Labelled
    from regard.training.lesson import Job, Lesson


WIDTHS = (64, 96, 128, 192)
OFTEN = 9  # epochs below which a narrower model learns more


class Image(Task):
    """A picture, and what it shows."""

    name = "image"
    noun = "classifier of pictures"
    verb = "classify"
    given = "picture.jpg"
    models = ("encoder", "conv")
    keys: ClassVar[Mapping[str, Any]] = {"image": ImageConfig}
    looks = "regard.look.pictured:look_at_picture"
    serves = "regard.serving.pictures:Classify"

    def build(self, config: Config) -> Any:
        """Patches that look at patches, or convolutions."""
        from regard.models.vision import build_vision

        return build_vision(config)

    def read(self, files: Sequence[Path], valid: Sequence[Path] | None = None, **more: Any) -> "Labelled":
        """Folders, lists and arrays; a folder in parts gives its own validation."""
        from regard.data.picture_files import PARTS
        from regard.data.pictures import Pictures
        from regard.tasks.image.lesson import Labelled

        if more:
            raise UsageError(f"--{next(iter(more)).replace('_', '-')} means nothing to task={self.name}")
        train = tuple(map(Path, files))
        if valid:
            return Labelled(Pictures(train), Pictures(tuple(map(Path, valid)), "valid"))
        parts = [path for path in train if any((path / name).is_dir() for name in PARTS["valid"])]
        if parts and len(parts) == len(train) and all((path / "train").is_dir() for path in parts):
            return Labelled(Pictures(train), Pictures(train, "valid"))
        return Labelled(Pictures(train))

    def defaults(self) -> dict[str, Any]:
        """A model of a size that minutes can train."""
        return super().defaults() | {
            "model.kind": "encoder",
            "model.d_model": 96,
            "model.d_ff": 288,
            "model.encoder_layers": 3,
            "model.activation": "gelu",
            "positions.kind": "learned",
            "train.lr": 4e-3,
            "train.batch_tokens": 6272,
            "train.weight_decay": 0.02,
        }

    def settle(self, config: Config, asked: Mapping[str, Any], examples: Any, base: Config | None) -> Config:
        """Heads that begin as a convolution have a shape of their own; layers that write mean nothing."""
        config = super().settle(config, asked, examples, base)
        chosen: dict[str, Any] = {"model.decoder_layers": int(config.model.kind == "conv")}
        if base is None and examples is not None and not asked.keys() & {"model.d_model", "model.d_ff"}:
            width = fitting_width(config, examples)
            chosen |= {"model.d_model": width, "model.d_ff": 3 * width}
        if config.of(ImageConfig).start == "convolution":
            theirs = {"positions.kind": "quadratic", "model.n_heads": 9, "model.d_model": 144}
            chosen |= {key: value for key, value in theirs.items() if key not in asked}
        return merge(config, chosen)

    def adopt(self, model: Any, base: "Loaded") -> None:
        """Everything, but an output for other classes."""
        held = base.model.state_dict()
        own = model.state_dict()
        fitting = {name: held[name] if held[name].shape == own[name].shape else own[name] for name in own}
        model.load_state_dict(fitting)

    def lesson(self, job: "Job") -> "Lesson":
        """Pixels on disk, cross-entropy, accuracy and macro F1."""
        from regard.tasks.image.lesson import lesson_for

        return lesson_for(job)

    def card(self, facts: "Facts", folder: str) -> str:
        """With a picture of what was taken for what."""
        from regard.models.card import titled, write_card
        from regard.tasks.task import with_article

        use = ["regard classify -m {} picture.jpg", "regard evaluate -m {} test/"]
        python = 'next(regard.load({}).classify(["picture.jpg"])).name'
        title = titled(with_article(self.noun).capitalize(), facts)
        return write_card(facts, folder, title=title, use=use, python=python)

    def load(self, folder: Path, **options: Any) -> "Classifier":
        """The model in a folder, ready to be shown pictures."""
        from regard.tasks.image.classifier import load_classifier

        return load_classifier(folder, **options)

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """Accuracy and macro F1."""
        from regard.data.pictures import Pictures
        from regard.tasks.image.classifier import evaluation

        device = options.pop("device", "cpu")
        if options:
            raise UsageError(f"--{next(iter(options)).replace('_', '-')} means nothing to {self.noun}")
        return evaluation(self.load(folder, device=device), Pictures(tuple(map(Path, files)), "test"))

    def judge(self, folder: Path, files: Sequence[Path], **options: Any) -> Judge:
        """By accuracy."""
        from regard.data.pictures import Pictures
        from regard.tasks.image.classifier import judge

        return judge(self.load(folder), Pictures(tuple(map(Path, files)), "test"), options["limit"])

    def check(self, files: Sequence[Path], *, examples: int = 3) -> Any:
        """Pictures that are broken, repeated or blank, and labels that are too few."""
        from regard.data.picture_check import check_pictures
        from regard.tasks.image.lesson import LEAST

        return check_pictures(self.read(files).train, labelled=True, fewest=LEAST, examples=examples)

    def family(self) -> Family:
        """Positions, pooling, stems, the theorem and convolutions; on glyphs."""
        from regard.tasks.image.family import FAMILY

        return FAMILY

    def demo(self, **options: Any) -> None:
        """On glyphs of the fonts that matplotlib ships."""
        for name in ("to", "source"):
            if name in options:
                raise UsageError(
                    f"--{'from' if name == 'source' else name} means nothing to task={self.name}"
                )
        from regard.tasks.image.demo import Options, demo

        demo(Options(**options))


def fitting_width(config: Config, examples: "Labelled") -> int:
    """The widest model that sees every picture often enough in the minutes there are.

    Reckoned for two cores: a picture of MNIST's size takes a millisecond at width 64, and by the square more.
    """
    minutes, survey = config.train.minutes, examples.train.survey
    if not minutes:
        return config.model.d_model
    tall, wide = (min(side, 64) for side in survey.sizes.most_common(1)[0][0])
    images = 60_000 * minutes * 784 / (tall * wide)  # that are seen at width 64
    fits = [width for width in WIDTHS if images * (WIDTHS[0] / width) ** 2 >= OFTEN * survey.count]
    return max(fits, default=WIDTHS[0])


TASK = Image()
