"""One variant in its process: what is written down when it goes well, badly, and a second time."""

import json
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from command import environment, letters, write_lines

from regard.compare import trial
from regard.compare.trial import Job, Outcome, peak_megabytes, training_speed
from regard.tasks.translation import TASK
from regard.training.lesson import Job as Lessons
from regard.training.settle import settle

SETTINGS = {
    **{"model.d_model": 16, "model.n_heads": 2, "model.d_ff": 16, "model.dropout": 0.0},
    **{"train.max_steps": 3, "decode.beam": 2, "decode.max_extra": 1},
}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    files = [write_lines(tmp_path / f"pairs.{n}", side) for n, side in enumerate(letters(40))]
    shared = tmp_path / "shared"
    shared.mkdir()
    TASK.lesson(Lessons(shared, settle(TASK, "tiny", None, SETTINGS), TASK.read(files)))
    paths = {split: [str(path) for path in files] for split in ("train", "test")}
    place, outcome = str(tmp_path / "model"), str(tmp_path / "outcome.json")
    return Job(TASK.name, "small", place, outcome, str(shared), "tiny", dict(SETTINGS), paths)


def run(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """The job, here and without its watch on stdin."""
    monkeypatch.setattr(trial, "stop_with_parent", lambda: None)
    (tmp_path / "job").write_text(json.dumps(asdict(job)))
    code = trial.main(tmp_path / "job")
    outcome = Outcome.read(Path(job.outcome))
    assert outcome is not None
    assert code == (1 if outcome.error else 0)
    return outcome


def test_it_trains_on_what_is_shared_and_scores(job, tmp_path, monkeypatch):
    outcome = run(job, tmp_path, monkeypatch)
    assert outcome.error is None
    assert outcome.finished
    assert (outcome.steps, outcome.name) == (3, "small")
    assert outcome.tokens_per_second > 0
    assert outcome.sentences_per_second > 0
    assert outcome.parameters > 1000
    assert (tmp_path / "model" / "store").resolve() == (tmp_path / "shared" / "store").resolve()
    before = (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns
    again = run(job, tmp_path, monkeypatch)
    assert (again.scores, again.peak_megabytes) == (outcome.scores, outcome.peak_megabytes)
    assert (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns == before, "not trained again"


def test_a_mistake_is_one_line(job, tmp_path, monkeypatch):
    job.overrides["attention.score"] = "telepathic"
    outcome = run(job, tmp_path, monkeypatch)
    assert outcome.error.startswith("attention.score (telepathic) must be one of")
    assert not outcome.finished


def test_a_fault_of_ours_is_one_line_too(job, tmp_path, monkeypatch, capfd):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(trial, "run", broken)
    assert run(job, tmp_path, monkeypatch).error == "ZeroDivisionError: two lines"
    assert "Traceback" in capfd.readouterr().err


def test_it_stops_with_its_parent(tmp_path):
    code = "from regard.compare.trial import stop_with_parent as s; s(); import time; time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment())
    process.stdin.close()
    assert process.wait(60) == -signal.SIGTERM


def test_it_ends_by_itself_while_its_parent_waits():
    code = "from regard.compare.trial import stop_with_parent as s; s(); import time; time.sleep(0.2)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment()) as process:
        assert process.wait(60) == 0


def test_speed_leaves_out_what_has_none():
    assert training_speed([]) is None
    assert training_speed([{"tokens": 10}, {"tokens": 30, "tokens_per_second": 5.0}]) == 5.0


def test_the_peak_is_in_megabytes():
    """Asked in a small process: this one may have been larger before."""
    code = "; ".join(
        (
            "from regard.compare.trial import peak_megabytes as peak",
            "before = peak()",
            "ballast = b'x' * 200 * 2**20",
            "print(peak() - before)",
        )
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, check=True)
    assert 190 < float(done.stdout) < 260
    assert peak_megabytes() > 20


def test_the_peak_where_no_system_tells_it(monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda self: False)
    assert peak_megabytes() > 20
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_megabytes() == 0


def test_what_is_no_outcome(tmp_path):
    assert Outcome.read(tmp_path / "missing") is None
    (tmp_path / "half").write_text('{"name": "a"')
    assert Outcome.read(tmp_path / "half") is None
    (tmp_path / "other").write_text('{"nam": "a"}')
    assert Outcome.read(tmp_path / "other") is None
