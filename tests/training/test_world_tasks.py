"""Every kind of task trains in several processes: the weights and scores of one."""

from pathlib import Path
from typing import Any

import pytest
from listeners import SMALL
from pictures import write_pictures
from worlds import of_run, run_worlds, settings

from regard.audio.tones import write_calls

TINY = {
    "model.d_model": 12,
    "model.n_heads": 2,
    "model.d_ff": 20,
    "model.encoder_layers": 1,
    "model.dropout": 0.2,
    "train.batch_tokens": 96,
    "train.max_steps": 3,
    "train.valid_every": 2,
    "train.accumulate": 4,
    "train.precision": "fp32",
    "train.threads": 1,
}
HEARD = {name: value for name, value in SMALL.items() if name not in ("speech.heard", "speech.rate")}
MORE: dict[str, dict[str, object]] = {
    "speech": HEARD | {"train.batch_tokens": 64},
    "image": {"image.blocks": 0},
    "classify": {},
    "masked": {},
}


def write(folder: Path) -> dict[str, Path]:
    """Something to learn, by task."""
    said = ["the cat sat", "a dog sat on the mat", "the mat", "a cat", "the dog sat on a cat"] * 9
    rows = "".join(f"{text}\t{'dog' if 'dog' in text else 'cat'}\n" for text in said)
    (folder / "rows.tsv").write_text(rows)
    (folder / "book.txt").write_text("".join(f"{text}.\n" for text in said * 3))
    return {
        "speech": write_calls(folder, 0, 12),
        "image": write_pictures(folder / "pictures"),
        "classify": folder / "rows.tsv",
        "masked": folder / "book.txt",
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tasks")


@pytest.fixture(scope="module")
def ran(place: Path) -> Any:
    """What became of one process and of two, by task."""
    worlds = {}
    for task, path in write(place).items():
        words = ["train", "--task", task, str(path), *settings(TINY | MORE[task])]
        for size in (1, 2):
            worlds[task, size] = [[*words, "-o", str(place / f"{task}{size}")]] * size
    return dict(zip(worlds, run_worlds(list(worlds.values())), strict=True))


@pytest.mark.parametrize("task", MORE)
def test_two_processes_give_the_weights_and_scores_of_one(place: Path, ran: Any, task: str) -> None:
    for size in (1, 2):
        assert [each["code"] for each in ran[task, size]] == [0] * size, ran[task, size]
    assert "2 processes share the 4 batches of a step" in ran[task, 2][0]["said"]
    assert ran[task, 2][1]["said"] == ""
    one, two = (of_run(place / f"{task}{size}") for size in (1, 2))
    assert one == two
    assert one[1]
