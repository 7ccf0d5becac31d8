"""Translation: pairs of lines in, a translator out.

A run: `files` and `prepare` (to a lesson), `validation` (its scores), `card`. A folder:
`load`, `translator` (text to text), `evaluate`. `distill` is both: a teacher writes what a student learns.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config import ATTENDING, REPLACED, Config, merge
from regard.config.file import read_config
from regard.errors import UsageError
from regard.kinds import MODELS
from regard.tasks.task import Evaluation, Family, Judge, Task

if TYPE_CHECKING:
    from regard.models.card import Facts
    from regard.models.folder import Loaded
    from regard.tasks.translation.prepare import Pairs
    from regard.tasks.translation.translator import Translator
    from regard.training.lesson import Job, Lesson


class Translation(Task):
    """Sentence in, sentence out."""

    name = "translation"
    pairs = True
    noun = "translator"
    verb = "translate"
    models = (*ATTENDING, *REPLACED)
    looks = "regard.look.translated:look_at_translation"
    exports: ClassVar = {to: f"regard.interop.{to}:write" for to in ("ctranslate2", "huggingface", "onnx")}
    serves = "regard.serving.libretranslate:LibreTranslate"

    def read(
        self,
        files: Sequence[Any],
        valid: Sequence[Any] | None = None,
        parses: Path | None = None,
        valid_parses: Path | None = None,
        pairs: Any = None,
        valid_pairs: Any = None,
        **more: Any,
    ) -> "Pairs":
        """Two aligned files or a TSV; `parses` and `valid_parses` are dependency trees of the sources.

        `pairs` and `valid_pairs` name the languages of several: {"en-de": ("a.en", "a.de")}.
        """
        from regard.tasks.translation.files import corpus_of
        from regard.tasks.translation.prepare import Pairs

        if pairs or valid_pairs:
            if files or valid or parses or valid_parses:
                raise UsageError("--pair and --valid-pair name all files; give no others, and no trees")
            return _several(pairs, valid_pairs)
        if not files:
            raise UsageError("name the files to train on: SRC TGT, PAIRS.tsv, or --pair en-de SRC TGT")
        if valid_parses and not valid:
            raise UsageError("--valid-parses are the trees of --valid, which was not given")
        held = corpus_of(valid, valid_parses) if valid else None
        return Pairs(corpus_of(files, parses), held)

    def preset(self, asked: Mapping[str, Any]) -> str | None:
        """The one that the minutes can fill."""
        from regard.tasks.translation.prepare import fitting_preset

        return fitting_preset(asked)

    def settle(self, config: Config, asked: Mapping[str, Any], examples: Any, base: Config | None) -> Config:
        """Positions that fit, the languages of the files, and outputs as long as what is trained on."""
        from regard.tasks.translation import prepare

        config = super().settle(config, asked, examples, base)
        for key in ("text.units", "data.context"):
            if key in asked:
                raise UsageError(f"{key} is for running text; it means nothing to task={self.name}")
        if "text.pairs" in asked:
            raise UsageError("text.pairs is written by --pair en-de SRC TGT; leave it out")
        if base is None and "positions.kind" not in asked:
            config = prepare.fitting_positions(config)
        if base is None or base.model.kind != config.model.kind:
            own = getattr(MODELS[config.model.kind], "defaults", {})
            config = merge(config, {key: value for key, value in own.items() if key not in asked})
        prepare.refuse_long_data(config)
        if config.data.max_length > config.decode.max_source:  # what is trained on can be translated
            config = merge(config, {"decode.max_source": config.data.max_length})
        if examples is not None:
            config = prepare.with_languages(config, examples, base)
            prepare.check_parses(config, examples)
        return config

    def lesson(self, job: "Job") -> "Lesson":
        """Tokenizer, stores, teacher forcing, BLEU."""
        from regard.tasks.translation.prepare import lesson_for

        return lesson_for(job)

    def adopt(self, model: Any, base: "Loaded") -> None:
        """All of a model of the same kind; one of another kind says itself what it takes over."""
        if callable(adopt := getattr(model, "adopt", None)):
            adopt(base.model)
        else:
            super().adopt(model, base)

    def memory(self, trainer: Any, config: Config) -> str | None:
        """From the shapes of the batches, for a Transformer."""
        from regard.tasks.translation.memory import memory_of

        found = memory_of(trainer, config)
        return found.line() if found else None

    def card(self, facts: "Facts", folder: str) -> str:
        """With its languages."""
        from regard.tasks.translation.card import write

        return write(facts, folder)

    def load(self, folder: Path, **options: Any) -> "Translator":
        """In the native engine, where that knows the model."""
        from regard.tasks.translation.load import load_translator

        return load_translator(folder, **options)

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """BLEU, chrF and more of a test set: two aligned files or a TSV."""
        from regard.tasks.translation.evaluate import evaluation

        return evaluation(folder, files, **options)

    def export(self, folder: Path, to: str, place: Path) -> None:
        """Of one pair of languages; nobody else's program puts our tokens before a text."""
        if pairs := read_config(folder).text.pairs:
            raise UsageError(
                f"{folder} serves {len(pairs.split())} pairs by a token before the source, which "
                f"--to {to} does not write; train one pair, or serve it with regard serve"
            )
        super().export(folder, to, place)

    def family(self) -> Family:
        """Scores, positions, heads, and what attention replaced; on the phrasebook."""
        from regard.tasks.translation.family import FAMILY

        return FAMILY

    def compared(self, folder: Path, files: Sequence[Path]) -> Evaluation:
        """By the readable search, exact matches too."""
        from regard.tasks.translation.evaluate import evaluation

        return evaluation(folder, files, exact=True, engine="readable")

    def judge(self, folder: Path, files: Sequence[Path], **options: Any) -> Judge:
        """By BLEU."""
        from regard.tasks.translation.evaluate import judge

        return judge(folder, files, **options)

    def check(self, files: Sequence[Path], *, examples: int = 3) -> Any:
        """Line by line."""
        from regard.data.check import check
        from regard.tasks.translation.files import corpus_of

        return check(corpus_of(files), examples=examples)

    def demo(self, **options: Any) -> None:
        """On a phrasebook."""
        from regard.tasks.translation.demo import Options, demo

        demo(Options(**options))


def _several(pairs: Any, valid_pairs: Any) -> "Pairs":
    """Pairs of several languages."""
    from regard.tasks.translation.mixing import several, several_held
    from regard.tasks.translation.prepare import Pairs

    if not pairs:
        raise UsageError("--valid-pair belongs to a --pair of the same languages, which was not given")
    corpus, directions = several(pairs)
    held = several_held(valid_pairs, directions) if valid_pairs else None
    return Pairs(corpus, held, directions)


TASK = Translation()
