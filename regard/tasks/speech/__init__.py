"""Speech: a recording in, what is said in it out; frames in, characters out.

A run: `examples` (recordings), `lesson` (samples, loss), `validation`. A folder: `listener` (recordings to
segments), with `hearing` (long ones, piece by piece), `timing` (words by cross-attention) and `subtitles`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.config.speech import SpeechConfig
from regard.errors import UsageError
from regard.tasks.task import Evaluation, Family, Judge, Task

if TYPE_CHECKING:
    from regard.config import Config
    from regard.models.card import Facts
    from regard.tasks.speech.examples import Recordings
    from regard.tasks.speech.listener import Listener
    from regard.training.lesson import Job, Lesson


class SpeechTask(Task):
    """A recording, and what is said in it."""

    name = "speech"
    noun = "recogniser of speech"
    verb = "transcribe"
    given = "recording.wav"
    models = ("speech",)
    serves = "regard.serving.transcriptions:Transcriptions"
    looks = "regard.look.heard:look_at_recording"
    keys: ClassVar[Mapping[str, Any]] = {"speech": SpeechConfig}

    def read(self, files: Sequence[Path], valid: Sequence[Path] | None = None, **more: Any) -> "Recordings":
        """A TSV of files and texts, or folders in the common layouts; one in parts has its own validation."""
        from regard.data.recordings import of_part
        from regard.tasks.speech.examples import Recordings

        if more:
            raise UsageError(f"--{next(iter(more)).replace('_', '-')} means nothing to task={self.name}")
        given = [*map(Path, files)]
        train = tuple(part for path in given for part in of_part(path, "train"))
        other = tuple(part for path in map(Path, valid or files) for part in of_part(path, "valid"))
        if not valid and any(path in given for path in (*train, *other)):
            other = ()  # not in parts: some of all is held out
        return Recordings(train, other)

    def defaults(self) -> dict[str, Any]:
        """Truncated attention, whose places count from each other; characters; greedy search."""
        return super().defaults() | {
            "model.kind": "speech",
            "model.d_model": 128,
            "model.encoder_layers": 4,
            "model.decoder_layers": 2,
            "model.d_ff": 512,
            "attention.kind": "local",
            "attention.window": 32,
            "attention.ahead": 8,
            "positions.kind": "rotary",
            "text.units": "characters",
            "train.batch_tokens": 1024,
            "decode.beam": 1,
            "decode.length_penalty": 1.0,
            "decode.max_ratio": 1.0,
        }

    def settle(
        self, config: "Config", asked: Mapping[str, Any], examples: Any, base: "Config | None"
    ) -> "Config":
        """The last word belongs to the recordings: see `lesson.py`."""
        if config.text.units == "subwords" and not config.text.vocab_size and base is None:
            raise UsageError("text.units=subwords needs text.vocab_size for speech: 300 to 2000 are usual")
        return super().settle(config, asked, examples, base)

    def lesson(self, job: "Job") -> "Lesson":
        """Samples on disk, cross-entropy and CTC, WER and CER."""
        from regard.tasks.speech.lesson import lesson_for

        return lesson_for(job)

    def card(self, facts: "Facts", folder: str) -> str:
        """With how far ahead it hears."""
        from regard.tasks.speech.card import write

        return write(facts, folder)

    def load(self, folder: Path, **options: Any) -> "Listener":
        """The model in a folder, ready to listen."""
        from regard.tasks.speech.listener import load_listener

        return load_listener(folder, **options)

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        """WER, CER, and how much faster than the recordings."""
        from regard.tasks.speech.evaluate import evaluation

        device = options.pop("device", "cpu")
        batch = options.pop("batch_size", None)
        if options:
            raise UsageError(f"--{next(iter(options)).replace('_', '-')} means nothing to {self.noun}")
        return evaluation(self.load(folder, device=device), self._measured(files), batch or 16)

    def family(self) -> Family:
        """Full against truncated attention, with and without CTC, and what attention replaced."""
        from regard.tasks.speech.family import FAMILY

        return FAMILY

    def compared(self, folder: Path, files: Sequence[Path]) -> Evaluation:
        """With the seconds that it hears ahead, or all that it hears at once."""
        from regard.config.file import read_config
        from regard.measure.score import Score
        from regard.tasks.speech.card import look_ahead

        found, config = self.evaluate(folder, files), read_config(folder)
        ahead = look_ahead(config)
        delay = config.of(SpeechConfig).heard if ahead is None else ahead
        more = {"delay": Score(delay, higher=False, label="delay (s)", digits=2)}
        return replace(found, scores=dict(found.scores) | more)

    def judge(self, folder: Path, files: Sequence[Path], **options: Any) -> Judge:
        """By WER."""
        from regard.tasks.speech.evaluate import judge

        return judge(self.load(folder, engine="readable"), self._measured(files), **options)

    def _measured(self, files: Sequence[Path]) -> "Recordings":
        """Of folders in parts those to test on."""
        from regard.data.recordings import of_part
        from regard.tasks.speech.examples import Recordings

        return Recordings(tuple(part for path in map(Path, files) for part in of_part(path, "test")))

    def check(self, files: Sequence[Path], *, examples: int = 3) -> Any:
        """Line by line, and every recording to its end."""
        from regard.tasks.speech.check import check

        return check(self.read(files), examples=examples)

    def demo(self, **options: Any) -> None:
        """On telephone calls that are made on the spot."""
        for name in ("to", "source"):
            if name in options:
                flag = "from" if name == "source" else name
                raise UsageError(f"--{flag} means nothing to task={self.name}")
        from regard.tasks.speech.demo import Options, demo

        demo(Options(**options))


TASK = SpeechTask()
