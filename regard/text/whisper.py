"""Whisper's vocabulary: GPT-2's pieces, then tokens that steer: languages, tasks, no speech, times.

    pieces | <|endoftext|> | <|startoftranscript|> | languages | translate, ... | <|0.00|> ... <|30.00|>

The pieces are read from what the user has: ranks as `tiktoken` keeps them, or a vocabulary with merges. Where
they stand among the ids follows from their number (Radford et al. 2022). Used by `regard.interop.whisper` and
`regard.tasks.speech.whisper`.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.errors import ModelError
from regard.text.running import RunningText, written
from regard.text.tokenizer import Specials, Tokenizer

_CODES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no "
    "th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw "
    "gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl "
    "mg as tt haw ln ha ba jw su yue "
)
LANGUAGES = tuple(_CODES.split())
END, START = "<|endoftext|>", "<|startoftranscript|>"
STEERING = ("translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps")
STEP, TIMES = 0.02, 1501  # seconds from one time to the next, and how many there are
_FIXED = 2 + len(STEERING) + TIMES  # tokens beside pieces and languages
_ONE_LANGUAGE = 51864  # tokens of the models that know English alone


@dataclass(frozen=True)
class Steering:
    """The ids of what steers."""

    end: int
    start: int
    before: int  # opens what was said before
    languages: Mapping[str, int]  # by code
    tasks: Mapping[str, int]  # transcribe, translate
    no_speech: int
    no_times: int
    times: int  # the first; all after it are times

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Steering":
        """Those of a tokenizer that `whisper_text` made."""
        ids = {piece: number for number, piece in enumerate(tokenizer.pieces) if piece.startswith("<|")}
        try:
            languages = {code: ids[f"<|{code}|>"] for code in LANGUAGES if f"<|{code}|>" in ids}
            tasks = {name: ids[f"<|{name}|>"] for name in ("transcribe", "translate")}
            others = (ids[f"<|{name}|>"] for name in ("nospeech", "notimestamps", "0.00"))
            return cls(ids[END], ids[START], ids["<|startofprev|>"], languages, tasks, *others)
        except KeyError as error:
            raise ModelError(f"tokenizer.json has no token {error}; it is none of Whisper's") from None

    @property
    def english(self) -> bool:
        """Whether the model knows one language and needs not be told."""
        return self.no_times == self.times - 1 and self.times + TIMES == _ONE_LANGUAGE


def whisper_text(pieces: Sequence[str], merges: Sequence[tuple[str, str]], size: int) -> RunningText:
    """A tokenizer of `size` tokens: the pieces, written in the byte alphabet, and what steers after them."""
    spoken = size - len(pieces) - _FIXED
    if not 0 < spoken <= len(LANGUAGES):
        raise ModelError(
            f"{size:,} tokens with {len(pieces):,} pieces leave {spoken} for languages, none of Whisper's"
        )
    steering = [f"<|{name}|>" for name in (*LANGUAGES[:spoken], *STEERING)]
    times = [f"<|{number * STEP:.2f}|>" for number in range(TIMES)]
    every = [*pieces, END, START, *steering, *times]
    end = len(pieces)
    return RunningText(every, merges, Specials(end, end + 1, end, tuple(range(end + 1, len(every)))))


def read_ranks(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Pieces and merges of ranks: a piece in base 64, a space and its rank a line."""
    pieces: list[bytes] = []
    for number, line in enumerate(filter(None, text.splitlines())):
        try:
            raw, rank = line.split(" ")
            pieces.append(base64.b64decode(raw, validate=True))
        except (ValueError, binascii.Error):
            raise ModelError(f"line {number + 1} of the ranks is no piece and rank") from None
        if rank != str(number) or not pieces[-1]:
            raise ModelError(f"line {number + 1} of the ranks says {rank[:9]}; they must be 0, 1, 2, ...")
    ranks = {piece: number for number, piece in enumerate(pieces)}
    merges = [_halves(piece, ranks) for piece in pieces if len(piece) > 1]
    return [written(piece) for piece in pieces], [(written(left), written(right)) for left, right in merges]


def _halves(piece: bytes, ranks: Mapping[bytes, int]) -> tuple[bytes, bytes]:
    """The two that a piece was joined of: what lower ranks make of its bytes."""
    parts = [piece[place : place + 1] for place in range(len(piece))]
    while len(parts) > 2:
        joined = [ranks.get(left + right, len(ranks)) for left, right in pairwise(parts)]
        best = min(range(len(joined)), key=joined.__getitem__)
        if joined[best] >= ranks[piece]:
            raise ModelError("the ranks have a piece that no two others make")
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return parts[0], parts[1]
