"""`regard compare`: the tables on stdout, files in the folder, mistakes in a line."""

import json
import re
from pathlib import Path

import pytest
import torch
from command import Run, complaint, letters, write_lines

from regard.cli import compare, main
from regard.compare import cost
from regard.compare.variants import Variant, family
from regard.models import build
from regard.tasks.translation import TASK
from regard.training.settle import settle

SMALL = [
    *("--set", "model.d_model=16", "--set", "model.n_heads=2", "--set", "model.d_ff=16"),
    *("--set", "train.max_steps=3", "--set", "decode.max_extra=1", "--set", "decode.beam=2"),
]


@pytest.fixture
def pairs(tmp_path: Path) -> list[str]:
    """SRC TGT --test SRC TGT."""
    train = [str(write_lines(tmp_path / f"train.{n}", side)) for n, side in enumerate(letters(60))]
    test = [str(write_lines(tmp_path / f"test.{n}", side)) for n, side in enumerate(letters(5, seed=2))]
    return [*train, "--test", *test]


def test_a_family_of_two(pairs: list[str], tmp_path: Path, regard: Run, capfd: pytest.CaptureFixture[str]):
    toml = tmp_path / "variants.toml"
    toml.write_text('[reference]\n[wrong.attention]\nscore = "telepathic"\n')
    out = tmp_path / "out"
    done = regard("compare", toml, *pairs, "-o", out, *SMALL)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\| reference \| [\d.]+ \| [\d.]+ \| [\d.]+ \| [\d,]+ \|", done.stdout, re.MULTILINE)
    assert "- wrong failed: attention.score (telepathic) must be one of" in done.stdout
    assert done.stdout.strip() in (out / "results.md").read_text()
    assert {path.name for path in out.glob("results.*")} == {
        f"results.{e}" for e in ("md", "json", "png", "svg")
    }
    before = (out / "variants" / "reference.json").stat().st_mtime_ns
    capfd.readouterr()
    assert main.run(["compare", str(toml), *pairs, "-o", str(out), *SMALL, "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert [each["name"] for each in facts["variants"]] == ["reference", "wrong"]
    assert facts["variants"][0]["steps"] == 3
    assert (out / "variants" / "reference.json").stat().st_mtime_ns == before


def test_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    for name, value in (
        ("LEAST", 0.0),
        ("ROUNDS", 1),
        ("PATHS", (8,)),
        ("LONG_PATHS", (8,)),
        ("LONG_CHAINS", (8, 16)),
    ):
        monkeypatch.setattr(cost, name, value)
    out = tmp_path / "new" / "out"
    flags = ["compare", "--cost", "-o", str(out), "--lengths", "16,8,32", "--widths", "4,8"]
    assert main.run(flags) == 0
    printed, err = capfd.readouterr()
    assert "| self-attention | O(L² d) | 2 / " in printed
    assert printed.strip() in (out / "cost.md").read_text()
    assert "timing, round 1 of 1" in err
    assert {path.name for path in out.iterdir()} == {f"cost.{e}" for e in ("md", "json", "png", "svg")}
    assert main.run([*flags, "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts == json.loads((out / "cost.json").read_text())
    assert {point["length"] for point in facts[0]["seconds"]} == {8, 16, 32}


def test_theorem(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    assert main.run(["compare", "--theorem", "--json", "-o", str(tmp_path / "out")]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["heads"] == 9
    assert facts["largest_difference"] < 1e-4
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"theorem.png", "theorem.svg"}


def test_the_default_data_are_the_demos_phrases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compare, "SPLITS", {"train": 30, "valid": 5, "test": 7})
    comparison = compare.plan(compare.Options(output=tmp_path / "out"), [])
    assert sum(1 for _ in comparison.tests().train.pairs()) == 7
    assert comparison.overrides["model.encoder_layers"] == 2
    assert comparison.files["valid"]


@pytest.mark.parametrize("variant", family(TASK), ids=lambda each: each.name)
def test_every_member_can_be_trained_with_the_demos_settings(
    variant: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(compare, "SPLITS", {"train": 30, "valid": 5, "test": 7})
    comparison = compare.plan(compare.Options(output=tmp_path / "out"), [])
    overrides = comparison.overrides | {"model.vocab_size": 99} | variant.overrides
    config = settle(TASK, comparison.preset, None, overrides)
    with torch.device("meta"):
        build(config)
    if variant.name == "transformer":
        assert config.positions.kind == "rotary"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["a.en", "b.de"], "name files to score on with --test"),
        (["--test", "a.en", "a.de"], "--test and --valid go with files to train on"),
        (["missing.toml"], "cannot read variants missing.toml: No such file"),
        (["one.toml", "two.toml"], "2 TOML files given"),
        (["empty.toml"], "empty.toml is empty"),
        (["unknown.toml"], "sets model.heads, unknown; did you mean model.n_heads?"),
        (["a.en", "b.de", "c.fr", "--test", "a.en", "b.de"], "3 files given"),
        (["a.en", "b.de", "--test", "a.en", "b.de"], "a.en"),
        (["--minutes", "-1"], "--minutes (-1) must be above 0"),
        (["--minutes", "soon"], "--minutes"),
        (["--preset", "huge"], "unknown preset huge"),
        (["--set", "model.heads=1"], "unknown config key model.heads"),
        (["--set", "model.norm=never"], "model.norm (never) must be one of pre, post"),
        (["--cost", "--lengths", "64,many"], "--lengths takes whole numbers with commas between them"),
        (["--cost", "--lengths", "64"], "--lengths (64) must be at least two different numbers"),
        (["--cost", "--widths", "0,64"], "--widths (0,64) must be"),
        (["--cost", "--seconds", "0"], "--seconds (0) must be above 0"),
        (["--cost", "--theorem"], "two comparisons"),
        (["--cost", "a.en"], "take no files, and a.en was given"),
        (["--theorem", "-o", "a.file"], "a.file is a file"),
        (["--cost", "-o", "thesis"], "thesis holds other files (chapter)"),
        (["-o", "thesis"], "thesis holds other files (chapter)"),
        (["--theorem", "-o", "a.file/out"], "cannot write into a.file/out"),
    ],
)
def test_mistakes_are_one_line(
    flags: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "SPLITS", {"train": 30, "valid": 5, "test": 7})
    Path("empty.toml").touch()
    Path("unknown.toml").write_text("[a.model]\nheads = 1\n")
    Path("a.file").touch()
    Path("thesis").mkdir()
    Path("thesis/chapter").touch()
    assert main.run(["compare", *flags]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("regard: error: ")
    assert message in last
    assert [path.name for path in Path("thesis").iterdir()] == ["chapter"]


def test_a_folder_that_cannot_be_written(tmp_path: Path, regard: Run):
    import os

    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    (tmp_path / "closed").mkdir(mode=0o500)
    assert "cannot write into" in complaint(regard("compare", "--theorem", "-o", tmp_path / "closed"))
