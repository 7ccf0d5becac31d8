"""config.json is read in one place: whole, damaged, of an older version, of a newer one."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.config import Config, merge, to_dict
from regard.config.file import is_model, read_config, read_tree, tree_checksum
from regard.errors import ModelError


def write(folder: Path, tree: dict[str, Any]) -> Path:
    sums = {"config.json": tree_checksum(tree), "model.safetensors": "5"}
    (folder / "config.json").write_text(json.dumps(tree | {"checksums": sums}), encoding="utf-8")
    return folder


def test_what_was_written_is_read(tmp_path: Path) -> None:
    config = merge(Config(), {"model.d_model": 24, "text.source": "en"})
    write(tmp_path, to_dict(config))
    assert read_config(tmp_path) == config
    assert read_tree(tmp_path)[1]["model.safetensors"] == "5"
    assert is_model(tmp_path)


def test_a_key_that_an_older_version_did_not_know_has_its_default(tmp_path: Path) -> None:
    tree = to_dict(merge(Config(), {"model.d_model": 24}))
    del tree["task"], tree["model"]["norm_weights"], tree["decode"]
    assert read_config(write(tmp_path, tree)) == merge(Config(), {"model.d_model": 24})


def test_a_key_of_a_newer_version_is_named(tmp_path: Path) -> None:
    tree = to_dict(Config())
    tree["model"]["colour"] = "red"
    with pytest.raises(ModelError, match=r"model\.colour.*another version"):
        read_config(write(tmp_path, tree))


def test_an_edited_one_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, to_dict(Config())) / "config.json"
    path.write_text(path.read_text(encoding="utf-8").replace("256", "257"), encoding="utf-8")
    with pytest.raises(ModelError, match="is damaged or was edited"):
        read_config(tmp_path)
    assert is_model(tmp_path)


def test_what_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        read_config(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="is a file"):
        read_config(tmp_path / "file")
    assert not is_model(tmp_path)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (("model.bin", "shared_vocabulary.json"), "a model of CTranslate2; translate with it by --engine"),
        (("encoder.onnx", "decoder.onnx"), "an export to ONNX; give the folder that it was exported from"),
        ((), "a model of Hugging Face; take it over: regard import"),
    ],
)
def test_folders_of_others_are_called_by_their_names(
    tmp_path: Path, files: tuple[str, ...], told: str
) -> None:
    """As other programs leave them: settings of their own, and none of our checksums."""
    for name in files:
        (tmp_path / name).write_bytes(b"")
    settings = {} if files else {"model_type": "marian"}
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(ModelError, match=f" is {told}"):
        read_config(tmp_path)
    assert not is_model(tmp_path)
