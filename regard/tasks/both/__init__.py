"""One stack that writes on, fills gaps and gives vectors: some batches causal, the others masked (GPT-BERT).

A run: `lesson` (rows of both kinds, their losses, both scores). Its folder is taken by `regard generate`,
`regard fill` and `regard embed`. `family` compares the same stack under causal, full and both masks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config.rules import between
from regard.errors import UsageError
from regard.tasks.encoder import EmbedConfig
from regard.tasks.language import Language
from regard.tasks.masked import MaskedConfig
from regard.tasks.task import Evaluation, Family, Task

if TYPE_CHECKING:
    from regard.config import Config
    from regard.models.card import Facts
    from regard.training.lesson import Job, Lesson

NO_TURN = ("relative", "structural")  # positions that know the past alone, or need trees


@dataclass(frozen=True)
class BothConfig:
    """How the two share the batches."""

    masked: float = 0.5  # share of the batches that have gaps; 0: all are causal, 1: none is

    def __post_init__(self) -> None:
        between("both.masked", self.masked, 0, 1)


class BothTask(Language):
    """A text, what may come next, and what stood in its gaps."""

    name = "both"
    noun = "model that writes on and fills gaps"
    also: ClassVar[Sequence[str]] = ("language", "masked", "embed")
    keys: ClassVar[Mapping[str, Any]] = {"both": BothConfig, "embed": EmbedConfig, "masked": MaskedConfig}
    exports: ClassVar[dict[str, str]] = {}

    def build(self, config: "Config") -> Any:
        """A decoder that reads both ways."""
        from regard.models.both import Both

        return Both(config)

    def settle(
        self, config: "Config", asked: Mapping[str, Any], examples: Any, base: "Config | None"
    ) -> "Config":
        """As a language model's; attention and positions must be able to look both ways."""
        config = super().settle(config, asked, examples, base)
        if config.attention.kind != "full":
            raise UsageError(f"task=both needs attention.kind=full, not {config.attention.kind}")
        if config.positions.kind in NO_TURN:
            raise UsageError(f"task=both takes no positions.kind={config.positions.kind}; try rotary")
        return config

    def lesson(self, job: "Job") -> "Lesson":
        """Rows that are read on, and rows with gaps."""
        from regard.tasks.both.lesson import lesson_for

        return lesson_for(job, job.config.of(BothConfig).masked, job.config.of(MaskedConfig).share)

    def card(self, facts: "Facts", folder: str) -> str:
        """With all that it can be used for."""
        from regard.models.card import titled, write_card

        use = (
            'regard generate -m {} "Once upon a time"',
            'regard fill -m {} "the [MASK] sat"',
            "regard embed -m {} -i lines.txt -o lines.npy",
            "regard evaluate -m {} TEXT",
        )
        return write_card(
            facts, folder, title=titled("A model that writes on and fills gaps", facts), use=use
        )

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """Both: what comes next, and what stood in gaps."""
        from regard.tasks.both.lesson import evaluation

        return evaluation(folder, files, **options)

    def family(self) -> Family:
        """Three masks over one stack."""
        from regard.tasks.both.family import FAMILY

        return FAMILY

    def demo(self, **options: Any) -> None:
        """None of its own."""
        Task.demo(self, **options)


TASK = BothTask()
