"""The model folder: what goes in comes out bit by bit, whole or not at all."""

import dataclasses
import errno
import json
import os
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from regard.config import Config, merge
from regard.errors import StorageError, UsageError
from regard.models import build, folder
from regard.text.tokenizer import Tokenizer

FILES = {"config.json", "model.safetensors", "tokenizer.json", "generation.json", "README.md"}


def test_what_is_saved_is_loaded_bit_by_bit(
    saved: Path, config: Config, model: nn.Module, tokenizer: Tokenizer
) -> None:
    assert {path.name for path in saved.iterdir()} == FILES
    loaded = folder.load_folder(saved)
    assert loaded.config == config
    assert not loaded.model.training
    assert loaded.tokenizer.to_json() == tokenizer.to_json()
    assert (saved / "README.md").read_text(encoding="utf-8") == "# Card ▁\n"
    before, after = model.state_dict(), loaded.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_saving_twice_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    loaded = folder.load_folder(saved)
    again = tmp_path / "again"
    folder.save(
        again, config=loaded.config, model=loaded.model, tokenizer=loaded.tokenizer, card="# Card ▁\n"
    )
    for name in FILES:
        assert (saved / name).read_bytes() == (again / name).read_bytes()


def test_odd_numbers_survive(tmp_path: Path, config: Config, tokenizer: Tokenizer) -> None:
    model = build(config)
    odd = torch.tensor([float("nan"), float("inf"), -0.0, 1e-45, -float("inf")])
    first = next(model.parameters())
    first.data.view(-1)[:5] = odd
    folder.save(tmp_path, config=config, model=model, tokenizer=tokenizer, card="")
    again = next(folder.load_folder(tmp_path).model.parameters())
    assert torch.equal(first.data.view(torch.int32), again.data.view(torch.int32))


def test_tied_tensors_are_stored_once(tmp_path: Path, config: Config, tokenizer: Tokenizer) -> None:
    """Learned positions hang on the source's embedding and, where the target has its own, on that too."""
    config = merge(config, {"model.tied": "target", "positions.kind": "learned"})
    model = build(config)
    folder.save(tmp_path, config=config, model=model, tokenizer=tokenizer, card="")
    stored = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert sum(tensor.numel() for tensor in stored.values()) == sum(p.numel() for p in model.parameters())
    assert len(stored) < len(model.state_dict())
    again = folder.load_folder(tmp_path).model.state_dict()
    assert len({tensor.data_ptr() for tensor in again.values()}) == len(stored)


def test_loading_leaves_the_callers_randomness_alone(saved: Path) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    folder.load_folder(saved)
    assert torch.equal(before, torch.get_rng_state())


def test_generation_json_is_for_people_to_edit(saved: Path, config: Config) -> None:
    path = saved / "generation.json"
    assert json.loads(path.read_text()) == dataclasses.asdict(config.decode)
    path.write_text('{"beam": 7, "length_penalty": 1}')
    decode = folder.load_folder(saved).config.decode
    assert (decode.beam, decode.length_penalty) == (7, 1.0)
    assert decode.max_extra == config.decode.max_extra  # a setting left out is the model's own


def test_a_vocabulary_without_room_for_the_tokenizer_is_not_saved(
    tmp_path: Path, config: Config, model: nn.Module, tokenizer: Tokenizer
) -> None:
    with pytest.raises(UsageError, match=r"model.vocab_size \(3\)"):
        folder.save(
            tmp_path,
            config=merge(config, {"model.vocab_size": 3}),
            model=model,
            tokenizer=tokenizer,
            card="",
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file_number", range(5))
def test_a_full_disk_leaves_the_old_folder_whole(
    saved: Path, config: Config, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, file_number: int
) -> None:
    before = {path.name: path.read_bytes() for path in saved.iterdir()}
    flushes = iter(range(99))

    def full(number: int) -> None:
        if next(flushes) == file_number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device") as caught:
        folder.save(saved, config=config, model=build(config), tokenizer=tokenizer, card="new")
    assert caught.value.exit_code == 5
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before


def test_weights_are_in_place_before_the_config(
    saved: Path, config: Config, model: nn.Module, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[str] = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        assert all((saved / f"{name}.part").exists() for name in FILES - set(placed))
        placed.append(target.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    folder.save(saved, config=config, model=model, tokenizer=tokenizer, card="")
    assert placed[0] == "model.safetensors"
    assert placed[-1] == "config.json"


def test_a_place_that_cannot_be_written_is_a_storage_error(
    saved: Path, config: Config, model: nn.Module, tokenizer: Tokenizer
) -> None:
    with pytest.raises(StorageError, match="cannot make"):
        folder.save(saved / "config.json", config=config, model=model, tokenizer=tokenizer, card="")
