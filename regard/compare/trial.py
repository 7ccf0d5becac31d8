"""One variant in a process of its own: train, score on the test set, write down how it went.

    python -m regard.compare.trial JOB.json

A process of its own, so that memory and failures are its own. `family.py` writes the job, starts it and
reads the outcome. When the parent is gone, stdin ends and training stops as it does for SIGTERM: saved.
"""

import json
import os
import signal
import sys
import threading
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.measure.score import Score, as_tree, of_tree


@dataclass(frozen=True)
class Job:
    """What a process is asked to do. Paths as text."""

    task: str
    name: str
    folder: str  # of the model
    outcome: str  # the file to write
    shared: str  # a folder with what all variants share: tokenizer, token stores
    preset: str
    overrides: dict[str, Any]
    files: dict[str, list[str]]  # train, valid, test
    fresh: bool = False


@dataclass
class Outcome:
    """How a variant did; what is None was not reached. `error` is its reason in one line."""

    name: str
    overrides: dict[str, Any]
    error: str | None = None
    scores: dict[str, Any] = field(default_factory=dict)  # by name, as `as_tree` writes them
    tokens_per_second: float | None = None  # real targets trained on, whatever they are
    sentences_per_second: float | None = None  # used on the test set, where it has sentences
    peak_megabytes: float | None = None  # of the process while it trained, Python and torch included
    parameters: int | None = None
    steps: int | None = None
    epochs: float | None = None
    seconds: float | None = None  # of training
    counted: str = "tokens"  # what the targets are

    @property
    def finished(self) -> bool:
        """Whether it has been scored."""
        return bool(self.scores)

    def named(self) -> dict[str, Score]:
        """Its scores."""
        return of_tree(self.scores)

    @staticmethod
    def read(path: Path) -> "Outcome | None":
        """What a process has written down; None if there is nothing whole."""
        try:
            return Outcome(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None


def peak_megabytes() -> float:
    """The most memory that this process has had resident, Linux's own count where there is one; 0: unknown.

    getrusage counts what the parent had when it started us; the kernel's high-water mark begins with us.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:  # on Windows
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024**2 if sys.platform == "darwin" else 1024
    )


def training_speed(records: list[dict[str, Any]]) -> float | None:
    """Targets a second of training alone, over all lines of metrics.jsonl.

    >>> lines = [{"tokens": 100, "tokens_per_second": 50.0}, {"tokens": 400, "tokens_per_second": 100.0}]
    >>> training_speed(lines)
    80.0
    """
    tokens, seconds, before = 0, 0.0, 0
    for record in records:
        new, before = record["tokens"] - before, record["tokens"]
        if speed := record.get("tokens_per_second"):
            tokens, seconds = tokens + new, seconds + new / speed
    return round(tokens / seconds, 1) if seconds else None


def run(job: Job, outcome: Outcome) -> None:
    """Train, then score; the outcome is written after each, so that what is done is not done again."""
    from regard.models.folder import load_folder
    from regard.tasks.task import task_named
    from regard.training.metrics import METRICS, read_metrics
    from regard.training.run import Asked, train

    task, folder = task_named(job.task), Path(job.folder)
    files = {split: [Path(path) for path in paths] for split, paths in job.files.items()}
    asked = Asked(
        folder, preset=job.preset, overrides=job.overrides, fresh=job.fresh, prepared=Path(job.shared)
    )
    result = train(task, task.read(files["train"], files.get("valid") or None), asked)
    if outcome.peak_megabytes is None:  # known from the process that trained, if that was another one
        outcome.peak_megabytes = round(peak_megabytes(), 1)
    outcome.steps, outcome.epochs, outcome.seconds = result.steps, result.epochs, result.seconds
    outcome.tokens_per_second = training_speed(read_metrics(folder / METRICS))
    outcome.counted = result.counted
    write(job, outcome)
    outcome.parameters = sum(weight.numel() for weight in load_folder(folder).model.parameters())
    found = task.compared(folder, files["test"])
    outcome.scores = as_tree(found.scores)
    if (sentences := found.more.get("sentences")) and (seconds := found.more.get("seconds")):
        outcome.sentences_per_second = round(sentences / seconds, 1)
    write(job, outcome)


def write(job: Job, outcome: Outcome) -> None:
    """The outcome so far, whole."""
    from regard.atomic import write_text

    write_text(Path(job.outcome), json.dumps(asdict(outcome), indent=2) + "\n")


def stop_with_parent() -> None:
    """Stop as for SIGTERM when stdin ends, which it does when the parent goes, however it goes."""

    def wait() -> None:
        while os.read(0, 1024):  # not sys.stdin, whose lock the interpreter wants when it ends
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def main(path: Path) -> int:
    """Do the job in the file; 0 if the variant was scored."""
    stop_with_parent()
    job = Job(**json.loads(path.read_text(encoding="utf-8")))
    before = Outcome.read(Path(job.outcome)) if not job.fresh else None
    outcome = before if before and not before.error else Outcome(job.name, job.overrides)
    try:
        run(job, outcome)
    except RegardError as error:
        outcome.error = " ".join(str(error).split())
    except Exception as error:
        traceback.print_exc()
        outcome.error = " ".join(f"{type(error).__name__}: {error}".split())
    else:
        return 0
    write(job, outcome)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
