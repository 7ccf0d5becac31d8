"""Folders for CTranslate2: opened and run by it, greedy and beam, with the translations of the original."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2 as theirs
import pytest
from command import Run, complaint

from regard.decoding.sampling import Sampling
from regard.errors import ModelError, UsageError
from regard.interop import ctranslate2
from regard.models.folder import Loaded, load_folder
from regard.tasks.translation.translator import Translator

Make = Callable[..., Loaded]
Agree = Callable[..., None]

VARIANTS: list[dict[str, Any]] = [
    {"model__norm": "pre"},
    {"model__norm": "post"},
    {"model__norm": "post", "model__tied": "none", "model__output_bias": True, "model__activation": "swish"},
    {"model__tied": "target", "model__scale_embedding": False, "model__norm_weights": "gain"},
    {"model__norm": "post", "model__norm_weights": "none"},
    {"positions__kind": "learned", "model__decoder_heads": 5, "model__decoder_d_ff": 41},
    {"positions__kind": "none", "attention__score": "dot", "model__activation": "gelu"},
    {"positions__kind": "rotary", "model__decoder_heads": 5},
]


def both(loaded: Loaded, folder: Path) -> tuple[Translator, Translator]:
    ctranslate2.write(loaded, folder)
    return Translator(loaded.model, loaded.tokenizer, loaded.config.decode), ctranslate2.load(folder)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: ",".join(map(str, each.values())))
def test_every_shape_gives_the_same_n_best(
    make: Make, agree: Agree, english: list[str], tmp_path: Path, variant: dict[str, Any]
) -> None:
    ours, runner = both(make(**variant), tmp_path)
    for beam, n_best in ((1, 1), (3, 2)):
        lines = english[:20]
        agree(*(list(each.stream(lines, beam=beam, n_best=n_best)) for each in (ours, runner)))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_hundreds_of_real_sentences(
    make: Make, agree: Agree, english: list[str], tmp_path: Path, norm: str
) -> None:
    ours, runner = both(make(model__norm=norm), tmp_path)
    agree(*(list(each.stream(english[:200], beam=1)) for each in (ours, runner)))
    agree(*(list(each.stream(english[:60], beam=5, n_best=5)) for each in (ours, runner)))


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.4, 2.0])
def test_length_penalties_and_bounds(
    make: Make, agree: Agree, english: list[str], tmp_path: Path, penalty: float
) -> None:
    """Lines of very different bounds in one batch; some outputs are cut, some end."""
    lines = ["A dog.", *english[:30], "Two men in green shirts are standing in a yard. " * 2]
    ours, runner = both(make(), tmp_path)
    for translator in (ours, runner):
        translator.decode = make(decode__max_extra=3, decode__max_ratio=0.7).config.decode
    options = {"beam": 4, "n_best": 2, "length_penalty": penalty}
    found = [list(each.stream(lines, **options)) for each in (ours, runner)]
    agree(*found)
    assert any(each.truncated for each in found[0])


def test_the_folder_opens_in_the_library_itself(make: Make, english: list[str], tmp_path: Path) -> None:
    loaded = make()
    ours, _ = both(loaded, tmp_path)
    translator = theirs.Translator(str(tmp_path), compute_type="float32")
    pieces = [loaded.tokenizer.token(number) for number in loaded.tokenizer.encode(english[0])]
    (result,) = translator.translate_batch([pieces], beam_size=1, max_decoding_length=15)
    wanted = next(iter(ours.stream(english[:1], beam=1)))
    assert result.hypotheses[0] == [loaded.tokenizer.token(number) for number in wanted.ids][:15]


def test_a_trained_model(model: Path, agree: Agree, tmp_path: Path, regard: Run) -> None:
    out = tmp_path / "out"
    assert regard("export", "-m", model, "--to", "ctranslate2", "-o", out).returncode == 0
    loaded = load_folder(model)
    ours, runner = Translator(loaded.model, loaded.tokenizer, loaded.config.decode), ctranslate2.load(out)
    lines = ["a b c", "q w e r t z", "", "hello there", "ü"]
    agree(*(list(each.stream(lines, beam=4, n_best=3)) for each in (ours, runner)))
    text = "\n".join(lines) + "\n"
    done = regard("translate", "-m", out, "--engine", "ctranslate2", input=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == regard("translate", "-m", model, "--engine", "readable", input=text).stdout


def test_int8_is_computed_from_the_same_folder(make: Make, english: list[str], tmp_path: Path) -> None:
    ctranslate2.write(make(), tmp_path)
    runner = ctranslate2.load(tmp_path, precision="int8")
    assert len(runner.translate(english[:3], beam=1)) == 3


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ({"model__kv_heads": 1}, r"kv_heads=1 with 3 heads"),
        ({"positions__kind": "alibi"}, "positions.kind=alibi"),
        ({"attention__score": "additive"}, "attention.score=additive"),
    ],
)
def test_what_it_cannot_compute_is_refused(make: Make, tmp_path: Path, variant: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        ctranslate2.write(make(**variant), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "missing", ["model.bin", "tokenizer.json", "generation.json", "shared_vocabulary.json"]
)
def test_a_folder_without_a_file(make: Make, tmp_path: Path, missing: str) -> None:
    ctranslate2.write(make(), tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(ModelError, match=r"has no|vocabulary"):
        ctranslate2.load(tmp_path)


def test_damaged_files_and_wrong_wishes(make: Make, tmp_path: Path, regard: Run) -> None:
    ctranslate2.write(make(), tmp_path)
    runner = ctranslate2.load(tmp_path)
    with pytest.raises(UsageError, match="model folder"):
        list(runner.stream(["a"], sampling=Sampling()))
    with pytest.raises(UsageError, match="fp32, int8, bf16"):
        ctranslate2.load(tmp_path, precision="int4")
    for name, content in (("generation.json", "[]"), ("shared_vocabulary.json", "[1]"), ("model.bin", "x")):
        broken = tmp_path / f"broken-{name}"
        shutil.copytree(tmp_path, broken, ignore=shutil.ignore_patterns("broken*"))
        (broken / name).write_text(content)
        with pytest.raises(ModelError):
            ctranslate2.load(broken)
    done = regard("translate", "-m", tmp_path / "broken-model.bin", "--engine", "ctranslate2", input="a\n")
    assert "does not open" in complaint(done)


def test_rows_without_a_token_are_never_written(make: Make, english: list[str], tmp_path: Path) -> None:
    loaded = make(model__vocab_size=733)
    ours, runner = both(loaded, tmp_path)
    assert len(json.loads((tmp_path / "shared_vocabulary.json").read_text())) == 733
    assert ours.translate(english[:9], beam=1) == runner.translate(english[:9], beam=1)
