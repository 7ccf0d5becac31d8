"""`regard demo --task masked`: a model that fills gaps in phrases, trained on those of CLDR.

After the run it fills gaps in phrases that it never saw: one word of each is taken out, and it says what may
stand there. Before this file: `regard.tasks.encoder.demo`.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from regard.tasks.encoder.demo import Options, farewell, learn, place_for, write_splits
from regard.tasks.masked import TASK
from regard.tasks.masked.filler import MASK, Filled, Filler
from regard.text.phrasebook import SPLITS, parts

MINUTES = 1.9
# Phrases are short, endless and without noise: few layers and no dropout learn them quickest.
SETTINGS: dict[str, Any] = {
    "model.encoder_layers": 2,
    "model.d_ff": 256,
    "model.dropout": 0.0,
    "masked.length": 64,
}
SHOWN, GUESSES = 8, 3
_WORD = re.compile(r"\b[^\W\d_]{4,}\b")
_LONGEST = 60  # characters of a phrase that is shown


def demo(options: Options, more: dict[str, Any] | None = None) -> None:
    """Train on phrases, then fill some."""
    streams = {split: _phrases(options.source, split) for split in SPLITS}
    folder = place_for(options)
    paths = write_splits(folder, "phrases", streams, "{}\n".format, f"{options.source}.txt")
    result = learn(TASK, paths, options, SETTINGS | (more or {}))
    filler = TASK.load(options.output)
    score = result.scores.get("accuracy")
    if score is not None:
        print(
            f"\n{score:.1%} of the hidden tokens of phrases that training never saw are right; for example:\n"
        )
    lines = paths["test"].read_text(encoding="utf-8").splitlines()
    gaps = list(islice(_gaps(filler, lines), SHOWN))
    for (_, word), filled in zip(gaps, filler.fill([text for text, _ in gaps], top=GUESSES), strict=True):
        print(_told(word, filled), end="\n\n")
    example = gaps[0][0] if gaps else MASK
    uses = [f'fill -m {{}} "{example}"', f'look -m {{}} "{example}" -o gap.html']
    print(farewell(options.output, uses, "train --task masked my_texts/ -o runs/mine   # your own text"))


def _phrases(locale: str, split: str) -> Iterator[str]:
    return ("".join(text for text, _ in found) for found in parts(locale, split=split))


def _gaps(filler: Filler, phrases: list[str]) -> Iterator[tuple[str, str]]:
    """Phrases with a word taken out, and that word; one that is a single token, as a gap is."""
    for number, phrase in enumerate(phrases):
        words = list(_WORD.finditer(phrase))
        if len(phrase) > _LONGEST or not words:
            continue
        word = words[number % len(words)]
        before = phrase[: word.start()]
        if len(filler.tokenizer.encode(f"{before[len(before.rstrip()) :]}{word[0]}")) == 1:
            yield f"{before}{MASK}{phrase[word.end() :]}", word[0]


def _told(word: str, filled: Filled) -> str:
    guesses = ", ".join(f"{guess.text} {guess.probability:.0%}" for guess in filled.gaps[0])
    mark = "" if filled.gaps[0][0].text == word else "   <- differs"
    return f"  {filled.text}{mark}\n    {guesses}; it was {word}"
