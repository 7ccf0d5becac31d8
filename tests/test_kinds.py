"""The tables behind the words: ours, what a script adds, what packages bring, and what breaks."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.attention.kernel import Kernel, build_kernel
from regard.attention.positions import Positions, Scheme, build_positions, build_relations
from regard.attention.score import Dot, Score, build_score
from regard.attention.site import reading
from regard.cli.main import run as command
from regard.config import AttentionConfig, Config, PositionsConfig, merge
from regard.errors import UsageError
from regard.kinds import KERNELS, MODELS, POSITIONS, SCORES, TASKS, Kinds
from regard.tasks.language import Language
from regard.training.lesson import Job, Lesson


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test adds is gone after it."""
    for table in (SCORES, KERNELS, POSITIONS, MODELS, TASKS):
        monkeypatch.setattr(table, "_held", dict(table._held))


@pytest.mark.parametrize("table", [SCORES, KERNELS, POSITIONS, MODELS, TASKS])
def test_every_word_of_ours_names_a_thing(table: Kinds) -> None:
    assert all(table[name] is not None for name in table.own)


class Halved(Score):
    """Half of the dot product."""

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1) / 2


@pytest.mark.usefixtures("tables")
def test_a_script_adds_a_score() -> None:
    with pytest.raises(UsageError, match=r"attention\.score \(halved\) must be one of scaled-dot, dot"):
        merge(Config(), {"attention.score": "halved"})
    SCORES.add("halved", lambda n_heads, d_head: Halved())
    assert merge(Config(), {"attention.score": "halved"}).attention.score == "halved"
    q, k = torch.randn(1, 3, 2, 5), torch.randn(1, 3, 4, 5)
    torch.testing.assert_close(build_score("halved", 3, 5)(q, k), Dot(0.5)(q, k))


@pytest.mark.usefixtures("tables")
def test_ours_are_not_replaced() -> None:
    with pytest.raises(UsageError, match=r"attention\.score=dot is Regard's own"):
        SCORES.add("dot", Halved)


class Flat(Score):
    """Forgets the keys."""

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return q.sum(-1)


@pytest.mark.usefixtures("tables")
def test_a_broken_contract_is_one_line() -> None:
    SCORES.add("flat", lambda n_heads, d_head: Flat())
    SCORES.add("nothing", lambda n_heads, d_head: None)
    SCORES.add("breaks", lambda n_heads, d_head: Score())
    KERNELS.add("nothing", lambda config, site: None)
    POSITIONS.add("nothing", None)
    POSITIONS.add("half", Scheme(added=lambda config, width: None))  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match=r"score=flat makes \(1, 3, 2\) of .* \(1, 3, 2, 3\)"):
        build_score("flat", 3, 5)
    with pytest.raises(UsageError, match="score=nothing made a NoneType, not a Score"):
        build_score("nothing", 3, 5)
    with pytest.raises(UsageError, match="score=breaks cannot be computed: AssertionError"):
        build_score("breaks", 3, 5)
    with pytest.raises(UsageError, match="kind=nothing made a NoneType, not a Kernel"):
        build_kernel(AttentionConfig(kind="nothing"), reading(0))
    with pytest.raises(UsageError, match="kind=nothing is a NoneType, not a Scheme"):
        build_relations(PositionsConfig(kind="nothing"), reading(0), 3, 5)
    with pytest.raises(UsageError, match="kind=half made a NoneType, not Positions"):
        build_positions(PositionsConfig(kind="half"), 5)
    assert type(build_relations(PositionsConfig(kind="half"), reading(0), 3, 5)) is Positions


class Fickle(Score):
    """Keeps its contract for two queries."""

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return (q @ k.transpose(-2, -1))[:, :, :2]


class Narrow(Kernel):
    """Loses a place."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        return super().forward(q, k, v, **options)[:, :, 1:]


class Long(Positions):
    """One score too many."""

    def bias(self, q: Tensor, keys: int, offset: int = 0, places: Any = None) -> Tensor:
        return torch.zeros(1, 1, q.shape[2], keys + 1)


class Forgetful(Language):
    """A task that looks for what is not there."""

    name = "mine"

    def lesson(self, job: Job) -> Lesson:
        return {}["lesson"]  # type: ignore[no-any-return]


BROKEN: dict[str, tuple[Kinds, str, Any, str]] = {
    "score": (SCORES, "attention.score", lambda n_heads, d_head: Fickle(), "RuntimeError"),
    "kernel": (KERNELS, "attention.kind", lambda config, site: Narrow(), "RuntimeError"),
    "position": (POSITIONS, "positions.kind", Scheme(inside=lambda *shape: Long()), "RuntimeError"),
    "model": (MODELS, "model.kind", lambda config: torch.nn.Linear(2, 3), "Error"),
    "task": (TASKS, "task", Forgetful(), r"test_kinds.py line \d+\) broke: KeyError: 'lesson'"),
}


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("part", BROKEN)
def test_what_breaks_at_work_is_one_line(
    part: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table, word, thing, said = BROKEN[part]
    table.add("mine", thing)
    text = tmp_path / "sea.txt"
    text.write_text("the sea was grey and cold\n" * 40, encoding="utf-8")
    words = ["train", str(text), "-o", str(tmp_path / "out"), "--set", "model.d_model=16"]
    words += ["--set", "model.n_heads=2", "--set", "train.max_steps=2", "--set", "train.precision=fp32"]
    words += ["--set", "train.threads=1", "--set", "data.context=13"]
    words += ["--task", "mine"] if part == "task" else ["--task", "language", "--set", f"{word}=mine"]
    assert command(words) == 2
    lines = capfd.readouterr().err.splitlines()
    assert "Traceback" not in "".join(lines)
    assert re.search(f"{word}=mine .*{said}", lines[-1])


def installed(folder: Path, source: str, entries: str) -> None:
    """A package as pip leaves it."""
    info = folder / "other-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(entries, encoding="utf-8")
    (folder / "other_regard.py").write_text(source, encoding="utf-8")


def test_an_installed_package_brings_a_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from regard.attention.score import Dot\n\n\ndef third(n_heads, d_head):\n    return Dot(1 / 3)\n"
    )
    installed(tmp_path, source, "[regard.scores]\nthird = other_regard:third\nlost = other_regard:lost\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "other_regard", None)
    monkeypatch.delitem(sys.modules, "other_regard")
    table = Kinds("attention.score", "regard.scores", dict(SCORES.own))
    assert "third" in table
    assert list(table)[-2:] == ["third", "lost"]
    assert table["third"](2, 3).scale == 1 / 3
    with pytest.raises(
        UsageError, match="lost is other_regard:lost of another package, which cannot be loaded: Att"
    ):
        table["lost"]
    with pytest.raises(UsageError, match="must be one of scaled-dot"):
        table["unknown"]
