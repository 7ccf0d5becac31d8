"""Recognisers on real recordings: digits of known and unknown speakers, joined, truncated; Whisper.

    python benchmarks/speech.py fsdd --data FSDD --minutes 10
    python benchmarks/speech.py speakers --data FSDD --minutes 5          each of the six left out in turn
    python benchmarks/speech.py audiomnist --data AUDIOMNIST --minutes 15
    python benchmarks/speech.py joined --data AUDIOMNIST --minutes 15
    python benchmarks/speech.py truncated --data AUDIOMNIST --minutes 10
    python benchmarks/speech.py stream --model DIR         a demo: delay of what is said
    python benchmarks/speech.py whisper --data KATHLEEN --model DIR --weights tiny.en.pt

Nothing is downloaded: a part takes the folder of its data and writes its own results file. What a budget of
minutes gives depends on the machine.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from report import write_report

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
Rows = list[tuple[Path, str]]


def recordings(folder: Path) -> list[tuple[Path, str, str, int]]:
    """Path, digit as a word, speaker and number of every `{digit}_{speaker}_{index}` in a folder."""
    found = []
    for path in sorted((folder / "recordings").iterdir()):
        digit, speaker, index = path.stem.split("_")
        found.append((path, WORDS[int(digit)], speaker, int(index)))
    return found


def table(rows: Iterable[tuple[Path, str]], path: Path) -> Path:
    """A TSV of recordings and texts."""
    path.write_text("".join(f"{file}\t{text}\n" for file, text in rows), encoding="utf-8")
    return path


def trained(place: Path, rows: Rows, minutes: float, **settings: Any) -> Path:
    """A model of these recordings."""
    from regard.tasks.speech import TASK
    from regard.training.run import Asked, train

    place.mkdir(parents=True, exist_ok=True)
    data = TASK.read([table(rows, place / "train.tsv")])
    train(TASK, data, Asked(place / "model", overrides=settings | {"train.minutes": minutes}))
    return place / "model"


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


def held_out(every: Sequence[Any]) -> set[str]:
    """Every fourth speaker."""
    return set(sorted({speaker for _, _, speaker, _ in every})[::4])


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


def join(every: Sequence[Any], count: int, place: Path, seed: int) -> Rows:
    """`count` recordings of 1 to 8 digits of one speaker, with pauses and noise."""
    import soundfile

    from regard.audio.sound import read_sound

    random = np.random.default_rng(seed)
    place.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[Any]] = {}
    for each in every:
        groups.setdefault(each[2], []).append(each)
    names, found = sorted(groups), []
    for number in range(count):
        group = groups[names[int(random.integers(len(names)))]]
        chosen = [group[int(place_)] for place_ in random.integers(len(group), size=random.integers(1, 9))]
        parts = [np.zeros(int(random.integers(400, 2400)), np.float32)]
        for path, *_ in chosen:
            parts += [read_sound(path, 8000), np.zeros(int(random.integers(400, 3200)), np.float32)]
        samples = np.concatenate(parts)
        loud = float(np.sqrt(np.mean(samples**2))) * 10 ** (-random.uniform(10, 30) / 20)
        samples = samples + random.normal(size=len(samples)).astype(np.float32) * loud
        path = place / f"{number}.flac"
        soundfile.write(path, np.clip(samples, -1, 1), 8000)
        found.append((path, " ".join(word for _, word, _, _ in chosen)))
    return found


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
    right, wer, factor = tested(trained(place, train, options.minutes), test)
    rows = [["unseen speakers", f"{len(test)}", f"{wer:.2%}", f"{right:.2%}", f"{factor:.4f}"]]
    head = ["joined digits", "recordings", "WER", "wholly right", "real-time factor"]
    write_report("speech_joined", "Joined digits", head, rows, f"{options.minutes:g} minutes.")


def truncated(options: argparse.Namespace, place: Path) -> None:
    """Truncated against full attention: what it costs in WER, and what 1 to 10 minutes of sound cost."""
    import torch

    from regard.data.inputs import Frames
    from regard.tasks.task import load

    train, test = joined_rows(options, place / "joined")
    rows = []
    for name, settings in (
        ("truncated", {}),
        ("full", {"attention.kind": "full", "attention.ahead": -1}),
    ):
        model = trained(place / name, train, options.minutes, **settings)
        _, wer, _ = tested(model, test)
        listener = load(model)
        cells = [name, f"{wer:.2%}"]
        for minutes in (1, 2, 5, 10):
            frames = torch.zeros(1, minutes * 6000, listener.how.mels).normal_()
            with torch.inference_mode():
                began = time.perf_counter()
                listener.model.encode(Frames(frames))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            cells.append(f"{time.perf_counter() - began:.2f} s, {peak:,.0f} MB")
        rows.append(cells)
    head = ["attention", "WER", "1 min", "2 min", "5 min", "10 min"]
    note = f"{options.minutes:g} minutes each. The encoder at once; memory is the process's peak so far."
    write_report("speech_truncated", "Truncated against full attention", head, rows, note)


def whisper(options: argparse.Namespace, place: Path) -> None:
    """Whisper here, in transformers and in faster-whisper, recording by recording: texts, WER, seconds."""
    from regard.audio.sound import read_sound
    from regard.data.recordings import read_spoken
    from regard.measure.wer import ErrorRates
    from regard.tasks.task import load

    spoken = list(read_spoken(options.data / "metadata.tsv"))[: options.files]
    sounds = [read_sound(each.path, 16000) for each in spoken]
    long = sum(map(len, sounds)) / 16000
    ways: dict[str, Any] = {
        "regard fp32": ours(load(options.model, times=False, precision="fp32", engine="native")),
        "regard int8": ours(load(options.model, times=False, precision="int8", engine="native")),
        "regard, torch fp32": ours(load(options.model, times=False, engine="readable")),
    }
    if options.weights:
        ways["transformers fp32"] = theirs(options.weights)
    if options.faster:
        from faster_whisper import WhisperModel

        model = WhisperModel(str(options.faster), device="cpu", compute_type="int8", cpu_threads=2)
        ways["faster-whisper int8"] = lambda x: " ".join(
            each.text.strip()
            for each in model.transcribe(x, language="en", beam_size=1, without_timestamps=True)[0]
        )
    for hear in ways.values():
        hear(sounds[0])  # what is slow the first time
    found: dict[str, list[str]] = {name: [] for name in ways}
    spent, worked = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0.0)  # by the clock, and of all threads
    for sound in sounds:  # in turn, so that a busy moment is everybody's
        for name, hear in ways.items():
            began, busy = time.perf_counter(), time.process_time()
            found[name].append(hear(sound).strip())
            spent[name] += time.perf_counter() - began
            worked[name] += time.process_time() - busy
    rows = []
    for name, written in found.items():
        rates = ErrorRates()
        for text, each in zip(written, spoken, strict=True):
            rates.add(text, each.text)
        same = sum(a == b for a, b in zip(written, found["regard fp32"], strict=True))
        wer = rates.scores()["wer"].value
        times = [f"{spent[name]:.1f}", f"{worked[name]:.1f}", f"{long / spent[name]:.1f}×"]
        rows.append([name, f"{wer:.2%}", f"{same} of {len(spoken)}", *times])
    head = ["Whisper tiny.en", "WER", "texts as regard's fp32", "seconds", "CPU seconds", "real time"]
    write_report(
        "speech_whisper", "Whisper", head, rows, f"{len(spoken)} recordings, {long:.0f} s, greedy, no times."
    )


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


def ours(listener: Any) -> Any:
    """How a listener of ours is asked."""
    return lambda x: " ".join(each.text for each in listener.transcribe(x, words=False))


NAMES = {  # OpenAI's names, then Hugging Face's
    "cross_attn_ln": "encoder_attn_layer_norm",
    "attn_ln": "self_attn_layer_norm",
    "mlp_ln": "final_layer_norm",
    "mlp.0": "fc1",
    "mlp.2": "fc2",
    "cross_attn.": "encoder_attn.",
    ".attn.": ".self_attn.",
    ".query.": ".q_proj.",
    ".key.": ".k_proj.",
    ".value.": ".v_proj.",
    "attn.out.": "attn.out_proj.",
    "blocks": "layers",
    "ln_post": "layer_norm",
    "decoder.ln.": "decoder.layer_norm.",
    "token_embedding": "embed_tokens",
    "positional_embedding": "embed_positions.weight",
}


def theirs(path: Path) -> Any:
    """Greedy search of transformers with the weights of OpenAI's tiny.en.pt, by the same rules."""
    import torch
    from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    from regard.interop.whisper import read_file
    from regard.tasks.speech.whisper import Whisper

    ours = Whisper(read_file(path), times=False)
    state = {}
    for name, tensor in torch.load(path, weights_only=True)["model_state_dict"].items():
        for old, new in NAMES.items():
            name = name.replace(old, new)
        state[f"model.{name}"] = tensor.float()
    model = WhisperForConditionalGeneration(WhisperConfig(vocab_size=51864)).eval()
    model.load_state_dict(state | {"proj_out.weight": state["model.decoder.embed_tokens.weight"]})
    extract, steer = WhisperFeatureExtractor(), ours.steering

    def hear(samples: Any) -> str:
        heard = extract(samples, sampling_rate=16000, return_tensors="pt").input_features
        ids = torch.tensor([[steer.start, steer.no_times]])
        with torch.inference_mode():
            out = model.generate(
                heard,
                decoder_input_ids=ids,
                max_new_tokens=224,
                do_sample=False,
                suppress_tokens=[*ours.never, *range(steer.times, steer.times + 1501)],
                begin_suppress_tokens=ours.first,
            )[0].tolist()
        return ours.tokenizer.decode([token for token in out if token < steer.end])

    return hear


PARTS = {each.__name__: each for each in (fsdd, speakers, audiomnist, joined, truncated, stream, whisper)}


def main() -> None:
    """One part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--data", type=Path, help="a folder of recordings; stream makes its own")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each training")
    parser.add_argument("--model", type=Path, help="whisper: what regard import made; stream: a demo")
    parser.add_argument("--weights", type=Path, help="whisper: tiny.en.pt, for transformers")
    parser.add_argument("--faster", type=Path, help="whisper: a CTranslate2 folder, for faster-whisper")
    parser.add_argument("--files", type=int, default=100, help="whisper, stream: recordings")
    parser.add_argument("--keep", type=Path, help="where models and recordings go; else nowhere")
    options = parser.parse_args()
    if options.data is None and options.part != "stream":
        parser.error(f"{options.part} needs --data")
    with TemporaryDirectory() as place:
        PARTS[options.part](options, options.keep or Path(place))


if __name__ == "__main__":
    main()
