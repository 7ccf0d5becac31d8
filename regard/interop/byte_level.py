"""The tokenizers of language models as `tokenizers` keeps them in a tokenizer.json, read and written.

    subwords, bytes   GPT-2's: bytes under printable names, merged by rank inside of GPT-2's cuts
    characters        what has a token of its own, and the bytes of what has none (`byte_fallback`)

Special tokens are added ones: their names in a text become them, which ours never do. Used by `gpt2.py`,
`llama.py` and `decoders.py`.
"""

import json
from pathlib import Path
from typing import Any

from regard.errors import ModelError, shown
from regard.foreign import MOST_JSON, MOST_MERGED, MOST_MERGES, check_strings, read_bytes, read_json
from regard.text.normalise import SPACE_MARK
from regard.text.running import ALPHABET, RunningText, written
from regard.text.tokenizer import Specials, Tokenizer
from regard.text.vocabulary import all_merges

_NAMES = {f"<0x{byte:02X}>": ALPHABET[byte] for byte in range(256)}


# Reading -----------------------------------------------------------------------------------------


def read(folder: Path, tree: dict[str, Any], end: int = 50256) -> RunningText:
    """The tokenizer in a folder: tokenizer.json, or vocab.json and merges.txt; `tree` is its config.json."""
    path = folder / "tokenizer.json"
    added: dict[str, Any] = {}
    silent: list[str] = []
    if path.exists():
        whole = read_json(path, most=MOST_JSON)
        model = whole.get("model")
        if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
            raise ModelError(f"{path} holds no byte-pair vocabulary; give one of GPT-2's kind")
        ids, merges = model.get("vocab"), model.get("merges")
        more = whole.get("added_tokens") or []
        if not isinstance(more, list) or not all(isinstance(each, dict) for each in more):
            raise ModelError(f"{path}: added_tokens must be a list of objects")
        added = {str(each.get("content")): each.get("id") for each in more}
        silent = [str(each.get("content")) for each in more if each.get("special")]
        if model.get("byte_fallback") and isinstance(ids, dict):
            ids = {name if name in silent else _spelled(name): number for name, number in ids.items()}
    else:
        path = folder / "vocab.json"
        ids, merges = read_json(path, most=MOST_JSON), read_merges(folder / "merges.txt")
    return build(ids, merges, added, silent, {"eos_token_id": end} | tree, path)


def build(
    ids: Any, merges: Any, added: dict[str, Any], silent: list[str], tree: dict[str, Any], path: Path
) -> RunningText:
    """The tokenizer of tokens with ids, pairs to merge and tokens beside them, of which some say nothing."""
    if not isinstance(ids, dict) or not isinstance(merges, list) or len(merges) > MOST_MERGES:
        raise ModelError(f"{path} must hold tokens with their ids and at most {MOST_MERGES:,} merges")
    ids = ids | added
    whole = all(type(number) is int for number in ids.values())
    if not whole or sorted(ids.values()) != list(range(len(ids))):
        raise ModelError(f"{path} must give each token an id of its own, from 0 to {len(ids) - 1}")
    pieces = sorted(ids, key=lambda piece: ids[piece])
    check_strings(pieces, "a token")
    pairs = [tuple(each.split(" ")) if isinstance(each, str) else each for each in merges]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ModelError(f"{path}: a merge must be two tokens")
    joined = [(str(left), str(right)) for left, right in pairs]
    if sum(len(left) + len(right) for left, right in joined) > MOST_MERGED:
        raise ModelError(f"{path}: its merges are longer than is read")
    unknown = next((pair for pair in joined if not {*pair, "".join(pair)} <= ids.keys()), None)
    if unknown is not None:
        raise ModelError(f"{path}: the merge of {shown(unknown[0])} and {shown(unknown[1])} has no token")
    end = tree["eos_token_id"]
    if type(end) is not int or not 0 <= end < len(pieces):
        raise ModelError(f"{path}: the end {shown(end)} is not one of {len(pieces)} tokens")

    def told(name: str) -> int:
        number = tree.get(name)
        return number if type(number) is int and 0 <= number < len(pieces) else end

    never = tuple(sorted(ids[piece] for piece in silent if ids[piece] != end))
    return RunningText(pieces, joined, Specials(told("pad_token_id"), told("bos_token_id"), end, never))


def _spelled(name: str) -> str:
    """A token of a vocabulary with `byte_fallback` under the names of a byte-level one."""
    return _NAMES.get(name) or written(name.encode("utf-8", "replace"))


def read_merges(path: Path) -> list[str]:
    """The lines of a merges.txt, without its head."""
    try:
        lines = read_bytes(path, MOST_JSON).decode().splitlines()
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is no UTF-8; copy the folder again") from error
    return [line for line in lines if line and not line.startswith("#version")]


# Writing -----------------------------------------------------------------------------------------


def write(tokenizer: Tokenizer, out: Path) -> None:
    """tokenizer.json and tokenizer_config.json: what AutoTokenizer reads."""
    rust = _sentencepiece(tokenizer) if tokenizer.models else _running(tokenizer)
    (out / "tokenizer.json").write_text(rust.to_str(pretty=True), encoding="utf-8")
    named = {"bos_token": tokenizer.begin_id, "eos_token": tokenizer.end_id, "pad_token": tokenizer.pad_id}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{name: tokenizer.pieces[number] for name, number in named.items()},
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
    }
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    (out / "tokenizer_config.json").write_text(text, encoding="utf-8")


def _special(tokenizer: Tokenizer) -> list[str]:
    """The names of what stands for no text."""
    specials = tokenizer.specials
    silent = {*specials.never, specials.begin, specials.end, specials.pad}
    return [tokenizer.pieces[number] for number in sorted(silent)]


def _running(tokenizer: Any) -> Any:
    from tokenizers import AddedToken, decoders, pre_tokenizers
    from tokenizers import Tokenizer as RustTokenizer
    from tokenizers.models import BPE

    special = _special(tokenizer)
    if tokenizer.units == "characters":
        faces = {piece: piece if piece in special else _face(piece) for piece in tokenizer.pieces}
        ids = {faces[piece]: number for number, piece in enumerate(tokenizer.pieces)}
        rust = RustTokenizer(BPE(ids, [], byte_fallback=True))
        rust.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    else:
        ids = {piece: number for number, piece in enumerate(tokenizer.pieces)}
        rust = RustTokenizer(BPE(ids, tokenizer.merges))
        rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        rust.decoder = decoders.ByteLevel()
    rust.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    return rust


def _face(piece: str) -> str:
    """A character's own name; the name of a byte that is none by itself."""
    raw = bytes(ALPHABET.index(letter) for letter in piece)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return f"<0x{raw[0]:02X}>"


def _sentencepiece(tokenizer: Tokenizer) -> Any:
    """A SentencePiece model that merges by score, with bytes for what has no piece: Llama's."""
    from tokenizers import AddedToken, decoders, normalizers
    from tokenizers import Tokenizer as RustTokenizer
    from tokenizers.models import BPE
    from tokenizers.processors import TemplateProcessing

    model = tokenizer.models[0]
    if model.kind != "bpe" or not model.byte_fallback or model.rewrites or model.squeeze:
        raise ModelError("only a SentencePiece model of Llama's kind (bpe, spelled in bytes) can be exported")
    ids = {piece: number for number, piece in enumerate(tokenizer.pieces)}
    ranked = [piece for piece, _ in sorted(model.pieces, key=lambda each: -each[1])]
    unknown = tokenizer.pieces[tokenizer.unknown_id]
    merges = all_merges(ranked, 0)
    rust = RustTokenizer(BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    rust.normalizer = normalizers.Sequence(
        [normalizers.Prepend(SPACE_MARK), normalizers.Replace(" ", SPACE_MARK)]
    )
    rust.decoder = decoders.Sequence(
        [
            decoders.Replace(SPACE_MARK, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    begin = tokenizer.pieces[tokenizer.begin_id]
    rust.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in _special(tokenizer)]
    )
    rust.post_processor = TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, tokenizer.begin_id)]
    )
    return rust
