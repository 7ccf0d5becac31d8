"""GPT-2 folders: transformers' own logits, its generation token for token, and folders that are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.data.inputs import Tokens
from regard.decoding.greedy import greedy
from regard.decoding.search import Rules
from regard.errors import ModelError
from regard.interop import byte_level, known
from regard.models.folder import load_folder, save
from regard.text.running import RunningText

transformers = pytest.importorskip("transformers")

TEXT = "the cat sat on the mat, the dog sat on the cat.\n\n\tthe mat — naïve — sat\n" * 5


@pytest.fixture(scope="module")
def tokenizer() -> RunningText:
    return RunningText.learn([TEXT], vocab_size=299)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: RunningText) -> Path:
    """A GPT-2 as transformers saves it, with the tokenizer of GPT-2's own kind."""
    torch.manual_seed(3)
    pieces = [piece for piece in tokenizer.pieces if not piece.startswith("<") or len(piece) == 1]
    ids = {piece: number for number, piece in enumerate([*pieces, "<|endoftext|>"])}
    config = transformers.GPT2Config(
        vocab_size=len(ids),
        n_positions=31,
        n_embd=24,
        n_layer=3,
        n_head=3,
        eos_token_id=len(ids) - 1,
        bos_token_id=len(ids) - 1,
        initializer_range=0.3,
    )
    place = tmp_path_factory.mktemp("gpt2")
    transformers.GPT2LMHeadModel(config).save_pretrained(place)
    theirs = transformers.GPT2Tokenizer(vocab=ids, merges=tokenizer.merges)
    theirs.save_pretrained(place)
    return place


def _theirs(folder: Path) -> Any:
    return transformers.GPT2LMHeadModel.from_pretrained(folder).eval()


def test_logits_are_those_of_transformers(folder: Path) -> None:
    ours, theirs = known.read(folder), _theirs(folder)
    ids = torch.randint(0, ours.config.model.vocab_size, (5, 29), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = ours.model.project(ours.model(Tokens(ids)))
        wanted = theirs(ids).logits
    assert (found - wanted).abs().max() < 1e-4


def test_greedy_writing_is_theirs_token_for_token(folder: Path) -> None:
    ours, theirs = known.read(folder), _theirs(folder)
    prompt = ours.tokenizer.encode("the cat")
    rules = Rules(
        torch.tensor([0]),
        torch.tensor([31 - len(prompt)]),
        specials=ours.tokenizer.specials,
        first=torch.tensor(prompt[-1:]),
    )
    with torch.no_grad():
        found = greedy(ours.model, Tokens(torch.tensor([prompt[:-1]])), rules)[0].ids
        wanted = theirs.generate(
            torch.tensor([prompt]), do_sample=False, max_length=31, pad_token_id=theirs.config.eos_token_id
        )[0, len(prompt) :].tolist()
    end = theirs.config.eos_token_id
    assert found == (wanted[: wanted.index(end)] if end in wanted else wanted)


def test_text_is_cut_as_theirs_is(folder: Path) -> None:
    ours, theirs = known.read(folder).tokenizer, transformers.AutoTokenizer.from_pretrained(folder)
    for text in (TEXT, "  odd\tspaces \n\n", "年 — <|endoftext|>", ""):
        if "endoftext" not in text:  # theirs takes the name for the token; ours never does
            assert ours.encode(text) == theirs(text)["input_ids"]
        assert ours.decode(ours.encode(text)) == text


def test_vocab_and_merges_without_a_tokenizer_json(folder: Path, tmp_path: Path) -> None:
    tree = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    for file in ("config.json", "model.safetensors"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    added = {each["content"]: each["id"] for each in tree["added_tokens"]}
    vocab = tree["model"]["vocab"] | added
    (tmp_path / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    merges = [" ".join(pair) for pair in tree["model"]["merges"]]
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), encoding="utf-8")
    assert known.read(tmp_path).tokenizer.to_json() == known.read(folder).tokenizer.to_json()


def test_saved_and_loaded_it_is_the_same(folder: Path, tmp_path: Path) -> None:
    loaded = known.read(folder)
    card = known.card(folder, loaded)
    save(tmp_path / "own", config=loaded.config, model=loaded.model, tokenizer=loaded.tokenizer, card=card)
    again = load_folder(tmp_path / "own")
    assert again.config.task == "language"
    assert all(
        torch.equal(a, b) for a, b in zip(again.model.parameters(), loaded.model.parameters(), strict=True)
    )
    assert again.tokenizer.encode(TEXT) == loaded.tokenizer.encode(TEXT)
    assert card.startswith("# A language model imported from ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_layer": 4}, "lacks the tensor h.3"),
        ({"n_embd": 27}, r"would be \(\d+, 24\), config.json asks for \(\d+, 27\)"),
        ({"activation_function": "tanh"}, "activation_function"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx True is not supported"),
        ({"eos_token_id": 10**6}, "is not one of"),
        ({"model_type": "gpt9"}, "regard import knows marian"),
        ({"n_head": 5}, "must divide"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(
    folder: Path, with_settings: Callable[..., Path], change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        known.read(with_settings(folder, **change))


def test_what_needs_no_import_is_said_to_be_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model": {}, "decode": {}}')
    with pytest.raises(ModelError, match="is a model of Regard already"):
        known.read(tmp_path)
    (tmp_path / "model.bin").touch()
    (tmp_path / "shared_vocabulary.json").touch()
    with pytest.raises(ModelError, match="is a model of CTranslate2"):
        known.read(tmp_path)


def test_a_vocabulary_that_does_not_fit_is_refused(tmp_path: Path, tokenizer: RunningText) -> None:
    ids = {piece: number for number, piece in enumerate(tokenizer.pieces)}
    merges = [list(pair) for pair in tokenizer.merges]
    for given, words in (
        ((ids | {"a": 5}, merges, {}, 2), "an id of its own"),
        ((ids | {"a": [1], "b": 0.5}, merges, {}, 2), "an id of its own"),
        ((ids | {"a": float(ids["a"])}, merges, {}, 2), "an id of its own"),
        ((ids, [["a", "b", "c"]], {}, 2), "two tokens"),
        ((ids, [["Ġthe", "zz"]], {}, 2), "has no token"),
        ((ids, merges, {}, None), "the end None"),
        ((ids, merges, {"<x>": "five"}, 2), "an id of its own"),
        ((5, merges, {}, 2), "must hold tokens"),
    ):
        *parts, end = given
        with pytest.raises(ModelError, match=words):
            byte_level.build(*parts, [], {"eos_token_id": end}, tmp_path / "tokenizer.json")


# GPT-NeoX ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def neox(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-NeoX as transformers saves it: all of a head is turned, and its layers have two residuals."""
    torch.manual_seed(7)
    size = json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    config = transformers.GPTNeoXConfig(
        vocab_size=size,
        hidden_size=24,
        num_attention_heads=3,
        num_hidden_layers=2,
        intermediate_size=34,
        max_position_embeddings=31,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
        use_parallel_residual=False,
        tie_word_embeddings=request.param,
        initializer_range=0.3,
        eos_token_id=size - 1,
        bos_token_id=size - 1,
    )
    place = tmp_path_factory.mktemp("neox")
    transformers.GPTNeoXForCausalLM(config).save_pretrained(place)
    (place / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    return place


def test_the_logits_of_gpt_neox_are_those_of_transformers(neox: Path) -> None:
    ours, theirs = known.read(neox), transformers.GPTNeoXForCausalLM.from_pretrained(neox).eval()
    ids = torch.randint(0, ours.config.model.vocab_size, (5, 29), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found, wanted = ours.model.project(ours.model(Tokens(ids))), theirs(ids).logits
    assert (found - wanted).abs().max() < 1e-4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"use_parallel_residual": True}, "use_parallel_residual True is not supported; ours has False"),
        ({"rope_parameters": {"partial_rotary_factor": 0.25}}, "rotary_pct 0.25 is not supported"),
        ({"rope_parameters": {"partial_rotary_factor": 1.0, "rope_theta": 5e5}}, "rope_theta 500000"),
        ({"attention_bias": False}, "attention_bias False"),
        ({"hidden_size": 30}, "has 72 rows, not 3 x 30"),
        ({"hidden_size": None}, "does not say d_model"),
        ({"hidden_act": ["gelu"]}, "hidden_act a list is not supported"),
    ],
)
def test_a_gpt_neox_that_does_not_fit_is_refused(
    neox: Path, with_settings: Callable[..., Path], change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        known.read(with_settings(neox, **change))
