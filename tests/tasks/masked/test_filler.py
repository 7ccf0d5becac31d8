"""Gaps are filled by what the model's own softmax says; a text without one is refused."""

import json
from pathlib import Path

import pytest
import torch

import regard
from regard.cli.main import run as command
from regard.data.inputs import Tokens
from regard.errors import DataError, UsageError


@pytest.mark.parametrize("engine", ["native", "readable"])
def test_guesses_are_the_largest_of_the_softmax(gap_filler: Path, engine: str) -> None:
    filler = regard.load(gap_filler, precision="fp32", engine=engine)
    found = filler.fill(["the [MASK] sat on [MASK] mat .", "a [MASK]"], top=4)
    rows = [[2, 5, 4, 8, 9, 4, 11, 12, 3], [2, 10, 4, 3]]
    for row, each in zip(rows, found, strict=True):
        with torch.no_grad():
            logits = filler.model.project(filler.model.encode(Tokens(torch.tensor([row]))))[0]
        for place, gap in zip([at for at, number in enumerate(row) if number == 4], each.gaps, strict=True):
            chances = logits[place, 5:].softmax(-1)  # what stands for no text is no guess
            best = chances.argsort(descending=True)[:4]
            pieces = [filler.tokenizer.token(int(number) + 5).removeprefix("##") for number in best]
            assert [guess.text for guess in gap] == pieces
            wanted = chances[best].tolist()
            assert [guess.probability for guess in gap] == pytest.approx(wanted, abs=1e-5)
    assert found[1].text == f"a {found[1].gaps[0][0].text}"


def test_lines_in_lines_out(gap_filler: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("the [MASK]\na [MASK] sat\n", encoding="utf-8")
    assert command(["fill", "-m", str(gap_filler), "-i", str(tmp_path / "in.txt")]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("the ")
    assert command(["fill", "-m", str(gap_filler), "the [MASK] [MASK]"]) == 0
    assert capfd.readouterr().out.count("%") == 10
    assert command(["fill", "-m", str(gap_filler), "the [MASK]", "--json"]) == 0
    assert set(json.loads(capfd.readouterr().out)) == {"text", "gaps"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["the cat"], "there is no [MASK] in"),
        (["[MASK]", "--top", "0"], "top (0) must be between 1 and"),
        (["[MASK] " + "cat " * 30], "has 33 tokens and the model reads 13"),
    ],
)
def test_bad_input_is_one_line(
    gap_filler: Path, more: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command(["fill", "-m", str(gap_filler), *more]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]


def test_python_raises_what_the_command_says(gap_filler: Path) -> None:
    filler = regard.load(gap_filler)
    with pytest.raises(DataError, match="no"):
        filler.fill(["nothing here"])
    with pytest.raises(UsageError, match="top"):
        filler.fill(["[MASK]"], top=99)
