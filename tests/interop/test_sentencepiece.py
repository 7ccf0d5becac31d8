"""SentencePiece files against the package: what is read cuts as it does, what is written is cut as we do."""

import contextlib
import random
from pathlib import Path

import pytest
import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as pb2

from regard.errors import ModelError
from regard.interop import sentencepiece
from regard.text.normalise import normalise
from regard.text.pieces import PieceModel
from regard.text.tokenizer import Tokenizer


def trained(folder: Path, lines: list[str], **options: object) -> Path:
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(folder / "m"),
        **({"vocab_size": 797, "minloglevel": 3} | options),
    )
    return folder / "m.model"


def spelled(model: PieceModel, pieces: list[str]) -> list[str]:
    """Pieces as the package gives them: what is unknown in bytes, where the model has them."""
    known = {piece for piece, _ in model.pieces}
    return [
        part
        for piece in pieces
        for part in (
            [f"<0x{byte:02X}>" for byte in piece.encode()]
            if model.byte_fallback and piece not in known
            else [piece]
        )
    ]


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc_cf", "identity"])
@pytest.mark.parametrize(("kind", "fallback"), [("unigram", False), ("unigram", True), ("bpe", False)])
def test_it_cuts_as_the_package_does(
    tmp_path: Path, many_lines: list[str], kind: str, fallback: bool, rule: str
) -> None:
    options = {"model_type": kind, "byte_fallback": fallback, "normalization_rule_name": rule}
    path = trained(tmp_path, many_lines[:600], **options)
    theirs, ours = spm.SentencePieceProcessor(model_file=str(path)), sentencepiece.read(path)
    for line, pieces in zip(many_lines, ours.cut(many_lines), strict=True):
        assert spelled(ours, pieces) == theirs.encode(line, out_type=str), line


@pytest.mark.parametrize("flag", ["add_dummy_prefix", "remove_extra_whitespaces"])
def test_the_treatment_of_spaces_is_the_models_own(tmp_path: Path, many_lines: list[str], flag: str) -> None:
    path = trained(tmp_path, many_lines[:300], **{flag: False, "hard_vocab_limit": False})
    theirs, ours = spm.SentencePieceProcessor(model_file=str(path)), sentencepiece.read(path)
    for line, pieces in zip(many_lines, ours.cut(many_lines), strict=True):
        assert pieces == theirs.encode(line, out_type=str), line


def test_our_tokenizer_as_a_file_cuts_as_ours(tokenizer: Tokenizer, many_lines: list[str]) -> None:
    theirs = spm.SentencePieceProcessor(model_proto=sentencepiece.write(tokenizer, 0))
    stray = [line for line in many_lines if normalise(line) != normalise(f"x{line}x")[1:-1].strip(" ")]
    lines = [line for line in many_lines if line not in stray]
    assert len(lines) > 0.99 * len(many_lines)
    for line in lines:
        assert theirs.encode(line) == tokenizer.encode(line), line
        assert theirs.decode(tokenizer.encode(line)) == tokenizer.decode(tokenizer.encode(line))


def test_the_file_is_what_the_package_calls_valid(tokenizer: Tokenizer) -> None:
    proto = pb2.ModelProto.FromString(sentencepiece.write(tokenizer, 0))
    assert [piece.piece for piece in proto.pieces] == list(tokenizer.pieces)
    assert proto.trainer_spec.model_type == pb2.TrainerSpec.BPE
    assert proto.trainer_spec.byte_fallback


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model_type": "word"}, "kind 3"),
        ({"user_defined_symbols": ["<x>"]}, "user-defined symbol <x>"),
        ({"treat_whitespace_as_suffix": True}, "spaces"),
    ],
)
def test_what_is_not_supported_is_named(
    tmp_path: Path, many_lines: list[str], options: dict[str, object], said: str
) -> None:
    path = trained(tmp_path, many_lines[:300], **({"hard_vocab_limit": False} | options))
    with pytest.raises(ModelError, match=said):
        sentencepiece.read(path)


def test_a_table_that_is_cut_is_refused_and_noise_ends() -> None:
    with pytest.raises(ValueError, match="4294967295 bytes and has 8"):
        sentencepiece.read_charsmap(b"\xff" * 12)
    for seed in range(30):
        noise = random.Random(seed).randbytes(4096)
        with contextlib.suppress(ValueError):  # or it holds nothing; it never hangs
            sentencepiece.read_charsmap(b"\x00\x08\x00\x00" + noise)


def test_strings_that_share_their_ends_are_bounded(tmp_path: Path) -> None:
    """Each of three thousand rewritings would be a part of one string of two million bytes."""
    table = sentencepiece._charsmap({chr(0x4E00 + i): chr(0x5E00 + i) * 2 for i in range(3000)})
    end = 4 + int.from_bytes(table[:4], "little")
    rules = sentencepiece.field(3, sentencepiece.field(2, table[:end] + b"x" * 2_000_000 + b"\0"))
    (tmp_path / "evil.spm").write_bytes(sentencepiece.field(1, sentencepiece.field(1, b"a")) + rules)
    with pytest.raises(ModelError, match="very long string"):
        sentencepiece.read(tmp_path / "evil.spm")


def test_a_file_of_empty_parts_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "evil.spm").write_bytes(sentencepiece.field(1, b"") * 700_000)
    with pytest.raises(ModelError, match="more than 600,000 parts"):
        sentencepiece.read(tmp_path / "evil.spm")
