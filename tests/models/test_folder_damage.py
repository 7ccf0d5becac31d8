"""Every kind of damage to a model folder has its one line."""

import hashlib
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.errors import ModelError
from regard.models import folder
from regard.text.tokenizer import Tokenizer

FILES = (
    "config.json",
    "generation.json",
    "model.safetensors",
    "tokenizer.json",
)  # without any of them none is


def refused(path: Path) -> str:
    """The one line that loading ends with."""
    with pytest.raises(ModelError) as caught:
        folder.load_folder(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    assert str(path) in message
    return message


def resign(path: Path) -> None:
    """Make the checksums true again, as somebody would who means harm or edits by hand."""
    tree = json.loads((path / "config.json").read_text())
    checksums = tree.pop("checksums")
    for name in ("model.safetensors", "tokenizer.json"):
        checksums[name] = hashlib.sha256((path / name).read_bytes()).hexdigest()
    checksums["config.json"] = hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()
    (path / "config.json").write_text(json.dumps({**tree, "checksums": checksums}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"beams": 3}', "unknown config key decode.beams; did you mean decode.beam?"),
        ('{"beam": "3"}', "decode.beam takes a whole number, not '3'"),
        ('{"beam": true}', "decode.beam takes a whole number, not True"),
        ('{"beam": 0}', "decode.beam (0) must be between"),
        ('{"max_ratio": NaN}', "decode.max_ratio (nan) must be between"),
        ('{"beam": {"a": 1}}', "decode.beam takes a whole number, not"),
        ("[1]", "holds a list"),
        ('{"beam": 3', "is no JSON"),
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_wrong_edit_of_generation_json_is_named(saved: Path, text: str, words: str) -> None:
    (saved / "generation.json").write_text(text)
    message = refused(saved)
    assert "generation.json" in message
    assert words in message


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "does not exist; give the folder" in refused(tmp_path / "nowhere")


def test_a_file_is_no_folder(saved: Path) -> None:
    assert "is a file; give the folder" in refused(saved / "config.json")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    assert f"has no {name}" in refused(saved)


def test_a_folder_in_the_place_of_a_file_is_named(saved: Path) -> None:
    (saved / "tokenizer.json").unlink()
    (saved / "tokenizer.json").mkdir()
    assert "has no tokenizer.json" in refused(saved)


def test_a_folder_without_its_card_still_loads(saved: Path) -> None:
    (saved / "README.md").unlink()
    folder.load_folder(saved)


def test_an_empty_folder(tmp_path: Path) -> None:
    assert "has no config.json" in refused(tmp_path)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_named(saved: Path, name: str, share: float) -> None:
    path = saved / name
    data = path.read_bytes().rstrip()
    path.write_bytes(data[: int(share * len(data))])
    assert name in refused(saved)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.sampled_from(["config.json", "model.safetensors", "tokenizer.json"]), st.data())
def test_a_flipped_bit_is_found(saved: Path, name: str, data: st.DataObject) -> None:
    path = saved / name
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    bit = data.draw(st.integers(0, 7))
    broken = bytearray(whole)
    broken[place] ^= 1 << bit
    path.write_bytes(broken)
    try:
        if name == "config.json" and same_json(broken, whole):
            folder.load_folder(saved)  # between the words of JSON a space may become a tab
        else:
            assert name in refused(saved)
    finally:
        path.write_bytes(whole)


def test_a_damaged_name_among_the_checksums_is_found_and_traced_to_its_file(saved: Path) -> None:
    path = saved / "config.json"
    path.write_text(path.read_text().replace('"tokenizer.json"', '"tokenizes.json"'))
    assert "has no tokenizes.json (asked for by config.json)" in refused(saved)


def same_json(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def test_a_config_edited_by_hand_is_refused_with_the_right_place_to_edit(saved: Path) -> None:
    path = saved / "config.json"
    path.write_text(path.read_text().replace('"norm": "pre"', '"norm": "post"'))
    message = refused(saved)
    assert "damaged or was edited" in message
    assert "generation.json" in message


@pytest.mark.parametrize("text", ['{"architectures": ["MarianMTModel"]}', '{"checksums": 3}', "[]", "3"])
def test_a_foreign_config_is_refused(saved: Path, text: str) -> None:
    (saved / "config.json").write_text(text)
    refused(saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": {"d_modle": 3}}, "unknown config key model.d_modle; did you mean model.d_model?"),
        ({"model": {"n_heads": 4}}, "n_heads (4) must divide d_model (22)"),
        ({"model": 3}, "unknown config key model"),
    ],
)
def test_a_config_of_another_version_is_named(saved: Path, change: dict[str, Any], words: str) -> None:
    tree = json.loads((saved / "config.json").read_text())
    for key, value in change.items():
        tree[key] = {**tree[key], **value} if isinstance(value, dict) else value
    (saved / "config.json").write_text(json.dumps(tree))
    resign(saved)
    assert words in refused(saved)


def test_shapes_that_do_not_match_are_named_with_both(saved: Path) -> None:
    tree = json.loads((saved / "config.json").read_text())
    tree["model"]["d_ff"] = 17
    (saved / "config.json").write_text(json.dumps(tree))
    resign(saved)
    message = refused(saved)
    assert "feed_forward" in message
    assert "(13" in message
    assert "(17" in message


def change_tensors(path: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors = safetensors.torch.load_file(path / "model.safetensors")
    change(tensors)
    safetensors.torch.save_file(tensors, path / "model.safetensors")
    resign(path)


def test_a_missing_tensor_is_named(saved: Path) -> None:
    change_tensors(saved, lambda tensors: tensors.pop("embedding.weight"))  # type: ignore[arg-type, return-value]
    assert "lacks the tensor embedding.weight" in refused(saved)


def test_a_tensor_too_many_is_named(saved: Path) -> None:
    change_tensors(saved, lambda tensors: tensors.update(stranger=torch.zeros(3)))
    assert "holds a tensor stranger" in refused(saved)


def test_a_tensor_of_another_type_is_named(saved: Path) -> None:
    change_tensors(saved, lambda t: t.update({"embedding.weight": t["embedding.weight"].bfloat16()}))
    message = refused(saved)
    assert "bfloat16" in message
    assert "float32" in message


def test_the_tokenizer_of_a_larger_model_is_refused(saved: Path) -> None:
    other = Tokenizer.train(["quite another text with many other words in it"] * 9, 0)
    (saved / "tokenizer.json").write_text(other.to_json(), encoding="utf-8")
    resign(saved)
    assert f"holds {other.vocab_size} tokens" in refused(saved)


@pytest.mark.parametrize("text", ["{}", "[]", '{"model": {"vocab": {}}}', "\ud800"])
def test_a_tokenizer_that_is_none_is_refused(saved: Path, text: str) -> None:
    (saved / "tokenizer.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    resign(saved)
    assert "tokenizer.json" in refused(saved)


class Bomb:
    """Unpickling this leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("how", ["zip", "plain"])
@pytest.mark.parametrize("signed", [True, False])
def test_a_pickle_under_the_name_of_the_weights_is_never_opened(
    saved: Path, tmp_path: Path, how: str, signed: bool
) -> None:
    trace, path = tmp_path / "trace", saved / "model.safetensors"
    if how == "zip":
        torch.save({"a": Bomb(trace)}, path)
    else:
        path.write_bytes(pickle.dumps(Bomb(trace)))
    if signed:
        resign(saved)
    assert "is a pickle" in refused(saved)
    assert not trace.exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "last.ckpt"])
def test_a_folder_of_pickles_is_refused(saved: Path, tmp_path: Path, name: str) -> None:
    trace = tmp_path / "trace"
    (saved / "model.safetensors").unlink()
    (saved / name).write_bytes(pickle.dumps(Bomb(trace)))
    message = refused(saved)
    assert name in message
    assert "never opened" in message
    assert not trace.exists()


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff" * 64, (2**62).to_bytes(8, "little") + b"{}"])
def test_weights_that_are_no_safetensors_are_refused(saved: Path, data: bytes) -> None:
    (saved / "model.safetensors").write_bytes(data)
    resign(saved)
    assert "is no safetensors file" in refused(saved)


def test_a_folder_of_ctranslate2_is_called_by_its_name(saved: Path) -> None:
    (saved / "model.safetensors").unlink()
    (saved / "model.bin").write_bytes(b"\6\0\0\0")
    (saved / "shared_vocabulary.json").write_text("[]")
    assert "is a model of CTranslate2; translate with it by --engine ctranslate2" in refused(saved)
