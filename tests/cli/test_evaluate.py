"""`regard evaluate`: the scores are sacreBLEU's, and the gate closes."""

import json
import shutil
from pathlib import Path

import pytest
import sacrebleu
from command import Run, complaint, letters, write_lines

from regard.cli import main


@pytest.fixture
def held_out(tmp_path: Path) -> tuple[Path, Path]:
    src, tgt = letters(60, seed=3)
    return write_lines(tmp_path / "test.low", src), write_lines(tmp_path / "test.up", tgt)


def test_scores_are_those_of_sacrebleu(model: Path, held_out, capfd: pytest.CaptureFixture[str]):
    src, ref = held_out
    assert main.run(["translate", "-m", str(model), "-i", str(src), "--beam", "2"]) == 0
    found = capfd.readouterr().out.split("\n")[:-1]
    expected = sacrebleu.corpus_bleu(found, [ref.read_text().splitlines()])
    assert main.run(["evaluate", "-m", str(model), str(src), str(ref), "--beam", "2", "--json"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert set(scores) == {"bleu", "chrf", "signature", "sentences", "seconds", "tokens_per_second"}
    assert scores["bleu"] == pytest.approx(expected.score)
    assert scores["sentences"] == 60
    assert "tok:13a" in scores["signature"]


def test_the_gate(model: Path, held_out, regard: Run):
    done = regard("evaluate", "-m", model, *held_out, "--beam", 1, "--min-bleu", 100.5)
    assert done.stdout.startswith("BLEU")
    message = complaint(done, 3)
    assert "100.50" in message
    done = regard("evaluate", "-m", model, *held_out, "--beam", 1, "--min-bleu", 50)
    assert (done.returncode, done.stderr) == (0, "")


def test_unequal_files(model: Path, held_out, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    short = write_lines(tmp_path / "short", ["A"])
    assert main.run(["evaluate", "-m", str(model), str(held_out[0]), str(short)]) == 2
    err = capfd.readouterr().err
    assert "60 lines" in err
    assert "1 line;" in err


def test_a_table_will_do(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    table = write_lines(tmp_path / "pairs.tsv", ["a b\tA B", "c\tC"])
    assert main.run(["evaluate", "-m", str(model), str(table)]) == 0
    assert "of 2 lines" in capfd.readouterr().out


def test_outputs_are_kept_another_is_compared_and_the_card_is_told(
    model: Path, held_out, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    folder = shutil.copytree(model, tmp_path / "copy")
    src, ref = map(str, held_out)
    kept = tmp_path / "kept.txt"
    flags = ["-o", str(kept), "--against", str(model), "--ter", "--card", "--json", "--tokenize", "char"]
    for _ in range(2):  # the second time takes the place of the first
        assert main.run(["evaluate", "-m", str(folder), src, ref, *flags]) == 0
    scores = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert scores["against_bleu"] == scores["bleu"]
    assert scores["p_value"] > 0.5
    lines = kept.read_text().split("\n")[:-1]
    references = Path(ref).read_text().splitlines()
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(lines, [references], tokenize="char").score)
    assert scores["ter"] == pytest.approx(sacrebleu.corpus_ter(lines, [references]).score)
    card = (folder / "README.md").read_text()
    assert card.count("- test.low, test.up: BLEU ") == 1
    assert card.index("## Evaluated") < card.index("## Use")
    assert main.run(["evaluate", "-m", str(folder), src, ref, "--tokenize", "no"]) == 2
    assert "tokenize (no) must be one of" in capfd.readouterr().err
