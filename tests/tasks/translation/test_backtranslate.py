"""Back-translation: killed at any stage it ends as if it never was, and synthetic sources are tagged."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from command import letters, write_lines

from regard.cli.main import run
from regard.config.file import read_config
from regard.data.store import reopen_store
from regard.errors import UsageError
from regard.tasks.translation import backtranslate as module
from regard.tasks.translation import synthetic
from regard.tasks.translation.backtranslate import backtranslate
from regard.tasks.translation.load import load_translator
from regard.tasks.translation.synthetic import whole_lines
from regard.tasks.translation.translator import Translator

SETTINGS: dict[str, Any] = {
    "train.max_steps": 3,
    "model.d_model": 16,
    "model.n_heads": 2,
    "model.d_ff": 17,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "train.batch_tokens": 200,
    "train.valid_every": 3,
    "train.precision": "fp32",
    "train.threads": 1,
}
FILES = ("synthetic/pairs.tsv", "synthetic/reverse/model.safetensors", "model.safetensors", "tokenizer.json")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few pairs, and more text in capitals, of which one line is empty."""
    folder = tmp_path_factory.mktemp("data")
    small, capital = letters(60)
    write_lines(folder / "a.en", small)
    write_lines(folder / "a.de", capital)
    _, more = letters(23, seed=5)
    write_lines(folder / "mono.de", [*more[:7], "", *more[7:]])
    return folder


def go(data: Path, out: Path, **options: Any) -> Any:
    settings = SETTINGS | options.pop("overrides", {})
    mono = options.pop("mono", data / "mono.de")
    return backtranslate(
        data / "a.en",
        data / "a.de",
        mono=mono,
        out=out,
        overrides=settings,
        preset="tiny",
        quiet=True,
        **{"beam": 1} | options,
    )


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "whole"
    assert go(data, out).steps == 3
    return out


def test_the_reverse_model_writes_the_sources(made: Path, data: Path):
    lines = (data / "mono.de").read_text().splitlines()
    written = load_translator(made / "synthetic" / "reverse").translate(lines, beam=1)
    rows = (made / "synthetic" / "pairs.tsv").read_text().splitlines()
    assert rows == [f"{a}\t{b}" if b else "" for a, b in zip(written, lines, strict=True)]
    text = read_config(made / "synthetic" / "reverse").text
    assert (text.source, text.target) == ("de", "en")
    assert (read_config(made).text.source, read_config(made).text.target) == ("en", "de")


def test_synthetic_sources_are_tagged_and_real_ones_are_not(made: Path):
    store = reopen_store(made / "store" / "train")
    tag = load_translator(made).tokenizer.tags["<back>"]
    assert store is not None
    groups = store.groups()
    assert len(groups[""]) == 60
    assert all(store.src.sentence(int(row))[0] != tag for row in groups[""])
    assert all(store.src.sentence(int(row))[0] == tag for row in groups["back-translated"])
    card = (made / "README.md").read_text()
    assert "back-translation: the source side of mono.de was written by a reverse model" in card
    assert "back-translated: " in card


@pytest.mark.parametrize("stage", ["reverse", "translating", "forward"])
def test_killed_at_any_stage_it_goes_on(
    data: Path, made: Path, tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
):
    out = tmp_path / "killed"
    monkeypatch.setattr(synthetic, "WINDOW", 5)
    with monkeypatch.context() as patch:
        calls: list[Any] = []
        name, at = ("translate", 3) if stage == "translating" else ("train", 1 if stage == "reverse" else 2)
        home: Any = Translator if stage == "translating" else module
        before = getattr(home, name)

        def dying(*arguments: Any, **options: Any) -> Any:
            calls.append(arguments)
            if len(calls) == at:
                raise KeyboardInterrupt
            return before(*arguments, **options)

        patch.setattr(home, name, dying)
        with pytest.raises(KeyboardInterrupt):
            go(data, out)
    if stage == "translating":
        assert whole_lines(out / "synthetic" / "pairs.tsv") == 10
    go(data, out)
    for file in FILES:
        assert (out / file).read_bytes() == (made / file).read_bytes()


def test_a_reverse_model_may_be_given_and_another_is_another_run(made: Path, data: Path, tmp_path: Path):
    reverse = made / "synthetic" / "reverse"
    go(data, tmp_path / "given", reverse=reverse, overrides={"data.synthetic": 2.0})
    assert not (tmp_path / "given" / "synthetic" / "reverse").exists()
    pairs = (tmp_path / "given" / "synthetic" / "pairs.tsv").read_bytes()
    assert pairs == (made / "synthetic" / "pairs.tsv").read_bytes()
    with pytest.raises(UsageError, match="the reverse model changed; use --fresh"):
        go(data, tmp_path / "given")
    with pytest.raises(UsageError, match="the text changed"):
        go(data, tmp_path / "given", reverse=reverse, mono=data / "a.de")
    with pytest.raises(UsageError, match="the beam changed"):
        go(data, tmp_path / "given", reverse=reverse, beam=2)


def test_mistakes_are_refused_before_any_work(
    made: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other = tmp_path / "other"
    shutil.copytree(made / "synthetic" / "reverse", other)
    pairs, mono = [data / "a.en", data / "a.de"], ["--mono", data / "mono.de"]
    for arguments, words in (
        ([*pairs, "--mono", "nowhere.de", "-o", tmp_path / "s"], "nowhere.de does not exist"),
        (
            [*pairs, *mono, "--reverse", made, "-o", tmp_path / "s"],
            "translates en-de; the reverse model must go de-en",
        ),
        ([*pairs, *mono, "-o", other], "holds a model that was not made by back-translation"),
        ([*pairs, *mono, "--reverse", other, "-o", other], "is the reverse model"),
        ([*pairs, *mono, "--ratio", "0", "-o", tmp_path / "s"], "data.synthetic (0"),
        ([*pairs, *mono, "--set", "train.speed=1", "-o", tmp_path / "s"], "unknown config key train.speed"),
    ):
        assert run(["backtranslate", *map(str, arguments)]) == 2, words
        error = capsys.readouterr().err
        assert words in error
        assert len(error.splitlines()) == 1
    assert not (tmp_path / "s").exists()


def test_a_keyword_that_means_nothing_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^fressh means nothing to backtranslate, .*fresh"):
        backtranslate("a", "b", mono="c", out=tmp_path / "x", fressh=True)
    assert not (tmp_path / "x").exists()
