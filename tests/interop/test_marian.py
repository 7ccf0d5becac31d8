"""Marian folders against transformers: logits, tokens, translations, and all that can be wrong with one."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from command import Run, complaint
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from regard.cli.main import run
from regard.data.inputs import Tokens
from regard.errors import ModelError
from regard.interop import ctranslate2, huggingface, marian
from regard.models.folder import Loaded, load_folder
from regard.models.transformer import Transformer
from regard.tasks.translation.load import load_translator as load_engine
from regard.tasks.translation.translator import Translator, load_readable

B, T = 3, 7


def verb(*arguments: object) -> int:
    """A command line, in this process."""
    return run([str(each) for each in arguments])


def settings(size: int, **over: Any) -> MarianConfig:
    given = {
        "vocab_size": size,
        "d_model": 30,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 5,
        "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 41,
        "activation_function": "swish",
        "scale_embedding": True,
        "pad_token_id": size - 1,
        "decoder_start_token_id": size - 1,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        "max_position_embeddings": 128,
    }
    return MarianConfig(**(given | over))


def write(folder: Path, files: Path, **over: Any) -> MarianMTModel:
    """A random Marian model in a folder, as transformers writes it."""
    shutil.copytree(files, folder, dirs_exist_ok=True)
    size = len(json.loads((folder / "vocab.json").read_text()))
    torch.manual_seed(5)
    model = MarianMTModel(settings(size, **over)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "positions" not in name:
                parameter.add_(0.2 * torch.randn_like(parameter))
        model.final_logits_bias.normal_()
    model.generation_config.bad_words_ids = [[size - 1]]
    model.generation_config.num_beams = 3
    model.save_pretrained(folder)
    return model


@pytest.fixture
def folder(tmp_path: Path, marian_files: Path) -> Path:
    write(tmp_path / "opus", marian_files)
    return tmp_path / "opus"


SHAPES: list[dict[str, Any]] = [
    {},
    {"activation_function": "relu", "scale_embedding": False},
    {"share_encoder_decoder_embeddings": False, "activation_function": "gelu"},
    {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    {"tie_word_embeddings": False},
    {"encoder_layers": 1, "decoder_layers": 1, "d_model": 35, "encoder_attention_heads": 7},
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda each: ",".join(each) or "opus")
def test_logits_tokens_and_translations_are_theirs(
    tmp_path: Path, marian_files: Path, english: list[str], shape: dict[str, Any]
) -> None:
    theirs = write(tmp_path, marian_files, **shape)
    loaded = marian.read(tmp_path)
    tokens = MarianTokenizer.from_pretrained(tmp_path)(english[:B], return_tensors="pt", padding=True)
    tgt = torch.randint(1, 99, (B, T))
    assert isinstance(loaded.model, Transformer)
    with torch.inference_mode():
        wanted = theirs(**tokens, decoder_input_ids=tgt).logits
        hidden = loaded.model(Tokens(tokens.input_ids, tokens.attention_mask.bool()), tgt)
        torch.testing.assert_close(loaded.model.project(hidden), wanted, atol=1e-4, rtol=1e-4)
        written = theirs.generate(**tokens, num_beams=1, do_sample=False, max_new_tokens=20).tolist()
    translator = Translator(loaded.model, loaded.tokenizer, loaded.config.decode)
    for each, row in zip(translator.stream(english[:B], beam=1), written, strict=True):
        ours = [*each.ids, *([] if each.truncated else [0])]
        assert ours[:20] == row[1 : 1 + len(ours[:20])]


def test_a_model_that_transformers_trained(
    tmp_path: Path, marian_files: Path, english: list[str], german: list[str]
) -> None:
    """It has learned sixteen sentences by heart there, and says them here, by the engine too."""
    theirs = write(tmp_path, marian_files, d_model=60, dropout=0.0)
    for name, parameter in theirs.named_parameters():
        if parameter.dim() > 1 and "positions" not in name:
            torch.nn.init.xavier_uniform_(parameter)
    tokenizer = MarianTokenizer.from_pretrained(tmp_path)
    lines, wanted = english[:16], german[:16]
    tokens = tokenizer(lines, text_target=wanted, return_tensors="pt", padding=True)
    tokens["labels"] = tokens.labels.masked_fill(tokens.labels == tokenizer.pad_token_id, -100)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=2e-3)
    for _ in range(200):
        optimizer.zero_grad()
        theirs(**tokens).loss.backward()
        optimizer.step()
    theirs.eval().save_pretrained(tmp_path)
    with torch.inference_mode():
        written = theirs.generate(
            tokens.input_ids, attention_mask=tokens.attention_mask, num_beams=1, max_new_tokens=60
        )
    said = tokenizer.batch_decode(written, skip_special_tokens=True)
    assert sum(a == b for a, b in zip(said, wanted, strict=True)) >= 12  # it did learn
    assert verb("import", tmp_path, "-o", tmp_path / "ours") == 0
    for translator in (load_readable(tmp_path / "ours"), load_engine(tmp_path / "ours", precision="fp32")):
        for each, row in zip(translator.stream(lines, beam=1), written.tolist(), strict=True):
            theirs_wrote = row[1 : row.index(0) if 0 in row else None]  # one that never stops is cut by both
            shared = len(theirs_wrote) if 0 in row else min(len(each.ids), len(theirs_wrote))
            assert list(each.ids)[:shared] == theirs_wrote[:shared]
            assert 0 not in row or len(each.ids) == shared


def test_the_tokenizer_is_marian_tokenizer(folder: Path, many_lines: list[str], german: list[str]) -> None:
    ours, theirs = marian.read(folder).tokenizer, MarianTokenizer.from_pretrained(folder)
    lines = [line for line in many_lines if "<" not in line or line.startswith(">>")]
    assert ours.encode_batch(lines) == [theirs(line).input_ids[:-1] for line in lines]
    assert ours.encode_targets(german) == [theirs(text_target=line).input_ids[:-1] for line in german]
    for ids in ours.encode_targets(german[:50]):
        assert ours.decode(ids) == theirs.decode([*ids, 0], skip_special_tokens=True)


def test_text_never_becomes_a_special_id(folder: Path) -> None:
    tokenizer = marian.read(folder).tokenizer
    for text in ("</s>", "<pad>", "a </s> b"):
        assert not {0, tokenizer.pad_id} & set(tokenizer.encode(text))


def test_beams_end_as_theirs_where_the_searches_agree(folder: Path, english: list[str]) -> None:
    """Exported again and searched by CTranslate2, whose scores share out the mass of padding."""
    loaded = marian.read(folder)
    ours = Translator(loaded.model, loaded.tokenizer, loaded.config.decode)
    out = folder.parent / "ct2"
    out.mkdir()
    ctranslate2.write(loaded, out)
    found = ours.translate(english[:20], beam=1), ctranslate2.load(out).translate(english[:20], beam=1)
    assert found[0] == found[1]


def test_imported_models_live_on(folder: Path, english: list[str], german: list[str]) -> None:
    """Imported, translated with, evaluated, trained on, exported again: the commands."""
    base = folder.parent
    model, again, back = base / "model", base / "more", base / "back"
    assert verb("import", folder, "-o", model) == 0
    for name, lines in (("x.en", english[:40]), ("x.de", german[:40])):
        (base / name).write_text("".join(f"{line}\n" for line in lines))
    assert verb("evaluate", "-m", model, base / "x.en", base / "x.de", "--beam", 1) == 0
    options = [*("--set", "train.max_steps=3"), *("--set", "train.batch_tokens=256")]
    assert verb("train", base / "x.en", base / "x.de", "-o", again, "--from", model, *options) == 0
    assert verb("export", "-m", again, "--to", "huggingface", "-o", back) == 0
    wanted = load_readable(again)
    theirs, tokenizer = MarianMTModel.from_pretrained(back).eval(), MarianTokenizer.from_pretrained(back)
    tokens = tokenizer(english[:B], return_tensors="pt", padding=True)
    assert [
        ids[: len(row)] for ids, row in zip(tokens.input_ids.tolist(), _rows(wanted, english), strict=True)
    ] == (list(_rows(wanted, english)))
    tgt = torch.randint(1, 99, (B, T))
    with torch.inference_mode():
        hidden = wanted.model(Tokens(tokens.input_ids, tokens.attention_mask.bool()), tgt)
        logits = theirs(**tokens, decoder_input_ids=tgt).logits
        torch.testing.assert_close(wanted.model.project(hidden), logits, atol=1e-4, rtol=1e-4)


def _rows(translator: Translator, lines: list[str]) -> list[list[int]]:
    return [[*ids, translator.tokenizer.end_id] for ids in translator.tokenizer.encode_batch(lines[:B])]


def test_our_own_models_come_back_as_they_went(
    make: Callable[..., Loaded], many_lines: list[str], tmp_path: Path
) -> None:
    loaded = make(model__norm="post")
    huggingface.write(loaded, tmp_path)
    back = marian.read(tmp_path)
    assert back.tokenizer.to_json() == loaded.tokenizer.to_json()
    assert back.tokenizer.specials == loaded.tokenizer.specials
    for name, tensor in loaded.model.state_dict().items():
        assert torch.equal(back.model.state_dict()[name], tensor), name


def test_weights_may_be_a_pickle_of_tensors(folder: Path) -> None:
    wanted = marian.read(folder).model.state_dict()
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({name: tensor.half() for name, tensor in tensors.items()}, folder / "pytorch_model.bin")
    found = marian.read(folder).model.state_dict()
    for name, tensor in wanted.items():
        torch.testing.assert_close(found[name], tensor, atol=1e-2, rtol=1e-2)


# What can be wrong -------------------------------------------------------------------------------


class Malice:
    """A pickle that, opened carelessly, makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("way", ["pickle", "torch"])
def test_a_pickle_that_runs_code_does_not_run(folder: Path, regard: Run, way: str) -> None:
    (folder / "model.safetensors").unlink()
    trap, evil = folder.parent / "trap", {"weight": Malice(folder.parent / "trap")}
    if way == "torch":
        torch.save(evil, folder / "pytorch_model.bin")
    else:
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(evil))
    out = folder.parent / "model"
    assert "could run code" in complaint(regard("import", folder, "-o", out))
    assert not trap.exists()
    assert not out.exists()
    assert sorted(path.name for path in folder.parent.iterdir()) == ["opus"], "nothing half-written"
    if way == "torch":
        torch.load(folder / "pytorch_model.bin", weights_only=False)
    else:
        pickle.loads((folder / "pytorch_model.bin").read_bytes())
    assert trap.exists(), "the trap works where it is opened"


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"]
)
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "noise"])
def test_damaged_files_are_one_line(folder: Path, name: str, damage: str) -> None:
    path = folder / name
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        noise = bytes(torch.randint(256, (500,), generator=torch.Generator().manual_seed(1)).tolist())
        path.write_bytes({"empty": b"", "cut": data[: len(data) // 3], "noise": noise}[damage])
    if name.endswith(".spm") and damage == "cut":
        return  # a third of the pieces is a model, too
    with pytest.raises(ModelError) as caught:
        marian.read(folder)
    assert "\n" not in str(caught.value)
    assert name.removesuffix(".safetensors") in str(caught.value)


def edited(folder: Path, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    tree = json.loads((folder / name).read_text())
    change(tree)
    (folder / name).write_text(json.dumps(tree))


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("config.json", {"model_type": "bert"}, "bert.*marian"),
    ("config.json", {"model_type": None}, "type None"),
    ("config.json", {"activation_function": "quick_gelu"}, "quick_gelu.*relu"),
    ("config.json", {"d_model": 60}, r"\(\d+, 30\).*\(\d+, 60\)"),
    ("config.json", {"d_model": "30"}, "d_model takes a whole number"),
    ("config.json", {"d_model": None}, "does not say d_model"),
    ("config.json", {"encoder_layers": 3}, r"lacks the tensor model.encoder.layers.2"),
    ("config.json", {"decoder_layers": 1}, r"holds the tensor model.decoder.layers.1"),
    ("config.json", {"encoder_attention_heads": 4}, r"\(4\) must divide d_model \(30\)"),
    ("config.json", {"vocab_size": 11}, "room for 11"),
    ("config.json", {"pad_token_id": 10**6, "bad_words_ids": None}, "1000000"),
    ("config.json", {"eos_token_id": "x"}, "whole numbers"),
    ("vocab.json", {"extra": 0}, "id of its own"),
    ("vocab.json", {"extra": "x"}, "id of its own"),
]


@pytest.mark.parametrize(("name", "change", "said"), WRONG, ids=lambda each: str(each)[:40])
def test_settings_that_do_not_fit(folder: Path, name: str, change: dict[str, Any], said: str) -> None:
    edited(folder, name, lambda tree: tree.update(change))
    (folder / "generation_config.json").unlink()
    with pytest.raises(ModelError, match=said) as caught:
        marian.read(folder)
    assert "\n" not in str(caught.value)


def test_positions_that_are_not_sinusoids_are_refused(folder: Path) -> None:
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    tensors["model.encoder.embed_positions.weight"] = torch.randn(128, 30)
    safetensors.torch.save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelError, match="not sinusoids"):
        marian.read(folder)


def test_the_command_refuses_a_place_that_is_taken(folder: Path, regard: Run) -> None:
    (folder.parent / "model").mkdir()
    (folder.parent / "model" / "mine").write_text("mine")
    done = regard("import", folder, "-o", folder.parent / "model")
    assert "not an empty folder" in complaint(done)
    assert "does not exist" in complaint(regard("import", folder / "nowhere", "-o", folder.parent / "other"))
    assert not (folder.parent / "other").exists()


def test_what_is_imported_loads_again_bit_by_bit(folder: Path) -> None:
    out = folder.parent / "model"
    assert verb("import", folder, "-o", out) == 0
    once, again = marian.read(folder), load_folder(out)
    assert again.tokenizer.to_json() == once.tokenizer.to_json()
    assert again.config.model == once.config.model
    assert again.config.decode.beam == 3
    for name, tensor in once.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor)
