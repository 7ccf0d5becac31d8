"""`regard transcribe`: recordings in, what is said in them out.

Plain text goes out as it is found; the other formats file by file, to stdout or into a folder. `-` is raw
samples from stdin. The work is regard/tasks/speech's.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.options import On, refuse_sharing, takes
from regard.cli.streams import is_standard
from regard.errors import DataError, UsageError

if TYPE_CHECKING:
    from regard.audio.sound import Recording
    from regard.cli.bulk import Answer
    from regard.tasks.speech.listener import Listener, Segment

FORMATS = ("txt", "vtt", "srt", "tsv", "json")
WAIT = 0.08  # seconds of raw samples that are read at a time while somebody waits


@dataclass(frozen=True)
class Options:
    """What `regard transcribe` takes."""

    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="WAV, FLAC, OGG or MP3; - is raw samples on stdin (16 bits, one channel).",
            readable=False,
            show_default=False,
        ),
    ]
    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    format: Annotated[str, typer.Option("-f", "--format", help="txt, vtt, srt, tsv or json.")] = "txt"
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="A file for each recording here, not stdout."),
    ] = None
    stream: Annotated[
        bool, typer.Option("--stream", help="Text while the sound still comes, by the model's look-ahead.")
    ] = False
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Of a Whisper model: en, de, zh.", show_default="heard")
    ] = None
    rate: Annotated[
        int | None, typer.Option(help="Samples a second of stdin.", show_default="the model's")
    ] = None
    precision: Annotated[
        str, typer.Option(help="Of a Whisper model: int8, bf16, fp32; auto: the fastest that is as good.")
    ] = "auto"
    engine: Annotated[str, typer.Option(help="native, readable; auto: native where it can.")] = "auto"
    part: Annotated[
        str | None,
        typer.Option(
            "--part",
            metavar="I/N",
            help="The I-th of N shares of the recordings; what -o has is not made again.",
        ),
    ] = None
    on: On = None
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None

    def __post_init__(self) -> None:
        if self.output is None or any(map(is_standard, self.files)):
            refuse_sharing(
                self.part, self.on, "shares out recordings; name files, and a folder for what is said (-o)"
            )
        if self.format not in FORMATS:
            raise UsageError(f"--format ({self.format}) must be one of {', '.join(FORMATS)}")
        if self.stream and (self.format != "txt" or self.output is not None):
            raise UsageError("--stream prints text as it comes; it takes no --format and no --output")
        if self.rate is not None and not 1000 <= self.rate <= 768_000:
            raise UsageError(f"--rate ({self.rate}) must be between 1000 and 768000")


@takes(Options)
def transcribe(options: Options) -> None:
    """What is said in recordings."""
    from regard.tasks.task import expect

    expect(options.model, "speech")
    for path in options.files:
        if not is_standard(path) and not path.is_file():
            raise DataError(f"{path} {'is no file' if path.exists() else 'does not exist'}; give a recording")
    if options.output is not None and (options.part or options.on):
        _shared_out(options, options.output)
        return
    listener = _listener(options)
    if sys.stdout is None:
        raise UsageError("stdout is closed; there is nowhere to write to")
    places = _places(options, options.output or Path())
    _each(options.files, lambda path: _one(listener, path, options, places[path]))


def _each(files: Sequence[Path], work: Callable[[Path], None]) -> None:
    """All of them, whatever is wrong with one."""
    from regard.cli.console import note

    lost = 0
    for path in files:
        try:
            work(path)
        except DataError as error:
            if len(files) == 1:
                raise
            lost += 1
            note(str(error))
    if lost:
        raise DataError(f"{lost:,} of {len(files):,} recordings could not be heard; the lines above say why")


def _one(listener: "Listener", path: Path, options: Options, place: Path) -> None:
    """What is said in one recording, in the form and to the place that were asked for."""
    if options.stream:
        _follow(listener, _sound(listener, path, options), _say)
    elif options.output is not None:
        _keep(listener, path, options, place)
    elif options.format == "txt":
        for segment in listener.transcribe(_sound(listener, path, options), words=False):
            _say(f"{segment.text}\n")
    else:
        _tell(listener, path, options, _say)


def _listener(options: Options) -> "Listener":
    from regard.process.device import pick_device
    from regard.tasks.task import load

    told = {} if options.language is None else {"language": options.language}
    listener: Listener = load(
        options.model,
        device=pick_device(options.device),
        precision=options.precision,
        engine=options.engine,
        **told,
    )
    return listener


def answerer(options: Options) -> "Answer":
    """Paths of recordings to what is said in each, by a model that is loaded."""
    listener = _listener(options)
    return lambda paths: (_whole(listener, Path(path), options) for path in paths)


def _shared_out(options: Options, folder: Path) -> None:
    """This part of the recordings, as far as they are not done; a file for each."""
    from regard.atomic import write_text
    from regard.cli.bulk import check_place, on_ray
    from regard.cli.parts import share_of

    check_place(options.on, None)
    places = _places(options, folder)
    files = share_of(options.part, options.files)
    left = [path for path in files if not _done(path, places[path], options.model)]
    if not left:
        return
    folder.mkdir(parents=True, exist_ok=True)
    if not options.on:
        answer = answerer(options)
        _each(left, lambda path: write_text(places[path], next(answer([str(path)]))))
        return
    for path, text in zip(left, on_ray(options, answerer, 1)(map(str, left)), strict=True):
        write_text(places[path], text)


def _done(path: Path, place: Path, model: Path) -> bool:
    """Whether what is said in a recording was written since it and the model are there; said if so."""
    from regard.cli.parts import made_of

    return made_of(place, path, model / "model.safetensors")


def _say(text: str) -> None:
    assert sys.stdout is not None
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _sound(listener: "Listener", path: Path, options: Options) -> Iterator[Any]:
    """A file or stdin as blocks of samples."""
    from regard.audio.resample import resampled
    from regard.audio.sound import BLOCK, Recording, pcm_blocks

    if not is_standard(path):
        return _heard(Recording(path), listener.rate)
    if sys.stdin is None:
        raise UsageError("stdin is closed; name a file")
    rate = options.rate or listener.rate
    blocks = pcm_blocks(sys.stdin.buffer, rate, WAIT if options.stream else BLOCK)
    return resampled(blocks, rate, listener.rate)


def _heard(recording: "Recording", rate: int) -> Iterator[Any]:
    """Its samples; where they end before the header says, the person is told."""
    from regard.cli.console import note

    yield from recording.blocks(rate)
    if recording.lost:
        note(f"{recording.name} ends early: {recording.lost:.1f} s that its header speaks of are not there")


def _whole(listener: "Listener", path: Path, options: Options) -> str:
    from regard.tasks.speech.subtitles import FORMATS as FORMS

    return FORMS[options.format](list(listener.transcribe(_sound(listener, path, options))))


def _tell(listener: "Listener", path: Path, options: Options, say: Callable[[str], None]) -> None:
    """All of it at once; of a recording that cannot be read to its end what was heard, then the fault."""
    from regard.tasks.speech.subtitles import FORMATS as FORMS

    found: list[Segment] = []
    try:
        for segment in listener.transcribe(_sound(listener, path, options)):
            found.append(segment)
    except DataError:
        if found:
            say(FORMS[options.format](found))
        raise
    say(FORMS[options.format](found))


def _keep(listener: "Listener", path: Path, options: Options, place: Path) -> None:
    """A file beside nothing else."""
    from regard.atomic import write_text

    place.parent.mkdir(parents=True, exist_ok=True)
    _tell(listener, path, options, lambda text: write_text(place, text))


def _places(options: Options, folder: Path) -> dict[Path, Path]:
    """Where it goes: the recording's name and the format's ending; the second of a name gets a number."""
    found: dict[Path, Path] = {}
    used: set[str] = set()
    for path in options.files:
        name = Path("stdin" if is_standard(path) else path.name)
        called = (f"{name.stem}-{number}{name.suffix}" if number > 1 else str(name) for number in count(1))
        if path not in found:
            chosen = next(each for each in called if each not in used)
            used.add(chosen)
            found[path] = folder / f"{chosen}.{options.format}"
    return found


def _follow(listener: "Listener", blocks: Iterator[Any], say: Any) -> None:
    """Text while the sound comes; a line ends with a pause."""
    last = None
    try:
        for piece in listener.follow(blocks):
            if last is not None and piece.at - last > 1.0:
                say("\n")
            say(piece.text)
            last = piece.at
    finally:
        if last is not None:
            say("\n")
