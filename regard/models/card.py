"""The model card, README.md of a model folder: what it is, what it was trained on, how, and its scores.

Written for a person who finds the folder years later (Mitchell et al. 2019, "Model Cards for Model
Reporting"). Training gathers the facts; `folder.py` saves the text; `regard show` prints it.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from regard.atomic import write_text
from regard.config import Config
from regard.errors import printable
from regard.foreign import MOST_SETTINGS, read_bytes
from regard.measure.score import Score

_HOSTILE = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")

_UNFINISHED = (
    "**Unfinished**: this is what had been learned after {:,} steps. Training goes on or stopped on the way; "
    "then the same command goes on from here.\n"
)


@dataclass(frozen=True)
class Measured:
    """The scores on one set of examples."""

    name: str  # the file, or what the set is called
    scores: Mapping[str, Score]


@dataclass(frozen=True)
class Facts:
    """What a card tells. A number that is 0 and a text that is empty are left out."""

    config: Config
    files: Sequence[str] = ()  # names or paths; only the names are told
    data: Sequence[str] = ()  # lines about what was in them
    origin: str = ""  # where the data come from, if that is not what the files say
    parameters: int = 0
    steps: int = 0
    epochs: float = 0.0
    seconds: float = 0.0
    machine: str = ""
    version: str = ""  # of Regard
    scores: Sequence[Measured] = ()
    report: str = ""  # more of what was measured, as Markdown
    batches: str = "token"  # what a batch is full of
    unfinished: bool = False  # training stopped on the way, or goes on


def write_card(
    facts: Facts,
    folder: str,
    *,
    title: str,
    intro: str = "",
    shape: Sequence[str] = (),
    use: Sequence[str] = (),
    python: str = "",
) -> str:
    """The card as Markdown. `folder` is how the commands call the model: they have {} in its place.

    >>> facts = Facts(Config(), files=["/home/me/a_b.txt"], data=["3 lines"])
    >>> print(write_card(facts, "runs/x", title=titled("An oracle", facts)).splitlines()[0])
    # An oracle trained on a\\_b.txt
    """
    parts = [
        f"# {title}\n",
        f"{intro or f'Made with Regard; model.kind={escape(facts.config.model.kind)}.'}\n",
        _UNFINISHED.format(facts.steps) if facts.unfinished else "",
        _section("Trained on", _data(facts)),
        _section("How", [*(shape or _shape(facts)), *_training(facts)]),
        _scores(facts.scores),
        facts.report,
        _use(folder, use, python),
    ]
    return "\n".join(part for part in parts if part)


def titled(what: str, facts: Facts) -> str:
    """What it is, and the names of the files it was trained on."""
    names = ", ".join(escape(name) for name in _names(facts.files))
    return f"{what} trained on {names}" if names else what


def escape(text: str) -> str:
    """`text` as it stands, whatever it holds, on one line of Markdown.

    >>> escape("a|b_c\\n# d")
    'a\\\\|b\\\\_c \\\\# d'
    """
    return _HOSTILE.sub(r"\\\1", printable(" ".join(text.split())))


def code(text: str) -> str:
    """`text` on one line of Markdown in a typewriter's letters, fenced by more backticks than it holds."""
    line = printable(" ".join(text.split()))
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    gap = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{gap}{line}{gap}{fence}"


def _names(files: Iterable[str]) -> list[str]:
    """File names without their folders: where they lay is nobody's business."""
    return [PurePath(file).name for file in files]


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {title}\n", *(f"- {line}" for line in lines), ""]) if lines else ""


def _data(facts: Facts) -> list[str]:
    lines = [f"files: {', '.join(code(name) for name in _names(facts.files))}"] if facts.files else []
    lines += [escape(facts.origin)] if facts.origin else []
    return [*lines, *facts.data]


def _shape(facts: Facts) -> list[str]:
    size = f", {facts.parameters:,} parameters" if facts.parameters else ""
    return [f"model.kind={escape(facts.config.model.kind)}{size}"]


def _training(facts: Facts) -> list[str]:
    model, train = facts.config.model, facts.config.train
    lines = [
        f"{train.optimizer}, peak rate {train.lr:g}, {train.schedule} schedule, dropout {model.dropout:g}, "
        f"label smoothing {train.label_smoothing:g}, {train.batch_tokens:,}-{facts.batches} batches, "
        f"seed {train.seed}",
    ]
    if facts.steps:
        epochs = f" ({facts.epochs:.1f} epochs)" if facts.epochs else ""
        lines.append(f"{facts.steps:,} steps{epochs} in {_duration(facts.seconds)}")
    if facts.machine:
        lines.append(f"on {escape(facts.machine)}")
    if facts.version:
        lines.append(f"Regard {escape(facts.version)}")
    return lines


def _duration(seconds: float) -> str:
    """Time for a person: 42 s, 15 min, 2 h 05 min."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def _scores(scores: Sequence[Measured]) -> str:
    """A row a set of examples, a column a score."""
    if not scores:
        return "## Scores\n\nNot measured yet: `regard evaluate` does.\n"
    held = {name: score for measured in scores for name, score in measured.scores.items()}
    rows = [
        f"| {escape(measured.name)} | {max((s.count for s in measured.scores.values()), default=0):,} | "
        + " | ".join(_cell(measured.scores.get(name)) for name in held)
        + " |"
        for measured in scores
    ]
    signed = [(score.label or name, score.signature) for name, score in held.items() if score.signature]
    return "\n".join(
        [
            "## Scores\n",
            f"| measured on | examples | {' | '.join(score.label or name for name, score in held.items())} |",
            f"|---|---:|{'---:|' * len(held)}",
            *rows,
            "",
            *(f"- {escape(label)}: signature {code(signature)}" for label, signature in signed),
            "",
        ]
    )


def add_scores(folder: Path, name: str, scores: Mapping[str, Score]) -> None:
    """Write scores into the card of a folder; those that were measured on the same before go."""
    path = folder / "README.md"
    text = read_bytes(path, MOST_SETTINGS).decode("utf-8", "replace") if path.exists() else ""
    write_text(path, with_scores(text, name, scores))


def with_scores(card: str, name: str, scores: Mapping[str, Score]) -> str:
    """A card with one more line of what was measured.

    >>> scores = {"bleu": Score(31.5, label="BLEU", digits=1)}
    >>> print(with_scores("# A model\\n\\n## Use\\n", "test.de", scores))
    # A model
    <BLANKLINE>
    ## Evaluated
    <BLANKLINE>
    - test.de: BLEU 31.5
    <BLANKLINE>
    ## Use
    <BLANKLINE>
    """
    told = ", ".join(score.words(each) for each, score in scores.items())
    signed = [score.signature for score in scores.values() if score.signature][:1]
    count = max((score.count for score in scores.values()), default=0)
    begin = f"- {escape(name)}: "
    line = begin + escape(told) + (f", {count:,} examples" if count else "")
    line += f"; signature {code(signed[0])}" if signed else ""
    head, title, rest = card.partition("## Evaluated\n")
    lines, _, after = rest.partition("\n## ") if title else ("", "", "")
    if not title:
        head, _, after = card.partition("## Use\n")
        after = f"Use\n{after}" if "## Use\n" in card else ""
    kept = [each for each in lines.splitlines() if each.startswith("- ") and not each.startswith(begin)]
    body = "\n".join([*kept, line])
    return f"{head.rstrip()}\n\n## Evaluated\n\n{body}\n" + (f"\n## {after}" if after else "")


def _cell(score: Score | None) -> str:
    return "" if score is None else f"{score.value:.{score.digits + 1}f}"


def _use(folder: str, use: Sequence[str], python: str) -> str:
    """How to call it, in a shell and in Python."""
    folder = "DIR" if "`" in folder or not folder.isprintable() else folder  # nothing leaves the fence
    if PurePath(folder).is_absolute():
        folder = PurePath(folder).name or "DIR"  # as with the files: where it lies is nobody's business
    name = shlex.quote(folder)
    commands = "".join(f"{line.replace('{}', name)}\n" for line in use)
    parts = [f"```\n{commands}```\n" if use else ""]
    if python:
        parts.append(f"```python\nimport regard\n\n{python.replace('{}', repr(folder))}\n```\n")
    shown = "\n".join(part for part in parts if part)
    return f"## Use\n\n{shown}" if shown else ""
