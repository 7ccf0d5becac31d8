"""Word and character error rates: what has to be put in, left out and exchanged, beside what was said.

    WER = (insertions + deletions + substitutions) / words of the references, over all texts together

The distance is Levenshtein's, row by row. Counted as jiwer does, against which the tests hold it.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from regard.measure.score import Score

_APART = re.compile(r"[^\w\s']+|_", re.UNICODE)


def distance(wanted: Sequence[str], given: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions that make one of the other.

    >>> distance("kitten", "sitting")
    3
    """
    if not wanted or not given:
        return len(wanted) + len(given)
    numbers = {item: number for number, item in enumerate(dict.fromkeys((*wanted, *given)))}
    row = np.fromiter((numbers[item] for item in given), np.int64, len(given))
    steps = np.arange(len(given) + 1)
    before = steps
    for number, item in enumerate(wanted, 1):
        now = np.empty_like(before)
        now[0] = number
        now[1:] = np.minimum(before[:-1] + (row != numbers[item]), before[1:] + 1)
        # An insertion costs one a place: the least of all that can be reached from the left.
        before = np.minimum.accumulate(now - steps) + steps
    return int(before[-1])


def plain_words(text: str) -> str:
    """A text as `speech.scored=words` compares it: lower case, no punctuation but apostrophes in words.

    >>> plain_words("Well, it's TEN-fold…")
    "well it's ten fold"
    """
    text = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    words = (word.strip("'") for word in _APART.sub(" ", text).split())
    return " ".join(word for word in words if word)


class ErrorRates:
    """The counts of the texts so far."""

    def __init__(self, *, plain: bool = True) -> None:
        self.plain, self.count, self.exact = plain, 0, 0
        self.words = self.letters = self.wrong_words = self.wrong_letters = 0

    def add(self, given: str, wanted: str) -> None:
        """Count one more text beside what was said."""
        if self.plain:
            given, wanted = plain_words(given), plain_words(wanted)
        ours, theirs = given.split(), wanted.split()
        given, wanted = " ".join(ours), " ".join(theirs)
        self.count += 1
        self.exact += given == wanted
        self.words += len(theirs)
        self.letters += len(wanted)
        self.wrong_words += distance(theirs, ours)
        self.wrong_letters += distance(wanted, given)

    def scores(self) -> dict[str, Score]:
        """Both rates, 0 where nothing is wrong; above 1 where more was written than was said."""
        word, letter = self.wrong_words / max(1, self.words), self.wrong_letters / max(1, self.letters)
        return {
            "wer": Score(word, higher=False, label="WER", digits=4, count=self.count),
            "cer": Score(letter, higher=False, label="CER", digits=4, count=self.count),
        }
