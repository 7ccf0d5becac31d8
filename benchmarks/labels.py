"""Labels of texts and of words: SST-2 and universal part-of-speech tags, from nothing and on an encoder.

Every run has the same minutes and the settings of `regard train` as they are; the test set is read once.
Beside it, for texts: logistic regression over TF-IDF of words and pairs of them, its strength chosen on the
dev set. A run whose folder is finished is not trained again.

    python benchmarks/labels.py ../shared/data runs/labels --base runs/minilm --minutes 10
"""

import argparse
import json
import sys
from pathlib import Path

from report import write_report

from regard.tasks.labels.examples import read_texts
from regard.tasks.task import task_named
from regard.training.run import Asked, train

FILES = {
    "classify": [f"sst2/{part}.tsv" for part in ("train", "dev", "test")],
    "tag": [f"ud-ewt/en_ewt-{part}.conllu.gz" for part in ("train", "dev", "test")],
}


def trained(task_name: str, data: Path, folder: Path, base: Path | None, minutes: float) -> list[str]:
    """One run and its scores, as a row."""
    task = task_named(task_name)
    files = [data / file for file in FILES[task_name]]
    if not (folder / "model.safetensors").exists():
        overrides = {"train.minutes": minutes}
        train(task, task.read(files[:1], files[1:2]), Asked(folder, overrides=overrides, start_from=base))
    last = json.loads((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    dev, test = (task.evaluate(folder, [file]).scores for file in files[1:])
    return [
        task_name,
        f"on {base.name}" if base else "from nothing",
        f"{last['seconds'] / 60:.1f} min, {last['step']:,} steps, {last['epoch']:.1f} epochs",
        *(f"{100 * scores['accuracy'].value:.2f}" for scores in (dev, test)),
        f"{100 * test['macro_f1'].value:.2f}",
    ]


def tf_idf(data: Path) -> list[str]:
    """What logistic regression finds, as a row."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    parts = [list(read_texts(data / file)) for file in FILES["classify"]]
    vectors = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\S+", sublinear_tf=True)
    texts = [[example.words[0] for example in part] for part in parts]
    labels = [[example.labels[0] for example in part] for part in parts]
    x = [vectors.fit_transform(texts[0]), *(vectors.transform(each) for each in texts[1:])]
    tried = [
        LogisticRegression(C=strength, max_iter=1000).fit(x[0], labels[0]) for strength in (1, 3, 10, 30)
    ]
    best = max(tried, key=lambda each: each.score(x[1], labels[1]))
    dev, test = (100 * best.score(x[part], labels[part]) for part in (1, 2))
    f1 = 100 * f1_score(labels[2], best.predict(x[2]), average="macro")
    how = f"C={best.C:g}"
    return ["classify", "TF-IDF, logistic regression", how, f"{dev:.2f}", f"{test:.2f}", f"{f1:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--base", type=Path, help="An imported encoder.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--only", nargs="+", metavar="RUN", help="classify, tag; with -base behind it on the encoder."
    )
    parser.add_argument("--note", default="", help="What else is to be known of these figures.")
    options = parser.parse_args()
    names = options.only or [f"{task}{how}" for task in FILES for how in ("", "-base")]
    rows = [tf_idf(options.data)]
    for name in names:
        base = options.base if name.endswith("-base") else None
        task = name.removesuffix("-base")
        rows.append(trained(task, options.data, options.runs / name, base, options.minutes))
        print(*rows[-1], file=sys.stderr, flush=True)
    write_report(
        "labels",
        "Labels of texts and of words",
        ["task", "begun with", "trained", "dev accuracy", "test accuracy", "test macro F1"],
        rows,
        "SST-2 (sentences) and UPOS of UD English EWT; accuracy in per cent. " + options.note,
    )


if __name__ == "__main__":
    main()
