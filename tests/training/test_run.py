import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.errors import DataError, UsageError
from regard.tasks.task import task_named
from regard.tasks.train import train
from regard.training import loop, run
from regard.training import trainer as trainer_module
from regard.training.run import Asked, Result, _standstill
from regard.training.state import State

STEPS = 7


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.fixture
def asked(toy_settings: dict[str, object]) -> dict[str, object]:
    return toy_settings | {"train.max_steps": STEPS, "train.valid_every": 100}


@pytest.fixture
def result(toy_files: tuple[Path, Path], tmp_path: Path, asked: dict[str, object]) -> Result:
    return train(*toy_files, out=tmp_path / "out", valid=toy_files, overrides=asked, quiet=True)


def test_the_folder_is_complete_and_translates(result: Result, capsys: pytest.CaptureFixture[str]) -> None:
    assert {path.name for path in result.folder.iterdir()} == {
        *("config.json", "model.safetensors", "tokenizer.json", "generation.json", "README.md"),
        *("metrics.jsonl", "checkpoints", "store"),
    }
    assert result.steps == STEPS
    assert {"loss", "bleu", "chrf"} == result.scores.keys()
    assert len(regard.load(result.folder).translate(["one two", ""])) == 2
    card = (result.folder / "README.md").read_text()
    assert "toy.src" in card
    assert "tok:13a" in card
    assert "37 pairs" in card
    assert capsys.readouterr() == ("", "")


def test_the_model_is_the_averaged_one(
    toy_files: tuple[Path, Path], tmp_path: Path, asked: dict[str, object], result: Result
) -> None:
    raw = train(*toy_files, out=tmp_path / "raw", overrides=asked | {"train.average": "none"}, quiet=True)
    last = next((raw.folder / "checkpoints").glob("*.safetensors"))
    assert all(
        torch.equal(weights(raw.folder)[name.removeprefix("model.")], tensor)
        for name, tensor in load_file(last).items()
        if name.startswith("model.")
    )
    assert any(
        not torch.equal(tensor, weights(raw.folder)[name]) for name, tensor in weights(result.folder).items()
    )


def test_the_same_call_again_does_nothing(
    result: Result, toy_files: tuple[Path, Path], asked: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in result.folder.rglob("*") if path.is_file()}
    again = train(*toy_files, out=result.folder, valid=toy_files, overrides=asked)
    assert again == result
    assert "is finished" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in result.folder.rglob("*") if path.is_file()} == before


def test_another_call_is_refused_by_name_and_fresh_starts_over(
    result: Result, toy_files: tuple[Path, Path], asked: dict[str, object]
) -> None:
    other = asked | {"train.seed": 5}
    with pytest.raises(UsageError, match=r"train.seed was 1 and is 5; use --fresh"):
        train(*toy_files, out=result.folder, valid=toy_files, overrides=other, quiet=True)
    before = weights(result.folder)
    train(*toy_files, out=result.folder, valid=toy_files, overrides=other, fresh=True, quiet=True)
    assert any(not torch.equal(tensor, before[name]) for name, tensor in weights(result.folder).items())


def test_changed_data_is_noticed(
    result: Result, toy_files: tuple[Path, Path], asked: dict[str, object], tmp_path: Path
) -> None:
    valid = [tmp_path / "valid.src", tmp_path / "valid.tgt"]
    for old, new in zip(toy_files, valid, strict=True):
        new.write_bytes(old.read_bytes())
        old.write_text(old.read_text() + "one\n")
    with pytest.raises(UsageError, match="the training data changed"):
        train(*toy_files, out=result.folder, valid=valid, overrides=asked, quiet=True)


def test_bad_data_is_refused_before_anything_is_made(toy_files: tuple[Path, Path], tmp_path: Path) -> None:
    toy_files[0].write_text("one\n" * 40)
    with pytest.raises(DataError, match=r"40 lines but .* 37 lines"):
        train(*toy_files, out=tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_bad_data_and_fresh_lose_nothing(
    result: Result, toy_files: tuple[Path, Path], asked: dict[str, object]
) -> None:
    before = weights(result.folder)
    toy_files[0].write_text("one\n" * 40)
    with pytest.raises(DataError):
        train(*toy_files, out=result.folder, overrides=asked, fresh=True, quiet=True)
    assert weights(result.folder).keys() == before.keys()


def test_a_foreign_folder_is_left_alone(toy_files: tuple[Path, Path], tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("x")
    for fresh in (False, True):
        with pytest.raises(UsageError, match="holds other files"):
            train(*toy_files, out=mine, fresh=fresh, quiet=True)
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]


def test_a_stopped_run_goes_on_from_its_checkpoint(
    result: Result,
    toy_files: tuple[Path, Path],
    asked: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(trainer: Any, state: Any) -> None:
        if state.step == 4:
            raise MemoryError
        original(trainer, state)

    original = loop.take_step
    with monkeypatch.context() as patch:
        patch.setattr(loop, "take_step", die)
        with pytest.raises(MemoryError):
            train(*toy_files, out=tmp_path / "two", valid=toy_files, overrides=asked, quiet=True)
    assert not (tmp_path / "two" / ".lock").exists()
    train(*toy_files, out=tmp_path / "two", valid=toy_files, overrides=asked, quiet=True)
    assert (tmp_path / "two" / "model.safetensors").read_bytes() == (
        result.folder / "model.safetensors"
    ).read_bytes()


def test_a_stopped_run_is_a_model_and_can_be_ended(
    toy_files: tuple[Path, Path], asked: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(trainer: Any, state: Any) -> None:
        if state.step == 3:
            raise MemoryError
        original(trainer, state)

    original, folder = loop.take_step, tmp_path / "out"
    task = task_named("translation")
    examples = task.read(toy_files, toy_files)
    often = asked | {"train.save_every": 0.0}
    with pytest.raises(UsageError, match="nothing to finish"):
        run.train(task, examples, Asked(folder, overrides=often, quiet=True, finish=1.0))
    with monkeypatch.context() as patch:
        patch.setattr(loop, "take_step", die)
        with pytest.raises(MemoryError):
            run.train(task, examples, Asked(folder, overrides=often, quiet=True))
    assert "**Unfinished**: this is what had been learned after 3 steps" in (folder / "README.md").read_text()
    assert len(regard.load(folder).translate(["one two"])) == 1
    ended = run.train(task, examples, Asked(folder, overrides=often, quiet=True, finish=1e-4))
    assert ended.steps == 4
    assert "Unfinished" not in (folder / "README.md").read_text()


def test_a_finished_run_goes_on_where_its_bound_is_wider(
    result: Result, toy_files: tuple[Path, Path], asked: dict[str, object]
) -> None:
    for steps, wanted in ((STEPS - 2, STEPS), (STEPS + 2, STEPS + 2)):
        wider = asked | {"train.max_steps": steps}
        again = train(*toy_files, out=result.folder, valid=toy_files, overrides=wider, quiet=True)
        assert again.steps == wanted
        assert f"{wanted} steps" in (result.folder / "README.md").read_text()


def test_training_further_never_makes_it_worse(
    result: Result,
    toy_files: tuple[Path, Path],
    asked: dict[str, object],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rash = {key: value for key, value in asked.items() if key.startswith("train.")} | {"train.lr": 10.0}
    two = train(*toy_files, out=tmp_path / "two", valid=toy_files, start_from=result.folder, overrides=rash)
    said = capsys.readouterr().err
    assert "before the first step: validation loss" in said
    assert "nothing was better than the model that it began with" in said
    assert two.scores["loss"] == pytest.approx(result.scores["loss"], rel=1e-4)
    for name, tensor in weights(two.folder).items():
        assert torch.equal(tensor, weights(result.folder)[name])


def test_a_model_that_was_never_measured_is_not_called_the_old_one() -> None:
    assert "the folder holds what was trained" in _standstill(State(validations=1))
    assert "the folder holds that one" in _standstill(State(validations=1, best=2.0))


def test_training_further_takes_model_and_tokenizer(
    result: Result, toy_files: tuple[Path, Path], asked: dict[str, object], tmp_path: Path
) -> None:
    further = {key: value for key, value in asked.items() if key.startswith("train.")}
    still = further | {"train.lr": 0.0, "model.dropout": 0.0}
    two = train(*toy_files, out=tmp_path / "two", start_from=result.folder, overrides=still, quiet=True)
    assert (two.folder / "tokenizer.json").read_bytes() == (result.folder / "tokenizer.json").read_bytes()
    for name, tensor in weights(two.folder).items():
        torch.testing.assert_close(tensor, weights(result.folder)[name])
    bigger = still | {"model.d_model": 24}
    with pytest.raises(UsageError, match=r"model.d_model is 12 .* cannot become 24"):
        train(*toy_files, out=tmp_path / "three", start_from=result.folder, overrides=bigger, quiet=True)
    with pytest.raises(UsageError, match="into itself"):
        train(*toy_files, out=result.folder, start_from=result.folder, quiet=True)


def test_config_file_lies_between_preset_and_overrides(
    toy_files: tuple[Path, Path], tmp_path: Path, asked: dict[str, object]
) -> None:
    file = tmp_path / "f.toml"
    file.write_text("[train]\nlr = 0.25\nseed = 3\n[model]\nd_ff = 512\n")
    result = train(
        *toy_files, out=tmp_path / "out", preset="tiny", config_file=file, overrides=asked, quiet=True
    )
    tree = json.loads((result.folder / "config.json").read_text())
    assert (tree["train"]["seed"], tree["train"]["lr"], tree["model"]["d_ff"]) == (3, 0.01, 17)


class Ticking:
    """A clock that moves by a hundredth of a second whenever it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.01
        return self.now


def test_a_run_by_minutes_keeps_to_them_and_counts_those_used(
    toy_files: tuple[Path, Path], tmp_path: Path, asked: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(trainer: Any, state: Any) -> None:
        if state.seconds > 3:
            raise MemoryError
        original(trainer, state)

    original = loop.take_step
    monkeypatch.setattr(trainer_module, "time", Ticking())
    asked = asked | {"train.max_steps": 0, "train.minutes": 0.1, "train.save_every": 1.0}
    with monkeypatch.context() as patch:
        patch.setattr(loop, "take_step", die)
        with pytest.raises(MemoryError):
            train(*toy_files, out=tmp_path / "out", overrides=asked, quiet=True)
    result = train(*toy_files, out=tmp_path / "out", overrides=asked, quiet=True)
    lines = [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]
    assert 4.5 < result.seconds <= 6  # the last tenth may be needed for closing
    assert lines[-1]["lr"] < 0.1 * max(line["lr"] for line in lines)  # the schedule ended with the minutes
    assert max(line["lr"] for line in lines) == pytest.approx(0.01, rel=0.2)


def test_a_vocabulary_larger_than_the_data_is_refused(
    toy_files: tuple[Path, Path], tmp_path: Path, asked: dict[str, object]
) -> None:
    with pytest.raises(UsageError, match="50000"):
        train(*toy_files, out=tmp_path / "out", overrides=asked | {"text.vocab_size": 50000}, quiet=True)


def test_learned_positions_must_hold_the_longest_pair(
    toy_files: tuple[Path, Path], tmp_path: Path, asked: dict[str, object]
) -> None:
    short = asked | {"positions.kind": "learned", "positions.max_length": 100}
    with pytest.raises(UsageError, match=r"data.max_length \(256\) .* positions.max_length \(100\)"):
        train(*toy_files, out=tmp_path / "out", overrides=short, quiet=True)
