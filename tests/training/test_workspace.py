import dataclasses
from pathlib import Path

import pytest

from regard.config import Config, merge
from regard.errors import StorageError, UsageError
from regard.kinds import TASKS
from regard.training.workspace import (
    CHECKPOINTS,
    Run,
    describe,
    differences,
    make,
    prepare,
    read_run,
    refuse_foreign,
    write_run,
)

DATA = {"training data": "abc"}


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def started(folder: Path) -> Run:
    (folder / CHECKPOINTS).mkdir(parents=True)
    run = describe(Config(), DATA)
    write_run(folder, run)
    return run


@pytest.mark.parametrize(
    "file",
    ["notes.txt", "README.md", "config.json", "checkpoints/epoch1.pt", "data/mine.csv", "model.safetensors"],
)
def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("{}")
    before = content(tmp_path)
    with pytest.raises(UsageError, match="holds other files"):
        refuse_foreign(tmp_path)
    assert content(tmp_path) == before


def test_folders_that_may_be_used(tmp_path: Path) -> None:
    refuse_foreign(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    refuse_foreign(tmp_path / "empty")
    started(tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    refuse_foreign(tmp_path / "run")


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        refuse_foreign(tmp_path / "file")
    with pytest.raises(StorageError, match="cannot make"):
        make(tmp_path / "file" / "below")


def test_the_same_run_is_found_again(tmp_path: Path) -> None:
    run = started(tmp_path)
    assert prepare(tmp_path, describe(Config(), DATA), fresh=False) == run


def test_a_run_that_has_saved_nothing_may_be_replaced(tmp_path: Path) -> None:
    started(tmp_path)
    other = describe(merge(Config(), {"train.lr": 0.5}), DATA)
    assert prepare(tmp_path, other, fresh=False) == other
    assert read_run(tmp_path) == other


def test_another_run_is_refused_by_what_differs(tmp_path: Path) -> None:
    started(tmp_path)
    (tmp_path / CHECKPOINTS / "step-000000007.safetensors").write_text("x")
    before = content(tmp_path)
    other = describe(merge(Config(), {"train.lr": 0.5, "model.d_model": 512}), {"training data": "xyz"})
    with pytest.raises(UsageError) as caught:
        prepare(tmp_path, other, fresh=False)
    for words in (
        "train.lr was ",
        "model.d_model was 256 and is 512",
        "the training data changed",
        "--fresh",
    ):
        assert words in str(caught.value)
    assert content(tmp_path) == before


def test_settings_that_change_no_weight_may_change() -> None:
    free = {"train.save_every": 1.0, "train.log_every": 7, "train.keep": 9, "decode.beam": 1}
    assert differences(describe(Config(), DATA), describe(merge(Config(), free), DATA)) == []


@pytest.mark.parametrize("key", ["model.norm", "speech.join", "gan.attend"])
def test_a_key_that_an_older_version_did_not_know_has_its_default(key: str) -> None:
    task = key.partition(".")[0]
    own = {"speech": {"speech.rate": 8000}, "gan": {"gan.side": 28}}.get(task)
    new = describe(merge(Config(), TASKS[task].defaults() | own if own else {}), DATA)
    old = {
        name: value for name, value in new.settings.items() if name not in ("task" if not own else "", key)
    }
    assert key in new.settings
    assert key not in old
    assert differences(dataclasses.replace(new, settings=old), new) == []


def test_fresh_removes_ours_and_nothing_else(tmp_path: Path) -> None:
    started(tmp_path)
    for name in ("metrics.jsonl", "model.safetensors", "mine.txt"):
        (tmp_path / name).write_text("x")
    prepare(tmp_path, describe(Config(), {}), fresh=True)
    assert content(tmp_path).keys() == {"mine.txt", f"{CHECKPOINTS}/run.json"}
    assert read_run(tmp_path) == describe(Config(), {})


@pytest.mark.parametrize("file", ["model.safetensors", f"{CHECKPOINTS}/step-000000007.safetensors"])
def test_what_no_run_json_explains_is_not_overwritten(tmp_path: Path, file: str) -> None:
    started(tmp_path)
    (tmp_path / CHECKPOINTS / "run.json").write_text("{ broken")
    (tmp_path / file).write_text("x")
    with pytest.raises(UsageError, match="--fresh"):
        prepare(tmp_path, describe(Config(), DATA), fresh=False)
    assert (tmp_path / file).exists()
