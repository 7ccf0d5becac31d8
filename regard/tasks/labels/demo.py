"""`regard demo --task classify` (which language is it?) and `--task tag` (what is each word of a phrase?).

Both learn from phrases of CLDR, whose labels are known because the phrases are made: the locale that said
one, and the kind of value that a word belongs to. Before this file: `regard.tasks.encoder.demo`.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from regard.tasks.encoder.demo import Options, farewell, learn, place_for, write_splits
from regard.tasks.labels import CLASSIFY, TAG
from regard.tasks.labels.examples import Labelled
from regard.tasks.labels.labeller import Labels, evaluation, words_of
from regard.text.languages import language_name
from regard.text.phrasebook import SPLITS, parts

MINUTES = 1.0
LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pl", "sv", "fi", "tr")
SIGN = "sign"  # what stands between values
SHOWN = 8
SETTINGS: dict[str, Any] = {
    "model.encoder_layers": 2,
    "model.d_ff": 256,
    "model.dropout": 0.1,
    "labels.hide": 0.0,
    "train.max_epochs": 0,
    "train.lr": 4e-3,
}
Words = list[tuple[str, str]]


def classify(options: Options, more: dict[str, Any] | None = None) -> None:
    """Which language a phrase is in."""
    streams = {split: _said(split) for split in SPLITS}
    line = "{0[0]}\t{0[1]}\n".format
    paths = write_splits(
        place_for(options), f"phrases in {len(LANGUAGES)} languages", streams, line, "language.tsv"
    )
    learn(CLASSIFY, paths, options, SETTINGS | (more or {}))
    labels, test = CLASSIFY.load(options.output), CLASSIFY.read([paths["test"]])
    _report(labels, test, "phrases")
    examples = list(test.read(test.train))[:: max(1, 1000 // SHOWN)][:SHOWN]
    for example, found in zip(examples, labels.classify(each.words[0] for each in examples), strict=True):
        wrong = "" if found.name == example.labels[0] else f"   <- it is {example.labels[0]}"
        print(f"  {found.name} ({found.probability:.0%})  {example.words[0]}{wrong}")
    uses = ['classify -m {} "trois jours et deux heures"', 'look -m {} "trois jours" -o language.html']
    own = "train --task classify texts_and_labels.tsv -o runs/mine   # your own labels"
    print("\n" + farewell(options.output, uses, own))


def tag(options: Options, more: dict[str, Any] | None = None) -> None:
    """What each word of a phrase is."""
    streams = {split: map(_words, parts(options.source, split=split)) for split in SPLITS}
    paths = write_splits(place_for(options), "phrases", streams, _block, f"{options.source}.tsv")
    learn(TAG, paths, options, SETTINGS | (more or {}))
    labels, test = TAG.load(options.output), TAG.read([paths["test"]])
    _report(labels, test, "words")
    examples = list(test.read(test.train))[:: max(1, 1000 // SHOWN)][:SHOWN]
    for example, found in zip(examples, labels.tag(each.words for each in examples), strict=True):
        pairs = zip(example.words, example.labels, found, strict=True)
        marked = (word if one.name == SIGN else f"{word}/{one.name}" for word, _, one in pairs)
        wrong = sum(one.name != right for one, right in zip(found, example.labels, strict=True))
        print(f"  {' '.join(marked)}{f'   <- {wrong} wrong' if wrong else ''}")
    phrase = '"Tuesday, March 3: 12.5 km (France)"'
    uses = [f"tag -m {{}} {phrase}", f"look -m {{}} {phrase} -o tags.html"]
    print("\n" + farewell(options.output, uses, "train --task tag my.conllu -o runs/mine   # your own tags"))


def _said(split: str) -> Iterator[tuple[str, str]]:
    """Phrases in turn, each in the next language, with letters in it; no text in two languages."""
    streams = [
        ("".join(text for text, _ in found) for found in parts(each, split=split)) for each in LANGUAGES
    ]
    owner: dict[str, str] = {}
    for text, language in chain.from_iterable(
        zip(each, LANGUAGES, strict=True) for each in zip(*streams, strict=True)
    ):
        lettered = sum(map(str.isalpha, text)) > 3
        if lettered and owner.setdefault(text, language) == language:
            yield text, language_name(language)


def _words(found: Words) -> Words:
    """The words of a phrase, each with the group of the value that it belongs to."""
    return [(word, group or SIGN) for text, group in found for word in words_of(text)]


def _block(words: Words) -> str:
    """A sentence as a tag file has it: a word, a tab and its tag a line, then a blank one."""
    return "".join(f"{word}\t{label}\n" for word, label in words) + "\n"


def _report(labels: Labels, test: Labelled, what: str) -> None:
    """The scores on what training never saw."""
    found = evaluation(labels, test).fields()
    accuracy, macro = found["accuracy"], found["macro_f1"]
    print(
        f"\n{found['labels']:,} {what} that training never saw: {accuracy:.1%} right, macro F1 {macro:.3f}\n"
    )
