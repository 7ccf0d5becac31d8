"""What a recogniser listened to: for every token it wrote, how much of each moment every head took.

The maps of cross-attention are (H, tokens, moments). Where the encoder's attention is truncated, the same
weights are asked once more with windows that reach everywhere: what it heard then, and both encoders' maps
(H, moments, moments), stand side by side. Moments are joined where there are too many numbers: weights of
keys are added, those of queries averaged. Before this file: `regard.tasks.speech`; after it: `page/sound.js`.
"""

import base64
import io
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.attention.record import Tape, record
from regard.attention.sparse import SparseWeights
from regard.attention.switch import heads_off
from regard.audio.frames import HOP
from regard.audio.sound import Recording
from regard.errors import DataError, UsageError
from regard.look.document import as_json, rounded
from regard.look.html import notebook_frame, page
from regard.look.look import MOST_NUMBERS, Origin, opened, write
from regard.tasks.task import load

LONGEST = 30.0  # seconds
RANGE = 1.5  # of a frame below the loudest: 60 dB from the darkest shade to the brightest


@dataclass(frozen=True)
class SoundMap:
    """The weights (H, queries, moments) of one attention; a moment is so many seconds."""

    name: str
    weights: Tensor
    moment: float


@dataclass(frozen=True)
class Hearing:
    """What was heard by the encoder as it is, or with windows that reach everywhere."""

    name: str  # truncated, full
    answer: str
    maps: tuple[SoundMap, ...]


@dataclass(frozen=True)
class SoundFigure:
    """The sound, and beneath it the row of every token."""

    look: "SoundLook"
    one: SoundMap
    weights: Tensor  # (tokens, moments)

    def to_png(self) -> bytes:
        """A PNG."""
        return self._drawn("png")

    def to_svg(self) -> str:
        """An SVG."""
        return self._drawn("svg").decode()

    def _drawn(self, form: str) -> bytes:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        look, rows = self.look, len(self.weights)
        sheet = Figure(figsize=(8, 2.2 + 0.19 * rows), layout="constrained")
        FigureCanvasAgg(sheet)
        above, below = sheet.subplots(2, 1, sharex=True, height_ratios=[2, max(1.0, 0.19 * rows)])
        ends = 0.0, look.seconds
        above.imshow(look.frames, aspect="auto", origin="lower", extent=(*ends, 0, 1), cmap="magma")
        above.set_yticks([])
        above.set_title(look.answer[:90], fontsize=9)
        seen = self.weights / self.weights.amax(-1, keepdim=True).clamp_min(1e-9)
        wide = self.weights.shape[1] * self.one.moment
        below.imshow(seen.numpy(), aspect="auto", extent=(0.0, wide, rows - 0.5, -0.5), cmap="Blues")
        below.set_yticks(range(rows), [token or "end" for token in look.tokens], fontsize=7)
        below.set_xlim(*ends)
        below.set_xlabel(f"seconds; {self.one.name}", fontsize=8)
        held = io.BytesIO()
        sheet.savefig(held, format=form, dpi=110, metadata={"Date": None} if form == "svg" else None)
        return held.getvalue()


@dataclass(frozen=True)
class SoundLook:
    """A recording, what was heard in it, and where every head listened."""

    text: str  # where the recording lies
    answer: str
    frames: npt.NDArray[np.uint8]  # (mels, T), low ones first
    seconds: float
    tokens: tuple[str, ...]  # the last is the end's, which is empty
    confidence: tuple[float, ...]
    maps: tuple[SoundMap, ...]
    encoders: tuple[Hearing, ...]  # as it is; and with full attention, where it is truncated
    origin: Origin = field(default_factory=Origin)
    off: Mapping[str, Collection[int]] = field(default_factory=dict)
    task: str = "speech"

    def map(self, name: str) -> SoundMap:
        """The map of that name: decoder.1.cross."""
        for one in self.maps:
            if one.name == name:
                return one
        raise UsageError(f"there is no map {name}; there are {', '.join(one.name for one in self.maps)}")

    def figure(
        self, *, kind: str = "", layer: int | None = None, head: int | None = None, pieces: bool = False
    ) -> SoundFigure:
        """Where each token listened: the last layer, the mean of its heads, unless they are named."""
        if kind not in ("", "cross"):
            raise UsageError(f"a figure of a recording shows cross-attention, not {kind}")
        there = [one for one in self.maps if layer is None or one.name.split(".")[1] == str(layer)]
        if not there:
            raise UsageError(f"there is no layer {layer}; there are {', '.join(m.name for m in self.maps)}")
        one = there[-1]
        if head is not None and not 0 <= head < len(one.weights):
            raise UsageError(f"{one.name} has heads 0 to {len(one.weights) - 1}, there is no head {head}")
        return SoundFigure(self, one, one.weights.mean(0) if head is None else one.weights[head])

    def to_dict(self, *, vectors: bool = True) -> dict[str, Any]:
        """Everything as plain values: what docs/look.md describes."""
        return {
            "format": "regard-sound-look",
            "version": 1,
            "task": self.task,
            "model": {"name": self.origin.name},
            "text": self.text,
            "answer": self.answer,
            "seconds": round(self.seconds, 3),
            "spectrogram": {
                "width": self.frames.shape[1],
                "height": self.frames.shape[0],
                "bytes": base64.b64encode(self.frames.tobytes()).decode(),
            },
            "tokens": list(self.tokens),
            "confidence": [round(each, 4) for each in self.confidence],
            "off": {name: sorted(heads) for name, heads in self.off.items()},
            "maps": [_said(one) for one in self.maps],
            "encoders": [
                {"name": each.name, "answer": each.answer, "maps": [_said(one) for one in each.maps]}
                for each in self.encoders
            ],
        }

    def to_json(self, *, vectors: bool = True) -> str:
        """`to_dict` as text."""
        return as_json(self.to_dict())

    def to_html(self) -> str:
        """A page in one file that needs no network."""
        return page(self.to_dict(), "sound.js")

    def save(self, path: str | PathLike[str]) -> None:
        """Write it by the ending of the path: .html, .json, .png or .svg."""
        write(Path(path), self)

    def _repr_html_(self) -> str:
        return notebook_frame(self.to_html(), f"Where it listened: {self.text}")


def _said(one: SoundMap) -> dict[str, Any]:
    return {"name": one.name, "moment": round(one.moment, 4), "heads": rounded(one.weights, 4)}


def look_at_recording(
    model: Any,
    text: Any,
    *,
    vectors: bool = True,
    off: Mapping[str, Iterable[int]] | None = None,
    most: int = MOST_NUMBERS,
) -> SoundLook:
    """Transcribe one short recording and keep where every head listened.

    `model` is a folder, or what `regard.load` made of it; `text` is a path, or samples at the model's rate;
    `off` switches heads off. (`vectors` is for texts.)
    """
    listener, origin = opened(model, load)
    silent = {name: sorted(set(heads)) for name, heads in (off or {}).items()}
    samples = text if isinstance(text, np.ndarray) else _samples(Path(text), listener.rate)
    if len(samples) < 2 * listener.framing.hop:
        raise DataError(f"{len(samples)} samples are too few to hear anything")
    with heads_off(silent), torch.inference_mode():
        heard, listened = _studied(listener, samples)
        ids = torch.tensor([[*heard.prompt, *heard.ids]], device=heard.memory.device)
        with record() as tape:
            hidden = listener.model.write(heard.memory, None, ids)[0, len(heard.prompt) - 1 :]
        encoders = [("truncated" if _truncated(listener) else "full", heard.text, listened)]
        if _truncated(listener):
            wide = _widened(listener)
            full, everywhere = _studied(wide, samples)
            encoders.append(("full", full.text, everywhere))
        logp = listener.model.project(hidden).float().log_softmax(-1)
    wanted = [*heard.ids, listener.tokenizer.end_id]
    tokens = [_spelled(listener.tokenizer, token) for token in heard.ids]
    places = -(-len(heard.frames) // listener.model.stride)
    cross = _maps(tape, "cross", places, len(heard.prompt) - 1)
    return SoundLook(
        "a recording" if isinstance(text, np.ndarray) else str(text),
        heard.text,
        _shades(heard.frames),
        len(heard.frames) * HOP,
        (*tokens, ""),
        tuple(float(logp[row, token].exp()) for row, token in enumerate(wanted)),
        _fitting(cross, listener.place, most // 2),
        tuple(
            Hearing(name, said, _fitting(maps, listener.place, most // 2 // len(encoders), square=True))
            for name, said, maps in ((n, a, _maps(t, "self", places)) for n, a, t in encoders)
        ),
        origin,
        silent,
    )


def _spelled(tokenizer: Any, token: int) -> str:
    """A token as people read it; one that steers by its name."""
    return tokenizer.spell([token]).decode("utf-8", "replace") or str(tokenizer.pieces[token])


def _samples(path: Path, rate: int) -> Any:
    """A recording, if it is short enough."""
    recording = Recording(path)
    if recording.seconds > LONGEST:
        recording.close()
        raise DataError(f"{path} lasts {recording.seconds:.0f} s; at most {LONGEST:g} can be looked into")
    return np.concatenate(list(recording.blocks(rate)))


def _studied(listener: Any, samples: Any) -> tuple[Any, Tape]:
    """What was heard, and the tape of the encoder."""
    with record() as tape:
        found = listener.studied(samples)
    return found, tape


def _truncated(listener: Any) -> bool:
    return listener.model.kind == "attention" and any(
        layer.attention.kernel.windowed for layer in listener.model.encoder
    )


def _widened(listener: Any) -> Any:
    """The same weights with windows that reach everywhere, which is full attention."""
    wide = deepcopy(listener)
    for layer in wide.model.encoder:
        layer.attention.kernel.window = layer.attention.kernel.ahead = 1 << 20
    return wide


def _maps(tape: Tape, kind: str, places: int, first: int = 0) -> list[tuple[str, Tensor]]:
    """The maps (H, T, S) of a kind: cross-attention from row `first` on, or the encoder's own."""
    found = []
    for site in tape.sites():
        if site.kind != kind or (kind == "self" and site.stack != "encoder"):
            continue
        weights: Any = tape[site.name][0]
        weights = (weights.to_dense() if isinstance(weights, SparseWeights) else weights)[0]
        queries = weights[:, :places] if kind == "self" else weights[:, first:]
        found.append((site.name, queries[..., :places].float().cpu()))
    return found


def _fitting(
    maps: list[tuple[str, Tensor]], place: float, most: int, *, square: bool = False
) -> tuple[SoundMap, ...]:
    """Maps of at most so many numbers: moments are joined until they are."""
    if not maps:
        return ()
    join, longest = 1, max(weights.shape[-1] for _, weights in maps)
    while join < longest and sum(_joined(weights, join, square) for _, weights in maps) > most:
        join += 1
    found = []
    for name, weights in maps:
        joined = torch.stack([part.sum(-1) for part in torch.split(weights, join, -1)], -1)
        if square:
            joined = torch.stack([part.mean(1) for part in torch.split(joined, join, 1)], 1)
        found.append(SoundMap(name, joined, place * join))
    return tuple(found)


def _joined(weights: Tensor, join: int, square: bool) -> int:
    """Numbers of weights (H, T, S) whose moments are joined."""
    heads, rows, places = weights.shape
    return heads * (-(-rows // join) if square else rows) * -(-places // join)


def _shades(frames: Tensor) -> npt.NDArray[np.uint8]:
    """Frames (T, mels) as a picture (mels, T)."""
    shade = (1 + (frames - frames.max()) / RANGE).clamp(0, 1)
    picture: npt.NDArray[np.uint8] = (shade * 255).round().to(torch.uint8).t().contiguous().numpy()
    return picture
