"""Language models in transformers: the same logits, the same greedy text, the same tokens; and back again."""

from pathlib import Path
from typing import Any

import pytest
import torch
from command import Run, complaint
from writers import TEXT, drawn, write_writer

from regard.data.inputs import Tokens
from regard.errors import ModelError
from regard.interop import known
from regard.interop.decoders import fitting, write
from regard.models.folder import Loaded
from regard.tasks.language.writer import Wish, Writer

transformers = pytest.importorskip("transformers")

LLAMA = {
    "positions__kind": "rotary",
    "model__norm": "pre-rms",
    "model__activation": "swiglu",
    "model__bias": False,
}
SHAPES: dict[str, dict[str, Any]] = {
    "gpt2": {"model__activation": "gelu-tanh", "model__scale_embedding": False},
    "gpt2-apart": {"model__tied": "none", "model__scale_embedding": False, "model__norm_eps": 1e-4},
    "gpt2-scaled": {"model__activation": "swish", "model__bias": False, "model__norm_weights": "none"},
    "neox": {"positions__kind": "rotary"},
    "neox-apart": {"positions__kind": "rotary", "model__tied": "none", "model__activation": "relu2"},
    "llama": LLAMA | {"model__scale_embedding": False, "model__kv_heads": 1, "model__tied": "none"},
    "llama-tied": LLAMA | {"model__scale_embedding": False},
    "llama-scaled": LLAMA,
}
UNITS = {"gpt2": "subwords", "gpt2-apart": "characters", "neox": "bytes", "llama": "characters"}


@pytest.fixture(scope="module", params=SHAPES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Loaded, Path]:
    """A model of ours, and the folder that it was written to."""
    units = UNITS.get(request.param, "subwords")
    loaded = Loaded(*drawn(units, **SHAPES[request.param]))
    place = tmp_path_factory.mktemp(request.param)
    write(loaded, place)
    return loaded, place


def test_logits_text_and_tokens_are_ours(pair: tuple[Loaded, Path]) -> None:
    loaded, place = pair
    theirs, told = transformers.AutoModelForCausalLM.from_pretrained(place, output_loading_info=True)
    assert not any(told[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids = torch.randint(4, loaded.tokenizer.vocab_size, (3, 37), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found, wanted = loaded.model.project(loaded.model(Tokens(ids))), theirs.eval()(ids).logits  # type: ignore[operator]
    assert (found - wanted).abs().max() < 1e-4

    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    for text in (TEXT, "  odd\tspaces \n\n", "年 — naïve 🙂"):
        assert tokenizer(text)["input_ids"] == loaded.tokenizer.encode(text)
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text

    prompt = tokenizer("the cat", return_tensors="pt")
    wish = Wish(tokens=17)
    (own,) = Writer(loaded.model, loaded.tokenizer).generate(["the cat"], wish)
    whole = theirs.generate(**prompt, do_sample=False, max_new_tokens=17)[0, prompt["input_ids"].shape[1] :]
    assert [number for number in whole.tolist() if number != loaded.tokenizer.end_id] == own.ids


def test_what_comes_back_is_what_went(pair: tuple[Loaded, Path]) -> None:
    loaded, place = pair
    shape = loaded.config.model
    again = known.read(place)
    assert again.tokenizer.encode(TEXT) == loaded.tokenizer.encode(TEXT)
    assert again.tokenizer.specials == loaded.tokenizer.specials
    if shape.scale_embedding:
        return
    state = again.model.state_dict()
    assert state.keys() == loaded.model.state_dict().keys()
    assert all(torch.equal(tensor, state[name]) for name, tensor in loaded.model.state_dict().items())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"positions__kind": "alibi"},
            "positions.kind=alibi; GPT-2 would hold .* positions.kind learned",
        ),
        ({"attention__score": "cosine"}, "attention.score=cosine; GPT-2 .* attention.score scaled-dot"),
        (LLAMA | {"model__bias": True}, "model.bias=True; Llama would hold a model with model.bias False"),
    ],
)
def test_what_fits_nowhere_is_told_what_would(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        fitting(drawn("bytes", **settings)[0])


def test_the_verb(tmp_path: Path, regard: Run) -> None:
    folder = write_writer(tmp_path / "model", "bytes")
    assert regard("export", "-m", folder, "--to", "huggingface", "-o", tmp_path / "hf").returncode == 0
    assert (tmp_path / "hf" / "tokenizer.json").is_file()
    refused = regard("export", "-m", folder, "--to", "onnx", "-o", tmp_path / "x")
    assert "holds a language model, which --to onnx cannot hold; it goes to huggingface" in complaint(refused)
    assert not (tmp_path / "x").exists()
