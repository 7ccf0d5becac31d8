"""Learning the pieces of the tokenizer from text, in one pass over it and little memory.

The common characters become the alphabet, the rest is left to bytes; then pairs are merged, most
frequent first (byte-pair encoding, Sennrich et al. 2016, section 3.2), inside the words that the
tokenizer's cuts leave. `regard.text.tokenizer` hands the lines in and runs what comes out.
"""

import json
import math
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, NamedTuple

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import PreTokenizer
from tokenizers.trainers import BpeTrainer

from regard.errors import ModelError, StorageError, UsageError, shown
from regard.foreign import LONGEST_WORD, MOST_MERGED, MOST_MERGES, check_strings
from regard.text.normalise import SPACE_MARK

SPECIALS = ("<pad>", "<s>", "</s>", "<mask>")
# What may stand before a source: the language that it is to become, spelled as OPUS-MT does, and that it was
# made by a model. No learned piece looks like one: signs stand alone in them.
TAG = re.compile(r">>[A-Za-z0-9_-]+<<|<back>")
RESERVED = (*SPECIALS, *(f"<0x{byte:02X}>" for byte in range(256)))

COVERAGE = 0.9999  # share of all characters that the alphabet spells; rarer ones are left to bytes
LONGEST_PIECE = 24  # characters; a longer one is boilerplate, and costs a slot
IN_MEMORY = 2**25  # bytes of text kept before a file on disk takes over

_LONG_WORD = re.compile(rf"[^ \n]{{{LONGEST_WORD}}}(?=[^ \n])")


class Vocabulary(NamedTuple):
    """Pieces in the order of their ids, and the pairs that may be merged, first rank first."""

    pieces: tuple[str, ...]
    merges: list[tuple[str, str]]


def fitting_size(characters: int) -> int:
    """The vocabulary size for so much text, both languages together.

    8,000 for 4 million characters (30,000 pairs of short sentences), growing as its 0.3rd power: about
    22,000 for a million such pairs, 32,000 at most. Less text gives fewer merges than this allows,
    and then they are all taken.

    >>> [fitting_size(n) for n in (10_000, 1_500_000, 4_000_000, 120_000_000, 10**10)]
    [1344, 5952, 8000, 22208, 32000]
    """
    size = 8000 * math.pow(characters / 4e6, 0.3)
    return max(len(RESERVED) + 64, min(32000, round(size / 64) * 64))


def learn(lines: Iterable[str], vocab_size: int, cuts: PreTokenizer, tags: Sequence[str] = ()) -> Vocabulary:
    """The vocabulary of normalised `lines`; exactly `vocab_size` pieces, or with 0 as many as fit.

    `tags` are its last pieces; no text is spelled with them.
    """
    least = len(RESERVED) + 1 + len(tags)
    if vocab_size and vocab_size < least:
        raise UsageError(
            f"text.vocab_size ({vocab_size}) must be at least {least}: specials, bytes, tags and the space"
        )
    with tempfile.SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8", newline="\n") as spool:
        counts = _count(lines, spool)
        room = (vocab_size - len(tags) if vocab_size else fitting_size(counts.total())) - len(RESERVED)
        alphabet = _alphabet(counts, room)
        spool.seek(0)
        joined = _joined(_spell(spool, alphabet, counts), room, len(alphabet), cuts)
    pieces = (*RESERVED, *alphabet, *joined)
    if (most := len(pieces) + len(tags)) < vocab_size:
        raise UsageError(
            f"text.vocab_size ({vocab_size}) is more than this text can give ({most}); "
            f"set it to {most} or less, or to 0 to have it chosen"
        )
    return Vocabulary((*pieces, *tags), all_merges(pieces))


def all_merges(pieces: Iterable[str], skipped: int = len(RESERVED)) -> list[tuple[str, str]]:
    """Every pair of pieces that makes another piece, by the rank of what it makes.

    The first `skipped` are made of nothing. ModelError where so many pairs would be made that a small file
    took all memory.

    Learning finds one such pair for each piece; sentencepiece, which keeps no pairs, merges any. With
    all of them both cut the same text into the same pieces.
    """
    known = dict.fromkeys(pieces)
    check_strings(known, "piece")
    merges: list[tuple[str, str]] = []
    characters = 0
    for piece in list(known)[skipped:]:
        found = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece)) if piece[:cut] in known]
        found = [(left, right) for left, right in found if right in known]
        merges += found
        characters += len(piece) * len(found)
        if len(merges) > MOST_MERGES or characters > MOST_MERGED:
            raise ModelError(
                f"a vocabulary of {len(known):,} pieces, such as {shown(piece, 20)}, can be merged in over "
                f"{min(len(merges), MOST_MERGES):,} ways of {characters:,} characters; make it smaller"
            )
    return merges


def _count(lines: Iterable[str], spool: IO[str]) -> Counter[str]:
    """How often each character comes; the lines go to `spool` for the second reading."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line)
        try:
            spool.write(line + "\n")
        except OSError as error:  # of the disk, not of where the lines come from
            raise StorageError(
                f"no room for a copy of the text in {tempfile.gettempdir()} ({error.strerror}); set TMPDIR"
            ) from error
    return counts


def _alphabet(counts: Counter[str], room: int) -> list[str]:
    """The characters that are pieces: the most common until `COVERAGE`, within three quarters of the room."""
    by_count = sorted((-count, character) for character, count in counts.items() if character not in " \n")
    total = -sum(count for count, _ in by_count)
    kept, covered = [SPACE_MARK], 0
    for count, character in by_count[: room - room // 4 - 1]:
        if covered >= COVERAGE * total:
            break
        kept.append(character)
        covered -= count
    return kept


def _spell(spool: IO[str], alphabet: list[str], counts: Counter[str]) -> Iterator[str]:
    """The lines again, with a line break for each rare character, so that nothing is merged across it.

    Inside of very long words there are breaks, too: merging them takes time that grows with their square.
    """
    rare = sorted(set(counts) - set(alphabet) - {" ", "\n"})
    pattern = re.compile(f"[{re.escape(''.join(rare))}]") if rare else None
    for line in spool:
        line = line.removesuffix("\n")
        line = pattern.sub("\n", line) if pattern else line
        yield "\n".join(broken(line))


def broken(text: str) -> Iterator[str]:
    """The text in parts, so that no word of it is longer than LONGEST_WORD."""
    start = 0
    for match in _LONG_WORD.finditer(text) if len(text) > LONGEST_WORD else ():
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


def _joined(lines: Iterable[str], room: int, letters: int, cuts: PreTokenizer) -> list[str]:
    """The pieces that merging makes, most frequent first; with the `letters` at most `room`."""
    learner = RustTokenizer(BPE())
    learner.pre_tokenizer = cuts
    # Two slots more: for the line break of `_spell`, and for what is merged with it.
    trainer = BpeTrainer(
        vocab_size=room + 2, min_frequency=2, max_token_length=LONGEST_PIECE, show_progress=False
    )
    interruptible(lambda stop: learner.train_from_iterator(until(lines, stop), trainer))
    merges = json.loads(learner.to_str())["model"]["merges"]
    made = dict.fromkeys(left + right for left, right in merges)
    return [piece for piece in made if "\n" not in piece][: max(0, room - letters)]


def interruptible(work: Callable[[threading.Event], object]) -> None:
    """Let `work` run beside us and wait for it: a signal is obeyed at once, also deep inside of a library.

    What it raises is raised here. Where we leave early, the event asks it to stop asking for lines.
    """
    stop, failures = threading.Event(), []

    def run() -> None:
        try:
            work(stop)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():  # a signal that comes on the way into a wait without end would not be seen
            thread.join(0.2)
    finally:
        stop.set()
        thread.join(1.0)
    if failures:
        raise failures[0]


def until(lines: Iterable[str], stop: threading.Event) -> Iterator[str]:
    """The lines, for as long as somebody waits for what comes of them."""
    for line in lines:
        if stop.is_set():
            return
        yield line
