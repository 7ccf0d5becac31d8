from pathlib import Path
from typing import Any

import pytest
import torch

from regard.training.loop import take_step
from regard.training.state import State
from regard.training.trainer import Clock, pack, random_state, set_random_state, unpack


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_what_is_packed_is_what_is_unpacked(toy: Any, tmp_path: Path, optimizer: str) -> None:
    asked = {"train__max_steps": 9, "train__optimizer": optimizer}
    first, state = toy.trainer(tmp_path, **asked), State()
    for _ in range(3):
        take_step(first, state)
    first.best.keep(first.average.mean())
    second = toy.trainer(tmp_path, **asked, train__seed=2)
    packed = pack(first, state)
    assert unpack(second, packed) == state
    again = pack(second, state)
    assert again.numbers == packed.numbers
    assert again.tensors.keys() == packed.tensors.keys()
    assert all(torch.equal(again.tensors[name], tensor) for name, tensor in packed.tensors.items())


def test_tied_weights_are_saved_once(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path)
    saved = pack(trainer, State()).part("model")
    assert sum(tensor.numel() for tensor in saved.values()) == sum(
        weight.numel() for weight in trainer.weights
    )


def test_random_state_replays() -> None:
    cpu = torch.device("cpu")
    before = random_state(cpu)
    first = torch.rand(3)
    set_random_state(before, cpu)
    assert torch.equal(torch.rand(3), first)


def test_a_clock_goes_on_from_what_was_used() -> None:
    clock = Clock(100.0)
    assert 100 <= clock() <= clock()
