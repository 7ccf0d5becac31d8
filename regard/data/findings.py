"""What `regard check` tells, whatever the task: kinds of trouble with their examples, and what training does.

Before this file: the readers of files; after it: `check.py` (pairs), `text_check.py` (running text),
`picture_check.py` (pictures) and `regard.tasks.labels.check` (labels), which fill a `Report`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from regard.errors import printable

STOPS, LEFT_OUT, KEPT = "training stops", "left out", "kept"


@dataclass(frozen=True)
class Example:
    """One place where a finding holds; texts are cut to a readable length. A note alone says where it is."""

    file: str
    line: int
    src: str = ""
    tgt: str = ""
    note: str = ""

    def words(self, *, named: bool) -> str:
        """On one line, with nothing in it that a terminal would act on; `named`: with its file."""
        if self.note and not (self.src or self.tgt):
            return printable(self.note)
        where = f"{self.file} line {self.line}" if named else f"line {self.line}"
        note = f" ({self.note})" if self.note else ""
        return printable(f"{where}: {self.src} | {self.tgt}{note}")


@dataclass(frozen=True)
class Finding:
    """One kind of trouble: how often, what training does about it, and where."""

    kind: str
    count: int
    effect: str
    what: str
    examples: tuple[Example, ...] = ()
    of: str = ""  # which of the sizes of the report it counts; the first where nothing is said


@dataclass(frozen=True)
class Report:
    """The whole answer. `sizes` says how much there is, by what it is called."""

    files: tuple[str, ...]
    sizes: Mapping[str, int]
    findings: tuple[Finding, ...]
    kept: int  # of the first of the sizes: how much training would use

    @property
    def trains(self) -> bool:
        """Whether training would accept these files at all."""
        return self.kept > 0 and all(finding.effect != STOPS for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        findings = [asdict(finding) | {"of": finding.of or self._first} for finding in self.findings]
        return {
            "files": self.files,
            **self.sizes,
            "kept": self.kept,
            "findings": findings,
            "trains": self.trains,
        }

    def text(self) -> str:
        """Plain lines for a person."""
        size = ", ".join(f"{count:,} {name}" for name, count in self.sizes.items())
        lines = [printable(f"{', '.join(self.files)}: {size}; {self._fate()}")]
        for finding in self.findings:
            lines.append(printable(f"{finding.kind}: {finding.count:,} ({finding.effect}) - {finding.what}"))
            lines += [f"    {example.words(named=len(self.files) > 2)}" for example in finding.examples]
        if not self.findings:
            lines.append("nothing suspicious found")
        return "\n".join(lines) + "\n"

    @property
    def _first(self) -> str:
        return next(iter(self.sizes))

    def _fate(self) -> str:
        if not self.trains:
            return (
                "training would stop with an error" if self.kept else "training would stop: nothing is left"
            )
        lost = Counter({self._first: 0})
        for finding in self.findings:
            if finding.effect == LEFT_OUT:
                lost[finding.of or self._first] += finding.count
        left_out = " and ".join(self._amount(count, name) for name, count in lost.items())
        return f"training keeps {self._amount(self.kept, self._first)} and leaves out {left_out}"

    def _amount(self, count: int, name: str) -> str:
        """A number, with its name where there are several sizes."""
        return f"{count:,} {name}" if len(self.sizes) > 1 else f"{count:,}"
