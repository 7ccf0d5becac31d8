"""A document as one line, and back: training and translating read a line a text.

A line break becomes `¶`, followed by how much deeper (`→` four spaces, `·` one) or less deep (`←`) the next
line begins. Tabs are spaces, runs of spaces inside a line are one, the first line begins at the margin; all
else comes back. Before this file: somebody's text; after it: `normalise`, like any other line.
"""

import re

BREAK, DEEPER, BACK, ONE = "¶", "→", "←", "·"
STEP = 4  # spaces
_BLANKS = re.compile(r"[ \x0b\x0c]+")


def fold(text: str) -> str:
    """`text` as one line. A `¶` of its own becomes `|`, or it would be taken for a break.

    >>> fold("if a:\\n    b()\\n\\nc()")
    'if a: ¶→ b() ¶ ¶← c()'
    """
    lines = [line.rstrip() for line in text.replace(BREAK, "|").expandtabs(STEP).splitlines()]
    words: list[str] = []
    depth: int | None = None
    for line in "\n".join(lines).strip("\n").split("\n"):
        bare = _BLANKS.sub(" ", line.strip())
        own = len(line) - len(line.lstrip(" "))
        change = 0 if depth is None or not bare else own - depth
        if depth is not None:
            words.append(
                BREAK + (DEEPER if change > 0 else BACK) * abs(change // STEP) + ONE * (change % STEP)
            )
        words.append(bare)
        depth = own if bare else depth
    return " ".join(filter(None, words))


def unfold(line: str) -> str:
    """The document that `fold` made a line of.

    >>> print(unfold("if a: ¶→ b() ¶ ¶← c()"))
    if a:
        b()
    <BLANKLINE>
    c()
    """
    depth, lines = 0, [""]
    for word in line.split(" "):
        marks = word[len(BREAK) :]
        if word.startswith(BREAK) and not marks.strip(DEEPER + BACK + ONE):
            depth += STEP * (marks.count(DEEPER) - marks.count(BACK)) + marks.count(ONE)
            lines.append("")
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else " " * max(0, depth) + word
    return "\n".join(lines)
