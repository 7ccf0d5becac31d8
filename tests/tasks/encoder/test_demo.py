"""`regard demo` for tasks of encoders: phrases of CLDR, learned for a moment, and an end that can be read."""

import shlex
from pathlib import Path

import pytest

from regard.cli import main
from regard.tasks.encoder import demo as shared
from regard.tasks.labels import demo as labels
from regard.tasks.labels.labeller import words_of
from regard.tasks.masked import demo as masked
from regard.text.phrasebook import GROUPS, parts

SMALL = {
    "model.d_model": 16,
    "model.n_heads": 2,
    "model.encoder_layers": 1,
    "model.d_ff": 32,
    "train.max_steps": 3,
    "train.batch_tokens": 256,
    "train.precision": "fp32",
    "train.threads": 1,
}
TOLD = {
    "masked": ("hidden tokens of phrases that training never saw", "; it was "),
    "classify": ("phrases that training never saw", "macro F1"),
    "tag": ("words that training never saw", "macro F1"),
}


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Few phrases, few steps, in an empty folder."""
    monkeypatch.setattr(shared, "SPLITS", {"train": 300, "valid": 20, "test": 40})
    for module in (masked, labels):
        monkeypatch.setattr(module, "SETTINGS", module.SETTINGS | SMALL)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("task", TOLD)
def test_from_phrases_to_an_end_that_can_be_read(task: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["demo", "--task", task, "--minutes", "5"]) == 0
    out = capfd.readouterr().out
    assert all(words in out for words in TOLD[task])
    commands = [line.strip() for line in out.partition("Go on with:")[2].splitlines() if line.strip()]
    verbs = [shlex.split(each.partition("#")[0]) for each in commands]
    used, looked = (each[each.index(verb) :] for each, verb in zip(verbs, [USED[task], "look"], strict=False))
    assert main.run(used) == 0
    assert main.run(looked) == 0
    assert Path(looked[-1]).stat().st_size > 10_000
    assert main.run(["show", f"runs/demo-{task}"]) == 0
    assert "phrases of CLDR" in capfd.readouterr().out


USED = {"masked": "fill", "classify": "classify", "tag": "tag"}


def test_labels_are_those_of_the_values() -> None:
    """A phrase is its parts; each word has the group of the value that it is of."""
    found = next(parts("de", split="valid", seed=3))
    words = labels._words(found)
    assert [word for word, _ in words] == [word for text, _ in found for word in words_of(text)]
    assert {label for _, label in words} <= {*GROUPS, labels.SIGN}
    said = [each for each, _ in zip(labels._said("train"), range(200), strict=False)]
    assert len({label for _, label in said}) == len(labels.LANGUAGES)
    owners = dict(said)
    assert all(owners[text] == label for text, label in said), "one text, one language"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--to", "fr"], "--to means nothing to task=tag"),
        (["--from", "qqqq"], "unknown locale 'qqqq'"),
        (["-o", "thesis"], "thesis"),
    ],
)
def test_what_cannot_be_shown(flags: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("thesis").mkdir()
    Path("thesis/chapter").touch()
    assert main.run(["demo", "--task", "tag", *flags]) == 2
    assert said in capfd.readouterr().err
    assert [path.name for path in Path("thesis").iterdir()] == ["chapter"]
