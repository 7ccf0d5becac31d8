"""The model card, README.md of a model folder: what it is, what it was trained on, how, and its scores.

Written for a person who finds the folder years later (Mitchell et al. 2019, "Model Cards for Model
Reporting"). Training gathers the facts; `folder.py` saves the text; `regard show` prints it.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from regard.config import Config

_HOSTILE = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")


@dataclass(frozen=True)
class Measured:
    """The scores on one test set, as sacreBLEU counts them."""

    name: str  # the file, or what the set is called
    bleu: float
    chrf: float
    signature: str
    sentences: int


@dataclass(frozen=True)
class Facts:
    """What a card tells. A number that is 0 and a text that is empty are left out."""

    config: Config
    files: Sequence[str] = ()  # names or paths; only the names are told
    languages: tuple[str, str] | None = None  # from, to
    pairs: int = 0  # read
    kept: int = 0  # trained on
    source_tokens: int = 0
    target_tokens: int = 0
    parameters: int = 0
    steps: int = 0
    epochs: float = 0.0
    seconds: float = 0.0
    machine: str = ""
    version: str = ""  # of Regard
    scores: Sequence[Measured] = ()
    origin: str = ""  # where the data come from, if that is not what the files say


def write_card(facts: Facts, *, folder: str = "DIR") -> str:
    """The card as Markdown; `folder` is how the commands in it call the model.

    >>> print(write_card(Facts(Config(), files=["/home/me/a_b.en"], pairs=3)).splitlines()[0])
    # A translator trained on a\\_b.en
    """
    parts = [
        f"# {_title(facts)}\n",
        f"A {facts.config.model.kind} that translates one line of text at a time, made with Regard.\n",
        _section("Trained on", _data(facts)),
        _section("How", _training(facts)),
        _scores(facts.scores),
        _use(folder),
    ]
    return "\n".join(part for part in parts if part)


def escape(text: str) -> str:
    """`text` as it stands, whatever it holds, on one line of Markdown.

    >>> escape("a|b_c\\n# d")
    'a\\\\|b\\\\_c \\\\# d'
    """
    return _HOSTILE.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """`text` on one line of Markdown in a typewriter's letters, fenced by more backticks than it holds."""
    line = " ".join(text.split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    gap = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{gap}{line}{gap}{fence}"


def _title(facts: Facts) -> str:
    if facts.languages:
        return f"A translator from {escape(facts.languages[0])} to {escape(facts.languages[1])}"
    names = ", ".join(escape(name) for name in _names(facts.files))
    return f"A translator trained on {names}" if names else "A translator"


def _names(files: Iterable[str]) -> list[str]:
    """File names without their folders: where they lay is nobody's business."""
    return [PurePath(file).name for file in files]


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {title}\n", *(f"- {line}" for line in lines), ""]) if lines else ""


def _data(facts: Facts) -> list[str]:
    lines = [f"files: {', '.join(code(name) for name in _names(facts.files))}"] if facts.files else []
    if facts.origin:
        lines.append(escape(facts.origin))
    if facts.pairs:
        kept = f", of which {facts.kept:,} were trained on" if facts.kept else ""
        lines.append(f"{facts.pairs:,} pairs of lines{kept}")
    if facts.source_tokens or facts.target_tokens:
        lines.append(f"{facts.source_tokens:,} source and {facts.target_tokens:,} target tokens")
    return lines


def _training(facts: Facts) -> list[str]:
    model, train, config = facts.config.model, facts.config.train, facts.config
    size = f", {facts.parameters:,} parameters" if facts.parameters else ""
    lines = [
        f"{model.encoder_layers} encoder and {model.decoder_layers} decoder layers, d_model {model.d_model}, "
        f"{model.n_heads} heads, d_ff {model.d_ff}, {model.norm}-norm{size}".replace("_", "\\_"),
        f"{config.positions.kind} positions, {config.attention.kind} attention, "
        f"a joint vocabulary of {model.vocab_size:,} tokens with byte fallback",
        f"{train.optimizer}, peak rate {train.lr:g}, {train.schedule} schedule, dropout {model.dropout:g}, "
        f"label smoothing {train.label_smoothing:g}, {train.batch_tokens:,}-token batches, seed {train.seed}",
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
    if not scores:
        return "## Scores\n\nNot measured yet: `regard evaluate -m DIR SRC REF`.\n"
    rows = [f"| {escape(s.name)} | {s.sentences:,} | {s.bleu:.2f} | {s.chrf:.2f} |" for s in scores]
    signatures = dict.fromkeys(s.signature for s in scores)
    return "\n".join(
        [
            "## Scores\n",
            "| test set | lines | BLEU | chrF |",
            "|---|---:|---:|---:|",
            *rows,
            "",
            *(f"BLEU by sacreBLEU, signature {code(each)}" for each in signatures),
            "",
        ]
    )


def _use(folder: str) -> str:
    folder = "DIR" if re.search(r"[`\x00-\x1f]", folder) else folder  # nothing leaves the fence
    if PurePath(folder).is_absolute():
        folder = PurePath(folder).name or "DIR"  # as with the files: where it lies is nobody's business
    name = shlex.quote(folder)
    return (
        "## Use\n\n"
        "```\n"
        f'echo "your text" | regard translate -m {name}\n'
        f"regard evaluate -m {name} SRC REF\n"
        "```\n\n"
        "```python\n"
        "import regard\n\n"
        f"regard.load({folder!r}).translate(['your text'])\n"
        "```\n\n"
        "Decoding defaults are in `generation.json` and may be edited.\n"
    )
