"""Sentence vectors against people: STS-B, whose pairs of sentences were given a similarity of 0 to 5.

Real weights are imported, every sentence becomes a vector, and the cosines are put beside the people's
numbers by Spearman's rank correlation, in fp32 and in int8. The published figure of each model stands beside
ours, and the least cosine of our vectors with those of the published pipeline: transformers, or onnxruntime
where a folder holds a graph, with a mean over the places. No time is measured.

    python benchmarks/sts.py ../shared/data/stsb --model minilm-l6 FOLDER --model gte-small FOLDER
"""

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from report import write_report
from tokenizers import Tokenizer

import regard
from regard.interop import known
from regard.models.folder import save
from regard.tasks.embed.embedder import cosines

BATCH, COMPARED, LONGEST = 16, 500, 256  # texts at a time, texts beside the published ones, tokens of one
PUBLISHED = {"minilm-l6": 0.8203, "gte-small": 0.8557}


def ranks(values: np.ndarray) -> np.ndarray:
    """1, 2, 3, ...; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2)[which]


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """The correlation of the ranks."""
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def pairs(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Two sentences and a number, row by row."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return [row[0] for row in rows], [row[1] for row in rows], np.array([float(row[2]) for row in rows])


def hidden_states(folder: Path, ids: np.ndarray, mask: np.ndarray, held: dict[str, Any]) -> np.ndarray:
    """What the published program makes of ids (B, S): (B, S, D); `held` keeps it between calls."""
    graph = folder / "onnx" / "model.onnx"
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    if graph.exists():
        import onnxruntime

        if not held:
            held["it"] = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
        out: np.ndarray = held["it"].run(None, given)[0]
        return out
    import torch
    from transformers import AutoModel

    if not held:
        held["it"] = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        states: np.ndarray = held["it"](
            **{k: torch.from_numpy(v) for k, v in given.items()}
        ).last_hidden_state.numpy()
    return states


def published(folder: Path, texts: list[str]) -> Iterator[np.ndarray]:
    """Their vectors, by their tokenizer and program, pooled by their mean."""
    tokenizer, held = Tokenizer.from_file(str(folder / "tokenizer.json")), {}
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()
    for start in range(0, len(texts), BATCH):
        rows = tokenizer.encode_batch(texts[start : start + BATCH])
        ids, mask = (np.array([getattr(row, name) for row in rows]) for name in ("ids", "attention_mask"))
        states = hidden_states(folder, ids, mask, held)
        yield from (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)


def correlations(folder: Path, data: Path, precision: str, theirs: np.ndarray) -> list[float]:
    """Of a foreign folder on dev and test, through a model folder of ours; and the least cosine to theirs."""
    found = []
    with tempfile.TemporaryDirectory() as place:
        loaded = known.read(folder)
        save(Path(place), config=loaded.config, model=loaded.model, tokenizer=loaded.tokenizer, card="")
        embedder = regard.load(place, precision=precision)
        for part in ("dev", "test"):
            one, other, wanted = pairs(data / f"stsb-en-{part}.csv")
            vectors = embedder.embed(one)
            found.append(spearman(cosines(vectors, embedder.embed(other)), wanted))
    return [*found, float(cosines(vectors[: len(theirs)], theirs).min())]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--model", nargs=2, action="append", required=True, dest="models", metavar=("NAME", "FOLDER")
    )
    options = parser.parse_args()
    rows = []
    texts = pairs(options.data / "stsb-en-test.csv")[0][:COMPARED]
    for name, folder in options.models:
        theirs = np.stack(list(published(Path(folder), texts))).astype(np.float32)
        for precision in ("fp32", "int8"):
            dev, test, least = correlations(Path(folder), options.data, precision, theirs)
            told = f"{PUBLISHED[name]:.4f}" if name in PUBLISHED else ""
            rows.append([name, precision, f"{dev:.4f}", f"{test:.4f}", told, f"{least:.6f}"])
            print(*rows[-1], file=sys.stderr, flush=True)
    write_report(
        "sts",
        "Similarity of sentences",
        [
            "model",
            "precision",
            "STS-B dev, Spearman",
            "STS-B test, Spearman",
            "published (test)",
            "least cosine to the published pipeline",
        ],
        rows,
        "English STS-B, 1,500 and 1,379 pairs; cosine of the two vectors, by the native engine. The last "
        f"column is of the first {COMPARED} sentences of the test set.",
    )


if __name__ == "__main__":
    main()
