"""Pictures drawn: a generator learns from pictures by a discriminator that tells its drawings from them.

A run: `lesson` (pixels, a judge), `objective` (two losses in one step) with `augment`, `validation` (`scores`
by the features of a `judge` of our own). A folder: `drawer`, `evaluate`. The whole road: `demo`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config import Config, merge
from regard.config.gan import GanConfig
from regard.errors import UsageError
from regard.tasks.task import Evaluation, Family, Task

if TYPE_CHECKING:
    from regard.models.card import Facts
    from regard.tasks.gan.drawer import Drawer
    from regard.tasks.gan.lesson import Drawable
    from regard.training.lesson import Job, Lesson

DEFAULTS: dict[str, Any] = {
    "model.kind": "sagan",
    "model.d_model": 96,
    "model.n_heads": 2,
    "model.encoder_layers": 0,
    "model.decoder_layers": 0,
    "model.dropout": 0.0,
    "train.optimizer": "adam",
    "train.lr": 5e-4,
    "train.clip": 0.0,
    "train.label_smoothing": 0.0,
    "train.average_span": 0.1,  # adversaries circle around what they are after
    "train.batch_tokens": 64,  # pictures
}


class Gan(Task):
    """Pictures in, others like them out."""

    name = "gan"
    noun = "generator of pictures"
    verb = "draw"
    given = ""
    looks = "regard.look.drawn:look_at_drawing"
    serves = "regard.serving.drawings:Drawings"
    keys: ClassVar[Mapping[str, Any]] = {"gan": GanConfig}
    models: ClassVar[Sequence[str]] = ("sagan",)

    def read(self, files: Sequence[Path], valid: Sequence[Path] | None = None, **more: Any) -> "Drawable":
        """A folder of pictures or of a folder a class, a .csv, an .npz, the files of MNIST."""
        from regard.data.pictures import Pictures
        from regard.tasks.gan.lesson import Drawable

        given = [name for name in more if more[name] is not None]
        if given:
            raise UsageError(f"task={self.name} takes no --{given[0].replace('_', '-')}")
        held = Pictures(tuple(map(Path, valid)), part="valid") if valid else None
        return Drawable(Pictures(tuple(map(Path, files))), held)

    def defaults(self) -> dict[str, Any]:
        """Those of two adversaries."""
        return super().defaults() | DEFAULTS

    def settle(self, config: Config, asked: Mapping[str, Any], examples: Any, base: Config | None) -> Config:
        """What the pictures say is said by them."""
        config = super().settle(config, asked, examples, base)
        return config if base else merge(config, {"gan.classes": 0})

    def lesson(self, job: "Job") -> "Lesson":
        """Pixels, a judge, two losses, scores."""
        from regard.tasks.gan.lesson import lesson_for

        return lesson_for(job)

    def card(self, facts: "Facts", folder: str) -> str:
        """With a sheet of drawings."""
        from regard.tasks.gan.card import card

        return card(facts, folder)

    def load(self, folder: Path, **options: Any) -> "Drawer":
        """The generator in a folder, ready to draw."""
        from regard.models.folder import load_folder
        from regard.tasks.gan.drawer import Drawer, names_in

        loaded = load_folder(folder, **options)
        return Drawer(loaded.model, names_in(loaded.files))

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """Drawings beside real pictures, and real ones beside real ones."""
        from regard.tasks.gan.evaluate import evaluation

        device = options.pop("device", "cpu")
        if options:
            raise UsageError(f"--{next(iter(options)).replace('_', '-')} means nothing to {self.noun}")
        return evaluation(folder, files, device)

    def check(self, files: Sequence[Path], *, examples: int = 3) -> Any:
        """Pictures that are broken, repeated or blank."""
        from regard.data.picture_check import check_pictures
        from regard.tasks.gan.lesson import FEWEST

        return check_pictures(self.read(files).train, labelled=False, fewest=FEWEST, examples=examples)

    def family(self) -> Family:
        """With attention and without; on digits."""
        from regard.tasks.gan.family import FAMILY

        return FAMILY

    def demo(self, **options: Any) -> None:
        """On digits in the fonts of matplotlib."""
        from regard.tasks.gan.demo import Options, demo

        if strange := options.keys() - Options.__dataclass_fields__.keys():
            raise UsageError(f"--{min(strange).replace('source', 'from')} means nothing to task={self.name}")
        demo(Options(**options))


TASK = Gan()
