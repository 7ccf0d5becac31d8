"""Checkpoints of several files: what is saved comes back, and one that is not whole is never taken."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import StorageError, UsageError
from regard.training import spread
from regard.training.checkpoint import saved_steps
from regard.training.several import Several
from regard.training.state import State
from regard.training.trainer import Trainer, pack, unpack


def saved(trainer: Trainer, step: int) -> Path:
    return spread.save(trainer, pack(trainer, State(step=step)))


def trained(toy: Any, folder: Path, **more: object) -> Trainer:
    trainer, _ = toy.run(folder, train__shard=True, train__max_steps=3, train__patience=9, **more)
    assert isinstance(trainer, Trainer)
    return trainer


@pytest.mark.parametrize("average", ["ema", "last", "none"])
def test_what_is_saved_comes_back(toy: Any, tmp_path: Path, average: str) -> None:
    trainer = trained(toy, tmp_path, train__average=average)
    assert not list(tmp_path.glob("*.safetensors"))
    before, other = (
        pack(trainer, State(step=3)),
        toy.trainer(tmp_path, train__shard=True, train__average=average),
    )
    found = spread.newest(other)
    assert found is not None
    assert unpack(other, found).step == 3
    after = pack(other, State(step=3))
    assert before.tensors.keys() == after.tensors.keys()
    for name, tensor in before.tensors.items():
        assert tensor.shape == after.tensors[name].shape, name
        assert torch.equal(tensor, after.tensors[name]), name


def test_a_broken_one_is_named_and_the_one_before_is_taken(
    toy: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = toy.trainer(tmp_path, train__shard=True, train__keep=3)
    paths = [saved(trainer, step) for step in (1, 2, 3)]
    (file,) = paths[2].glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    (file,) = paths[1].glob("*.safetensors")
    file.unlink()
    (tmp_path / "step-000000004.part").mkdir()
    found = spread.newest(trainer)
    assert found is not None
    assert found.step == 1
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "is broken; taking the one before" in line] == said
    assert len(said) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_the_newest_are_kept_and_a_step_may_be_saved_again(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path, train__shard=True, train__keep=2)
    for step in (1, 2, 3, 3):
        saved(trainer, step)
    assert saved_steps(tmp_path) == [2, 3]


def test_a_disk_that_refuses_is_said_in_a_line(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    trainer = toy.trainer(tmp_path, train__shard=True)
    monkeypatch.setattr("torch.distributed.checkpoint.filesystem._write_files_from_queue", full)
    with pytest.raises(StorageError, match=r"step-000000001: .*No space left on device"):
        saved(trainer, 1)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"train__outer_every": 5}, r"train.outer_every \(5\) must be 0 with train.shard=true"),
        ({"train__sums": "bf16"}, r"train.sums \(bf16\) must be fp32 with train.shard=true"),
    ],
)
def test_what_does_not_go_together_is_refused(toy: Any, more: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        toy.config(train__shard=True, **more)


def test_parts_that_learn_in_turn_are_not_cut(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path, train__shard=True)
    trainer.groups = {"one": trainer.groups["all"], "other": trainer.groups["all"]}
    with pytest.raises(UsageError, match=r"whose parts learn in turn \(one, other\)"):
        trainer.join(Several(0, 2, 0))
