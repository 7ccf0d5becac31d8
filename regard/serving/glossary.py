"""Words of a glossary in a text: each becomes an element whose translation is given.

A term is matched as whole words, with its case, or with a capital first letter where the term has a small
one; longer terms win. The model translates the sentence as it stands, so that the words around a term are
right; then what was written for the term, by the alignment, is replaced (`placing.py`). Placeholders in the
source were the other way: a model that has never seen one copies it badly.
"""

import re
from collections.abc import Mapping, Sequence

from regard.serving.elements import Element, overlaps


def terms(text: str, glossary: Mapping[str, str], elements: Sequence[Element] = ()) -> list[Element]:
    """The terms in `text`; one that a tag begins or ends in, or that is fixed already, is left alone.

    >>> [(e.start, e.end, e.fixed) for e in terms("Cats and the cat", {"cat": "Kater"})]
    [(13, 16, 'Kater')]
    """
    if not glossary:
        return []
    known = {form: wanted for term in glossary for form, wanted in _forms(term, glossary[term])} | dict(
        glossary
    )
    ways = "|".join(_whole(term) for term in sorted(known, key=len, reverse=True))
    found = []
    for match in re.finditer(ways, text):
        span = match.span()
        free = not any(
            any(span[0] < edge < span[1] for edge in each.span)
            or (each.fixed is not None and overlaps(each.span, span))
            for each in elements
        )
        if free:
            found.append(Element(*span, fixed=known[match[0]]))
    return found


def _forms(term: str, wanted: str) -> list[tuple[str, str]]:
    """A term at the beginning of a sentence."""
    return [(term[0].upper() + term[1:], wanted[:1].upper() + wanted[1:])] if term[:1].islower() else []


def _whole(term: str) -> str:
    """A pattern of the term that does not match inside a longer word."""
    before = r"(?<!\w)" if term[0].isalnum() else ""
    after = r"(?!\w)" if term[-1].isalnum() else ""
    return before + re.escape(term) + after
