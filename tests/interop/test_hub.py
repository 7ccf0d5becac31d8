"""Folders that are shared: smaller, whole, the same translations, and a card that the Hub reads."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import pytest
import safetensors.torch
import torch
import yaml
from command import call

from regard.errors import ModelError, UsageError
from regard.interop.hub import share
from regard.models.folder import load_folder
from regard.tasks.translation.load import load_translator


def test_a_shared_folder_is_small_and_translates_the_same(model: Path, tmp_path: Path) -> None:
    done = call("pack", model, "-o", tmp_path / "shared", "--license", "cc-by-4.0")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "shared").iterdir()}
    assert names == {"config.json", "generation.json", "model.safetensors", "README.md", "tokenizer.json"}
    theirs = safetensors.torch.load_file(tmp_path / "shared" / "model.safetensors")
    assert {tensor.dtype for tensor in theirs.values()} == {torch.float16}
    before, after = load_folder(model), load_folder(tmp_path / "shared")
    for one, other in zip(before.model.parameters(), after.model.parameters(), strict=True):
        assert other.dtype == torch.float32
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
    lines = ["a b", "c", ""]
    assert load_translator(tmp_path / "shared").translate(lines) == load_translator(model).translate(lines)
    card = (tmp_path / "shared" / "README.md").read_text(encoding="utf-8")
    _, front, rest = card.split("---\n", 2)
    told = yaml.safe_load(front)
    assert (told["library_name"], told["pipeline_tag"], told["license"]) == (
        "regard",
        "translation",
        "cc-by-4.0",
    )
    assert rest == (model / "README.md").read_text(encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "shared.zip") as archive:
        assert {name.partition("/")[2] for name in archive.namelist()} == names
        archive.extractall(tmp_path / "unpacked")
    load_folder(tmp_path / "unpacked" / "shared")
    again = call("pack", model, "-o", tmp_path / "shared")
    assert again.returncode == 2
    assert "exists" in again.stderr


def test_a_folder_is_packed_beside_itself_if_nothing_is_said(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "mine")
    done = call("pack", tmp_path / "mine")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine-packed.zip").is_file()
    load_folder(tmp_path / "mine-packed")


def test_packing_twice_gives_the_same_bytes_and_one_front(model: Path, tmp_path: Path) -> None:
    share(model, tmp_path / "a" / "m")
    share(tmp_path / "a" / "m", tmp_path / "b" / "m")
    assert (tmp_path / "a" / "m.zip").read_bytes() == (tmp_path / "b" / "m.zip").read_bytes()


def test_what_does_not_fit_into_half_stays(model: Path, tmp_path: Path) -> None:
    loaded = load_folder(model)
    with torch.no_grad():
        next(loaded.model.parameters())[0, 0] = 1e6
    from regard.models.folder import save

    save(
        tmp_path / "m",
        config=loaded.config,
        model=loaded.model,
        tokenizer=loaded.text,
        card="",
        numbers="fp16",
    )
    assert next(load_folder(tmp_path / "m").model.parameters())[0, 0] == 1e6


def test_a_folder_that_is_there_is_left_alone(model: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "mine").write_text("x")
    with pytest.raises(UsageError, match="exists and is not an empty folder"):
        share(model, tmp_path / "m")


def test_int8_takes_a_quarter_and_loads_like_any_folder(model: Path, tmp_path: Path) -> None:
    done = call("pack", model, "-o", tmp_path / "shared", "--int8")
    assert done.returncode == 0, done.stderr
    held = safetensors.torch.load_file(tmp_path / "shared" / "model.safetensors")
    before, after = load_folder(model), load_folder(tmp_path / "shared")
    for (name, one), other in zip(before.model.named_parameters(), after.model.parameters(), strict=True):
        assert other.dtype == torch.float32
        if one.dim() > 1:
            assert held[name].dtype == torch.int8
            step = one.detach().flatten(1).abs().amax(1).clamp(min=1e-30) / 127
            off = (one - other).detach().flatten(1).abs().amax(1)
            assert bool((off <= 0.5001 * step + 1e-12).all())
    lines = ["a b", "c", ""]
    assert load_translator(tmp_path / "shared").translate(lines) == load_translator(model).translate(lines)
    share(tmp_path / "shared", tmp_path / "again", int8=True)  # what is packed can be packed again
    other_tensors = safetensors.torch.load_file(tmp_path / "again" / "model.safetensors")
    assert all(
        torch.equal(held[name], other_tensors[name]) for name in held if held[name].dtype == torch.int8
    )


def test_a_scale_that_does_not_fit_its_matrix_is_refused(model: Path, tmp_path: Path) -> None:
    share(model, tmp_path / "m", int8=True)
    path = tmp_path / "m" / "model.safetensors"
    held = safetensors.torch.load_file(path)
    name = next(name for name in held if name.endswith(".scale"))
    held[name] = held[name][:-1].clone()
    safetensors.torch.save_file(held, path)
    tree = json.loads((tmp_path / "m" / "config.json").read_text())
    tree["checksums"]["model.safetensors"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "m" / "config.json").write_text(json.dumps(tree))
    with pytest.raises(ModelError, match=r"int8, its config asks for|unknown to its config"):
        load_folder(tmp_path / "m")
