"""BERT and DistilBERT folders: transformers' own hidden states and guesses, real weights, refused folders."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoders import PIECES
from safetensors.torch import load_file, save_file

import regard
from regard.cli.main import run as command
from regard.data.inputs import pad_sources
from regard.errors import ModelError
from regard.interop import known
from regard.interop.initialisers import read_initialisers
from regard.models.folder import save
from regard.tasks.embed.embedder import cosines
from regard.tasks.encoder import EmbedConfig

transformers = pytest.importorskip("transformers")

V, D, N, LENGTH = len(PIECES), 24, 3, 19
BERT = {
    "vocab_size": V,
    "hidden_size": D,
    "num_hidden_layers": N,
    "num_attention_heads": 3,
    "intermediate_size": 34,
    "max_position_embeddings": LENGTH,
    "initializer_range": 0.3,
}
DISTIL = {
    "vocab_size": V,
    "dim": D,
    "n_layers": N,
    "n_heads": 3,
    "hidden_dim": 34,
    "max_position_embeddings": LENGTH,
    "initializer_range": 0.3,
}
KINDS: dict[str, Callable[[], Any]] = {
    "bert": lambda: transformers.BertModel(transformers.BertConfig(**BERT)),
    "bert-head": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**BERT)),
    "bert-both": lambda: transformers.BertForPreTraining(transformers.BertConfig(**BERT)),
    "distilbert": lambda: transformers.DistilBertModel(transformers.DistilBertConfig(**DISTIL)),
    "distilbert-head": lambda: transformers.DistilBertForMaskedLM(transformers.DistilBertConfig(**DISTIL)),
}


def write_vocabulary(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")


@pytest.fixture(scope="module", params=list(KINDS))
def theirs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    torch.manual_seed(5)
    place = tmp_path_factory.mktemp(request.param)
    model = KINDS[request.param]().eval()
    for name, weight in model.named_parameters():  # no gain of one and no bias of zero may hide a mistake
        torch.nn.init.normal_(weight, mean=float("norm" in name.lower() and "weight" in name), std=0.3)
    model.save_pretrained(place)
    write_vocabulary(place)
    return place, model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BERT without a head, to be changed."""
    torch.manual_seed(5)
    KINDS["bert"]().save_pretrained(tmp_path)
    write_vocabulary(tmp_path)
    return tmp_path


def test_hidden_states_and_guesses_are_those_of_transformers(theirs: tuple[Path, Any]) -> None:
    folder, model = theirs
    ours = known.read(folder)
    inputs = pad_sources([[2, 5, 6, 7, 8, 3], [2, 5, 3], [2, *range(4, 14), 3]])
    asked = {"input_ids": inputs.ids, "attention_mask": inputs.real.long()}
    with torch.no_grad():
        wanted = model(**asked, output_hidden_states=True)
        hidden = ours.model.encode(inputs)
    assert (hidden - wanted.hidden_states[-1])[inputs.real].abs().max() < 1e-4
    fills = ours.config.task == "masked"
    assert fills == hasattr(wanted, "logits") or hasattr(wanted, "prediction_logits")
    if fills:
        logits = wanted.logits if hasattr(wanted, "logits") else wanted.prediction_logits
        assert (ours.model.project(hidden) - logits)[inputs.real].abs().max() < 1e-3


def test_what_was_imported_is_used_by_its_verb(
    theirs: tuple[Path, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model"
    assert command(["import", str(theirs[0]), "-o", str(out)]) == 0
    capfd.readouterr()
    if known.read(theirs[0]).config.task == "masked":
        assert command(["fill", "-m", str(out), "the [MASK] sat", "--json"]) == 0
        found = json.loads(capfd.readouterr().out)
        assert len(found["gaps"][0]) == 5
        assert found["text"] == f"the {found['gaps'][0][0]['text']} sat"
    (tmp_path / "in.txt").write_text("the cats sat\n\non a mat.\n", encoding="utf-8")
    vectors = tmp_path / "out.npy"
    assert command(["embed", "-m", str(out), "-i", str(tmp_path / "in.txt"), "-o", str(vectors)]) == 0
    found = np.load(vectors)
    assert found.shape == (3, D)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("tree", "word"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_cls_token": True}, "first"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "cls"}, "first"),
        ({"pooling_mode": "mean"}, "mean"),
    ],
)
def test_the_pipeline_of_sentence_transformers_is_read(folder: Path, tree: dict[str, Any], word: str) -> None:
    _write_modules(folder, ["Transformer", "Pooling"], tree)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 7}')
    assert known.read(folder).config.of(EmbedConfig) == EmbedConfig(word, normalise=False, max_length=7)
    _write_modules(folder, ["Transformer", "Pooling", "Normalize"], tree)
    assert known.read(folder).config.of(EmbedConfig).normalise


def _write_modules(folder: Path, types: list[str], pooling: dict[str, Any]) -> None:
    modules = [
        {"idx": i, "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(types)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def test_old_names_of_the_norms_are_known(folder: Path) -> None:
    wanted = known.read(folder).model.state_dict()
    tensors = load_file(folder / "model.safetensors")
    old = {
        f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): t
        for name, t in tensors.items()
    }
    save_file(old, folder / "model.safetensors")
    found = known.read(folder).model.state_dict()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_weights_come_from_the_initialisers_of_an_export(folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    wanted = known.read(folder).model.state_dict()
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    nodes, held = [], []
    for number, (name, tensor) in enumerate(sorted(tensors.items())):
        turned = name.startswith("encoder.") and name.endswith(".weight") and tensor.dim() == 2
        if turned:  # as the exporter leaves it: a number for a name, and the node says whose it was
            module = "/" + name.removesuffix(".weight").replace("layer.", "layer_").replace(".", "/")
            module = module.replace("layer_", "layer.")
            nodes.append(
                onnx.helper.make_node("MatMul", ["x", f"onnx::MatMul_{number}"], ["y"], f"{module}/MatMul")
            )
        array = tensor.t().contiguous().numpy() if turned else tensor.numpy()
        held.append(onnx.numpy_helper.from_array(array, f"onnx::MatMul_{number}" if turned else name))
    graph = onnx.helper.make_graph(nodes, "bert", [], [], initializer=held)
    onnx.save(onnx.helper.make_model(graph), folder / "model.onnx")
    found = known.read(folder).model.state_dict()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    held[0].data_location = onnx.TensorProto.EXTERNAL
    graph = onnx.helper.make_graph(nodes, "bert", [], [], initializer=held)
    (folder / "model.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    with pytest.raises(ModelError, match="in another file"):
        read_initialisers(folder / "model.onnx")
    (folder / "model.onnx").write_bytes(b"\x08\x01no onnx")
    with pytest.raises(ModelError, match="cannot be read"):
        read_initialisers(folder / "model.onnx")


BAD = {
    "unknown pooling": ("1_Pooling/config.json", {"pooling_mode_lasttoken": True}, "pooling .* is unknown"),
    "two poolings": (
        "1_Pooling/config.json",
        {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True},
        "pooling .* is unknown",
    ),
    "a dense module": (
        "modules.json",
        [{"type": "a.Dense", "path": "2_Dense"}],
        "module Dense is not supported",
    ),
    "modules that are none": ("modules.json", {"a": 1}, "no list of modules"),
    "a decoder": ("config.json", {"is_decoder": True}, "is_decoder True is not supported"),
    "relative positions": ("config.json", {"position_embedding_type": "relative_key"}, "is not supported"),
    "an activation": ("config.json", {"hidden_act": "mish"}, "activation mish is not supported"),
    "a width": ("config.json", {"hidden_size": 48}, "config.json asks for"),
    "layers": ("config.json", {"num_hidden_layers": 4}, "lacks the tensor encoder.layer.3"),
    "fewer layers": ("config.json", {"num_hidden_layers": 2}, "holds the tensor encoder.layer.2"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_a_folder_that_is_not_read_is_one_line(
    folder: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    import re

    file, change, said = BAD[name]
    _write_modules(folder, ["Transformer", "Pooling"], {"pooling_mode_mean_tokens": True})
    path = folder / file
    held = json.loads(path.read_text())
    path.write_text(json.dumps(held | change if file == "config.json" else change))
    assert command(["import", str(folder), "-o", str(tmp_path / "out")]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.search(said, lines[0])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n", "[PAD]\n[PAD]\n", "\xff"])
def test_a_vocabulary_of_another_kind_is_refused(folder: Path, text: str) -> None:
    (folder / "vocab.txt").write_bytes(text.encode("latin-1"))
    with pytest.raises(ModelError, match=r"vocab\.txt"):
        known.read(folder)


def test_real_vectors_are_those_of_the_published_pipeline(
    real: Any, shared_data: Path, tmp_path: Path
) -> None:
    """transformers' BERT, the mean of the places, length 1."""
    with (shared_data / "stsb" / "stsb-en-test.csv").open(newline="", encoding="utf-8") as file:
        texts = [row[0] for row in csv.reader(file)][::43]
    folder = real("minilm-l6")
    theirs = transformers.AutoModel.from_pretrained(folder).eval()
    given = transformers.AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        hidden = theirs(**given).last_hidden_state
    mask = given["attention_mask"][..., None]
    wanted = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
    loaded = known.read(folder)
    save(tmp_path, config=loaded.config, model=loaded.model, tokenizer=loaded.tokenizer, card="")
    for precision, least in (("fp32", 0.99999), ("auto", 0.99)):
        found = regard.load(tmp_path, precision=precision).embed(texts)
        assert cosines(found, wanted).min() > least


@pytest.mark.parametrize(("name", "published"), [("minilm-l6", 0.8203), ("gte-small", 0.8557)])
def test_real_weights_see_likeness_as_published(
    real: Any, shared_data: Path, tmp_path: Path, name: str, published: float
) -> None:
    """On a part of the test set; benchmarks/sts.py has all of it."""
    with (shared_data / "stsb" / "stsb-en-test.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[::11]
    loaded = known.read(real(name))
    save(tmp_path, config=loaded.config, model=loaded.model, tokenizer=loaded.tokenizer, card="")
    embedder = regard.load(tmp_path)
    found = cosines(embedder.embed([row[0] for row in rows]), embedder.embed([row[1] for row in rows]))
    ranks = [np.argsort(np.argsort(each)) for each in (found, np.array([float(row[2]) for row in rows]))]
    assert abs(np.corrcoef(*ranks)[0, 1] - published) < 0.06
