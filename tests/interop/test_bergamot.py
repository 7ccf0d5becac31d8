"""Firefox's translators: a file written by the test against plain loops, real weights, and damaged files."""

import contextlib
import gzip
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sacrebleu import corpus_bleu

from regard.data.inputs import Tokens
from regard.engine.shortlist import Shortlist
from regard.errors import ModelError
from regard.interop import bergamot, known
from regard.interop.sentencepiece import CONTROL, NORMAL, UNKNOWN, field
from regard.tasks.translation.load import equip, load_translator
from regard.tasks.translation.translator import Translator
from tests.command import call

D, H, F, ENCODER, DECODER = 12, 3, 17, 2, 2
PIECES = ["</s>", "<unk>", "▁", *"abcdefgh", "▁a", "▁b", "ab", "▁abc"]
V = len(PIECES)
BERGAMOT = [  # what Bergamot's own program (its WebAssembly, 0.4.9) makes of lines 1 and 3 of FLORES
    '"Nós agora temos camundongos de 4 meses que não são diabéticos que costumavam ser diabéticos", '
    "acrescentou.",
    "Como alguns outros especialistas, ele está cético sobre se o diabetes pode ser curado, observando que "
    "esses achados não têm relevância para as pessoas que já têm diabetes tipo 1.",
]
SETTINGS = {
    "dec-cell": "ssru",
    "dec-depth": DECODER,
    "dim-emb": D,
    "enc-depth": ENCODER,
    "tied-embeddings-all": "true",
    "transformer-decoder-autoreg": "rnn",
    "transformer-dim-ffn": F,
    "transformer-ffn-activation": "relu",
    "transformer-ffn-depth": 2,
    "transformer-heads": H,
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-preprocess": '""',
    "type": "transformer",
}


def weights(autoreg: str = "rnn") -> dict[str, Any]:
    """A model of Marian's by the names of its tensors."""
    rng = np.random.default_rng(3)
    made: dict[str, Any] = {
        "Wemb": rng.normal(0, 0.4, (V, D)),
        "decoder_ff_logit_out_b": rng.normal(0, 1, (1, V)),
    }

    def matrix(name: str, rows: int, columns: int) -> None:
        made[name] = rng.normal(0, rows**-0.5, (rows, columns))

    def vectors(prefix: str, *names: str, size: int = D) -> None:
        made.update({f"{prefix}_{name}": rng.normal(0, 0.3, (1, size)) + ("scale" in name) for name in names})

    def heads(prefix: str) -> None:
        for letter in "qkvo":
            matrix(f"{prefix}_W{letter}", D, D)
        vectors(prefix, "bq", "bk", "bv", "bo", "Wo_ln_scale", "Wo_ln_bias")

    for side, depth in (("encoder", ENCODER), ("decoder", DECODER)):
        for i in range(1, depth + 1):
            layer = f"{side}_l{i}"
            if side == "encoder" or autoreg == "self-attention":
                heads(f"{layer}_self")
            else:
                matrix(f"{layer}_rnn_W", D, D)
                matrix(f"{layer}_rnn_Wf", D, D)
                vectors(f"{layer}_rnn", "bf", "ffn_ln_scale", "ffn_ln_bias")
            if side == "decoder":
                heads(f"{layer}_context")
            matrix(f"{layer}_ffn_W1", D, F)
            matrix(f"{layer}_ffn_W2", F, D)
            vectors(f"{layer}_ffn", "b1", size=F)
            vectors(f"{layer}_ffn", "b2", "ffn_ln_scale", "ffn_ln_bias")
    return {name: array.astype(np.float32) for name, array in made.items()}


def rounded(made: dict[str, Any]) -> dict[str, Any]:
    """What is left of matrices that were written as bytes."""
    return {
        name: np.round(array * _factor(array)).clip(-127, 127).astype(np.float32) / _factor(array)
        if _is_matrix(name)
        else array
        for name, array in made.items()
    }


def _is_matrix(name: str) -> bool:
    return name == "Wemb" or ("_W" in name and "_ln_" not in name)


def _factor(array: Any) -> Any:
    return np.float32(127 / np.abs(array).max())


def _item(name: str, array: Any, small: bool) -> tuple[str, int, tuple[int, ...], bytes]:
    if not small or not _is_matrix(name):
        return name, 0x404, array.shape, array.tobytes()
    numbers = np.round(array * _factor(array)).clip(-127, 127).astype(np.int8)
    laid = numbers if name == "Wemb" else numbers.T
    return name, 0x4101, array.shape, laid.tobytes() + struct.pack("<f", _factor(array)) + bytes(12)


def write(folder: Path, made: dict[str, Any], *, small: bool = True, **settings: Any) -> Path:
    """A folder as Firefox has them."""
    folder.mkdir(exist_ok=True)
    lines = [f"{key}: {value}" for key, value in (SETTINGS | settings).items()]
    text = "\n".join([*lines, "dim-vocabs:", f"  - {V}", f"  - {V}"]).encode() + b"\0"
    items = [_item(name, array, small) for name, array in made.items()]
    items.append(("Wemb_QuantMultA", 0x404, (1, 1), struct.pack("<f", 9.0)))
    items.append(("special:model.yml", 0x101, (len(text),), text))
    data = struct.pack("<2Q", 1, len(items))
    data += b"".join(struct.pack("<4Q", len(n) + 1, kind, len(s), len(d)) for n, kind, s, d in items)
    data += b"".join(name.encode() + b"\0" for name, *_ in items)
    data += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    data += struct.pack("<Q", 5) + bytes(5) + b"".join(each for *_, each in items)
    (folder / "model.enpt.bin").write_bytes(data)
    kinds = {"</s>": CONTROL, "<unk>": UNKNOWN}
    pieces = (
        field(1, p.encode()) + field(2, -float(i)) + field(3, kinds.get(p, NORMAL))
        for i, p in enumerate(PIECES)
    )
    (folder / "vocab.enpt.spm").write_bytes(b"".join(field(1, piece) for piece in pieces))
    lists = [[0, 3 + i % 4] for i in range(V)]
    offsets = np.cumsum([0, *map(len, lists)]).astype("<u8")
    ids = np.array([number for each in lists for number in each], "<u4")
    head = struct.pack("<6Q", 0xF11A48D5013417F5, 0, 3, 2, len(offsets), len(ids))
    (folder / "lex.50.50.enpt.s2t.bin").write_bytes(head + offsets.tobytes() + ids.tobytes())
    return folder


# What Marian computes, in plain loops over heads and places ------------------------------------------


def _norm(x: Any, made: dict[str, Any], name: str) -> Any:
    mean, spread = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(spread + 1e-6) * made[f"{name}_ln_scale"] + made[f"{name}_ln_bias"]


def _places(count: int) -> Any:
    table = np.zeros((count, D))
    for place in range(count):
        for i in range(D // 2):
            angle = place * math.exp(-i * math.log(10000) / (D / 2 - 1))
            table[place, i], table[place, D // 2 + i] = math.sin(angle), math.cos(angle)
    return table


def _heads(x: Any, memory: Any, made: dict[str, Any], name: str, *, causal: bool = False) -> Any:
    q, k, v = (
        rows @ made[f"{name}_W{letter}"] + made[f"{name}_b{letter}"]
        for rows, letter in zip((x, memory, memory), "qkv", strict=True)
    )
    out = np.zeros_like(x)
    for h in range(H):
        part = slice(h * D // H, (h + 1) * D // H)
        for t in range(len(x)):
            seen = t + 1 if causal else len(memory)
            scores = np.array([q[t, part] @ k[s, part] / math.sqrt(D / H) for s in range(seen)])
            shares = np.exp(scores - scores.max())
            out[t, part] = (shares / shares.sum()) @ v[:seen, part]
    return _norm(x + out @ made[f"{name}_Wo"] + made[f"{name}_bo"], made, f"{name}_Wo")


def _network(x: Any, made: dict[str, Any], name: str) -> Any:
    inner = np.maximum(0, x @ made[f"{name}_W1"] + made[f"{name}_b1"])
    return _norm(x + inner @ made[f"{name}_W2"] + made[f"{name}_b2"], made, f"{name}_ffn")


def _recurrence(x: Any, made: dict[str, Any], name: str) -> Any:
    memory, out = np.zeros(D), np.zeros_like(x)
    for t in range(len(x)):
        kept = 1 / (1 + np.exp(-(x[t] @ made[f"{name}_Wf"] + made[f"{name}_bf"][0])))
        memory = kept * memory + (1 - kept) * (x[t] @ made[f"{name}_W"])
        out[t] = np.maximum(0, memory)
    return _norm(x + out, made, f"{name}_ffn")


def marian(made: dict[str, Any], source: list[int], target: list[int]) -> Any:
    """Logits (T + 1, V) after each beginning of the target."""
    x = made["Wemb"][source] * math.sqrt(D) + _places(len(source))
    for i in range(1, ENCODER + 1):
        x = _network(_heads(x, x, made, f"encoder_l{i}_self"), made, f"encoder_l{i}_ffn")
    y = np.concatenate([np.zeros((1, D)), made["Wemb"][target] * math.sqrt(D)]) + _places(len(target) + 1)
    for i in range(1, DECODER + 1):
        if f"decoder_l{i}_rnn_W" in made:
            y = _recurrence(y, made, f"decoder_l{i}_rnn")
        else:
            y = _heads(y, y, made, f"decoder_l{i}_self", causal=True)
        y = _network(_heads(y, x, made, f"decoder_l{i}_context"), made, f"decoder_l{i}_ffn")
    return y @ made["Wemb"].T + made["decoder_ff_logit_out_b"]


@pytest.mark.parametrize("autoreg", ["rnn", "self-attention"])
@pytest.mark.parametrize("small", [True, False])
def test_logits_are_those_of_plain_loops(tmp_path: Path, autoreg: str, small: bool) -> None:
    made = weights(autoreg)
    folder = write(tmp_path / "m", made, small=small, **{"transformer-decoder-autoreg": autoreg})
    loaded = known.read(folder)
    source, target = [3, 9, 4, 12, 0], [5, 7, 3]
    begin = loaded.tokenizer.begin_id
    with torch.inference_mode():
        inputs = Tokens(torch.tensor([source]))
        found = loaded.model.project(loaded.model(inputs, torch.tensor([[begin, *target]])))[0, :, :V]
    wanted = marian(rounded(made) if small else made, source, target)
    assert np.abs(found.numpy() - wanted).max() < 1e-3


def test_a_folder_becomes_one_of_ours_with_its_shortlist(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", weights())
    done = call("import", folder, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    loaded = known.read(folder)
    short = Shortlist.load(tmp_path / "out", loaded.tokenizer)
    assert short.always.tolist() == [0, 2]
    assert short.of([4, 0]).tolist() == [3, 4]
    assert (loaded.config.text.source, loaded.config.text.target) == ("en", "pt")
    lines = ["abc d", "b", "", "hgfe dcba"]
    readable = load_translator(tmp_path / "out", engine="readable")
    native = load_translator(tmp_path / "out", precision="fp32")
    narrow = load_translator(tmp_path / "out", shortlist=True)
    wanted = readable.translate(lines, beam=3)
    assert native.engine is not None, native.note
    assert native.translate(lines, beam=3) == wanted
    assert len(narrow.translate(lines)) == len(lines)


def test_packed_files_are_unpacked(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", weights())
    plain = known.read(folder)
    for name in ("model.enpt.bin", "lex.50.50.enpt.s2t.bin"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        (folder / name).unlink()
    packed = known.read(folder)
    assert all(map(torch.equal, plain.model.parameters(), packed.model.parameters()))
    assert bergamot.lexicon(folder / "model.enpt.bin.gz", packed.tokenizer) is not None


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"type": "amun"}, "has type: amun; regard import reads transformer"),
        ({"transformer-preprocess": "n"}, "has transformer-preprocess: n"),
        ({"dec-cell": "gru"}, "has dec-cell: gru; regard import reads ssru"),
        ({"enc-depth": 3}, "lacks the tensor encoder_l3_self_Wq"),
        ({"transformer-heads": 5}, r"n_heads \(5\) must divide d_model \(12\)"),
        ({"tied-embeddings-all": "false"}, "has an output matrix of its own"),
    ],
)
def test_what_is_not_read_is_named(tmp_path: Path, settings: dict[str, Any], line: str) -> None:
    with pytest.raises(ModelError, match=line):
        known.read(write(tmp_path / "m", weights(), **settings))


@pytest.mark.parametrize("name", ["model.enpt.bin", "vocab.enpt.spm", "lex.50.50.enpt.s2t.bin"])
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    whole = write(tmp_path / "m", weights())
    data = (whole / name).read_bytes()
    rng = np.random.default_rng(1)
    for cut in (9, 100, len(data) // 2, len(data) - 1, None, None, None):
        other = bytearray(data[:cut])
        if cut is None:
            for place in rng.integers(0, min(len(data), 600), 5):
                other[place] ^= int(rng.integers(1, 256))
        (whole / name).write_bytes(bytes(other))
        with contextlib.suppress(ModelError):  # some damage cannot be seen; any other error is a fault
            bergamot.lexicon(whole / "model.enpt.bin", known.read(whole).tokenizer)
    (whole / name).unlink()
    if name != "lex.50.50.enpt.s2t.bin":
        with pytest.raises(ModelError):
            known.read(whole)


def test_firefox_translates_as_it_does(real: Any, shared_data: Path) -> None:
    """The real weights give what they are for: Portuguese, close to what Mozilla published for this pair."""
    path = real("bergamot-enpt")
    loaded = known.read(path)
    short = bergamot.lexicon(path / "model.enpt.intgemm.alphas.bin", loaded.tokenizer)
    translator = Translator(loaded.model, loaded.tokenizer, loaded.config.decode)
    equip(translator, shortlist=short)
    data = shared_data / "flores" / "en-pt"
    lines = (data / "flores-test.en").read_text(encoding="utf-8").splitlines()[:40]
    theirs = (data / "flores-test.bergamot-tiny.pt").read_text(encoding="utf-8").splitlines()[:40]
    assert corpus_bleu(translator.translate(lines), [theirs]).score > 65
    exact = Translator(loaded.model, loaded.tokenizer, loaded.config.decode)
    equip(exact, precision="fp32")
    assert exact.translate([lines[0], lines[2]]) == BERGAMOT
