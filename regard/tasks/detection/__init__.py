"""Objects in pictures: pictures with boxes in, a detector out (DETR).

A run: `lesson` (pixels and boxes, scores), `matching` (the set loss), `denoise` (hints), `augment`. A folder:
`detector` (pictures to boxes), `drawing` (boxes on the picture). `demo`: scenes of glyphs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config import Config
from regard.config.detection import DetectionConfig
from regard.errors import UsageError
from regard.tasks.task import Evaluation, Judge, Task

if TYPE_CHECKING:
    from regard.models.card import Facts
    from regard.models.folder import Loaded
    from regard.tasks.detection.detector import Detector
    from regard.tasks.detection.lesson import Boxed
    from regard.training.lesson import Job, Lesson


class Detection(Task):
    """A picture, and boxes around what is in it."""

    name = "detection"
    noun = "detector"
    verb = "detect"
    given = "picture.jpg"
    models = ("transformer",)
    keys: ClassVar[Mapping[str, Any]] = {"detection": DetectionConfig}
    looks = "regard.look.pictured:look_at_picture"
    serves = "regard.serving.pictures:Detect"

    def build(self, config: Config) -> Any:
        """A backbone, an encoder, and queries."""
        from regard.models.detector import Detector
        from regard.models.detr import Detr

        return (Detector if config.of(DetectionConfig).anchors else Detr)(config)

    def read(self, files: Sequence[Path], valid: Sequence[Path] | None = None, **more: Any) -> "Boxed":
        """Folders; one in parts gives its own validation."""
        from regard.data.boxes import Scenes
        from regard.tasks.detection.lesson import Boxed

        if more:
            raise UsageError(f"--{next(iter(more)).replace('_', '-')} means nothing to task={self.name}")
        train = tuple(map(Path, files))
        if valid:
            return Boxed(Scenes(train), Scenes(tuple(map(Path, valid)), "valid"))
        own = Scenes(train, "valid")
        apart = all(path.is_dir() for path in train) and _apart(Scenes(train), own)
        return Boxed(Scenes(train), own if apart else None)

    def defaults(self) -> dict[str, Any]:
        """A model of a size that minutes can train."""
        return super().defaults() | {
            "model.kind": "transformer",
            "model.d_model": 128,
            "model.d_ff": 256,
            "model.encoder_layers": 2,
            "model.decoder_layers": 3,
            "model.activation": "gelu",
            "positions.kind": "sinusoidal",
            "train.lr": 2e-3,
            "train.batch_tokens": 1024,
            "train.weight_decay": 0.01,
            "train.clip": 1.0,
        }

    def adopt(self, model: Any, base: "Loaded") -> None:
        """Everything but what has other classes."""
        held, own = base.model.state_dict(), model.state_dict()
        fitting = {name: held[name] if held[name].shape == own[name].shape else own[name] for name in own}
        model.load_state_dict(fitting)

    def lesson(self, job: "Job") -> "Lesson":
        """Pixels and boxes on disk, the set loss, AP."""
        from regard.tasks.detection.lesson import lesson_for

        return lesson_for(job)

    def card(self, facts: "Facts", folder: str) -> str:
        """With its classes."""
        from regard.models.card import titled, write_card

        use = ["regard detect -m {} picture.jpg -o drawn/", "regard evaluate -m {} test/"]
        python = 'next(regard.load({}).detect(["picture.jpg"])).objects'
        return write_card(facts, folder, title=titled("A detector", facts), use=use, python=python)

    def load(self, folder: Path, **options: Any) -> "Detector":
        """The model in a folder, ready to be shown pictures."""
        from regard.tasks.detection.detector import load_detector

        return load_detector(folder, **options)

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """AP, AP50 and AP75."""
        from regard.data.boxes import Scenes
        from regard.tasks.detection.detector import evaluation

        device = options.pop("device", "cpu")
        if options:
            raise UsageError(f"--{next(iter(options)).replace('_', '-')} means nothing to {self.noun}s")
        return evaluation(self.load(folder, device=device), Scenes(tuple(map(Path, files)), "test"))

    def judge(self, folder: Path, files: Sequence[Path], **options: Any) -> Judge:
        """By AP."""
        from regard.data.boxes import Scenes
        from regard.tasks.detection.detector import judge

        return judge(self.load(folder), Scenes(tuple(map(Path, files)), "test"), options["limit"])

    def check(self, files: Sequence[Path], *, examples: int = 3) -> Any:
        """Pictures that are broken or repeated, boxes without area or over the edge, labels."""
        from regard.data.picture_check import check_scenes

        return check_scenes(self.read(files).train, examples=examples)

    def demo(self, **options: Any) -> None:
        """On scenes of glyphs."""
        for name in ("to", "source"):
            if name in options:
                raise UsageError(
                    f"--{'from' if name == 'source' else name} means nothing to task={self.name}"
                )
        from regard.tasks.detection.demo import Options, demo

        demo(Options(**options))


def _apart(train: Any, valid: Any) -> bool:
    """Whether a folder has pictures of its own to validate on."""
    from regard.errors import DataError

    try:
        held = {each.path for each in train.held}
        return bool(valid.held) and not any(each.path in held for each in valid.held)
    except DataError:
        return False  # said when the examples are checked


TASK = Detection()
