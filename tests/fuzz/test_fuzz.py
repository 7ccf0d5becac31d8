"""Hostile input for every reader of foreign bytes: the corpus, and some made from it, the same each time."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from command import ROOT, environment
from fuzz.corpus import CORPUS
from fuzz.mutate import mutated
from fuzz.parsers import PARSERS
from fuzz.trial import MEMORY, FindingError, try_on

from regard.errors import ModelError, StorageError

ROUNDS = 60  # inputs that are made for each reader; `make fuzz` makes as many as there is time for
# Readers that are tried in one process, because what they import takes longer than they do.
GROUPS = {
    "folders": ("folder-", "shortlist", "metrics"),
    "foreign": ("marian-", "bert-", "sentencepiece"),
    "writers": ("gpt2-", "llama", "firefox-"),
    "senses": ("vit-", "detr-", "whisper-", "sound"),
    "translated": ("file-",),
    "pictures": ("picture", "boxes-"),
    "files": ("conllu", "text", "running", "lines", "python"),
    "settings": ("toml", "set", "options"),
    "requests": ("sentences", "markup", "glossary", "body"),
}


def fuzz(*words: object, before: str = "") -> subprocess.CompletedProcess[str]:
    """`python -m fuzz` with these words, and some code before it."""
    paths = os.pathsep.join([environment()["PYTHONPATH"], str(ROOT / "tests")])
    code = f"import sys, fuzz.__main__ as it\n{before}\nsys.exit(it.main())"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        env=environment() | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.mark.parametrize("group", GROUPS)
def test_no_input_breaks_a_reader(group: str, tmp_path: Path):
    names = [name for name in PARSERS if name.startswith(GROUPS[group])]
    plain = ["--alone", "--engine", "plain", "--rounds", ROUNDS, "--seed", 1, "--patience", 0]
    done = fuzz(*names, *plain, "--home", tmp_path)
    last = sorted(tmp_path.glob("*.current"), key=lambda path: path.stat().st_mtime)[-1:]
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-3000:]}{last}"
    assert [f"{name}: " in done.stdout for name in names] == [True] * len(names)


def test_every_reader_is_tried_and_has_a_corpus():
    assert PARSERS.keys() == CORPUS.keys()
    prefixes = tuple(prefix for group in GROUPS.values() for prefix in group)
    assert [name for name in PARSERS if not name.startswith(prefixes)] == []


# What is found -------------------------------------------------------------------------------------


class Talkative(ModelError):  # noqa: N818
    """An error that does not keep to what the others do."""

    def __str__(self) -> str:
        return str(self.args[0])


def refusing(error: Exception):
    def parser(data: bytes) -> None:
        raise error

    return parser


def greedy(data: bytes) -> None:
    """Holds more than it may, for a moment."""
    assert b"x" * (MEMORY + (50 << 20))


def test_what_may_come_out_of_a_reader_and_what_may_not():
    try_on(len, b"taken")
    try_on(refusing(ModelError("no model; give another")), b"refused")
    with pytest.raises(FindingError, match="exit code 5"):
        try_on(refusing(StorageError("no disk")), b"")
    with pytest.raises(FindingError, match="a message of 3000 characters"):
        try_on(refusing(Talkative("x" * 3000)), b"")
    with pytest.raises(FindingError, match="a terminal would act on"):
        try_on(refusing(Talkative("\x1b[2J")), b"")
    with pytest.raises(RecursionError):
        try_on(refusing(RecursionError()), b"")
    with pytest.raises(FindingError, match=r"3\d\d MB for an input of 1 bytes"):
        try_on(greedy, b"x")


def test_the_same_seed_makes_the_same_inputs_and_another_others():
    for name in ("folder-generation.json", "sentencepiece", "conllu", "metrics", "shortlist"):
        seeds = CORPUS[name].make()[:5]
        form = CORPUS[name].form

        def some(number: int, seeds: list[bytes] = seeds, form: str = form) -> list[bytes]:
            rng = Random(number)
            return [mutated(rng.choice(seeds), rng, form, [b"a"], seeds) for _ in range(20)]

        assert some(1) == some(1)
        assert some(1) != some(2)


def test_an_input_that_never_ends_is_ended_and_kept(tmp_path: Path):
    before = "def forever(data):\n    while True: pass\nit.PARSERS['set'] = forever"
    done = fuzz("set", "--alone", "--engine", "plain", "--patience", 0.2, "--home", tmp_path, before=before)
    assert done.returncode == -signal.SIGPROF
    assert "in forever" in done.stderr
    assert (tmp_path / "set.current").read_bytes() == CORPUS["set"].make()[0]


def test_findings_are_told_once_and_kept(tmp_path: Path):
    before = "def never(data):\n    raise KeyError(data)\nit.PARSERS['set'] = never"
    plain = ["--engine", "plain", "--rounds", 3, "--home", tmp_path]
    done = fuzz("set", *plain, "--alone", before=before)
    assert done.returncode == 1
    assert done.stdout.count("FOUND KeyError") == 1
    (kept,) = tmp_path.glob("set-*.found")
    assert kept.read_bytes() == CORPUS["set"].make()[0]
    assert "FOUND KeyError" in fuzz("set", "--input", kept, "--home", tmp_path, before=before).stdout
