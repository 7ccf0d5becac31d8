"""Texts to vectors: the encoder's places pooled into one, of length 1 where that is asked for.

    embedder = regard.load("runs/minilm")
    vectors = embedder.embed(["a cat", "a dog"])      (2, D)

Before this file: `regard.tasks.encoder.reader`; after it: `regard embed`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from regard.data.lines import decode, read_lines
from regard.errors import DataError
from regard.measure.score import Score
from regard.tasks.encoder import EmbedConfig
from regard.tasks.encoder.reader import Reader, Reads
from regard.tasks.task import Judge
from regard.text.tokenizer import Tokenizer

Vectors = npt.NDArray[np.float32]
MANY = 4096  # vectors that are compared at a time


class Embedder(Reads):
    """An encoder and how its places become a vector; `regard.load` makes one from a folder."""

    task = "embed"

    def __init__(
        self, body: Any, tokenizer: Tokenizer, how: EmbedConfig | None = None, *, refuses: bool = False
    ) -> None:
        self.how = how or EmbedConfig()
        self.reader = Reader(body.eval(), tokenizer, max_length=self.how.max_length, refuses=refuses)

    def _body(self) -> Any:
        return self.reader.body

    @classmethod
    def of(cls, reader: Reader, how: EmbedConfig, *, refuses: bool = False) -> "Embedder":
        """Another one with the model of a reader, and with its engine."""
        made = cls(reader.body, reader.tokenizer, how, refuses=refuses)
        made.reader.engine, made.reader.note = reader.engine, reader.note
        return made

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return self.reader.width

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text (N, D), in their order."""
        return self.of_rows(self.reader.rows(texts))

    def stream(self, texts: Iterable[str]) -> Iterator[Vectors]:
        """The vectors (D,) of texts that may have no end."""
        return self.reader.stream(texts, self.of_rows)

    def of_rows(self, rows: Sequence[Sequence[int]], *, threads: int = 0) -> Vectors:
        """The vectors (N, D) of texts that are ids already, begin and end with them."""
        pooled = self.reader.pooled(rows, self.how.pooling, threads=threads)
        found: Vectors = (F.normalize(pooled, dim=-1) if self.how.normalise else pooled).cpu().numpy()
        return found


def cosines(one: Vectors, other: Vectors) -> Vectors:
    """The cosine of each row with the row beside it: (N, D), (N, D) -> (N,)."""
    return np.asarray(F.cosine_similarity(torch.from_numpy(one), torch.from_numpy(other)).numpy())


def nearest(vectors: Vectors, among: Vectors, count: int) -> Iterator[list[tuple[int, float]]]:
    """The `count` rows of `among` with the largest cosine to each vector: numbers and cosines, best first."""
    held = F.normalize(torch.from_numpy(among), dim=-1)
    for start in range(0, len(vectors), MANY):
        part = F.normalize(torch.from_numpy(vectors[start : start + MANY]), dim=-1)
        best = (part @ held.t()).topk(min(count, len(among)), dim=-1)
        for values, rows in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            yield list(zip(rows, values, strict=True))


def judge(embedder: Embedder, files: Sequence[Path], limit: int) -> Judge:
    """How near the vectors of the first `limit` lines stay to those that are made with all heads."""
    lines = list(
        islice((decode(raw, path, n) for path in files for n, raw in enumerate(read_lines(path), 1)), limit)
    )
    if not lines:
        raise DataError(f"{', '.join(map(str, files))}: there is no line to measure on")
    whole = embedder.embed(lines)

    def measure() -> dict[str, Score]:
        mean = float(cosines(whole, embedder.embed(lines)).mean())
        return {"cosine": Score(mean, digits=4, count=len(lines))}

    return Judge(embedder.reader.body, measure, f"{len(lines):,} lines")
