"""The words of the config that name a thing, and the things they name: one table a word.

    attention.score   SCORES      (H, K) -> Score                 regard/attention/score.py
    attention.kind    KERNELS     (AttentionConfig, Site) -> Kernel      regard/attention/kernel.py
    positions.kind    POSITIONS   a Scheme                        regard/attention/positions.py
    model.kind        MODELS      (Config) -> a module            regard/models/
    task              TASKS       a Task                          regard/tasks/task.py

Ours are written as "module:name" and loaded when they are first asked for: the config checks a word without
loading torch. A script adds its own (`SCORES.add("mine", make)`); an installed package names them as
Python entry points in the group `regard.scores` and so on (docs/build_your_own.md).
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from regard.errors import UsageError, error_line


class Kinds(Mapping[str, Any]):
    """Things by name: ours, those a script has added, those of installed packages."""

    def __init__(self, word: str, group: str, own: dict[str, str]) -> None:
        self.word, self.group, self.own = word, group, own
        self._held: dict[str, Any] = {}
        self.asked: set[str] = set()  # what is not ours and was asked for: see `at_fault`
        self._entries: dict[str, Any] | None = None

    def add(self, name: str, thing: Any) -> None:
        """Let the config say `word=name` and mean `thing`."""
        if name in self.own:
            raise UsageError(f"{self.word}={name} is Regard's own; choose another name")
        self._held[name] = thing

    def __getitem__(self, name: str) -> Any:
        if name not in self._held:
            self._held[name] = self._load(name)
        if self.foreign(name):
            self.asked.add(name)
        return self._held[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._held or name in self._installed()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.own, *self._held, *self._installed())))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def foreign(self, name: str) -> bool:
        """Whether it is not one of ours, so that it has to prove what ours are known for."""
        return name not in self.own

    def _load(self, name: str) -> Any:
        if name in self.own:
            module, _, attribute = self.own[name].partition(":")
            return getattr(import_module(module), attribute)
        entry = self._installed().get(name)
        if entry is None:
            raise UsageError(f"{self.word} ({name}) must be one of {', '.join(self)}")
        try:
            return entry.load()
        except Exception as error:
            raise UsageError(
                f"{self.word}={name} is {entry.value} of another package, which cannot be loaded: "
                f"{error_line(error)}"
            ) from error

    def _installed(self) -> dict[str, Any]:
        """The entry points of installed packages; looked for once, when a word is not known otherwise."""
        if self._entries is None:
            from importlib.metadata import entry_points  # it reads the disk

            self._entries = {entry.name: entry for entry in entry_points(group=self.group)}
        return self._entries


SCORES = Kinds(
    "attention.score",
    "regard.scores",
    {
        "scaled-dot": "regard.attention.score:scaled_dot",
        "dot": "regard.attention.score:dot",
        "cosine": "regard.attention.score:Cosine",
        "additive": "regard.attention.additive:Additive",
        "general": "regard.attention.score:General",
    },
)
KERNELS = Kinds(
    "attention.kind",
    "regard.kernels",
    {
        "full": "regard.attention.kernel:full",
        "local": "regard.attention.local:local",
        "bigbird": "regard.attention.bigbird:bigbird",
        "linformer": "regard.attention.linformer:linformer",
    },
)
POSITIONS = Kinds(
    "positions.kind",
    "regard.positions",
    {
        "sinusoidal": "regard.attention.positions:SINUSOIDAL",
        "learned": "regard.attention.positions:LEARNED",
        "relative": "regard.attention.positions:RELATIVE",
        "structural": "regard.attention.positions:STRUCTURAL",
        "rotary": "regard.attention.positions:ROTARY",
        "alibi": "regard.attention.positions:ALIBI",
        "quadratic": "regard.attention.positions:QUADRATIC",
        "none": "regard.attention.positions:NONE",
    },
)
MODELS = Kinds(
    "model.kind",
    "regard.models",
    {
        "transformer": "regard.models.transformer:Transformer",
        "parallel": "regard.models.parallel:Parallel",
        "ctc": "regard.models.ctc:Ctc",
        "blockwise": "regard.models.blockwise:Blockwise",
        "ssru": "regard.models.ssru:SSRUTransformer",
        "decoder": "regard.models.decoder:Decoder",
        "encoder": "regard.models.encoder:Encoder",
        "rnn": "regard.models.rnn:RNN",
        "rnn-attention": "regard.models.rnn:RNN",
        "lstmn": "regard.models.lstmn:LSTMN",
        "conv": "regard.models.conv:Convolution",
        "sagan": "regard.models.sagan:SAGAN",
        "speech": "regard.models.speech:Speech",
    },
)
TASKS = Kinds(
    "task",
    "regard.tasks",
    {
        "translation": "regard.tasks.translation:TASK",
        "language": "regard.tasks.language:TASK",
        "embed": "regard.tasks.embed:TASK",
        "masked": "regard.tasks.masked:TASK",
        "classify": "regard.tasks.labels:CLASSIFY",
        "tag": "regard.tasks.labels:TAG",
        "image": "regard.tasks.image:TASK",
        "gan": "regard.tasks.gan:TASK",
        "detection": "regard.tasks.detection:TASK",
        "speech": "regard.tasks.speech:TASK",
        "both": "regard.tasks.both:TASK",
    },
)
TABLES = (SCORES, KERNELS, POSITIONS, MODELS, TASKS)


def at_fault(error: BaseException) -> str | None:
    """What is not ours and was in use when something broke: `task=mine (mine.py line 7)`; None: all is ours.

    The line is the last one of its files on the way to the error, if it came by there.
    """
    asked = [(table, name) for table in TABLES for name in sorted(table.asked)]
    homes = {home: f"{table.word}={name}" for table, name in asked for home in _homes(table[name])}
    step, found = error.__traceback__, None
    while step is not None:
        code = step.tb_frame.f_code
        if who := homes.get(step.tb_frame.f_globals.get("__name__")):
            found = f"{who} ({code.co_filename.rpartition('/')[2]} line {step.tb_lineno})"
        step = step.tb_next
    return found or ", ".join(f"{table.word}={name}" for table, name in asked) or None


def _homes(thing: Any) -> set[Any]:
    """The modules that a thing was written in; of a value made of functions, theirs."""
    parts = (thing, type(thing), *getattr(thing, "__dict__", {}).values())
    homes = {getattr(part, "__module__", None) for part in parts}
    return {home for home in homes if home and home.partition(".")[0] not in ("regard", "builtins")}
