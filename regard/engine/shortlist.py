"""The shortlist: the target tokens that a sentence is likely to be written with, by its source tokens.

    allowed(sentence) = always ∪ {the k best t of each source token s}        (Jean et al. 2015)

How much s was looked at while t and what stands before it in its word were written is summed over training
pairs that the model reads together with their targets. Tokens that are frequent or spell bytes are always
allowed, and so are the source's own, which may be copied. The engine's output layer then has a fraction of
its columns. In the model folder: `shortlist.safetensors`. Before this file: the token store; after it:
`engine.py`.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from regard.atomic import write_atomically
from regard.attention.record import record
from regard.data.inputs import pad_sources
from regard.errors import DataError, ModelError, UsageError, shown
from regard.foreign import loads
from regard.models.transformer import Transformer
from regard.text.normalise import SPACE_MARK
from regard.text.tokenizer import Tokenizer

FILE = "shortlist.safetensors"
BEST, FREQUENT = 64, 1000  # tokens kept for a source token; frequent ones that are always allowed
SAMPLED = 128  # tokens at most, whose mass stands for that of all that are left out
_FORMAT = "1"
_PLACES = 4  # of the source that are counted for a target token, by their weights
_TRIED = 2000  # pairs after which the layer is chosen
_BATCH = 64  # pairs
_SORTED = 40  # batches that are sorted by length together
_LONGEST = 256  # tokens; a longer pair is left out, so that memory is bounded
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")

Ints = npt.NDArray[np.int32]
Ids = Sequence[int] | npt.NDArray[Any]
Pairs = Iterable[tuple[Ids, Ids]]  # source and target, without special tokens
Said = Callable[[int], None]  # told how many pairs were read


@dataclass(frozen=True)
class Shortlist:
    """Lists of target ids, end to end; that of source token s begins at `starts[s]`."""

    starts: Ints  # (V + 1,)
    ids: Ints
    always: Ints
    size: int  # of the target vocabulary
    never: tuple[int, ...]  # what is never written
    copies: bool  # whether a source token may be written as it is: both sides have one vocabulary

    def of(self, source: Ids) -> Ints:
        """The ids, sorted, that a source may be written with beside `always`; the engine's own, readable."""
        allowed = np.zeros(self.size, np.bool_)
        own = np.array(list(set(source)))
        for first, last in zip(self.starts[own].tolist(), self.starts[own + 1].tolist(), strict=True):
            allowed[self.ids[first:last]] = True
        if self.copies:
            allowed[own] = True
        allowed[list(self.never)] = False
        allowed[self.always] = False
        return np.flatnonzero(allowed).astype(np.int32)

    def rest(self) -> Ints:
        """The ids that are neither always nor never allowed."""
        ids: Ints = np.setdiff1d(np.arange(self.size), [*self.always, *self.never]).astype(np.int32)
        return ids

    def sample(self) -> Ints:
        """Some of the rest; the mass of all that are left out is taken from these.

        So the probability of a token is nearly that of the full layer, and beams are compared as with it.
        """
        rest = self.rest()
        return np.ascontiguousarray(rest[:: -(-len(rest) // SAMPLED) or 1])

    def save(self, folder: Path, tokenizer: Tokenizer) -> None:
        """Write it into a model folder, whole or not at all."""
        tensors = {name: torch.from_numpy(getattr(self, name)) for name in ("starts", "ids", "always")}
        facts = {"format": _FORMAT, "tokenizer": _checksum(tokenizer)}
        write_atomically(folder / FILE, lambda part: safetensors.torch.save_file(tensors, part, facts))

    @classmethod
    def load(cls, folder: Path, tokenizer: Tokenizer) -> "Shortlist":
        """The shortlist of a model folder; ModelError where there is none, or one of another vocabulary."""
        path = folder / FILE
        if not path.is_file():
            raise ModelError(f"{folder} has no {FILE}; make one with regard shortlist -m {folder}")
        facts, tensors = _read(path)
        if facts.get("format") != _FORMAT or facts.get("tokenizer") != _checksum(tokenizer):
            held = shown(facts.get("tokenizer", "missing"))[:12]
            raise ModelError(
                f"{path} is of another vocabulary: its checksum is {held}, "
                f"the tokenizer's is {_checksum(tokenizer)[:12]}; make it anew: regard shortlist -m {folder}"
            )
        starts, ids, always = tensors
        size = tokenizer.target_vocab_size
        _check(path, tensors, (tokenizer.vocab_size, size, tokenizer.end_id))
        return cls(starts, ids, always, size, tokenizer.specials.never, _joint(tokenizer))


def learn(
    model: Transformer,
    tokenizer: Tokenizer,
    pairs: Pairs,
    *,
    best: int = BEST,
    frequent: int = FREQUENT,
    said: Said = lambda count: None,
) -> Shortlist:
    """A shortlist from sentence pairs as ids.

    A target token is counted for the few source tokens that the heads of one layer, taken together, look at
    most while its word is predicted, up to and with it, by their weights: later pieces of a word look less at
    the source. The layer is the one whose counts say most about the target.
    """
    for name, value in (("best", best), ("frequent", frequent)):
        if value < 1:
            raise UsageError(f"{name} ({value}) must be at least 1")
    counts = _count(model, tokenizer, pairs, said)
    return _shortlist(counts, tokenizer, best, frequent)


def _count(model: Transformer, tokenizer: Tokenizer, pairs: Pairs, said: Said) -> "_Counts":
    """How often each target token goes with each source token."""
    layers = range(len(model.decoder))
    counts = [_Counts(tokenizer.target_vocab_size) for _ in layers]
    read = 0
    within = torch.tensor([not piece.startswith(SPACE_MARK) for piece in tokenizer.target_pieces])
    within[tokenizer.end_id] = False
    for batch in _batches(pairs):
        inputs = pad_sources([[*src, tokenizer.end_id] for src, _ in batch], pad_id=tokenizer.pad_id)
        target = pad_sources([[*tgt, tokenizer.end_id] for _, tgt in batch], pad_id=tokenizer.pad_id)
        src, tgt, tgt_mask = inputs.ids, target.ids, target.real
        begin = torch.full_like(tgt[:, :1], tokenizer.begin_id)
        with torch.inference_mode(), record() as tape:
            model(inputs, torch.cat([begin, tgt[:, :-1]], 1))
        # Heads rest on the end when they have nothing to look for.
        resting = (src == tokenizer.end_id) | ~inputs.real
        for layer in layers:
            weights = tape[f"decoder.{layer}.cross"][0].mean(1)  # (B, T, S)
            weights = weights.masked_fill(resting[:, None], 0.0)
            for place in range(1, tgt.shape[1]):
                weights[:, place] += weights[:, place - 1] * within[tgt[:, place], None]
            most, places = weights.topk(min(_PLACES, src.shape[1]), -1)  # (B, T, 4)
            seen = src[:, None].expand_as(weights).gather(2, places)
            counts[layer].add(seen[tgt_mask], tgt[tgt_mask], most[tgt_mask])
        read += len(batch)
        said(read)
        if read >= _TRIED and len(layers) > 1:
            chosen = min(layers, key=lambda layer: counts[layer].entropy())
            layers = range(chosen, chosen + 1)
    if not read:
        raise DataError("there is no pair to learn a shortlist from")
    return min((counts[layer] for layer in layers), key=_Counts.entropy)


def _batches(pairs: Pairs) -> Iterator[list[tuple[Ids, Ids]]]:
    """Pairs of like length together; those with an empty or very long side are left out."""
    fitting = (pair for pair in pairs if all(0 < len(side) < _LONGEST for side in pair))
    while window := list(islice(fitting, _BATCH * _SORTED)):
        window.sort(key=lambda pair: (len(pair[0]), len(pair[1])))
        yield from (window[at : at + _BATCH] for at in range(0, len(window), _BATCH))


class _Counts:
    """Pairs of a source and a target token with the weight between them, kept sorted and merged."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.keys: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.numbers: npt.NDArray[Any] = np.empty(0)
        self._new: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = []

    def add(self, source: Tensor, target: Tensor, weight: Tensor) -> None:
        """Weight between source tokens (N, P) and target tokens (N,); where it is 0 nothing was looked at."""
        keys, seen = source * self.size + target[:, None], weight > 0
        self._new.append((keys[seen].numpy(), weight[seen].double().numpy()))
        if len(self._new) == 256:
            self.merge()

    def merge(self) -> None:
        """Bring what was added together with what was there."""
        given = np.concatenate([self.keys, *(keys for keys, _ in self._new)])
        weights = np.concatenate([self.numbers, *(weights for _, weights in self._new)])
        self.keys, places = np.unique(given, return_inverse=True)
        self.numbers = np.bincount(places, weights, len(self.keys))
        self._new.clear()

    def entropy(self) -> float:
        """H(target | source) in nats: how little the token looked at tells about the one written."""
        self.merge()
        of_source = np.bincount(self.keys // self.size, self.numbers)[self.keys // self.size]
        return float(-(self.numbers * np.log(self.numbers / of_source)).sum() / self.numbers.sum())


def _shortlist(counts: _Counts, tokenizer: Tokenizer, best: int, frequent: int) -> Shortlist:
    """The best of each source token, and what is always allowed."""
    counts.merge()
    size, specials = tokenizer.target_vocab_size, tokenizer.specials
    sources, targets = np.divmod(counts.keys, size)
    often = np.bincount(targets, counts.numbers, size)
    often[list(specials.never)] = 0
    common = np.argsort(-often, kind="stable")[: min(frequent, np.count_nonzero(often))]
    spelling = [i for i, piece in enumerate(tokenizer.target_pieces) if _BYTE.fullmatch(piece)]
    always = np.unique(np.concatenate([common, spelling, [specials.end]])).astype(np.int32)
    listed = ~np.isin(targets, [*specials.never, *always])  # what is allowed anyway takes no place in a list
    sources, targets, numbers = sources[listed], targets[listed], counts.numbers[listed]
    order = np.lexsort((targets, -numbers, sources))
    sources, targets = sources[order], targets[order]
    firsts = np.searchsorted(sources, np.arange(tokenizer.vocab_size + 1))
    kept = np.arange(len(sources)) - firsts[sources] < best
    starts = np.searchsorted(sources[kept], np.arange(tokenizer.vocab_size + 1))
    return Shortlist(
        starts.astype(np.int32),
        targets[kept].astype(np.int32),
        always,
        size,
        specials.never,
        _joint(tokenizer),
    )


def _joint(tokenizer: Tokenizer) -> bool:
    return tokenizer.pieces == tokenizer.target_pieces


def _checksum(tokenizer: Tokenizer) -> str:
    """That of the tokenizer's file."""
    return hashlib.sha256(tokenizer.to_json().encode()).hexdigest()


def _read(path: Path) -> tuple[dict[str, str], tuple[Ints, Ints, Ints]]:
    """The facts and the arrays of a file, if it is one of ours."""
    try:
        data = path.read_bytes()
        tensors = {name: tensor.numpy() for name, tensor in safetensors.torch.load(data).items()}
        facts = loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}
        starts, ids, always = (tensors[name] for name in ("starts", "ids", "always"))
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"{path} is no shortlist ({reason}); make it anew with regard shortlist") from error
    return facts, (starts, ids, always)


def _check(path: Path, tensors: tuple[Ints, Ints, Ints], limits: tuple[int, int, int]) -> None:
    """Refuse lists that do not lie in their array, or ids that do not lie in the vocabulary."""
    starts, ids, always = tensors
    sources, size, end = limits
    whole = all(each.dtype == np.int32 and each.ndim == 1 for each in tensors)
    whole = whole and len(starts) == sources + 1 and starts[0] == 0 and starts[-1] == len(ids)
    whole = whole and bool((np.diff(starts) >= 0).all()) and end in always
    if not whole or any(each.size and not 0 <= each.min() <= each.max() < size for each in (ids, always)):
        raise ModelError(f"{path} is damaged; make it anew with regard shortlist")


__all__ = ["BEST", "FILE", "FREQUENT", "Shortlist", "learn"]
