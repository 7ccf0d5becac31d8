"""What is wrong with files of running text, and what training will do about it.

One pass over the text; memory grows with the number of documents alone. Reads `texts.py`; asked by every task
that learns from running text (`language`, `masked`, `both`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.data.characters import describe, odd_characters
from regard.data.findings import KEPT, LEFT_OUT, STOPS, Example, Finding, Report
from regard.data.texts import Document, NotTextError, files_of, parts, survey

_MOST_CHARACTERS = 8  # odd ones named


def check(files: Sequence[Path], *, examples: int = 3) -> Report:
    """Everything suspicious about files and folders of text, with up to `examples` examples a kind."""
    found: list[Document] = []
    named: list[str] = []
    lying: list[str] = []
    for given in files:
        for path in files_of(given):
            try:
                found.append(survey(path))
            except NotTextError as error:
                (lying if given.is_dir() else named).append(str(error))
    copies = _copies(found)
    odd, where = _odd(found)
    names = ", ".join(f"{describe(one)} ({count:,})" for one, count in odd.most_common(_MOST_CHARACTERS))
    kinds = (
        ("no text", STOPS, "empty, or not UTF-8; nothing can be learned from it", named),
        ("no text", LEFT_OUT, "files in folders that are empty, or not UTF-8", lying),
        ("duplicate", KEPT, "the same document again: it weighs more in training", copies),
        ("odd characters", KEPT, names, where),
    )
    findings = (
        Finding(
            kind, len(places), effect, what, tuple(Example("", 0, note=each) for each in places[:examples])
        )
        for kind, effect, what, places in kinds
        if places
    )
    sizes = {"documents": len(found), "characters": sum(map(len, found))}
    return Report(tuple(map(str, files)), sizes, tuple(findings), len(found))


def _copies(documents: Iterable[Document]) -> list[str]:
    """Documents that came before."""
    first: dict[str, Document] = {}
    again = [each for each in documents if first.setdefault(each.digest, each) is not each]
    return [f"{each.path} is the same as {first[each.digest].path}" for each in again]


def _odd(documents: Iterable[Document]) -> tuple[Counter[str], list[str]]:
    """Odd characters, by the documents that they are in, and these."""
    odd: Counter[str] = Counter()
    places: list[str] = []
    for each in documents:
        met: set[str] = set()
        for part in parts([each]):
            met |= odd_characters(part.text) - {"\n", "\r", "\f"}
        odd.update(met)
        places += [str(each.path)] if met else []
    return odd, places
