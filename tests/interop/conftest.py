"""Models of several shapes, lines of several languages, and Marian folders as transformers writes them."""

import functools
import itertools
import json
import unicodedata
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece as spm
import torch

from regard.config import Config, merge
from regard.models import build
from regard.models.folder import Loaded
from regard.tasks.translation.translator import Translation
from regard.text.phrasebook import phrases
from regard.text.tokenizer import Tokenizer

SHAPE = {
    "model.d_model": 30,
    "model.n_heads": 3,
    "model.d_ff": 37,
    "model.encoder_layers": 1,
    "model.decoder_layers": 2,
    "model.dropout": 0.0,
    "positions.max_length": 128,
    "decode.max_source": 100,
    "decode.max_extra": 5,
    "decode.max_ratio": 1.0,
}
HOSTILE = [
    *("", " ", "  a   b ", "a\tb", "x▁y", "▁", "▁▁ a▁", "\u00a0x\u2028y", "\u200b", "ﬁ Å ½", "a\u0323\u0307"),
    *(
        "<0x41> <mask>",
        "😀 👩‍👩‍👧 🇩🇪",
        "日本語のテキスト。",
        "한국어 각각",
        "각",
        "Việt Nam",
        "ß ẞ İ ı",
        "\x01\x7f",
    ),
    *(
        "﷽ العربية",
        "नमस्ते",
        "ñ" * 100,
        "1,234.5 % §",
        ">>fra<< hello",
        ">> no code",
        "\ufeffbom",
        "a\u0301\u0301",
    ),
]


@pytest.fixture(scope="session")
def english() -> list[str]:
    return [source for source, _ in book("de", 997)]


@pytest.fixture(scope="session")
def german() -> list[str]:
    return [target for _, target in book("de", 997)]


@functools.cache
def book(to: str, count: int) -> list[tuple[str, str]]:
    """Long pairs of the embedded phrasebook, which is wherever the package is."""
    return list(itertools.islice((pair for pair in phrases(to) if len(pair[0]) > 40), count))


@pytest.fixture(scope="session")
def many_lines(english: list[str], german: list[str]) -> list[str]:
    """Four languages, composed and decomposed, and lines that no text has."""
    others = [[target for _, target in book(code, 300)] for code in ("fr", "cs")]
    lines = [*english[:300], *german[:300], *others[0], *others[1]]
    return [*lines, *(unicodedata.normalize("NFD", line) for line in lines[::5]), *HOSTILE]


@pytest.fixture(scope="session")
def tokenizer(english: list[str], german: list[str]) -> Tokenizer:
    return Tokenizer.train([*english, *german], 701)


@pytest.fixture(scope="session")
def make(tokenizer: Tokenizer) -> Callable[..., Loaded]:
    """A model of random weights, far enough from the flat beginning for clear choices."""

    def made(**over: object) -> Loaded:
        settings = SHAPE | {"model.vocab_size": tokenizer.vocab_size}
        settings |= {key.replace("__", "."): value for key, value in over.items()}
        config = merge(Config(), settings)
        torch.manual_seed(3)
        model = build(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.3).add_(0.1 * torch.randn_like(parameter))
        return Loaded(config, model, tokenizer)

    return made


@pytest.fixture(scope="session")
def agree() -> Callable[[list[Translation], list[Translation]], None]:
    """The same outputs with the same scores; two that are equally good may change places."""

    def compare(ours: list[Translation], theirs: list[Translation]) -> None:
        for mine, other in zip(ours, theirs, strict=True):
            one, two = mine.n_best or (mine,), other.n_best or (other,)
            scores = [each.score for each in one]
            assert scores == pytest.approx([each.score for each in two], rel=1e-4, abs=1e-5)
            assert [each.truncated for each in one] == [each.truncated for each in two]
            if all(abs(a - b) > 1e-5 for i, a in enumerate(scores) for b in scores[:i]):
                assert [each.ids for each in one] == [each.ids for each in two]

    return compare


@pytest.fixture(scope="session")
def marian_files(tmp_path_factory: pytest.TempPathFactory, english: list[str], german: list[str]) -> Path:
    """source.spm, target.spm and vocab.json, laid out as those of opus-mt: </s>, <unk>, pieces, <pad>."""
    folder = tmp_path_factory.mktemp("pieces")
    pieces: list[str] = []
    for side, lines, size in (("source", english, 397), ("target", german, 401)):
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=str(folder / side), vocab_size=size, minloglevel=3
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        model = spm.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        pieces += [model.id_to_piece(number) for number in range(3, model.get_piece_size())]
    words = ["</s>", "<unk>", *dict.fromkeys(pieces), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    return folder


@pytest.fixture(autouse=True)
def _quiet_transformers() -> Any:
    """MarianTokenizer recommends a package that it does not use here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*sacremoses")
        yield


@pytest.fixture
def with_settings(tmp_path: Path) -> Callable[..., Path]:
    """`with_settings(folder, n_layer=4)`: a copy of a folder whose config.json says something else."""

    def changed(folder: Path, **change: Any) -> Path:
        for file in folder.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        tree = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (tmp_path / "config.json").write_text(json.dumps(tree | change), encoding="utf-8")
        return tmp_path

    return changed
