"""Files of model folders, ours and foreign ones: honest ones, and all that ever filled a memory.

What is large is made by code. Used by `corpus.py`, which lists what each reader gets; beside it: `texts.py`.
"""

import io
import json
import struct
from typing import Any

from fuzz import ground

DIGITS = "9" * 400
MANY_DIGITS = "9" * 4400
DEEP = "[" * 100_000 + "]" * 100_000
ESCAPES = "\x1b]0;owned\x07\x1b[2J"


# Model folders -------------------------------------------------------------------------------------


def _changes(tree: dict[str, Any], *changes: dict[str, Any]) -> list[bytes]:
    """A tree as it is, and with each of the changes; tables are changed inside."""
    trees = [tree]
    for change in changes:
        inside = {key: tree[key] | value for key, value in change.items() if isinstance(value, dict)}
        trees.append(tree | change | inside)
    return [json.dumps(each).encode() for each in trees]


def _raw(trees: list[bytes]) -> list[bytes]:
    """Numbers that are spelled here as strings become what they spell."""
    return [data.replace(b'"#', b"").replace(b'#"', b"") for data in trees]


def configs() -> list[bytes]:
    tree = json.loads((ground.model_folder() / "config.json").read_bytes())
    sizes = {"encoder_layers": 65536, "decoder_layers": 65536, "vocab_size": 4_000_000, "d_ff": 65536}
    sizes |= {"d_model": 65536, "target_vocab_size": 4_000_000}
    large = [{"model": {key: value}} for key, value in sizes.items()]
    long = [{"positions": {"kind": "learned", "max_length": 1_000_000}}]
    long += [{"attention": {"kind": "linformer", "max_length": 1_000_000, "rank": 1_000_000}}]
    numbers = [
        {"model": {"d_model": f"#{DIGITS}#"}},
        {"train": {"lr": f"#{DIGITS}#"}},
        {"decode": {"beam": DIGITS}},
    ]
    odd = [
        {"model": [1]},
        {"model": {"kind": ESCAPES}},
        {"model": {"kind": "x" * 5_000_000}},
        {"decode": None},
    ]
    return [*_raw(_changes(tree, *large, *long, *numbers, *odd)), DEEP.encode(), b"", b"[]", b"\xff"]


def generations() -> list[bytes]:
    tree = json.loads((ground.model_folder() / "generation.json").read_bytes())
    changes = [{"beam": f"#{DIGITS}#"}, {"length_penalty": f"#{DIGITS}#"}, {"beam": f"#{MANY_DIGITS}#"}]
    changes += [{"beam": None}, {"max_ratio": "#NaN#"}, {"x": 1}, {ESCAPES: 1}, {"max_source": 10_000_000}]
    return [*_raw(_changes(tree, *changes)), DEEP.encode(), b"null"]


def tokenizers() -> list[bytes]:
    ours = json.loads((ground.model_folder() / "tokenizer.json").read_bytes())
    model = ours["model"]
    stairs = {f"a{'a' * n}": len(model["vocab"]) + n for n in range(1, 1999)}
    tall = ours | {"model": model | {"vocab": model["vocab"] | stairs}}
    halves = ours | {"model": model | {"vocab": model["vocab"] | {"\ud800": len(model["vocab"])}}}
    merges = ours | {"model": model | {"merges": [["a", "b", "c"]]}}
    trees = (ours, tall, halves, merges, *_pieces_trees(), *_running_trees())
    return [json.dumps(each).encode() for each in trees]


def _running_trees() -> list[dict[str, Any]]:
    """Tokenizers of models that write on."""
    from regard.text.running import RunningText

    tree = json.loads(RunningText.learn(ground.LINES * 9, "subwords").to_json())
    stairs = ["a" * n for n in range(2, 2000)]
    pairs = [[piece[:-1], "a"] for piece in stairs]
    tall = tree | {"pieces": [*tree["pieces"], *stairs], "merges": [*tree["merges"], *pairs]}
    odd = [{"merges": [["a", "nowhere"]]}, {"merges": 5}, {"merges": [["a"]]}, {"pieces": tree["pieces"][:9]}]
    odd += [
        {"pieces": [*tree["pieces"], "\ud800"]},
        {"pieces": [*tree["pieces"], "a" * 1_000_000]},
        {"specials": []},
    ]
    return [tree, tall, *(tree | change for change in odd)]


def _pieces_trees() -> list[dict[str, Any]]:
    """Tokenizers of imported models."""
    side = {"kind": "unigram", "pieces": [[p, -1.0] for p in ground.PIECES], "rewrites": {"ﬁ": "fi"}}
    side |= {"add_prefix": True, "squeeze": True, "byte_fallback": False}
    words = ["</s>", "<unk>", *ground.PIECES, "<pad>"]
    tree = {"kind": "sentencepiece", "specials": {"pad": 16, "begin": 16, "end": 0, "never": [16]}}
    tree |= {
        "unknown": [1, 1],
        "source": side,
        "target": None,
        "vocabulary": words,
        "target_vocabulary": None,
    }
    stairs = [["a" * n, -n] for n in range(1, 2000)]
    sides = [{"rewrites": {"": "x"}}, {"rewrites": {"\ud800": "x"}}, {"rewrites": {"x": "\udfff"}}]
    sides += [
        {"kind": "bpe", "pieces": stairs},
        {"pieces": stairs},
        {"pieces": [["\ud800", 1]]},
        {"pieces": []},
    ]
    sides += [{"kind": "bpe"}, {"pieces": [["a", float("nan")]]}, {"byte_fallback": True}]
    rewrites = {f"k{n}": "v" * 500 for n in range(300)}
    changed = [tree | {"source": side | change} for change in (*sides, {"rewrites": rewrites})]
    odd = [{"unknown": [99, 0]}, {"vocabulary": ["\ud800"] * 17}, {"specials": None}, {"vocabulary": []}]
    return [tree, *changed, *(tree | change for change in odd)]


def _safetensors(tensors: dict[str, Any], facts: object, *, size: int = 0) -> bytes:
    """A file with such a header; the tensors' bytes are zeros."""
    header = json.dumps({"__metadata__": facts, **tensors}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(size)


def weights() -> list[bytes]:
    data = (ground.model_folder() / "model.safetensors").read_bytes()
    wide = {"embedding.weight": {"dtype": "F32", "shape": [2**31, 2**31], "data_offsets": [0, 0]}}
    empty = {"embedding.weight": {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}}
    heads = [struct.pack("<Q", size) + b"{}" for size in (0, 1, 2, 3, 2**32, 2**63, 2**64 - 1)]
    return [
        data,
        data[:1000],
        *heads,
        _safetensors(wide, {}),
        _safetensors(empty, None),
        b"PK\x03\x04",
        b"\x80\x04.",
    ]


def shortlists() -> list[bytes]:
    data = (ground.model_folder() / "shortlist.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, rest = json.loads(data[8 : 8 + size]), data[8 + size :]
    found = [data]
    for facts in (None, 5, [], {}, {"format": None}, header["__metadata__"] | {"tokenizer": None}):
        changed = json.dumps(header | {"__metadata__": facts}).encode()
        found.append(struct.pack("<Q", len(changed)) + changed + rest)
    return [*found, data[: 8 + size] + b"\xff" * len(rest), data[: 8 + size] + bytes(len(rest))]


def metrics() -> list[bytes]:
    line = b'{"step": 1, "loss": 2.5}\n'
    odd = [
        b'{"step": 1, "loss": NaN}\n',
        b'{"step": 1, "loss": 1e999}\n',
        b'{"step": 9' + DIGITS.encode() + b"}\n",
    ]
    odd += [
        f'{{"step": {MANY_DIGITS}}}\n'.encode(),
        f'{{"step": 1, "x": {DEEP}}}\n'.encode(),
        b"\xff\xfe\n",
        b"[]\n",
    ]
    odd += [b'{"step": 1, "loss": "\\ud800"}\n', b'{"step": true}\n', b'{"step": 1, "loss": "\\u001b[2J"}']
    return [line * 3, *(line + each + line for each in odd), line * 20_000]


# Foreign models ------------------------------------------------------------------------------------


def marian_configs() -> list[bytes]:
    tree = ground.marian_config(17)
    changes = [{"activation_function": ["relu"]}, {"bad_words_ids": [[1, 2]]}, {"bad_words_ids": 5}]
    changes += [{"encoder_layers": 65536}, {"vocab_size": 4_000_000}, {"d_model": f"#{DIGITS}#"}]
    changes += [{"dropout": f"#{DIGITS}#"}, {"eos_token_id": []}, {"pad_token_id": f"#{MANY_DIGITS}#"}]
    changes += [{"model_type": ["marian"]}, {"model_type": ESCAPES}, {"model_type": "x" * 5_000_000}]
    changes += [{"max_position_embeddings": 1_000_000}, {"num_beams": "#NaN#"}, {"bad_words_ids": []}]
    changes += [{"tie_word_embeddings": False, "share_encoder_decoder_embeddings": False}]
    return [*_raw(_changes(tree, *changes)), DEEP.encode(), b"null", b""]


def vocabularies() -> list[bytes]:
    words = ["</s>", "<unk>", *ground.PIECES, "<pad>"]
    tree: dict[str, Any] = {word: number for number, word in enumerate(words)}
    changes = [{"</s>": f"#{DIGITS}#"}, {"</s>": True}, {"</s>": 1.0}, {"\ud800": 17}, {"a" * 1_000_000: 17}]
    stairs = {"a" * n: n - 1 for n in range(1, 1400)}
    return [*_raw(_changes(tree, *changes)), json.dumps(stairs).encode(), DEEP.encode(), b"[]"]


def tokenizer_configs() -> list[bytes]:
    trees = [
        {"unk_token": "<unk>"},
        {"unk_token": ["<unk>"]},
        {"unk_token": {"content": ["x"]}},
        {"unk_token": None},
    ]
    trees += [{"unk_token": ESCAPES * 9000}, {"separate_vocabs": True}, {"unk_token": {"content": "<unk>"}}]
    return [*map(str.encode, map(json.dumps, trees)), DEEP.encode(), b"5"]


def marian_weights() -> list[bytes]:
    data = (ground.marian_folder() / "model.safetensors").read_bytes()
    wide = {"model.shared.weight": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 0]}}
    return [data, data[:999], _safetensors(wide, {}), _safetensors({}, None), struct.pack("<Q", 2**63)]


def pickles() -> list[bytes]:
    import safetensors.torch
    import torch

    whole = safetensors.torch.load_file(ground.marian_folder() / "model.safetensors")
    expanded = torch.zeros(1).expand(2_000_000_000)
    trees = [whole, {"model.shared.weight": expanded}, {"a": 1}, [1], {"a": torch.zeros(3).to_sparse()}]
    trees += [
        {"a": torch.zeros(3, dtype=torch.complex64)},
        {"a": torch.empty(2, device="meta")},
        {1: torch.zeros(1)},
    ]
    found = []
    for tree in trees:
        file = io.BytesIO()
        torch.save(tree, file)
        found.append(file.getvalue())
    return [*found, b"", b"\x80\x04\x95", b"cos\nsystem\n(S'true'\ntR.", b"PK\x03\x04"]


def piece_models() -> list[bytes]:
    stairs = ["a" * n for n in range(1, 1400)]  # 1 MB
    shared = charsmap([a + b for a in _LETTERS for b in _LETTERS], [0] * len(_LETTERS) ** 2, b"x" * 1_000_000)
    honest = charsmap(["A", "B", "AB"], [0, 2, 4], b"a\0b\0c")
    return [
        ground.piece_model(list(ground.PIECES), charsmap=honest),
        ground.piece_model(list(ground.PIECES), kind=2),
        ground.piece_model(stairs),
        ground.piece_model(stairs, kind=2),
        ground.piece_model(list(ground.PIECES), charsmap=shared),
        ground.piece_model(["a"] * 7),
        ground.piece_model([""]),
        ground.piece_model(["\0", "a\nb", ESCAPES]),
        b"",
        b"\n" + b"\xff" * 9 + b"\x01",
    ]


_LETTERS = [chr(number) for number in range(1, 127)]


def charsmap(keys: list[str], values: list[int], strings: bytes) -> bytes:
    """A table of rewritings: a double-array trie whose keys have the values, then strings.

    A node has a block of 256 units; nodes that only end a key share one for each value.
    """
    tree: dict[str, Any] = {}
    for key, value in zip(keys, values, strict=True):
        node = tree
        for letter in key:
            node = node.setdefault(letter, {})
        node[""] = value
    units: list[int] = [0]
    ends: dict[int, int] = {}

    def lay(node: dict[str, Any], place: int) -> None:
        base = -(-len(units) // 256) * 256
        if node.keys() == {""}:
            base = ends.setdefault(node[""], base)
        units.extend([0] * (base + 256 - len(units)))
        units[place] |= (place ^ base) << 10 | ("" in node) << 8
        if "" in node:
            units[base] = node[""] | 1 << 31
        for letter in node.keys() - {""}:
            units[base ^ ord(letter)] = ord(letter)
            lay(node[letter], base ^ ord(letter))

    lay(tree, 0)
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + strings + b"\0"


# Encoders ------------------------------------------------------------------------------------------


def bert_configs() -> list[bytes]:
    tree = json.loads((ground.bert_folder() / "config.json").read_bytes())
    sizes = {"vocab_size": 4_000_000, "num_hidden_layers": 65536, "hidden_size": 65536}
    sizes |= {"max_position_embeddings": 10_000_000, "num_attention_heads": 0, "intermediate_size": 10**9}
    odd = {"hidden_act": ["gelu"], "model_type": ESCAPES, "layer_norm_eps": "#NaN#", "dim": None}
    changes = [{key: value} for key, value in (sizes | odd).items()]
    changes += [{"hidden_size": f"#{DIGITS}#"}, {"pad_token_id": f"#{MANY_DIGITS}#"}]
    return [*_raw(_changes(tree, *changes)), DEEP.encode(), b"", b"[]", b"\xff"]


def wordpieces() -> list[bytes]:
    plain = "\n".join(ground.WORDPIECES).encode()
    nested = "\n".join([*ground.WORDPIECES[:5], *("a" * n for n in range(1, 2000))]).encode()
    return [
        plain,
        plain.replace(b"\n", b"\r\n"),
        nested,
        b"\n" * 100_000,
        b"",
        b"\xff",
        plain + b"\n" + b"a" * 2_000_000,
    ]


def bert_tokenizers() -> list[bytes]:
    ids = {piece: number for number, piece in enumerate(ground.WORDPIECES)}
    model = {"type": "WordPiece", "vocab": ids, "continuing_subword_prefix": "##"}
    models: list[Any] = [
        model,
        model | {"vocab": list(ids)},
        model | {"vocab": dict.fromkeys(ids, 0)},
        3,
        None,
    ]
    models += [
        model | {"vocab": ids | {"cat": value}} for value in (-1, 10**400, 2**40, "x", None, 1.5, True)
    ]
    models += [
        model | {"vocab": ids | {"\ud800": 13}},
        model | {"type": ["WordPiece"]},
        model | {"vocab": {}},
    ]
    trees = [{"model": each, "normalizer": {"lowercase": True}} for each in models]
    trees += [
        {"model": model, "normalizer": each} for each in ([], 3, {"lowercase": "x"}, {"strip_accents": []})
    ]
    return [*(json.dumps(each).encode() for each in trees), DEEP.encode(), b""]


def bert_modules() -> list[bytes]:
    tree = json.loads((ground.bert_folder() / "modules.json").read_bytes())
    odd: list[Any] = [tree, tree[:1], tree * 1000, [], {}, 3, [3], [{}], [{"type": 3, "path": 3}]]
    paths = ("../..", "/etc", "/dev", "", "x" * 5000, "\0", "1_Pooling/../1_Pooling", None)
    odd += [[tree[0], tree[1] | {"path": path}] for path in paths]
    return [*(json.dumps(each).encode() for each in odd), DEEP.encode(), b""]
