"""Translation speed, latency, loading and memory against CTranslate2 and transformers, with the same weights.

`small` is a trained folder. `base` (6+6 layers, d 512) is grown from it without changing what it says: every
vector stands twice, every product is halved, the layers that are more add nothing; its outputs have natural
lengths. The set `long` is the test set with every three lines made one. Every measurement is a process of
its own, the ways take turns, medians count. CTranslate2 runs in int8 and float32, with two threads on one
batch and with one thread on each of two batches; the best counts, and those that are far from it on four
batches are not measured on all. Last, the engine in fp32 against the readable decoder by tokens.

    python benchmarks/translate.py MODEL ../shared/data/multi30k

It takes most of an hour. `--sets`, `--shapes`, `--beams`, `--batches` and `--ways` choose some of it; rows
that are in `--work` already stay in the table, so that it can be run in parts. `--rest` adds transformers
and the agreement of tokens.
"""

import argparse
import gzip
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from report import write_report

from regard.attention.absolute import sinusoids
from regard.compare.trial import peak_megabytes
from regard.config import merge
from regard.interop import ctranslate2 as to_ctranslate2
from regard.interop import huggingface as to_huggingface
from regard.models import build, folder
from regard.text.tokenizer import Tokenizer

THREADS = 2
SETS, SHAPES, BEAMS, BATCHES = ("test", "long"), ("small", "base"), (1, 5), ("1", "32", "best")
BEST = (64, 128)  # of these each engine takes the one that is its fastest
FAR = 1.25  # times the best peer on four batches: not measured on all
OURS = ("regard int8", "regard bf16", "regard fp32")  # the first is in the ratio, the others run once
PEERS = ("ctranslate2 int8 1x2", "ctranslate2 int8 2x1", "ctranslate2 float32 1x2", "ctranslate2 float32 2x1")
TRANSFORMERS = "transformers"
TWELVE = "A man in an orange hat is staring at something far away ."
Run = Callable[[list[str]], list[str]]


def grow(loaded: folder.Loaded) -> folder.Loaded:
    """A model of the shape `base` that says what `loaded`, a pre-norm one of the shape `small`, says."""
    old, before = loaded.model.state_dict(), loaded.config.model
    shape = {"d_model": 2 * before.d_model, "n_heads": 2 * before.n_heads, "d_ff": 2 * before.d_ff}
    shape |= {"encoder_layers": 6, "decoder_layers": 6}
    overrides = {f"model.{name}": value for name, value in shape.items()}
    length = loaded.config.positions.max_length
    config = merge(loaded.config, overrides | {"positions.kind": "learned", "positions.max_length": length})
    model = build(config).eval()
    places = sinusoids(length, before.d_model)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name.endswith("positions.table"):
                tensor.copy_(torch.cat([places, places], 1))
            elif name in old:
                tensor.copy_(_twice(name, old[name]))
            elif name.split(".")[-2] in ("out", "outer"):
                tensor.zero_()
    return folder.Loaded(config, model, loaded.tokenizer)


def _twice(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """What a tensor becomes when every vector stands twice."""
    if name == "embedding.weight":  # √D grows by √2, and the output product by 2
        return torch.cat([tensor, tensor], 1) * 0.5**0.5
    if name.startswith("decoder_norm"):
        return torch.cat([tensor, tensor]) * 0.5**0.5
    if "key_value" in name:
        return torch.cat([_twice("", half) for half in tensor.chunk(2)])
    both = torch.cat([tensor, tensor])
    return torch.cat([both, both], 1) / 2 if tensor.dim() == 2 else both


def prepare(model: Path, work: Path) -> None:
    """Both shapes as folders of ours and of CTranslate2, and the small one of transformers."""
    small = folder.load_folder(model)
    ways = {"ctranslate2": to_ctranslate2.write, "transformers": to_huggingface.write}
    for shape, loaded in (("small", small), ("base", grow(small))):
        for way in ways if shape == "small" else ("ctranslate2",):  # transformers cannot hold the grown one
            out = work / f"{shape}-{way}"
            out.mkdir(parents=True, exist_ok=True)
            ways[way](loaded, out)
        folder.save(
            work / shape, config=loaded.config, model=loaded.model, tokenizer=loaded.tokenizer, card=""
        )


# One process -------------------------------------------------------------------------------------


def regard_run(place: Path, way: str, beam: int, batch: int) -> Run:
    """Ours, as `regard.load` gives it."""
    from regard.tasks.translation.load import load_translator

    torch.set_num_threads(THREADS)
    translator = load_translator(place, precision=way.split()[1], engine="native")
    return lambda lines: translator.translate(lines, beam=beam, batch_size=batch, length_penalty=1.0)


def ctranslate2_run(place: Path, way: str, beam: int, batch: int) -> Run:
    """The peer with our tokenizer around it, which is the faster of the two."""
    import ctranslate2

    _, kind, split = way.split()
    inter, intra = map(int, split.split("x"))
    folder_of_its = place.with_name(f"{place.name}-ctranslate2")
    tokenizer = Tokenizer.from_json((place / "tokenizer.json").read_text(encoding="utf-8"))
    numbers = {tokenizer.token(i): i for i in range(tokenizer.vocab_size)}
    peer = ctranslate2.Translator(
        str(folder_of_its), compute_type=kind, inter_threads=inter, intra_threads=intra
    )
    options = {"beam_size": beam, "max_decoding_length": 256, "max_batch_size": batch}

    def run(lines: list[str]) -> list[str]:
        end = [tokenizer.token(tokenizer.end_id)] if not _adds_end(folder_of_its) else []
        sources = [[*map(tokenizer.token, ids), *end] for ids in tokenizer.encode_batch(lines)]
        groups = [[each] for each in sources] if batch == 1 else [sources]
        found = [one for group in groups for one in peer.translate_batch(group, **options)]
        return tokenizer.decode_batch([numbers[token] for token in one.hypotheses[0]] for one in found)

    return run


def _adds_end(place: Path) -> bool:
    return bool(json.loads((place / "config.json").read_text(encoding="utf-8")).get("add_source_eos"))


def transformers_run(place: Path, way: str, beam: int, batch: int) -> Run:
    """`generate` on sentences sorted by length, in fp32."""
    import transformers

    torch.set_num_threads(THREADS)
    source = str(place.with_name(f"{place.name}-transformers"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(source).eval()

    def run(lines: list[str]) -> list[str]:
        order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
        found = [""] * len(lines)
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            inputs = tokenizer([lines[i] for i in chosen], return_tensors="pt", padding=True)
            with torch.inference_mode():
                ids = model.generate(**inputs, num_beams=beam, max_new_tokens=256)
            for i, text in zip(chosen, tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True):
                found[i] = text
        return found

    return run


def measure(place: Path, way: str, beam: int, batch: int, lines: list[str]) -> dict[str, float]:
    """Seconds of loading to the first translation, of all lines, of one sentence; peak memory in MB."""
    makers = {"regard": regard_run, "ctranslate2": ctranslate2_run, "transformers": transformers_run}
    began = time.perf_counter()
    run = makers[way.split()[0]](place, way, beam, batch)
    run(lines[:1])
    loaded = time.perf_counter()
    run(lines[:64])
    middle = time.perf_counter()
    run(lines)
    ended = time.perf_counter()
    latency = [_seconds(lambda: run([TWELVE])) for _ in range(21)]
    return {
        "load": loaded - began,
        "all": ended - middle,
        "one": statistics.median(latency),
        "memory": peak_megabytes(),
    }


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# All of them -------------------------------------------------------------------------------------


class Case(NamedTuple):
    """One measurement; the number of sentences follows from it."""

    lines: str  # test or long
    shape: str
    way: str
    beam: int
    batch: int


Found = dict[Case, dict[str, float]]


def child(arguments: argparse.Namespace, case: Case, sentences: int) -> dict[str, float]:
    """One measurement in a process of its own."""
    words = [sys.executable, __file__, str(arguments.model), str(arguments.data), "--case", json.dumps(case)]
    words += ["--work", str(arguments.work), "--sentences", str(sentences)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{case}: {done.stderr}")
    print(json.dumps(case), done.stdout.strip().splitlines()[-1], file=sys.stderr, flush=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def near(arguments: argparse.Namespace, cases: list[Case]) -> list[Case]:
    """Without the peers that cannot be the best."""
    peers = [case for case in cases if case.way in PEERS]
    if len(peers) == 1:
        return cases
    few = 4 * cases[0].batch * (3 if cases[0].lines == "long" else 1)  # two batches for each of two threads
    tried = {case: child(arguments, case, min(few, arguments.sentences))["all"] for case in peers}
    far = {case for case in peers if tried[case] > FAR * min(tried.values())}
    return [case for case in cases if case not in far]


def quickest(arguments: argparse.Namespace, case: Case) -> Case:
    """With the batch size that is its fastest, by one run each."""
    choices = [case._replace(batch=batch) for batch in BEST]
    return min(choices, key=lambda each: child(arguments, each, arguments.sentences)["all"])


def medians(arguments: argparse.Namespace, cases: list[Case]) -> Found:
    """Every case once a round, in turn."""
    again = [case for case in cases if case.way not in OURS[1:]]
    rounds = [{case: child(arguments, case, arguments.sentences) for case in cases}]
    rounds += [
        {case: child(arguments, case, arguments.sentences) for case in again}
        for _ in range(arguments.rounds - 1)
    ]
    return {
        case: {
            name: statistics.median(each[case][name] for each in rounds if case in each)
            for name in rounds[0][case]
        }
        for case in cases
    }


def compare(arguments: argparse.Namespace) -> tuple[list[list[str]], list[str]]:
    """The rows of the table, and what else was measured in sentences; a row that was finished stays."""
    kept = arguments.work / "rows.jsonl"
    done = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    finished = {tuple(each["of"]): each for each in done}
    rows, notes = [], []
    sizes = [(lines, size) for lines in SETS for size in BATCHES if (lines, size) != ("long", "best")]
    for shape, beam, (lines, size) in itertools.product(SHAPES, BEAMS, sizes):
        of = (lines, shape, beam, size)
        wanted = lines in arguments.sets and shape in arguments.shapes and beam in arguments.beams
        if of not in finished:
            if not (wanted and size in arguments.batches):
                continue
            row, more = row_of(arguments, *of)
            finished[of] = {"of": of, "row": row, "notes": more}
            with kept.open("a") as file:
                file.write(json.dumps(finished[of]) + "\n")
        rows.append(finished[of]["row"])
        notes += finished[of]["notes"]
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    return rows, [*notes, *(rest(arguments) if arguments.rest else [])]


def rest(arguments: argparse.Namespace) -> list[str]:
    """What stands in no row: transformers, and whether fast and readable write the same."""
    cases = [Case("some", "small", way, 5, 32) for way in (TRANSFORMERS, OURS[0])]
    notes = [
        _sentence("small", 5, case.way, each, batch=32) for case, each in medians(arguments, cases).items()
    ]
    return notes + [agreement(arguments, beam) for beam in BEAMS]


def row_of(
    arguments: argparse.Namespace, lines: str, shape: str, beam: int, size: str
) -> tuple[list[str], list[str]]:
    """One row of the table, and its notes."""
    name, batch = size, 64 if size == "best" else int(size)
    cases = near(arguments, [Case(lines, shape, way, beam, batch) for way in arguments.ways])
    if size == "best":
        cases = [case if case.way in OURS[1:] else quickest(arguments, case) for case in cases]
        name = " ".join(["best:", *(str(case.batch) for case in cases if case.way not in OURS[1:])])
    best = {case.way: found for case, found in medians(arguments, cases).items()}
    peer = min(best[way]["all"] for way in PEERS if way in best)
    absent = {way: "far" if way in arguments.ways else "" for way in OURS + PEERS}
    times = [f"{best[way]['all']:.2f}" if way in best else absent[way] for way in OURS + PEERS]
    wanted = lines == "test" and size == "1"
    notes = [_sentence(shape, beam, way, each) for way, each in best.items()] if wanted else []
    return [lines, shape, str(beam), name, *times, f"{peer / best[OURS[0]]['all']:.2f}"], notes


def agreement(arguments: argparse.Namespace, beam: int) -> str:
    """On how many sentences the engine in fp32 writes the tokens that its readable twin writes."""
    from regard.tasks.translation.load import load_translator

    lines = read(arguments.data, Case("test", "small", "", beam, 32), arguments.sentences)
    fast, readable = (
        [
            each.ids
            for each in load_translator(arguments.work / "small", precision=precision, engine=engine).stream(
                lines, beam=beam
            )
        ]
        for precision, engine in (("fp32", "native"), ("auto", "readable"))
    )
    same = sum(a == b for a, b in zip(fast, readable, strict=True))
    return (
        f"- small, beam {beam}: the engine in fp32 writes the tokens of the readable decoder on {same} of "
        f"{len(lines)} sentences"
    )


def _sentence(shape: str, beam: int, way: str, found: dict[str, float], batch: int = 1) -> str:
    count = 80 if batch == 1 else 200
    return (
        f"- {shape}, beam {beam}, batch {batch}, {way}: {count} sentences {found['all']:.2f} s, one of 12 "
        f"words {1000 * found['one']:.2f} ms, loading to the first translation {found['load']:.2f} s, "
        f"peak memory {found['memory']:.0f} MB"
    )


def read(data: Path, case: Case, most: int) -> list[str]:
    """The sentences of a case: of the English test set, 80 at batch 1 and 200 beside transformers."""
    with gzip.open(data / "test_2016_flickr.en.gz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    lines = lines[: min(most, 80 if case.batch == 1 else 200 if case.lines == "some" else most)]
    if case.lines == "long":
        return [" ".join(lines[i : i + 3]) for i in range(0, len(lines), 3)]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a trained pre-norm folder of the shape small")
    parser.add_argument("data", type=Path, help="the folder of Multi30k")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=1000, help="80 at batch 1")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, choices=SHAPES)
    parser.add_argument("--beams", nargs="+", type=int, default=BEAMS, choices=BEAMS)
    parser.add_argument("--batches", nargs="+", default=BATCHES, choices=BATCHES)
    parser.add_argument("--ways", nargs="+", default=OURS + PEERS, choices=OURS + PEERS)
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--work", type=Path, default=Path("runs/translate-speed"))
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        case = Case(*json.loads(arguments.case))
        lines = read(arguments.data, case, arguments.sentences)
        print(json.dumps(measure(arguments.work / case.shape, case.way, case.beam, case.batch, lines)))
        return
    if not (arguments.work / "base" / "model.safetensors").exists():
        prepare(arguments.model, arguments.work)
    rows, notes = compare(arguments)
    header = ["set", "model", "beam", "batch", *(f"{way}, s" for way in OURS + PEERS), "ratio"]
    text = (
        "Seconds for all sentences, text to text. Ratio: the best of CTranslate2 over regard int8. Best: the "
        "batch size that was the fastest of each, regard's first. Far: more "
    )
    text += f"than {FAR} times the best of CTranslate2 on four batches.\n\n"
    write_report("translate", "Translation speed", header, rows, text + "\n".join(notes))


if __name__ == "__main__":
    main()
