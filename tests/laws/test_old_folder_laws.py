"""What version 0.1.0 left behind is still good: its folder translates the same, its unfinished run goes on.

`tests/old_folder` was written by the commit before the task seam: both folders by `regard train`
on train.low and train.up, the latter stopped after step 20 of 30; `expected.jsonl` by `regard translate`.
"""

import json
import shutil
from pathlib import Path

import pytest
from command import Run

OLD = Path(__file__).parent.parent / "old_folder"
LINES = ["a b c d", "h g f", "b b e", "c a f e d"]
# What the unfinished run was started with.
ASKED = [
    *("--preset", "tiny", "--set", "model.n_heads=1", "--set", "model.encoder_layers=1"),
    *("--set", "model.decoder_layers=1", "--set", "model.dropout=0.0", "--set", "train.precision=fp32"),
    *("--set", "text.source=en", "--set", "text.target=de", "--set", "model.d_model=6"),
    *("--set", "model.d_ff=8", "--set", "train.max_steps=30", "--set", "train.batch_tokens=512"),
    *("--set", "train.valid_every=10"),
]


def test_an_old_folder_translates_as_it_did(regard: Run) -> None:
    done = regard(
        *("translate", "-m", OLD / "finished", "--engine", "readable", "--beam", 2, "--json"),
        input="".join(f"{line}\n" for line in LINES),
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    wanted = [json.loads(line) for line in (OLD / "expected.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [each["text"] for each in found] == [each["text"] for each in wanted]
    assert [each["score"] for each in found] == pytest.approx([each["score"] for each in wanted], abs=1e-3)


def test_an_old_unfinished_run_goes_on(regard: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(OLD / "unfinished", folder)
    done = regard("train", OLD / "train.low", OLD / "train.up", "-o", folder, *ASKED)
    assert done.returncode == 0, done.stderr
    assert "going on from step 20" in done.stderr
    steps = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert steps[-1]["step"] == 30
    assert {"loss", "valid_loss", "valid_bleu"} <= steps[-1].keys()


def test_an_old_finished_run_is_known_as_finished(regard: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(OLD / "finished", folder)
    asked = [*ASKED, "--set", "model.d_model=16", "--set", "model.n_heads=2", "--set", "model.d_ff=32"]
    asked += ["--set", "train.lr=0.02", "--set", "train.max_steps=800", "--set", "train.valid_every=0"]
    done = regard("train", OLD / "train.low", OLD / "train.up", "-o", folder, *asked)
    assert done.returncode == 0, done.stderr
    assert "is finished" in done.stderr
    shown = regard("show", folder)
    assert "A translator from English to German" in shown.stdout
