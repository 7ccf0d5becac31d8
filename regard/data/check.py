"""What is wrong with a corpus, line by line, and what training will do about it: `regard check`.

One streamed pass with the very rules of `filter.py`, so that its counts are those of the store; a
second, partial one fetches the text of repeated pairs. Memory: 16 bytes a pair to find repeats (about
40 while they are sorted), nothing else grows. Reads `corpus.py`; the command line prints the Report.
"""

from array import array
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from regard.config import DataConfig
from regard.data.alignment import SlipDetector
from regard.data.characters import describe, odd_characters
from regard.data.corpus import Corpus, Pair
from regard.data.filter import EMPTY, OVER_LONG, RATIO, Encoder, Judged, judge
from regard.data.findings import KEPT, LEFT_OUT, STOPS, Example, Finding, Report
from regard.data.lines import Fault
from regard.foreign import LONGEST_WORD

SLIPPED, DUPLICATE, IDENTICAL, ODD = "slipped", "duplicate", "identical", "odd characters"
LONG_WORD = "long words"

_LONGEST_EXAMPLE = 80  # characters of a side
_MOST_CHARACTERS = 8  # odd ones named


@dataclass
class _Tally:
    """What has been found so far: counts, and the first few examples of each kind."""

    most: int
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Example]] = field(default_factory=dict)
    odd: Counter[str] = field(default_factory=Counter)
    hashes: "array[int]" = field(default_factory=lambda: array("q"))  # of every pair with text
    ordinals: "array[int]" = field(default_factory=lambda: array("q"))  # which pair of the corpus it was
    pairs: int = 0
    kept: int = 0

    def add(self, kind: str, example: Example) -> None:
        self.counts[kind] += 1
        found = self.examples.setdefault(kind, [])
        if len(found) < self.most:
            found.append(example)

    def findings(self, rules: DataConfig) -> tuple[Finding, ...]:
        return tuple(
            Finding(kind, self.counts[kind], effect, what, tuple(self.examples.get(kind, ())))
            for kind, (effect, what) in self._meanings(rules).items()
            if self.counts[kind]
        )

    def _meanings(self, rules: DataConfig) -> dict[str, tuple[str, str]]:
        """Every kind of finding in the order it is reported, the gravest first."""
        named = ", ".join(f"{describe(one)} ({n:,})" for one, n in self.odd.most_common(_MOST_CHARACTERS))
        more = ", ..." if len(self.odd) > _MOST_CHARACTERS else ""
        return {
            "encoding": (STOPS, "not UTF-8, or a NUL byte"),
            "columns": (STOPS, "not exactly one tab between source and target"),
            "misaligned": (STOPS, "the files differ in their number of lines"),
            SLIPPED: (KEPT, "by their lengths, the lines of the two files have slipped; repair this first"),
            EMPTY: (LEFT_OUT, "a side without text"),
            OVER_LONG: (LEFT_OUT, f"more tokens on a side than data.max_length ({rules.max_length})"),
            RATIO: (
                LEFT_OUT,
                f"one side has over data.max_ratio ({rules.max_ratio:g}) times the other's tokens",
            ),
            DUPLICATE: (KEPT, "the same pair again: it weighs more in training"),
            IDENTICAL: (KEPT, "source and target are the same text: teaches copying"),
            LONG_WORD: (KEPT, f"over {LONGEST_WORD:,} characters without a space; learned from in parts"),
            ODD: (KEPT, f"{named}{more}"),
        }


def check(
    corpus: Corpus, rules: DataConfig | None = None, *, tokenizer: Encoder | None = None, examples: int = 3
) -> Report:
    """Everything suspicious about a corpus, with up to `examples` examples a kind.

    Tokens are counted with `tokenizer`; without one, the vocabulary that training would learn by
    default is learned here. DataError for files that cannot be read to their end.
    """
    rules = rules or DataConfig()
    corpus.check_paths()
    tokenizer = tokenizer or _learned(corpus)
    tally = _Tally(examples)
    for part in corpus.parts():
        _look_through(part, tokenizer, rules, tally)
    _find_duplicates(corpus, tally)
    files = tuple(str(path) for path in corpus.paths)
    return Report(files, {"pairs": tally.pairs}, tally.findings(rules), tally.kept)


def _learned(corpus: Corpus) -> Encoder:
    from regard.text.tokenizer import Tokenizer  # only here: the rules can be used without it

    return Tokenizer.train(corpus.lines(on_fault=lambda _: None), 0)


def _look_through(part: Corpus, tokenizer: Encoder, rules: DataConfig, tally: _Tally) -> None:
    """One file, or one pair of files, with every finding put into the tally."""
    faulty: set[int] = set()  # lines read ahead but not yet looked at

    def on_fault(fault: Fault) -> None:
        faulty.add(fault.line)
        tally.add(fault.kind, Example(str(fault.path), fault.line, note=fault.message))

    slips = SlipDetector()
    file = str(part.paths[0])
    for chunk in judge(part.pairs(on_fault), tokenizer, rules):
        for judged in chunk:
            slips.add(len(judged.pair.src), len(judged.pair.tgt))
            if judged.pair.line in faulty:
                faulty.discard(judged.pair.line)
            else:
                _look_at(judged, file, tally)
            tally.pairs += 1
    slip = slips.slip()
    if slip:
        tally.add(SLIPPED, Example(file, slip.line, note=f"{file}: {slip}"))
        tally.counts[SLIPPED] = tally.counts[SLIPPED] - 1 + slip.lines


def _look_at(judged: Judged, file: str, tally: _Tally) -> None:
    """One readable pair."""
    pair = judged.pair
    example = _example(file, pair)
    if judged.reason:
        tally.add(judged.reason, example)
    else:
        tally.kept += 1
    if judged.reason != EMPTY:
        tally.hashes.append(hash((pair.src, pair.tgt)))
        tally.ordinals.append(tally.pairs)
        if pair.src.strip() == pair.tgt.strip():
            tally.add(IDENTICAL, example)
    if _has_long_word(pair.src) or _has_long_word(pair.tgt):
        tally.add(LONG_WORD, example)
    odd = odd_characters(pair.src) | odd_characters(pair.tgt)
    if odd:
        tally.odd.update(odd)
        tally.add(ODD, example)


def _has_long_word(text: str) -> bool:
    return len(text) > LONGEST_WORD and any(len(word) > LONGEST_WORD for word in text.split())


def _find_duplicates(corpus: Corpus, tally: _Tally) -> None:
    """Pairs that came before, by 64-bit hashes: a false alarm in a million pairs has odds of 1 in 10^7."""
    hashes = np.array(tally.hashes, dtype=np.int64)
    order = np.argsort(hashes, kind="stable")
    again = np.sort(order[1:][hashes[order[1:]] == hashes[order[:-1]]])
    tally.counts[DUPLICATE] = len(again)
    firsts = {int(late): int(np.flatnonzero(hashes == hashes[late])[0]) for late in again[: tally.most]}
    wanted = {tally.ordinals[place] for both in firsts.items() for place in both}
    found = _fetch(corpus, wanted)
    tally.examples[DUPLICATE] = []
    for late, first in firsts.items():
        file, pair = found[tally.ordinals[late]]
        first_file, first_pair = found[tally.ordinals[first]]
        elsewhere = "" if first_file == file else f"{first_file} "
        note = f"first in {elsewhere}line {first_pair.line}"
        tally.examples[DUPLICATE].append(_example(file, pair, note))


def _fetch(corpus: Corpus, ordinals: set[int]) -> dict[int, tuple[str, Pair]]:
    """The pairs with these numbers in the corpus, and their files; reads no further than needed."""
    named = (
        (str(part.paths[0]), pair) for part in corpus.parts() for pair in part.pairs(on_fault=lambda _: None)
    )
    reading = islice(named, max(ordinals, default=-1) + 1)
    return {number: found for number, found in enumerate(reading) if number in ordinals}


def _example(file: str, pair: Pair, note: str = "") -> Example:
    return Example(file, pair.line, _cut(pair.src), _cut(pair.tgt), note)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_EXAMPLE else text[: _LONGEST_EXAMPLE - 3] + "..."
