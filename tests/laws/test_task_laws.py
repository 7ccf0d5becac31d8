"""A task in one file: its own inputs, loss and score. It trains, is killed and goes on bit for bit, is saved,
loaded, used, evaluated and shown, with no file of the package changed and nothing registered but one entry.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from command import environment
from torch import Tensor, nn

from regard.cli.main import run as command
from regard.config import Config
from regard.data.columns import Chunk, Kind, open_columns
from regard.errors import DataError
from regard.kinds import TASKS
from regard.measure.score import Score
from regard.models.folder import load_folder
from regard.tasks.task import Evaluation, Task
from regard.training.feed import StoreFeed
from regard.training.lesson import Job, Lesson
from regard.training.objective import Loss, Measurement, Objective, undisturbed

# The task -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointsConfig:
    """Keys of its own."""

    hidden: int = 8


@dataclass(frozen=True)
class Points:
    """Lines of x, y and a label: what is learned from."""

    paths: Sequence[Path]

    def rows(self) -> Iterator[tuple[list[float], str]]:
        for path in self.paths:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                x, y, label = line.split() if len(line.split()) == 3 else self.refuse(path, number)
                yield [float(x), float(y)], label

    def refuse(self, path: Path, number: int) -> Any:
        raise DataError(f"{path} line {number}: a point is x, y and a label")

    def check(self, *, thorough: bool) -> None:
        assert list(self.rows())

    def fingerprints(self) -> dict[str, str]:
        return {"points": str(list(self.rows()))}


@dataclass(frozen=True)
class PointBatch:
    """Places (B, 2) and labels (B,)."""

    places: Tensor
    labels: Tensor

    @property
    def targets(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> "PointBatch":
        return PointBatch(self.places.to(device), self.labels.to(device))


class Classify(Objective):
    """Cross-entropy of the label."""

    def losses(self, model: nn.Module, batch: PointBatch) -> Iterator[Loss]:
        yield Loss(nn.functional.cross_entropy(model(batch.places), batch.labels, reduction="sum"))


@dataclass(frozen=True)
class Accuracy:
    """How many labels are right."""

    batch: PointBatch

    def measure(self, model: nn.Module, device: torch.device, *others: Any, **options: Any) -> Measurement:
        with undisturbed(model):
            right = (model(self.batch.places.to(device)).argmax(-1).cpu() == self.batch.labels).float()
        return Measurement({"accuracy": Score(float(right.mean()), count=len(right))})


@dataclass(frozen=True)
class Labeller:
    """What is in a folder, ready to be used."""

    model: nn.Module
    labels: list[str]

    @torch.inference_mode()
    def __call__(self, places: Sequence[Sequence[float]]) -> list[str]:
        return [self.labels[i] for i in self.model(torch.tensor(places)).argmax(-1).tolist()]


class PointTask(Task):
    """A place in the plane in, its label out."""

    name = "points"
    noun = "labeller of points"
    verb = "evaluate"
    keys: ClassVar[Mapping[str, Any]] = {"points": PointsConfig}

    def build(self, config: Config) -> nn.Module:
        hidden = config.of(PointsConfig).hidden
        dropout = nn.Dropout(0.1)
        return nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), dropout, nn.Linear(hidden, 2))

    def read(self, files: Sequence[Path], valid: Sequence[Path] | None = None, **more: Any) -> Points:
        return Points(files)

    def lesson(self, job: Job) -> Lesson:
        labels = sorted({label for _, label in job.examples.rows()})

        def chunks(report: dict[str, Any]) -> Iterator[Chunk]:
            rows = list(job.examples.rows())
            yield {"place": [[at] for at, _ in rows], "label": [[labels.index(name)] for _, name in rows]}

        kinds = {"place": Kind("<f4", (2,)), "label": Kind("<i8")}
        store = open_columns(job.folder / "store" / "train", [job.examples.fingerprints()], kinds, chunks)

        def collate(rows: Any) -> PointBatch:
            places, names = (
                torch.from_numpy(store[column].padded(rows)[:, 0]) for column in ("place", "label")
            )
            return PointBatch(places, names)

        feed = StoreFeed(np.arange(len(store)), [np.ones(len(store), "i8")], job.config.train, collate)
        files = {"labels.json": json.dumps(labels).encode()}
        every = collate(np.arange(len(store)))
        return Lesson(job.config, feed, Classify(), Accuracy(every), files, [f"{len(store)} points"])

    def load(self, folder: Path, **options: Any) -> Labeller:
        loaded = load_folder(folder)
        return Labeller(loaded.model, json.loads(loaded.files["labels.json"]))

    def evaluate(self, folder: Path, files: Sequence[Path], **options: Any) -> Evaluation:
        places, names = zip(*Points(files).rows(), strict=True)
        right = [a == b for a, b in zip(self.load(folder)(places), names, strict=True)]
        return Evaluation({"accuracy": Score(sum(right) / len(right))}, {"points": len(right)})


# The proof ------------------------------------------------------------------------------------------

SETTINGS = [
    *("--set", "train.max_steps=40", "--set", "train.batch_tokens=7", "--set", "train.lr=0.05"),
    *("--set", "train.save_every=0", "--set", "points.hidden=11", "--set", "train.valid_every=10"),
    *("--set", "train.precision=fp32", "--set", "train.threads=1"),
]


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one entry, and a file of points on two sides of a line."""
    monkeypatch.setattr(TASKS, "_held", dict(TASKS._held))
    TASKS.add("points", PointTask())
    places = np.random.default_rng(1).normal(size=(60, 2)).round(3)
    lines = [f"{x} {y} {'above' if y > x else 'below'}\n" for x, y in places]
    path = tmp_path / "points.txt"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def train(points: Path, out: Path, *more: str) -> int:
    return command(["train", "--task", "points", str(points), "-o", str(out), *SETTINGS, *more])


def test_it_learns_and_is_used(points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model"
    assert train(points, out) == 0
    assert {path.name for path in out.iterdir()} >= {
        "config.json",
        "labels.json",
        "README.md",
        "metrics.jsonl",
    }
    assert not (out / "tokenizer.json").exists()
    labeller = PointTask().load(out)
    assert labeller([[0.0, 3.0], [3.0, 0.0]]) == ["above", "below"]
    assert load_folder(out).config.of(PointsConfig).hidden == 11
    capfd.readouterr()
    assert command(["evaluate", "-m", str(out), str(points), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["accuracy"] > 0.9
    assert found["points"] == 60
    assert command(["show", str(out)]) == 0
    card = capfd.readouterr().out
    assert "A labeller of points trained on points" in card
    assert "60 points" in card
    assert "accuracy" in card


def test_killed_it_goes_on_bit_for_bit(points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train(points, tmp_path / "whole") == 0
    calls = iter(range(99))
    original = Classify.losses

    def killed(self: Classify, model: nn.Module, batch: PointBatch) -> Iterator[Loss]:
        if next(calls) == 27:
            raise KeyboardInterrupt
        return original(self, model, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Classify, "losses", killed)
        assert train(points, tmp_path / "killed") == 130
    assert "**Unfinished**" in (tmp_path / "killed" / "README.md").read_text()
    assert train(points, tmp_path / "killed") == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]


def test_another_tasks_verbs_say_what_it_is(
    points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model"
    assert train(points, out, "--set", "train.max_steps=2") == 0
    for verb in (["translate", "-i", str(points)], ["look", "a"], ["export", "--to", "onnx", "-o", "x"]):
        capfd.readouterr()
        assert command([*verb, "-m", str(out)]) == 2
        said = capfd.readouterr().err.splitlines()[-1]
        assert f"{out} holds a labeller of points" in said
    assert command(["serve", "-m", str(out), "--port", "0"]) == 2
    assert "holds a labeller of points" in capfd.readouterr().err


@pytest.mark.parametrize("part", ["lesson", "read", "build"])
def test_a_task_that_breaks_its_contract_is_one_line(
    points: Path,
    tmp_path: Path,
    part: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(PointTask, part, lambda self, *others, **more: None)
    assert train(points, tmp_path / "model") == 2
    said = capfd.readouterr().err.splitlines()
    assert "Traceback" not in "".join(said)
    assert "task=points" in said[-1]


def test_bad_examples_are_the_tasks_own_line(
    points: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    points.write_text("1 2 above\n3\n", encoding="utf-8")
    assert train(points, tmp_path / "model") == 2
    assert "points.txt line 2: a point is x, y and a label" in capfd.readouterr().err


def test_using_a_model_loads_nothing_of_training() -> None:
    code = f"""
import sys
import regard
from regard.look.look import look
from regard.serving import app, service
from regard.tasks.translation.evaluate import score

translator = regard.load({str(Path(__file__).parent.parent / "old_folder" / "finished")!r})
score(translator, ["a b"], ["A B"])
look(translator, "a b").to_json()
assert not [name for name in sys.modules if name.startswith("regard.training")]
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
