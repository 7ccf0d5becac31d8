"""Processes that go alone and meet: what comes of it is what a naive loop over copies of the model gives."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from toy import TINY, write_pairs
from worlds import run_worlds

from regard.config.file import read_config
from regard.tasks.task import task_named
from regard.training.lesson import Job
from regard.training.metrics import METRICS, read_metrics
from regard.training.run import model_for

ALONE = 3  # steps between two meetings
ROUNDS = TINY | {
    "model.dropout": 0.0,
    "train.accumulate": 4,
    "train.optimizer": "adam",
    "train.schedule": "constant",
    "train.warmup": 1,
    "train.average": "none",
    "train.valid_every": 2,
    "train.save_every": 0.0,
    "train.outer_every": ALONE,
    "train.log_every": 1,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rounds")
    write_pairs(folder)
    return folder


def words(place: Path, out: str, steps: int, momentum: float = 0.9) -> list[str]:
    asked = ROUNDS | {"train.max_steps": steps, "train.outer_momentum": momentum}
    settings = [word for key, value in asked.items() for word in ("--set", f"{key}={value}")]
    return ["train", str(place / "toy.src"), str(place / "toy.tgt"), "-o", str(place / out), *settings]


@pytest.fixture(scope="module")
def ran(place: Path) -> Any:
    worlds = {
        "whole": [words(place, "whole", 7)] * 2,
        "plain": [words(place, "plain", 7, 0.0)] * 2,
        "half": [words(place, "resumed", 3)] * 2,
        "rest": [words(place, "resumed", 7)] * 2,
        "one": [words(place, "resumed", 9)],
    }
    return dict(zip(worlds, run_worlds(list(worlds.values())), strict=True))


def naive(place: Path, out: str, steps: int, rate: float, momentum: float) -> tuple[Any, list[Any]]:
    """Two copies of the model, each with half of a step's batches, and torch's SGD over both."""
    task, config = task_named("translation"), read_config(place / out)
    files = [place / "toy.src", place / "toy.tgt"]
    lesson: Any = task.lesson(Job(place / out, config, task.examples(files, None)))
    shared, *copies = (model_for(task, lesson.config, None).train() for _ in range(3))
    outer = torch.optim.SGD(shared.parameters(), lr=rate, momentum=momentum, nesterov=momentum > 0)
    inner = [
        torch.optim.AdamW(each.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
        for each in copies
    ]
    rates = [line["lr"] for line in read_metrics(place / out / METRICS)]
    places = [(epoch, position) for epoch in range(9) for position in range(lesson.feed.count(epoch))]
    for step in range(1, steps + 1):
        for rank, (model, optimizer) in enumerate(zip(copies, inner, strict=True)):
            first = 4 * (step - 1) + 2 * rank
            batches = [lesson.feed.batch(*where) for where in places[first : first + 2]]
            lost = sum(loss.total for each in batches for loss in lesson.objective.losses(model, each))
            (lost / sum(each.targets for each in batches)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.param_groups[0]["lr"] = rates[step - 1]
            optimizer.step()
            optimizer.zero_grad()
        if step % ALONE == 0 or step == steps:
            for weight, *both in zip(
                shared.parameters(), *(each.parameters() for each in copies), strict=True
            ):
                weight.grad = weight.detach() - torch.stack([each.detach() for each in both]).mean(0)
            outer.step()
            for model in copies:
                model.load_state_dict(shared.state_dict())
    return shared, [lesson.feed.batch(*where) for where in places[:3]]


@pytest.mark.parametrize(("out", "rate", "momentum"), [("whole", 0.7, 0.9), ("plain", 1.0, 0.0)])
def test_it_is_what_a_naive_loop_gives(place: Path, ran: Any, out: str, rate: float, momentum: float) -> None:
    assert [each["code"] for each in ran[out]] == [0, 0], ran[out]
    model, batches = naive(place, out, 7, rate, momentum)
    with torch.no_grad():  # by what it says: the bias of keys changes nothing, and Adam moves it by rounding
        expected = [model(each.inputs, each.tgt_in) for each in batches]
        model.load_state_dict(load_file(place / out / "model.safetensors"), strict=False)
        found = [model(each.inputs, each.tgt_in) for each in batches]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_it_goes_on_from_a_meeting_with_as_many_processes_and_no_others(place: Path, ran: Any) -> None:
    for name in ("half", "rest"):
        assert [each["code"] for each in ran[name]] == [0, 0], ran[name]
    assert "going on from step 3" in ran["rest"][0]["said"]
    whole, resumed = ((place / name / "model.safetensors").read_bytes() for name in ("whole", "resumed"))
    assert whole == resumed
    (one,) = ran["one"]
    assert one["code"] == 2
    assert "this run trains in rounds of 2 processes" in one["said"]
