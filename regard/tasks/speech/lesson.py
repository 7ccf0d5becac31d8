"""From recordings and texts to a lesson: samples on disk, harder ones every epoch, attention and CTC.

    loss = (1 - λ) cross-entropy of the text + λ CTC        λ = speech.ctc

Samples are kept as 16 bits at the model's rate; frames are made of them when a batch is. Before this file:
`examples.py`; after it: `regard.training.run`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.audio.augment import PAUSES, Draw, blotted, harder, joined, voiced
from regard.audio.frames import HOP, framing_of, lifted
from regard.audio.sound import read_sound
from regard.config import Config, TrainConfig, merge
from regard.config.speech import SpeechConfig
from regard.data.columns import Chunk, Columns, Kind, held_out, open_columns
from regard.data.inputs import Frames
from regard.errors import DataError
from regard.models.folder import Loaded
from regard.process.progress import duration
from regard.tasks.speech.examples import Recordings
from regard.tasks.speech.validation import Validation
from regard.text.running import RunningText
from regard.text.tokenizer import Tokenizer
from regard.training.feed import Rows, StoreFeed
from regard.training.lesson import Job, Lesson, run_tokenizer
from regard.training.loss import token_loss
from regard.training.objective import Loss, Objective

PLACE = 4  # frames that count as one token of train.batch_tokens
HELD_OUT, HELD_OUT_SHARE = 500, 20  # recordings at most, and one in so many
CHUNK = 100  # recordings that are written at a time
LOUD = 32767
_DRAWN = 104729  # tells what is drawn for a batch apart from what else a seed decides
CRAMPED = 0.02  # of recordings may have too few places for their text


@dataclass(frozen=True)
class SpeechBatch:
    """Frames, and their texts: `tgt_in`, `tgt_out`, `tgt_mask` (B, T), lengths (B,) without the end."""

    inputs: Frames
    tgt_in: Tensor
    tgt_out: Tensor
    tgt_mask: Tensor
    lengths: Tensor

    @property
    def targets(self) -> int:
        """Tokens, the ends counted."""
        return int(self.lengths.sum()) + len(self.lengths)

    def to(self, device: torch.device | str) -> "SpeechBatch":
        """The same on a device."""
        parts = (self.tgt_in, self.tgt_out, self.tgt_mask, self.lengths)
        return SpeechBatch(self.inputs.to(device), *(part.to(device, non_blocking=True) for part in parts))


class Maker:
    """Rows of a store as batches; with a draw they are made harder."""

    def __init__(self, store: Columns, tokenizer: Tokenizer, how: SpeechConfig) -> None:
        self.store, self.tokenizer, self.how, self.framing = store, tokenizer, how, framing_of(how)

    def lengths(self, rows: Rows) -> tuple[Any, Any]:
        """How long each row is as the sampler counts: places and tokens."""
        frames = self.store["sound"].lengths[rows] // self.framing.hop
        return np.maximum(1, frames // PLACE), self.store["ids"].lengths[rows] + 1

    def sound(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Samples (B, L) and their lengths (B,)."""
        column = self.store["sound"]
        samples = torch.from_numpy(column.padded(rows).astype(np.float32) / LOUD)
        return samples, torch.from_numpy(column.lengths[rows])

    def __call__(self, rows: Rows, draw: Draw | None = None) -> SpeechBatch:
        """One batch of rows (B,); with a draw also of (B, N), N of them joined to one."""
        samples, lengths = self.sound(rows.reshape(-1))
        empty = torch.zeros(len(rows), dtype=torch.bool)
        if draw is not None:
            if rows.ndim > 1:
                samples, lengths = joined(samples, lengths, rows.shape[1], self.how.rate, draw)
            samples, lengths, empty = harder(samples, lengths, self.how, draw)
        heard = lengths // self.framing.hop
        frames = self.framing.frames(samples)[:, : int(heard.max())]
        if draw is not None:
            frames = voiced(frames, self.how, draw)
        frames = lifted(frames) if self.how.features == "whisper" else frames
        if draw is not None:
            frames = blotted(frames, heard, self.how.mask, draw)
        real = torch.arange(frames.shape[1]) < heard[:, None]
        return self._asked(Frames(frames * real[:, :, None], real), rows, empty)

    def _asked(self, inputs: Frames, rows: Rows, empty: Tensor) -> SpeechBatch:
        specials = self.tokenizer.specials
        ids, lengths = self._texts(rows)
        lengths = lengths * ~empty
        places = torch.arange(ids.shape[1])
        out = ids.masked_fill(places >= lengths[:, None], specials.pad)
        out[torch.arange(len(ids)), lengths] = specials.end
        before = F.pad(ids[:, :-1], (1, 0), value=specials.begin)
        mask = places <= lengths[:, None]
        return SpeechBatch(inputs, before.masked_fill(~mask, specials.pad), out, mask, lengths)

    def _texts(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Ids (B, T), of which the last are padding, and how many there are (B,)."""
        pad, column = self.tokenizer.specials.pad, self.store["ids"]
        if rows.ndim == 1:
            lengths = torch.from_numpy(column.lengths[rows])
            return torch.from_numpy(column.padded(rows, pad, more=1).astype(np.int64)), lengths
        said = (" ".join(self.tokenizer.decode(column.row(row).tolist()) for row in group) for group in rows)
        ids = [torch.tensor(self.tokenizer.encode(text), dtype=torch.int64) for text in said]
        padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=pad)
        return F.pad(padded, (0, 1), value=pad), torch.tensor([len(each) for each in ids])


class SpeechFeed(StoreFeed[SpeechBatch]):
    """Batches that sound otherwise in every epoch."""

    def __init__(self, maker: Maker, rows: Rows, train: TrainConfig) -> None:
        super().__init__(rows, maker.lengths(rows), train, maker)
        self.maker, self.seed = maker, train.seed
        self.most = most_joined(maker.how, maker.store)

    def batch(self, epoch: int, position: int) -> SpeechBatch:
        """One batch."""
        seed = np.random.SeedSequence([self.seed, _DRAWN, epoch, position]).generate_state(1)[0]
        draw = Draw(torch.Generator().manual_seed(int(seed)))
        return self.maker(self._joined(self.rows[self._of(epoch)[position]].astype(np.int64), draw), draw)

    def _joined(self, rows: Rows, draw: Draw) -> Rows:
        """The rows (B,), or fewer of them with others drawn beside them (B / N, N): as much sound."""
        count = int(draw.between(1, self.most + 1)) if self.most > 1 else 1
        if count == 1:
            return rows
        first = rows[: -(-len(rows) // count)]
        others = (draw.between(0, len(self.rows), len(first), count - 1)).long().numpy()
        return np.concatenate([first[:, None], self.rows[others].astype(np.int64)], 1)


class Hearing(Objective):
    """Cross-entropy of what is written, and CTC of what is heard."""

    def __init__(self, smoothing: float, ctc: float, blank: int) -> None:
        self.smoothing, self.ctc, self.blank = smoothing, ctc, blank

    def losses(self, model: Any, batch: SpeechBatch) -> Iterator[Loss]:
        """One loss."""
        memory, real = model.encode(batch.inputs)
        hidden = model.write(memory, real, batch.tgt_in)
        total = token_loss(model, hidden, batch.tgt_out, batch.tgt_mask, label_smoothing=self.smoothing)
        if model.ctc is not None:
            heard = ctc_loss(model.spoken(memory), real, batch, self.blank)
            total = (1 - self.ctc) * total + self.ctc * heard
        yield Loss(total)


def ctc_loss(logp: Tensor, real: Tensor | None, batch: SpeechBatch, blank: int) -> Tensor:
    """CTC summed over the rows; 0 where a recording has too few places for its text."""
    rows, places, _ = logp.shape
    heard = torch.full((rows,), places) if real is None else real.sum(1).cpu()
    lost = F.ctc_loss(
        logp.transpose(0, 1),
        batch.tgt_out,
        heard,
        batch.lengths.cpu(),
        blank=blank,
        reduction="none",
        zero_infinity=True,
    )
    return lost.sum()


def store_of(
    folder: Path, data: Recordings, paths: Sequence[Path], tokenizer: Tokenizer, how: SpeechConfig
) -> Columns:
    """The recordings of some files as columns: samples and ids; the report counts what was left out."""

    def chunks(report: dict[str, Any]) -> Iterator[Chunk]:
        sounds: list[Any] = []
        texts: list[Any] = []
        kept = seconds = long = 0.0
        for spoken in data.read(paths):
            try:
                samples = read_sound(spoken.path, how.rate, how.longest)  # hours would fill the memory
            except DataError as error:
                raise DataError(f"{spoken.where}: {error}") from None
            if len(samples) > how.longest * how.rate:
                long += 1
                continue
            loud = max(1.0, float(np.abs(samples).max()))
            sounds.append(np.round(samples / loud * LOUD).astype("<i2"))
            texts.append(tokenizer.encode(spoken.text))
            kept, seconds = kept + 1, seconds + len(samples) / how.rate
            if len(sounds) == CHUNK:
                yield {"sound": sounds, "ids": texts}
                sounds, texts = [], []
        report |= {"recordings": int(kept), "seconds": round(seconds, 3), "too_long": int(long)}
        yield {"sound": sounds, "ids": texts}

    which = "valid" if tuple(paths) == data.valid else "train"
    inputs = [data.fingerprints(), tokenizer.to_json(), how.rate, how.longest, which]
    return open_columns(folder, inputs, {"sound": Kind("<i2"), "ids": Kind("<i4")}, chunks)


def hold_out(store: Columns) -> tuple[Rows, Rows]:
    """Rows to train on, and rows to measure on, chosen by a hash of their sound."""
    contents = (store["sound"].row(i).tobytes() for i in range(len(store)))
    return held_out(contents, HELD_OUT, HELD_OUT_SHARE)


def tokenizer_for(folder: Path, data: Recordings, config: Config, base: Loaded | None) -> Tokenizer:
    """The base model's tokenizer, the one this run has learned before, or a new one."""

    def learn() -> Tokenizer:
        texts = (spoken.text for spoken in data.read(data.train))
        return RunningText.learn(texts, config.text.units, config.text.vocab_size)

    return run_tokenizer(folder, base, learn)


def lesson_for(job: Job) -> Lesson:
    """What a run works with."""
    data: Recordings = job.examples
    tokenizer = tokenizer_for(job.folder, data, job.config, job.base)
    how = job.config.of(SpeechConfig)
    how = replace(how, rate=how.rate or data.rate())
    make = partial(store_of, data=data, tokenizer=tokenizer, how=how)
    store = make(job.folder / "store" / "train", paths=data.train)
    if not len(store):
        raise DataError(f"every recording is longer than speech.longest ({how.longest:g} s)")
    held, rows = store, np.arange(len(store))
    kept = rows
    if data.valid:
        held = make(job.folder / "store" / "valid", paths=data.valid)
        rows = np.arange(len(held))
    else:
        kept, rows = hold_out(store)
    config = settled(job.config, how, tokenizer, store)
    how = config.of(SpeechConfig)
    feed = SpeechFeed(Maker(store, tokenizer, how), kept, config.train)
    report = store.report
    said = f"{report['recordings']:,} recordings, {duration(report['seconds'])}, at {how.rate:,} Hz" + (
        f"; {report['too_long']:,} longer than {how.longest:g} s were left out" if report["too_long"] else ""
    )
    job.reporter.said(f"{said}; {len(rows):,} to measure on, {feed.count(0):,} batches an epoch")
    names = " + ".join(path.name for path in data.valid) or "held-out recordings"
    return Lesson(
        config,
        feed,
        Hearing(config.train.label_smoothing, how.ctc, tokenizer.pad_id),
        Validation(Maker(held, tokenizer, how), rows, config) if len(rows) else None,
        files={"tokenizer.json": tokenizer.to_json().encode()},
        data=[said, f"of which {len(kept):,} were trained on"],
        measured_on=f"{names} (validation)",
    )


def most_joined(how: SpeechConfig, store: Columns) -> int:
    """Recordings that are joined to one at most, so that none is longer than what may be trained on."""
    longest = float(store["sound"].lengths.max()) / how.rate + PAUSES[1]
    return max(1, min(how.join, int(how.longest / longest)))


def settled(config: Config, how: SpeechConfig, tokenizer: Tokenizer, store: Columns) -> Config:
    """The config with what follows from the recordings: rate, subsampling, vocabulary, dropout."""
    many = most_joined(how, store)
    heard = float(store["sound"].lengths.max()) / how.rate * many + PAUSES[1] * (many - 1)
    changes: dict[str, Any] = {"speech.rate": how.rate, "speech.heard": round(heard + 0.005, 2)}
    if not how.subsampling:
        places = store["sound"].lengths / (how.rate * HOP * 4)
        changes["speech.subsampling"] = 4 if (places < _needed(store)).mean() <= CRAMPED else 2
    if not config.model.vocab_size:
        changes["model.vocab_size"] = tokenizer.vocab_size
    if config.model.dropout < 0:
        changes["model.dropout"] = 0.1
    return merge(config, changes)


def _needed(store: Columns) -> Any:
    """Places that CTC needs for each text: one a token, and one between two that are the same."""
    column = store["ids"]
    same = [int((np.diff(column.row(row)) == 0).sum()) for row in range(len(column))]
    return column.lengths + np.array(same)
