"""Document generation: docstrings of the standard library from its source, long against cut at 512 tokens.

All models are the preset `document` with the same vocabulary and the same documents. One reads up to 16,384
tokens, the others the first 512: one for as many passes, one (`--same-time`) for as many minutes, which are
more passes. Lead baselines copy a line. ROUGE-L on modules that training never saw.

    python benchmarks/documents.py --same-time
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from report import write_report

from regard import Tokenizer, Translator, load, train
from regard.cli.documents import PRESET, SETTINGS, write_documents
from regard.data.corpus import Corpus
from regard.measure.rouge import rouge
from regard.text.docstrings import Document, documents
from regard.text.documents import unfold

CUT = 512  # tokens, the end counted
WHOLE = "model, whole documents"


class Trained(NamedTuple):
    translator: Translator
    steps: int
    seconds: float


def cut(text: str, tokenizer: Tokenizer) -> str:
    """The first tokens of a source."""
    return tokenizer.decode(tokenizer.encode(text)[: CUT - 1])


def cut_corpus(corpus: Corpus, tokenizer: Tokenizer, path: Path) -> Corpus:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{cut(pair.src, tokenizer)}\t{pair.tgt}\n" for pair in corpus.pairs())
    return Corpus(tables=(path,))


def trained(corpora: dict[str, Corpus], out: Path, settings: dict[str, Any], **shared: Any) -> Trained:
    result = train(
        corpora["train"], out=out, valid=corpora["valid"], preset=PRESET, overrides=settings, **shared
    )
    return Trained(load(out), result.steps, result.seconds)


def measure(options: argparse.Namespace, folder: Path) -> list[list[str]]:
    """The rows of the table."""
    settings = SETTINGS | {"train.max_epochs": options.epochs, "train.seed": options.seed}
    corpora = write_documents(options.folder, folder / "data")
    long = trained(corpora, folder / "long", settings)
    tokenizer = long.translator.tokenizer
    ready = folder / "ready"
    (ready / "store").mkdir(parents=True)
    (ready / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    short_corpora = {
        name: cut_corpus(corpus, tokenizer, folder / f"{name}.tsv") for name, corpus in corpora.items()
    }
    passes, minutes = f"model, first {CUT} tokens, same passes", f"model, first {CUT} tokens, same time"
    runs = {passes: trained(short_corpora, folder / "passes", settings, prepared=ready)}
    if options.same_time:
        bound = {"train.max_epochs": 0, "train.minutes": long.seconds / 60}
        runs[minutes] = trained(short_corpora, folder / "minutes", settings | bound, prepared=ready)
    test = [each for each in documents(options.folder) if each.split == "test"]
    lengths = [len(ids) + 1 for ids in tokenizer.encode_batch([each.source for each in test])]
    kept = [(each, length) for each, length in zip(test, lengths, strict=True) if length <= 16384]
    sources = [each.source for each, _ in kept]
    texts = {
        "lead: first line of the body": [each.lead for each, _ in kept],
        "lead: first line of the source": [unfold(source).partition("\n")[0] for source in sources],
        **{
            name: run.translator.translate([cut(text, tokenizer) for text in sources])
            for name, run in runs.items()
        },
        WHOLE: long.translator.translate(sources),
    }
    runs[WHOLE] = long
    return [_row(name, found, kept, runs.get(name)) for name, found in texts.items()]


def _row(name: str, found: list[str], kept: list[tuple[Document, int]], run: Trained | None) -> list[str]:
    groups = [
        [True for _ in kept],
        [length > CUT for _, length in kept],
        *([each.kind == kind for each, _ in kept] for kind in ("function", "class", "module")),
    ]
    scores = []
    for chosen in groups:
        pairs = [
            (text, each.summary) for text, (each, _), own in zip(found, kept, chosen, strict=True) if own
        ]
        score = rouge([text for text, _ in pairs], [summary for _, summary in pairs]).rouge_l
        scores.append(f"{score:.1f} ({len(pairs)})")
    spent = [f"{run.steps:,}", f"{run.seconds:.0f}"] if run else ["", ""]
    return [name, *scores, *spent]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3, help="passes over the documents")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--same-time", action="store_true", help="a cut model of as many minutes too")
    parser.add_argument("--folder", type=Path, help="Python files instead of the standard library")
    parser.add_argument("--name", default="documents")
    options = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(options, Path(folder))
    write_report(
        options.name,
        "Document generation: ROUGE-L on docstrings of the standard library",
        ["", "all", f"over {CUT} tokens", "functions", "classes", "modules", "steps", "seconds of training"],
        rows,
        f"F1, the number of documents in brackets; seed {options.seed}, {options.epochs} passes; "
        f"{time.perf_counter() - start:.0f} s in all.",
    )


if __name__ == "__main__":
    main()
