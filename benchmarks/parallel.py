"""Several tokens at once on Multi30k: a teacher, and students with and without distillation.

Each part may be run by itself, killed and repeated; the last one, `report`, measures what is there and writes
the table. A shape is a preset; the students begin with the teacher's weights, unless `--from-scratch`. What
the teacher writes is written once, for all of them. `--teacher` takes one that was trained before.

    python benchmarks/parallel.py teacher ../shared/data/multi30k --out runs/par --minutes 30
    python benchmarks/parallel.py ctc parallel blockwise ../shared/data/multi30k --out runs/par --minutes 30
    python benchmarks/parallel.py raw-ctc raw-parallel ../shared/data/multi30k --out runs/par --minutes 30
    python benchmarks/parallel.py speed ../shared/data/multi30k --out runs/par
    python benchmarks/parallel.py report ../shared/data/multi30k --out runs/par
    python benchmarks/parallel.py shapes ../shared/data/multi30k --out runs/par --sentences 300
    python benchmarks/parallel.py untaught ../shared/data/multi30k --out runs/new --teacher runs/par/teacher

`untaught` makes students that have learned nothing, for what must hold whatever they have learned: lengths
that are kept, and drafts that change no token of greedy search. `shapes` times larger ones that write what
the teacher and the blockwise student of --out write (`widen.py`).
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from report import write_report

STUDENTS = ("ctc", "parallel", "blockwise")
PARTS = ("teacher", *STUDENTS, "raw-ctc", "raw-parallel", "deep", "untaught", "speed", "shapes", "report")
UPSAMPLED = {"ctc": 2.0, "ctc-1.5": 1.5}  # in larger shapes
SHAPES_NOTE = (
    "Trained with 3+3 layers of width 128 and made larger by `benchmarks/widen.py`: the cost is the larger "
    "shape's, what is written is the small model's. `ctc` has the teacher's weights and has learned nothing "
    "of its own, with two places for each token of the source; `ctc-1.5` with one and a half. int8, medians "
    "of rounds in turn."
)
GOALS = {
    "ctc": "3.5 below the teacher's greedy at most; aim 1.5",
    "parallel: one shot": "9 below at most; aim 5",
    "parallel: 4 passes": "4 below at most; aim 2",
    "blockwise": "equal",
}


def regard(*words: str) -> str:
    """Run one `regard` command; its standard output."""
    command = [sys.executable, "-m", "regard", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def files(options: argparse.Namespace, part: str) -> list[str]:
    """The two files of a part of Multi30k."""
    return [str(options.data / f"{part}.{side}.gz") for side in options.pair.split("-")]


def folder(options: argparse.Namespace, name: str) -> Path:
    """Where a model is."""
    found: Path = options.out / name
    return options.teacher if name == "teacher" and options.teacher else found


def there(options: argparse.Namespace, name: str) -> bool:
    """Whether a model was trained."""
    return (folder(options, name) / "model.safetensors").exists()


def share(options: argparse.Namespace, part: str) -> None:
    """Give a student what the teacher wrote for another one; `regard distill` checks that it is its own."""
    held = [each for each in options.out.glob("*/distilled") if (each / "pairs.tsv").exists()]
    mine = options.out / part / "distilled"
    if held and not mine.exists():
        shutil.copytree(max(held, key=lambda each: (each / "pairs.tsv").stat().st_size), mine)


def train(options: argparse.Namespace, part: str) -> None:
    """One model, or on with it."""
    teacher, out = folder(options, "teacher"), str(options.out / part)
    if part in (*STUDENTS, "deep"):
        share(options, part)
    minutes = ["--minutes", str(options.minutes)]
    valid = ["--valid", *files(options, "val")]
    settings = [word for setting in options.set for word in ("--set", setting)]
    if part == "teacher":
        regard(
            *("train", *files(options, "train"), "-o", out, "--preset", options.preset),
            *(*valid, *minutes, *settings),
        )
    elif part == "deep":
        regard(
            *("distill", "-m", str(teacher), *files(options, "train"), "-o", out, "--preset", "deep"),
            *(*valid, *minutes, *settings),
        )
    elif part in STUDENTS:
        shape = ["--preset", options.preset] if options.from_scratch else []
        regard(
            *("distill", "-m", str(teacher), *files(options, "train"), "-o", out, "--to", part),
            *(*shape, *valid, *minutes, *settings),
        )
    else:
        kind = ["--set", f"model.kind={part.removeprefix('raw-')}"]
        start = ["--preset", options.preset] if options.from_scratch else ["--from", str(teacher)]
        regard(*("train", *files(options, "train"), "-o", out, *start, *kind, *valid, *minutes, *settings))


def untaught(options: argparse.Namespace) -> None:
    """Students as they begin: the teacher's weights, the rest as it is drawn."""
    from regard.config import merge
    from regard.models import build
    from regard.models.folder import load_folder, save

    held = load_folder(folder(options, "teacher"))
    for kind in STUDENTS:
        config = merge(held.config, {"model.kind": kind, "decode.beam": 1})
        model = build(config)
        model.adopt(held.model)
        save(options.out / kind, config=config, model=model.eval(), tokenizer=held.tokenizer, card="")


# Quality ------------------------------------------------------------------------------------------


def quality(options: argparse.Namespace) -> list[list[str]]:
    """BLEU of every way to write, against the teacher's greedy search; lengths that are kept."""
    found = []
    test = files(options, "test_2016_flickr")

    def bleu(name: str, *flags: str) -> float:
        done = regard("evaluate", "-m", str(folder(options, name)), *test, "--json", *flags)
        return float(json.loads(done)["bleu"])

    base = bleu("teacher", "--beam", "1")
    found.append(["teacher, greedy", f"{base:.2f}", "", ""])
    found.append(["teacher, beam 5", f"{bleu('teacher', '--beam', '5'):.2f}", "", ""])
    cases = [
        *((name, "greedy", ("--beam", "1")) for name in ("deep", "ctc", "raw-ctc", "blockwise")),
        *(("ctc", "beam 5", ("--beam", "5")),),
        *(
            (name, "one shot" if count == 1 else f"{count} passes", ("--iterations", str(count)))
            for name in ("parallel", "raw-parallel")
            for count in (1, 4, 10)
        ),
    ]
    for name, how, flags in cases:
        if there(options, name):
            score = bleu(name, *flags)
            goal = GOALS.get(f"{name}: {how}", GOALS.get(name, ""))
            found.append([f"{name}, {how}", f"{score:.2f}", f"{score - base:+.2f}", goal])
    return found


def kept(options: argparse.Namespace) -> list[list[str]]:
    """How many of the test sentences are what was asked for: lengths, and greedy search's very tokens."""
    import gzip

    import regard as package

    with gzip.open(files(options, "test_2016_flickr")[0], "rt", encoding="utf-8") as file:
        sources = [line.rstrip("\n") for line in file][: options.sentences]
    rows = []
    for name in ("ctc", "parallel"):
        if not there(options, name):
            continue
        model = package.load(folder(options, name))
        exact = sum(each.tokens - 1 == 12 for each in model.stream(sources, length=12, beam=1))
        short = sum(len(each.text) <= 42 for each in model.stream(sources, max_chars=42, beam=1))
        rows.append([f"{name}, --length 12", f"{exact:,} of {len(sources):,}", "", "all"])
        rows.append([f"{name}, --max-chars 42", f"{short:,} of {len(sources):,}", "", "all"])
    if there(options, "blockwise"):
        greedy = list(package.load(folder(options, "teacher")).stream(sources, beam=1))
        drafted = list(package.load(folder(options, "blockwise")).stream(sources, beam=1))
        equal = sum(one.ids == other.ids for one, other in zip(greedy, drafted, strict=True))
        rows.append(["blockwise, equal to greedy", f"{equal:,} of {len(sources):,}", "", "all"])
    return rows


# Speed --------------------------------------------------------------------------------------------


def speed(options: argparse.Namespace) -> list[list[str]]:
    """Lines one by one and in batches, teacher and student in turn, each in its own process; medians."""
    rows = []
    for name in (*UPSAMPLED, "parallel", "blockwise", "deep"):
        if not there(options, name):
            continue
        for batch in options.batches:
            taken: dict[str, list[float]] = {"teacher": [], name: []}
            for _ in range(options.rounds):
                for each in taken:
                    command = [sys.executable, __file__, "time", str(options.data), "--out", str(options.out)]
                    command += ["--teacher", str(folder(options, "teacher")), "--model", each]
                    command += ["--batch", str(batch), "--sentences", str(options.sentences)]
                    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                    taken[each].append(float(done.stdout))
            before, now = (statistics.median(each) for each in taken.values())
            rows.append(
                [f"{name} against greedy, batch {batch}", f"{1000 * now:.2f} ms", f"{before / now:.2f}x", ""]
            )
    return rows


def shapes(options: argparse.Namespace) -> list[list[str]]:
    """The same in larger shapes: a blockwise student that writes as the small one, and CTC as it begins."""
    from widen import widen

    from regard.config import merge
    from regard.models import build
    from regard.models.folder import load_folder, save

    rows = []
    for shape in ("small", "base"):
        wide = argparse.Namespace(
            **vars(options) | {"out": options.out / shape, "teacher": None, "batches": [1]}
        )
        widen(folder(options, "teacher"), wide.out / "teacher", shape)
        widen(options.out / "blockwise", wide.out / "blockwise", shape)
        held = load_folder(wide.out / "teacher")
        for name, upsample in UPSAMPLED.items():
            config = merge(held.config, {"model.kind": "ctc", "model.upsample": upsample, "decode.beam": 1})
            model = build(config)
            model.adopt(held.model)
            save(wide.out / name, config=config, model=model.eval(), tokenizer=held.tokenizer, card="")
        rows += [[shape, *row[:3]] for row in [*drafted(wide), *speed(wide)]]
    return rows


def drafted(options: argparse.Namespace) -> list[list[str]]:
    """Whether a blockwise model says what greedy search says, on the test set, and in how few passes."""
    import gzip

    import regard as package

    with gzip.open(files(options, "test_2016_flickr")[0], "rt", encoding="utf-8") as file:
        sources = [line.rstrip("\n") for line in file]
    greedy = list(package.load(folder(options, "teacher")).stream(sources, beam=1))
    model: Any = package.load(folder(options, "blockwise"))
    packed, found = model.engine._packed, []
    translate = packed.translate

    def watched(*words: Any) -> Any:
        outputs = translate(*words)
        found.extend(each[0].passes for each in outputs)
        return outputs

    packed.translate = watched
    written = list(model.stream(sources, beam=1))
    equal = sum(one.ids == other.ids for one, other in zip(greedy, written, strict=True))
    tokens = sum(each.tokens for each in written) / sum(found)
    return [
        ["blockwise, equal to greedy", f"{equal:,} of {len(sources):,}", ""],
        ["blockwise, tokens a pass", f"{tokens:.2f}", ""],
    ]


def timed(options: argparse.Namespace) -> None:
    """Seconds a line of one model; printed for `speed`."""
    import gzip

    import regard as package

    with gzip.open(files(options, "test_2016_flickr")[0], "rt", encoding="utf-8") as file:
        sources = [line.rstrip("\n") for line in file]
    sources = sources[: options.sentences if options.batch > 1 else min(options.sentences, 200)]
    model = package.load(folder(options, options.model))
    more: dict[str, Any] = {"iterations": options.iterations} if options.model == "parallel" else {}
    list(model.stream(sources[:5], beam=1, **more))
    began = time.perf_counter()
    if options.batch == 1:
        for source in sources:
            list(model.stream([source], beam=1, batch_size=1, window=1, **more))
    else:
        list(model.stream(sources, beam=1, batch_size=options.batch, **more))
    print((time.perf_counter() - began) / len(sources))


def budgets(options: argparse.Namespace) -> str:
    """The minutes that each model was trained for."""
    from regard.config.file import read_config

    names = [name for name in PARTS if there(options, name)]
    if "untaught" in options.parts:
        return f"teacher {read_config(folder(options, 'teacher')).train.minutes:g}, the students none"
    return ", ".join(f"{name} {read_config(folder(options, name)).train.minutes:g}" for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "time"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/parallel"))
    parser.add_argument("--teacher", type=Path, help="a model folder; without it the one in --out")
    parser.add_argument("--pair", default="en-de")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--minutes", type=float, default=30.0, help="of training, for each model")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--from-scratch", action="store_true", help="students with weights of their own")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--iterations", type=int, default=4, help="of the parallel student, where it is timed"
    )
    parser.add_argument("--model", default="teacher", help="for `time`")
    parser.add_argument("--batch", type=int, default=1, help="for `time`")
    parser.add_argument(
        "--batches", type=int, nargs="+", default=[1, 32], help="sentences together, where timed"
    )
    parser.add_argument("--note", default="", help="a sentence under the table")
    parser.add_argument("--dry", action="store_true", help="print, write no results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[list[str]] = []
    for part in options.parts:
        if part == "time":
            timed(options)
        elif part == "speed":
            rows += speed(options)
            (options.out / "speed.json").write_text(json.dumps(rows))
        elif part == "shapes":
            header = ["shape", "what", "a sentence", "against greedy"]
            note = f"{SHAPES_NOTE} Minutes of training: {budgets(options)}. {options.note}".strip()
            write_report(
                "parallel_shapes", "Several tokens at once, in larger shapes", header, shapes(options), note
            )
        elif part == "untaught":
            untaught(options)
            rows = kept(options)
        elif part == "report":
            held = options.out / "speed.json"
            rows = quality(options) + kept(options) + (json.loads(held.read_text()) if held.exists() else [])
        else:
            train(options, part)
    header = ["what", "value", "against the teacher's greedy search", "at least"]
    note = f"{options.pair}, test_2016, int8. Minutes of training: {budgets(options)}. {options.note}".strip()
    if {"report", "untaught"} & {*options.parts} and not options.dry:
        write_report("parallel", "Several tokens at once", header, rows, note)
    elif rows:
        print("\n".join(" | ".join(row) for row in rows))


if __name__ == "__main__":
    main()
