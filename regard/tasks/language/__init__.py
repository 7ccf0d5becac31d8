"""Language models: running text in, a model that writes on out.

A run: `prepare` (to a lesson), `feed` (rows), `validation` (its scores, by `scoring`), `card`. A folder:
`writer` (writes on), `evaluate`. `demo`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.errors import UsageError
from regard.tasks.task import Evaluation, Family, Judge, Task

if TYPE_CHECKING:
    from regard.config import Config
    from regard.data.texts import Running
    from regard.models.card import Facts
    from regard.tasks.language.writer import Writer
    from regard.training.lesson import Job, Lesson


class Language(Task):
    """A text, and what may come next."""

    name = "language"
    noun = "language model"
    verb = "generate"
    models = ("decoder",)
    looks = "regard.look.written:look_at_writing"
    exports: ClassVar = {"huggingface": "regard.interop.decoders:write"}
    serves = "regard.serving.completions:Completions"

    def read(self, files: Sequence[Path], valid: Sequence[Path] | None = None, **more: Any) -> "Running":
        """Files and folders of plain text."""
        from regard.data.texts import Running, Texts

        return Running(Texts(tuple(files)), Texts(tuple(valid)) if valid else None)

    def defaults(self) -> dict[str, Any]:
        """A decoder alone."""
        return super().defaults() | {"model.kind": "decoder"}

    def settle(
        self, config: "Config", asked: Mapping[str, Any], examples: Any, base: "Config | None"
    ) -> "Config":
        """A decoder of a size that the minutes and the text can fill."""
        from regard.tasks.language.prepare import fitting

        return fitting(super().settle(config, asked, examples, base), asked, base)

    def lesson(self, job: "Job") -> "Lesson":
        """Tokenizer, tokens, rows; bits per byte."""
        from regard.tasks.language.prepare import lesson_for

        return lesson_for(job)

    def card(self, facts: "Facts", folder: str) -> str:
        """With its units and its context."""
        from regard.tasks.language.card import write

        return write(facts, folder)

    def judge(self, folder: Path, files: Sequence[Path], **options: Any) -> Judge:
        """By bits per byte."""
        from regard.tasks.language.evaluate import judge

        return judge(folder, files, **options)

    def family(self) -> Family:
        """Positions, scores, heads, norms and activations; on the Python standard library."""
        from regard.tasks.language.family import FAMILY

        return FAMILY

    def load(self, folder: Path, **options: Any) -> "Writer":
        """The model in a folder, ready to write."""
        from regard.tasks.language.load import load_writer

        return load_writer(folder, **options)

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """Loss, bits per byte and perplexity of a text."""
        from regard.tasks.language.evaluate import evaluation

        return evaluation(folder, files, **options)

    def check(self, files: Sequence[Path], *, examples: int = 3) -> Any:
        """Document by document."""
        from regard.data.text_check import check

        return check(files, examples=examples)

    def demo(self, **options: Any) -> None:
        """On the Python standard library of this machine."""
        for name in ("to", "source"):
            if name in options:
                flag = "from" if name == "source" else name
                raise UsageError(f"--{flag} means nothing to task={self.name}")
        from regard.tasks.language.demo import Options, demo

        demo(Options(**options))


TASK = Language()
