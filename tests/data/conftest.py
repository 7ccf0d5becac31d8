"""A tokenizer small enough to see through, and a quick way to write files of pairs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from regard.data.corpus import Corpus

FIRST_BYTE = 4  # after pad, begin, end and mask


class ByteEncoder:
    """One token a byte of UTF-8; counts the texts it is given."""

    def __init__(self, name: str = "bytes", vocab_size: int = 260, target_vocab_size: int = 0) -> None:
        self.name, self.vocab_size, self.texts, self.longest = name, vocab_size, 0, 0
        self.target_vocab_size = target_vocab_size or vocab_size

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        return self.encode_batch(texts)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        self.texts += len(texts)
        self.longest = max(self.longest, *map(len, texts))
        return [[FIRST_BYTE + byte for byte in text.strip(" ").encode()] for text in texts]

    def to_json(self) -> str:
        return f'{{"name": "{self.name}"}}'


@pytest.fixture
def encoder() -> ByteEncoder:
    return ByteEncoder()


@pytest.fixture
def new_encoder() -> type[ByteEncoder]:
    return ByteEncoder


Write = Callable[..., Corpus]


@pytest.fixture
def write_pairs(tmp_path: Path) -> Write:
    """Writes pairs into two files, `NAME.src` and `NAME.tgt`, and gives their corpus."""

    def write(pairs: Sequence[tuple[str, str]], name: str = "text") -> Corpus:
        sides = [tmp_path / f"{name}.src", tmp_path / f"{name}.tgt"]
        for path, lines in zip(sides, zip(*pairs, strict=True), strict=True):
            path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        return Corpus.of(sides)

    return write
