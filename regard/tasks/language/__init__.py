"""Language models: running text in, a model that writes on out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.tasks.task import Task

if TYPE_CHECKING:
    from regard.tasks.language.writer import Writer


class Language(Task):
    """A text, and what may come next."""

    name = "language"
    noun = "language model"
    verb = "generate"
    models = ("decoder",)
    looks = "regard.look.written:look_at_writing"
    exports: ClassVar = {"huggingface": "regard.interop.decoders:write"}
    serves = "regard.serving.completions:Completions"

    def load(self, folder: Path, **options: Any) -> "Writer":
        """The model in a folder, ready to write."""
        from regard.tasks.language.load import load_writer

        return load_writer(folder, **options)


TASK = Language()
