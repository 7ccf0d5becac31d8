"""Folders for transformers: opened by it with nothing missing, the same tokens and the same logits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from command import Run, complaint
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from regard.data.inputs import Tokens
from regard.errors import ModelError
from regard.interop import huggingface
from regard.models.folder import Loaded
from regard.tasks.translation.translator import Translator

Make = Callable[..., Loaded]
VARIANTS: list[dict[str, Any]] = [
    {"model__norm": "post"},
    {"model__norm": "pre"},
    {"model__norm": "post", "model__norm_weights": "none"},
    {"model__norm": "pre", "model__norm_weights": "gain"},
    {"model__norm": "post", "model__tied": "target", "model__output_bias": True, "model__decoder_heads": 5},
    {"model__norm": "post", "model__tied": "none", "model__activation": "swish", "model__decoder_d_ff": 41},
    {"model__norm": "pre", "model__tied": "embeddings", "model__scale_embedding": False},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: ",".join(map(str, each.values())))
def test_tokens_logits_and_translations(
    make: Make, english: list[str], tmp_path: Path, variant: dict[str, Any]
) -> None:
    loaded = make(**variant)
    huggingface.write(loaded, tmp_path)
    theirs, report = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values()), report
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    tokens = tokenizer(english[:3], return_tensors="pt", padding=True)
    rows = [[*ids, 2] for ids in loaded.tokenizer.encode_batch(english[:3])]
    assert [ids[: len(row)] for ids, row in zip(tokens.input_ids.tolist(), rows, strict=True)] == rows
    tgt = torch.randint(4, 700, (3, 7))
    model: Any = loaded.model
    with torch.inference_mode():
        wanted = model.project(model(Tokens(tokens.input_ids, tokens.attention_mask.bool()), tgt))
        found = theirs.eval()(
            input_ids=tokens.input_ids, attention_mask=tokens.attention_mask, decoder_input_ids=tgt
        ).logits
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
        written = theirs.generate(
            input_ids=tokens.input_ids, attention_mask=tokens.attention_mask, num_beams=1, max_new_tokens=9
        ).tolist()
    ours = Translator(model, loaded.tokenizer, loaded.config.decode).stream(english[:3], beam=1)
    for each, row in zip(ours, written, strict=True):
        assert list(each.ids[:9]) == row[1 : 1 + len(each.ids[:9])]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_tokenizer_is_ours(make: Make, many_lines: list[str], tmp_path: Path, norm: str) -> None:
    loaded = make(model__norm=norm)
    huggingface.write(loaded, tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    lines = [line for line in many_lines if "<" not in line and "\ufeff" not in line]
    for line, ids in zip(lines, loaded.tokenizer.encode_batch(lines), strict=True):
        assert theirs(line).input_ids == [*ids, 2], line
        text = theirs.decode([*ids, 2], skip_special_tokens=True)
        assert text.strip() == loaded.tokenizer.decode(ids).strip()


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ({"positions__kind": "learned"}, "Pegasus layout cannot hold positions.kind=learned"),
        ({"model__norm": "post", "attention__score": "dot"}, "Marian layout cannot hold attention.score=dot"),
        ({"model__tied": "none"}, "model.tied=none"),
        ({"model__kv_heads": 1}, "kv_heads=1 with 3 heads"),
    ],
)
def test_what_it_cannot_hold_is_refused(make: Make, tmp_path: Path, variant: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        huggingface.write(make(**variant), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command_says_why_and_leaves_nothing(model: Path, tmp_path: Path, regard: Run) -> None:
    out = tmp_path / "out"
    done = regard("export", "-m", model, "--to", "huggingface", "-o", out)
    assert "positions.kind=learned" in complaint(done)
    assert "there are ctranslate2, huggingface, onnx" in complaint(
        regard("export", "-m", model, "--to", "word", "-o", out)
    )
    assert not list(tmp_path.iterdir())
