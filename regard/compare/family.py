"""The family, measured: every variant trained on the same data, from the same seed, for the same time.

Variants run one after the other, each in a process of its own (`trial.py`). What is finished is not run
again, what was stopped goes on, and what fails is noted with its reason. `report.py` makes the table.
"""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from regard.atomic import write_text
from regard.compare.trial import Job, Outcome
from regard.compare.variants import Variant
from regard.config import Config, merge
from regard.errors import UsageError
from regard.presets import preset
from regard.process.progress import duration
from regard.tasks.task import Task
from regard.training.lesson import Examples
from regard.training.lesson import Job as Lessons
from regard.training.metrics import METRICS, read_metrics
from regard.training.settle import settle
from regard.training.workspace import make

POLL = 0.5  # seconds between looks at a process
PATIENCE = 60.0  # seconds that a process has to save when it is stopped
SCORING = 10.0  # seconds a variant takes beside its training, until one has shown it


class Said(Protocol):
    """Hears what goes on and the share that is done; a lasting message stays to be read."""

    def __call__(self, text: str, share: float, *, lasting: bool = False) -> None: ...


@dataclass(frozen=True)
class Comparison:
    """What all variants share. `folder` holds data/, variants/ and the results."""

    folder: Path
    task: Task
    files: Mapping[str, Sequence[Path]]  # train, valid (there may be none) and test, as the verb takes them
    preset: str
    overrides: dict[str, Any]
    minutes: float
    fresh: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.minutes <= 1e6:
            raise UsageError(f"--minutes ({self.minutes:g}) must be above 0")
        merge(Config(), self.task.defaults() | preset(self.preset) | self.overrides)

    def examples(self) -> Examples:
        """What is trained on, and validated on."""
        return self.task.read(self.files["train"], self.files.get("valid") or None)

    def tests(self) -> Examples:
        """What is scored on."""
        return self.task.read(self.files["test"])

    def facts(self) -> dict[str, Any]:
        """What the results depend on, beside the variants."""
        (mark,) = self.tests().fingerprints().values()
        tests = {"test data": mark}
        terms = {"minutes": self.minutes, "preset": self.preset, "settings": self.overrides}
        return {"task": self.task.name} | terms | self.examples().fingerprints() | tests


def run_family(comparison: Comparison, variants: Sequence[Variant], said: Said) -> list[Outcome]:
    """Every variant's outcome, in order; `said` hears what goes on and the share that is done."""
    for examples in (comparison.examples(), comparison.tests()):
        examples.check(thorough=False)
    _settle(comparison)
    said("preparing the data that all share", 0.0, lasting=True)
    shared = _prepare(comparison)
    outcomes: list[Outcome] = []
    watch = Watch(comparison, len(variants), said)
    for variant in variants:
        began = time.monotonic()
        before = Outcome.read(_file(comparison, variant, "json"))
        job = _job(comparison, variant, shared)
        if before and before.finished and before.overrides == job.overrides and not comparison.fresh:
            outcomes.append(before)
            watch.done(before)
        else:
            outcomes.append(_run(job, comparison, variant, watch))
            watch.done(outcomes[-1], time.monotonic() - began)
    return outcomes


def _settle(comparison: Comparison) -> None:
    """Refuse a folder that holds a comparison on other terms; write down what the terms are."""
    make(comparison.folder / "variants")
    path, facts = comparison.folder / "variants" / "terms.json", comparison.facts()
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        held = facts
    if held != facts and not comparison.fresh:
        key = next(key for key in facts.keys() | held.keys() if held.get(key) != facts.get(key))
        words = "changed" if key.endswith("data") else f"was {held.get(key)} and is {facts.get(key)}"
        raise UsageError(
            f"{comparison.folder} holds another comparison: {key} {words}; use --fresh, or another folder"
        )
    write_text(path, json.dumps(facts, indent=2) + "\n")


def _prepare(comparison: Comparison) -> Path:
    """Tokenizer and token stores, made once: what they cost is not counted against anybody's minutes."""
    shared = comparison.folder / "data" / "shared"
    make(shared)
    if comparison.fresh:
        (shared / "tokenizer.json").unlink(missing_ok=True)
    examples = comparison.examples()
    config = settle(comparison.task, comparison.preset, None, comparison.overrides, examples=examples)
    comparison.task.lesson(Lessons(shared, config, examples))
    return shared


def _file(comparison: Comparison, variant: Variant, ending: str) -> Path:
    return comparison.folder / "variants" / f"{variant.slug}.{ending}"


def _job(comparison: Comparison, variant: Variant, shared: Path) -> Job:
    return Job(
        task=comparison.task.name,
        name=variant.name,
        folder=str(comparison.folder / "variants" / variant.slug),
        outcome=str(_file(comparison, variant, "json")),
        shared=str(shared),
        preset=comparison.preset,
        overrides=comparison.overrides | variant.overrides | {"train.minutes": comparison.minutes},
        files={split: [_whole(path) for path in paths] for split, paths in comparison.files.items()},
    )


def _whole(path: Path) -> str:
    """A path from the root on; several with commas between them, each."""
    parts = [path] if path.exists() else [Path(part) for part in str(path).split(",")]
    return ",".join(str(part.resolve()) for part in parts)


def _run(job: Job, comparison: Comparison, variant: Variant, watch: "Watch") -> Outcome:
    """One variant in its process, to its end; what it was before, if it was something else, is removed."""
    request = _file(comparison, variant, "job")
    before = Outcome.read(Path(job.outcome))
    other = before is not None and before.overrides != job.overrides
    if comparison.fresh or other:
        job = replace(job, fresh=True)
        Path(job.outcome).unlink(missing_ok=True)
    elif before is not None and before.error:
        Path(job.outcome).unlink()  # another try
    write_text(request, json.dumps(asdict(job), indent=2) + "\n")
    log = _file(comparison, variant, "log")
    with log.open("wb") as output:
        code = _wait(request, output, lambda seconds: watch.look(job.name, Path(job.folder), seconds))
    outcome = Outcome.read(Path(job.outcome)) or Outcome(job.name, job.overrides)
    if not outcome.finished and not outcome.error:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        outcome = replace(outcome, error=f"the process {how}; see {log}")
    return outcome


def _wait(request: Path, output: BinaryIO, look: Callable[[float], None]) -> int:
    """Start the process, wait for it; stopped ourselves, let it save first. The code it ended with."""
    command = [sys.executable, "-m", "regard.compare.trial", str(request)]
    began = time.monotonic()
    # A session of its own: Ctrl-C comes to us alone, and the process hears of it by the end of its stdin.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        assert process.stdin is not None
        try:
            while process.poll() is None:
                look(time.monotonic() - began)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL)
        except BaseException as stop:
            process.stdin.close()
            try:
                process.wait(PATIENCE)
            except BaseException:  # asked twice, or it hangs
                process.kill()
            if isinstance(stop, KeyboardInterrupt):
                raise type(stop)("stopped; the same command goes on where it was") from stop
            raise
    return process.returncode


class Watch:
    """How far the whole is, told while processes run."""

    def __init__(self, comparison: Comparison, count: int, said: Said) -> None:
        self.minutes, self.count, self.said = comparison.minutes, count, said
        self.finished, self.beside = 0, SCORING

    def each(self) -> float:
        """Seconds that a variant takes, scoring included."""
        return self.minutes * 60 + self.beside

    def look(self, name: str, folder: Path, seconds: float) -> None:
        """A process has run for so long."""
        within = min(1.0, seconds / self.each())
        records = read_metrics(folder / METRICS)
        at = f"step {records[-1]['step']:,}" if records else "starting"
        left = (self.count - self.finished - within) * self.each()
        text = f"{self.finished + 1} of {self.count}, {name}: {at}, about {duration(left)} left"
        self.said(text, (self.finished + within) / self.count)

    def done(self, outcome: Outcome, seconds: float | None = None) -> None:
        """A variant is over."""
        self.finished += 1
        if seconds is not None:
            self.beside = max(0.0, seconds - self.minutes * 60)
        words = ", ".join(score.words(name) for name, score in outcome.named().items())
        how = f"failed: {outcome.error}" if outcome.error else words
        text = f"{self.finished} of {self.count}, {outcome.name}: {how}"
        self.said(text, self.finished / self.count, lasting=True)
