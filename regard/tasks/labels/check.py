"""What is wrong with labelled files, line by line: `regard check --task classify` and `--task tag`.

The same reader that training has, which goes on past a fault here. The report is `regard.data.findings`'.
"""

from collections import Counter

from regard.data.findings import KEPT, STOPS, Example, Finding, Report
from regard.tasks.labels.examples import LEAST, Fault, Labelled

_SHORT = 80  # characters of a text that are shown


def check(data: Labelled, *, examples: int = 3) -> Report:
    """Faults, labels that are too few, and texts that stand there more than once."""
    faults: list[Example] = []
    again: list[Example] = []
    counts: Counter[str] = Counter()
    seen: dict[int, str] = {}
    total = broken = repeated = 0
    for path in data.train:
        for found in data.look_through(path):
            if isinstance(found, Fault):
                broken += 1
                faults.append(Example(str(path), found.line, note=found.message))
                continue
            total += 1
            counts.update(found.labels)
            first = seen.setdefault(hash(found.words), found.where)
            if first != found.where:
                repeated += 1
                text = " ".join(found.words)[:_SHORT]
                note = f"{found.where}: {text} (first in {first})"
                again += [Example(str(path), 0, note=note)] if len(again) < examples else []
    findings = [
        Finding("columns", broken, STOPS, "a line without what it must hold", tuple(faults[:examples])),
        *_labels(data, counts),
        Finding("repeated", repeated, KEPT, "the same text again: it weighs more in training", tuple(again)),
    ]
    files = tuple(str(path) for path in data.train)
    sizes = {"sentences" if data.column else "texts": total}
    return Report(files, sizes, tuple(finding for finding in findings if finding.count), total)


def _labels(data: Labelled, counts: Counter[str]) -> list[Finding]:
    """Labels that cannot be learned, and how often each one is met."""
    once = sorted(label for label, count in counts.items() if count < LEAST)
    effect = KEPT if data.column else STOPS
    met = ", ".join(f"{label} {count:,}" for label, count in counts.most_common(30))
    found = [
        Finding("rare labels", len(once), effect, f"met once: {', '.join(once[:9])}", ()),
        Finding("labels", len(counts), KEPT, met, ()),
    ]
    if len(counts) == 1:
        found.append(Finding("one label", 1, STOPS, "there must be two at least", ()))
    return found
