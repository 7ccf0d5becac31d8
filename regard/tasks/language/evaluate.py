"""How good a language model is on a text: `regard evaluate`. Memory does not grow with the text."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.data.rows import IDS, cut_rows, open_tokens
from regard.data.texts import Texts
from regard.errors import UsageError
from regard.measure.score import Score
from regard.models.folder import Loaded, load_folder
from regard.tasks.language.scoring import batches, nats, scores, spelled
from regard.tasks.task import Evaluation, Judge


def evaluation(folder: Path, files: Sequence[Path], *, device: Any = "cpu", **others: Any) -> Evaluation:
    """Loss, bits per byte and perplexity of the documents in files and folders."""
    if others:
        raise UsageError(f"--{next(iter(others)).replace('_', '-')} means nothing to a language model")
    texts = Texts(tuple(files))
    _ = texts.documents  # what is wrong with them is said before the model is loaded
    loaded = load_folder(folder, device=device)
    model, tokenizer = loaded.model.eval(), loaded.tokenizer
    width = _width(loaded)
    with tempfile.TemporaryDirectory(prefix="regard-") as place, torch.inference_mode():
        held = open_tokens(texts.documents, tokenizer, Path(place) / "tokens")
        ids = held[IDS].values
        rows = cut_rows(len(ids), width)
        cost = sum(nats(model, ids, spans, tokenizer, torch.device(device)) for spans in batches(rows))
    found = scores(cost, held.report["tokens"], held.report["bytes"])
    lines = [
        f"loss           {found['loss'].value:8.4f}   nats a token, in rows of {width}",
        f"bits per byte  {found['bits_per_byte'].value:8.4f}   of {held.report['bytes']:,} bytes",
        f"perplexity     {found['perplexity'].value:8.2f}   over {held.report['tokens']:,} tokens",
    ]
    return Evaluation(found, {"tokens": held.report["tokens"]}, lines)


def _width(loaded: Loaded) -> int:
    """Tokens of a row: what the model was trained to see at once, as far as its positions go."""
    longest: int | None = loaded.model.max_length  # type: ignore[assignment]
    return min(loaded.config.data.context, longest or loaded.config.data.context)


def judge(folder: Path, files: Sequence[Path], *, limit: int = 200, batch_size: int = 0) -> Judge:
    """A language model and its scores on the first `limit` rows of a text, bits per byte first."""
    documents = Texts(tuple(files)).documents
    loaded = load_folder(folder)
    model, tokenizer = loaded.model.eval(), loaded.tokenizer
    width = _width(loaded)
    with tempfile.TemporaryDirectory(prefix="regard-") as place:
        held = open_tokens(documents, tokenizer, Path(place) / "tokens")[IDS].values
        ids = np.array(held[: limit * width])
    rows = cut_rows(len(ids), width)
    size = spelled(ids.tolist(), tokenizer)

    def measure() -> dict[str, Score]:
        with torch.inference_mode():
            cost = sum(nats(model, ids, spans, tokenizer, torch.device("cpu")) for spans in batches(rows))
        found = scores(cost, len(ids), size)
        return {name: found[name] for name in ("bits_per_byte", "loss", "perplexity")}

    return Judge(model, measure, f"{len(rows):,} rows of {width} tokens")
