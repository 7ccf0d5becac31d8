"""Recognisers on real recordings: digits of known and unknown speakers, joined, truncated; Whisper.

    python benchmarks/speech.py fsdd --data FSDD --minutes 10
    python benchmarks/speech.py speakers --data FSDD --minutes 5          each of the six left out in turn
    python benchmarks/speech.py audiomnist --data AUDIOMNIST --minutes 15
    python benchmarks/speech.py joined --data AUDIOMNIST --minutes 10 --keep RUNS
    python benchmarks/speech.py words --data AUDIOMNIST --minutes 10 --keep RUNS           of single ones
    python benchmarks/speech.py truncated --data AUDIOMNIST --minutes 10 --keep RUNS       full beside it
    python benchmarks/speech.py piper --model RUNS/truncated/model --voice en_US-joe-medium.onnx
    python benchmarks/speech.py stream --model DIR         a demo: delay of what is said
    python benchmarks/speech.py whisper --data KATHLEEN --model DIR --weights tiny.en.pt --faster CT2

Nothing is downloaded: a part takes the folder of its data and writes its own results file. With `--keep` a
run that is finished is not trained again. What a budget of minutes gives depends on the machine. `piper`
needs the package piper-tts, `--faster` faster-whisper.
"""

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from report import write_report
from speech_digits import Rows, held_out, join, recordings, spoken_by
from speech_whisper import whisper

LONG = (1, 2, 5, 10)  # minutes of sound that are encoded at once
HALF: dict[str, Any] = {"speech.ctc": 0.5}  # joined digits: where they are is half of what must be learned


def table(rows: Iterable[tuple[Path, str]], path: Path) -> Path:
    """A TSV of recordings and texts."""
    path.write_text("".join(f"{file.resolve()}\t{text}\n" for file, text in rows), encoding="utf-8")
    return path


def trained(place: Path, rows: Rows, minutes: float, **settings: Any) -> Path:
    """A model of these recordings; one that is finished is taken as it is. Minutes that are 0 do not bind."""
    from regard.tasks.speech import TASK
    from regard.training.run import Asked, train

    place.mkdir(parents=True, exist_ok=True)
    if not steps(place / "model"):
        data = TASK.read([table(rows, place / "train.tsv")])
        train(TASK, data, Asked(place / "model", overrides=settings | {"train.minutes": minutes}))
    return place / "model"


def steps(model: Path) -> int:
    """Steps of a run that is finished; 0: it is not."""
    from regard.training.workspace import read_run

    run = read_run(model)
    return int(run.result["steps"]) if run is not None and run.finished else 0


def tested(model: Path, rows: Rows) -> tuple[float, float, float]:
    """Share of recordings that are wholly right, WER, and seconds of work for a second of sound."""
    from regard.measure.wer import ErrorRates
    from regard.tasks.speech.evaluate import texts
    from regard.tasks.task import load

    listener, rates = load(model), ErrorRates()
    began = time.perf_counter()
    for (_, wanted), given in zip(rows, texts(listener, [path for path, _ in rows]), strict=True):
        rates.add(given, wanted)
    spent = time.perf_counter() - began
    sound = sum(seconds(path) for path, _ in rows)
    return rates.exact / rates.count, rates.scores()["wer"].value, spent / sound


def seconds(path: Path) -> float:
    """How long a recording is."""
    from regard.audio.sound import Recording

    recording = Recording(path)
    recording.close()
    return recording.seconds


def fsdd(options: argparse.Namespace, place: Path) -> None:
    """The official split: recordings 0 to 4 of each digit and speaker are the test."""
    every = recordings(options.data)
    train = [(path, word) for path, word, _, index in every if index >= 5]
    test = [(path, word) for path, word, _, index in every if index < 5]
    right, wer, factor = tested(trained(place, train, options.minutes), test)
    rows = [["official test", f"{len(test)}", f"{right:.2%}", f"{wer:.2%}", f"{factor:.4f}"]]
    head = ["FSDD", "recordings", "exact digit", "WER", "real-time factor"]
    write_report("speech_fsdd", "Spoken digits, official test", head, rows, f"{options.minutes:g} minutes.")


def speakers(options: argparse.Namespace, place: Path) -> None:
    """Each speaker of FSDD left out in turn."""
    every = recordings(options.data)
    rows, scores = [], []
    for left in sorted({speaker for _, _, speaker, _ in every}):
        train = [(path, word) for path, word, speaker, _ in every if speaker != left]
        test = [(path, word) for path, word, speaker, _ in every if speaker == left]
        right, wer, _ = tested(trained(place / left, train, options.minutes), test)
        scores.append(right)
        rows.append([left, f"{len(test)}", f"{right:.2%}", f"{wer:.2%}"])
    rows.append(["mean", "", f"{statistics.mean(scores):.2%}", ""])
    head = ["left out", "recordings", "exact digit", "WER"]
    note = f"{options.minutes:g} minutes each."
    write_report("speech_speakers", "Spoken digits, a speaker left out", head, rows, note)


def audiomnist(options: argparse.Namespace, place: Path) -> None:
    """Every fourth speaker of AudioMNIST left out."""
    every = recordings(options.data)
    out = held_out(every)
    train = [(path, word) for path, word, speaker, _ in every if speaker not in out]
    test = [(path, word) for path, word, speaker, _ in every if speaker in out]
    right, wer, factor = tested(trained(place, train, options.minutes), test)
    rows = [[f"{len(out)} speakers", f"{len(test)}", f"{right:.2%}", f"{wer:.2%}", f"{factor:.4f}"]]
    head = ["left out", "recordings", "exact digit", "WER", "real-time factor"]
    write_report(
        "speech_audiomnist", "AudioMNIST, unseen speakers", head, rows, f"{options.minutes:g} minutes."
    )


def joined_rows(options: argparse.Namespace, place: Path) -> tuple[Rows, Rows]:
    """Single and joined digits of some speakers, joined ones of the others."""
    every = recordings(options.data)
    out = held_out(every)
    known = [each for each in every if each[2] not in out]
    train = [(path, word) for path, word, _, _ in known] + join(known, 3000, place / "train", 1)
    return train, join([each for each in every if each[2] in out], 300, place / "test", 2)


def joined(options: argparse.Namespace, place: Path) -> None:
    """Joined digits of unseen speakers."""
    train, test = joined_rows(options, place / "joined")
    right, wer, factor = tested(trained(place / "truncated", train, options.minutes, **HALF), test)
    rows = [["unseen speakers", f"{len(test)}", f"{wer:.2%}", f"{right:.2%}", f"{factor:.4f}"]]
    head = ["joined digits", "recordings", "WER", "wholly right", "real-time factor"]
    note = f"{options.minutes:g} minutes, {steps(place / 'truncated' / 'model'):,} steps."
    write_report("speech_joined", "Joined digits", head, rows, note)


def words(options: argparse.Namespace, place: Path) -> None:
    """Joined digits of unseen speakers, by a model that had single ones and joined them itself."""
    train, test = joined_rows(options, place / "joined")
    single = [(path, text) for path, text in train if " " not in text and path.parent.name == "recordings"]
    model = trained(place / "words", single, options.minutes, **HALF, **{"speech.join": 8})
    right, wer, _ = tested(model, test)
    rows = [[f"{len(single):,} single digits", f"{len(test)}", f"{wer:.2%}", f"{right:.2%}"]]
    head = ["trained on", "joined recordings", "WER", "wholly right"]
    note = f"{options.minutes:g} minutes, {steps(model):,} steps, with speech.join=8; unseen speakers."
    write_report("speech_words", "Sentences of single words", head, rows, note)


def truncated(options: argparse.Namespace, place: Path) -> None:
    """Truncated against full attention: what it costs in WER, and what 1 to 10 minutes of sound cost."""
    train, test = joined_rows(options, place / "joined")
    rows = []
    windows = trained(place / "truncated", train, options.minutes, **HALF)
    same = {"attention.kind": "full", "attention.ahead": -1, "train.max_steps": steps(windows)}
    for name, model in (
        ("truncated", windows),
        ("full", trained(place / "full", train, 0, **HALF, **same)),
    ):
        _, wer, _ = tested(model, test)
        rows.append([name, f"{steps(model):,}", f"{wer:.2%}", *(cost(model, minutes) for minutes in LONG)])
    head = ["attention", "steps", "WER", *(f"{minutes} min" for minutes in LONG)]
    note = (
        f"{options.minutes:g} minutes, and as many steps with full attention. The encoder at once, each "
        "length in a process of its own; memory is what that process took at most beyond the loaded model."
    )
    write_report("speech_truncated", "Truncated against full attention", head, rows, note)


def cost(model: Path, minutes: int) -> str:
    """Seconds and memory of encoding so many minutes at once, in a process that did nothing else."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
        spent, taken = alone.submit(encoded, model, minutes).result()
    return f"{spent:.2f} s, {taken:,.0f} MB"


def encoded(model: Path, minutes: int) -> tuple[float, float]:
    """Seconds, and MB that the peak grew by."""
    import torch

    from regard.compare.trial import peak_megabytes
    from regard.data.inputs import Frames
    from regard.tasks.task import load

    listener = load(model)
    with torch.inference_mode():
        listener.model.encode(Frames(torch.zeros(1, 200, listener.how.mels)))  # what is slow the first time
        frames = torch.zeros(1, minutes * 6000, listener.how.mels).normal_()
        Path("/proc/self/clear_refs").write_text("5")  # the peak of what was loaded is forgotten
        before, began = peak_megabytes(), time.perf_counter()
        listener.model.encode(Frames(frames))
    return time.perf_counter() - began, peak_megabytes() - before


def piper(options: argparse.Namespace, place: Path) -> None:
    """A model of joined and single digits hears another voice, a synthetic one, say them."""
    single, joined = spoken_by(options.voice, place / "piper", options.files)
    rows = []
    for name, said in (("single digits", single), ("joined digits", joined)):
        right, wer, _ = tested(options.model, said)
        rows.append([name, f"{len(said)}", f"{wer:.2%}", f"{right:.2%}"])
    head = ["a synthetic voice", "recordings", "WER", "wholly right"]
    note = f"{options.voice.stem} of piper at several speeds; the model was trained by the part `joined`."
    write_report("speech_piper", "Digits of a synthetic voice", head, rows, note)


def stream(options: argparse.Namespace, place: Path) -> None:
    """From the end of a key's tone to its name: calls as they would come, 80 ms at a time."""
    import torch

    from regard.audio.tones import calls
    from regard.tasks.task import load

    torch.set_num_threads(1)  # pieces of two places
    listener, count, delays = load(options.model), 0, []
    ahead = listener.model.hears_ahead() / 100
    for call in calls(100_000, options.files, seed=2):
        heard = [(text, when) for text, when in played(listener, call.samples, ahead) if text.strip()]
        if [text for text, _ in heard] == call.text.split():  # else it is not known which key was meant
            count += 1
            delays += [when - end for (_, when), (_, end) in zip(heard, call.times, strict=True)]
    if not delays:
        raise SystemExit("it heard no call exactly, so that no key has a delay; train it longer")
    late = [f"{1000 * float(np.quantile(delays, share)):.0f} ms" for share in (0.5, 0.95, 1)]
    rows = [[f"{1000 * ahead:.0f} ms", f"{count} of {options.files}", f"{len(delays)}", *late]]
    head = ["look-ahead", "calls heard exactly", "keys", "delay, median", "95%", "longest"]
    note = "From the end of a tone to its key on the screen, the computing counted, on one thread."
    write_report("speech_stream", "Streaming: from sound to word", head, rows, note)


def played(listener: Any, samples: Any, silence: float) -> list[tuple[str, float]]:
    """Pieces of text, and when they are there if samples come in real time, with silence after them."""
    size = round(0.08 * listener.rate)
    samples = np.concatenate([samples, np.zeros(round((silence + 1) * listener.rate), np.float32)])
    now, since, found = 0.0, time.perf_counter(), []

    def blocks() -> Iterable[Any]:
        nonlocal now, since
        for at in range(0, len(samples), size):
            block = samples[at : at + size]
            now = max(now + time.perf_counter() - since, (at + len(block)) / listener.rate)
            since = time.perf_counter()
            yield block

    for piece in listener.follow(blocks()):
        found.append((piece.text, now + time.perf_counter() - since))
    return found


EVERY = (fsdd, speakers, audiomnist, joined, words, truncated, piper, stream, whisper)
PARTS = {each.__name__: each for each in EVERY}
ALONE = ("stream", "piper")  # parts that make their own recordings


def main() -> None:
    """One part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--data", type=Path, help="a folder of recordings; stream and piper make their own")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each training")
    parser.add_argument("--model", type=Path, help="whisper: what regard import made; stream: a demo")
    parser.add_argument("--voice", type=Path, help="piper: a voice, NAME.onnx beside NAME.onnx.json")
    parser.add_argument("--weights", type=Path, help="whisper: tiny.en.pt, for transformers")
    parser.add_argument(
        "--faster", type=Path, help="whisper: a CTranslate2 folder, for faster-whisper; made of --weights"
    )
    parser.add_argument("--threads", type=int, default=2, help="whisper: of each")
    parser.add_argument("--files", type=int, default=100, help="whisper, stream, piper: recordings")
    parser.add_argument("--keep", type=Path, help="where models and recordings go; else nowhere")
    options = parser.parse_args()
    if options.data is None and options.part not in ALONE:
        parser.error(f"{options.part} needs --data")
    with TemporaryDirectory() as place:
        PARTS[options.part](options, options.keep or Path(place))


if __name__ == "__main__":
    main()
