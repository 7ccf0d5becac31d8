import json
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard import atomic
from regard.errors import StorageError
from regard.training.checkpoint import (
    BrokenCheckpointError,
    Checkpoint,
    newest,
    path_of,
    read,
    save,
    saved_steps,
)


def made(step: int) -> Checkpoint:
    tensors: dict[str, Tensor] = {
        "model.a": torch.full((3, 5), float(step)),
        "model.b": torch.randn(7).to(torch.bfloat16),
        "optimizer.0.0.step": torch.tensor(float(step)),
        "random.cpu": torch.get_rng_state(),
        "empty": torch.empty(0),
    }
    return Checkpoint(step, tensors, json.dumps({"step": step, "loss": 0.1 + 0.2}))


def test_comes_back_bit_for_bit(tmp_path: Path) -> None:
    saved = made(3)
    save(tmp_path, saved, keep=2)
    found = newest(tmp_path)
    assert found is not None
    assert found.numbers == saved.numbers
    assert found.tensors.keys() == saved.tensors.keys()
    for name, tensor in saved.tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name], tensor)


def test_part_takes_the_prefix_off() -> None:
    assert made(1).part("model").keys() == {"a", "b"}


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (1, 22, 333, 4444):
        save(tmp_path, made(step), keep=2)
    assert saved_steps(tmp_path) == [333, 4444]
    assert path_of(tmp_path, 333).name == "step-000000333.safetensors"


def test_nothing_saved_is_nothing_found(tmp_path: Path) -> None:
    assert newest(tmp_path) is None


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_truncated_newest_falls_back(
    tmp_path: Path, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, made(1), keep=2)
    path = save(tmp_path, made(2), keep=2)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    found = newest(tmp_path)
    assert found is not None
    assert found.step == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(path) in error


def test_a_thousand_flips_and_cuts_are_all_found(tmp_path: Path) -> None:
    path = save(tmp_path, made(5), keep=1)
    whole, rng = path.read_bytes(), random.Random(11)
    for number in range(1000):
        broken = bytearray(whole)
        place = rng.randrange(len(whole))
        if number % 4:
            broken[place] ^= 1 << rng.randrange(8)
        else:
            del broken[place:]
        path.write_bytes(broken)
        with pytest.raises(BrokenCheckpointError):
            read(path)


def test_all_broken_is_nothing_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (1, 2):
        save(tmp_path, made(step), keep=2).write_bytes(b"\x80\x04 a pickle, say")
    assert newest(tmp_path) is None
    assert capsys.readouterr().err.count("\n") == 2


def test_a_checkpoint_under_another_name_is_refused(tmp_path: Path) -> None:
    save(tmp_path, made(1), keep=2).rename(path_of(tmp_path, 9))
    with pytest.raises(BrokenCheckpointError, match="its name does not match"):
        read(path_of(tmp_path, 9))


def test_what_an_interrupted_save_left_is_cleared_away(tmp_path: Path) -> None:
    save(tmp_path, made(1), keep=2)
    part = tmp_path / f"step-000000002.safetensors{atomic.TEMPORARY}"
    part.write_bytes(b"half")
    found = newest(tmp_path)
    assert found is not None
    assert found.step == 1
    assert not part.exists()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, made(1), keep=1)

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        save(tmp_path, made(2), keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001.safetensors"]
