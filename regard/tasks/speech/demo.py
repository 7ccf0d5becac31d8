"""`regard demo --task speech`: a recogniser of telephone keys, from calls that are made on the spot.

Nothing is downloaded: tones with noise, pauses and hum (`regard.audio.tones`) are written as recordings and
read like anybody's. After that it is what `regard train`, `evaluate` and `transcribe` do.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.audio.tones import PITCH, write_calls
from regard.tasks.speech import TASK
from regard.tasks.task import command
from regard.training.run import Asked
from regard.training.run import train as run
from regard.training.workspace import refuse_foreign

TRAIN, VALID, TEST = 1500, 60, 200  # calls
SHOWN = 3
SETTINGS: dict[str, Any] = PITCH | {
    "model.encoder_layers": 3,
    "model.decoder_layers": 1,
    "attention.ahead": 4,
    "train.batch_tokens": 512,
}


@dataclass(frozen=True)
class Options:
    """What the demo of speech takes."""

    output: Path = Path("runs/demo-speech")
    minutes: float = 2.0
    fresh: bool = False
    device: str | None = None


def demo(options: Options, sizes: tuple[int, int, int] = (TRAIN, VALID, TEST), **more: Any) -> None:
    """Train on calls, then say what was dialled in others."""
    refuse_foreign(options.output)
    place, files, first = options.output / "data", [], 0
    for name, count in zip(("train", "valid", "test"), sizes, strict=True):
        files.append(write_calls(place / name, first, count))
        first += count
    asked = Asked(
        options.output,
        overrides=SETTINGS | {"train.minutes": options.minutes} | more,
        fresh=options.fresh,
        device=options.device,
        origin="telephone calls made on this machine",
    )
    run(TASK, TASK.read([files[0]], [files[1]]), asked)
    found = TASK.evaluate(options.output, [files[2]])
    print(f"\n{found.text()}\nCalls that training never heard:")
    listener = TASK.load(options.output)
    for line in files[2].read_text(encoding="utf-8").splitlines()[1 : SHOWN + 1]:
        name, text = line.split("\t")
        heard = list(listener.transcribe(place / "test" / name))
        words = "  ".join(f"{word.text} at {word.start:.2f} s" for each in heard for word in each.words)
        print(f"  dialled {text}\n  heard   {words}")
    print(farewell(options.output, place / "test" / f"{sizes[0] + sizes[1]}.wav"), flush=True)


def farewell(folder: Path, recording: Path) -> str:
    """The commands to go on with, as they can be typed here."""
    regard, place = command(), shlex.quote(str(folder))
    return "\n".join(
        (
            "-" * 60,
            "Go on with:",
            f"  {regard} transcribe -m {place} {shlex.quote(str(recording))} --format srt",
            f"  {regard} show {place}",
            f"  {regard} train --task speech recordings.tsv -o runs/mine     # file, tab, text",
        )
    )
