"""The order of things: who is run, who is not run again, and what a failure does. Processes are played."""

import json
import sys
from pathlib import Path

import pytest
from command import letters, write_lines

from regard.compare import family
from regard.compare.family import Comparison, run_family
from regard.compare.variants import Variant
from regard.errors import UsageError
from regard.tasks.translation import TASK

SETTINGS = {"model.d_model": 16, "model.n_heads": 2}
# What a process does in these tests: it counts its runs, fails where the job says so, and answers the rest.
PLAYED = """
import json, os, signal, sys
job = json.load(open(sys.argv[-1]))
with open(job["folder"] + ".runs", "a") as file:
    file.write("fresh " if job["fresh"] else "again ")
if job["name"] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
outcome = {"name": job["name"], "overrides": job["overrides"]}
if job["name"] == "wrong":
    outcome["error"] = "no such word"
else:
    outcome |= {"scores": {"bleu": {"value": 50.0, "label": "BLEU", "digits": 1}}, "steps": 3}
    outcome |= {"peak_megabytes": 1.0, "parameters": 2}
json.dump(outcome, open(job["outcome"], "w"))
"""


@pytest.fixture
def comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    files = [write_lines(tmp_path / f"pairs.{n}", side) for n, side in enumerate(letters(40))]
    played = tmp_path / "played.py"
    played.write_text(PLAYED)
    real = family.subprocess.Popen

    def popen(command, **options):
        return real([sys.executable, str(played), command[-1]], **options)

    monkeypatch.setattr(family.subprocess, "Popen", popen)
    monkeypatch.setattr(family, "POLL", 0.05)
    return Comparison(tmp_path / "out", TASK, {"train": files, "test": files}, "tiny", SETTINGS, 0.5)


def runs(comparison: Comparison, slug: str) -> list[str]:
    path = comparison.folder / "variants" / f"{slug}.runs"
    return path.read_text().split() if path.exists() else []


def variants(*names: str) -> list[Variant]:
    return [Variant(name, {}) for name in names]


def listen(heard: list[tuple[str, float, bool]]):
    def said(text: str, share: float, *, lasting: bool = False) -> None:
        heard.append((text, share, lasting))

    return said


def test_failures_are_noted_and_what_is_finished_is_not_run_again(comparison):
    heard: list[tuple[str, float, bool]] = []
    names = ("good", "wrong", "killed", "other")
    found = run_family(comparison, variants(*names), listen(heard))
    assert [outcome.name for outcome in found] == list(names)
    assert [outcome.finished for outcome in found] == [True, False, False, True]
    assert found[1].error == "no such word"
    assert found[2].error.startswith("the process was ended by SIGKILL; see ")
    assert [text for text, _, lasting in heard if lasting][1:3] == [
        "1 of 4, good: BLEU 50.0",
        "2 of 4, wrong: failed: no such word",
    ]
    assert heard[-1][1] == 1.0
    run_family(comparison, variants(*names, "new"), listen(heard))
    counts = {name: len(runs(comparison, name)) for name in (*names, "new")}
    assert counts == {"good": 1, "wrong": 2, "killed": 2, "other": 1, "new": 1}


def test_a_name_with_other_settings_is_trained_anew(comparison):
    run_family(comparison, variants("a", "b"), listen([]))
    changed = [Variant("a", {"model.norm": "post"}), Variant("b", {})]
    run_family(comparison, changed, listen([]))
    assert (runs(comparison, "a"), runs(comparison, "b")) == (["again", "fresh"], ["again"])


def test_other_terms_are_refused_unless_fresh(comparison, tmp_path):
    run_family(comparison, variants("a"), listen([]))
    longer = Comparison(**(vars(comparison) | {"minutes": 2.0}))
    with pytest.raises(UsageError, match=r"another comparison: minutes was 0.5 and is 2.0; use --fresh"):
        run_family(longer, variants("a"), listen([]))
    fresh = Comparison(**(vars(longer) | {"fresh": True}))
    run_family(fresh, variants("a"), listen([]))
    assert runs(comparison, "a") == ["again", "fresh"]
    (tmp_path / "pairs.0").write_text((tmp_path / "pairs.0").read_text().replace("a", "b"))
    with pytest.raises(UsageError, match=r"another comparison: t\w+ data changed"):
        run_family(longer, variants("a"), listen([]))


def test_the_job_holds_all_that_counts(comparison):
    run_family(comparison, [Variant("a b", {"model.n_heads": 1})], listen([]))
    job = json.loads((comparison.folder / "variants" / "a-b.job").read_text())
    assert job["overrides"] == SETTINGS | {"model.n_heads": 1, "train.minutes": 0.5}
    assert all(Path(path).is_absolute() for path in job["files"]["train"])
    assert (Path(job["shared"]) / "tokenizer.json").exists()


@pytest.mark.parametrize(
    ("changes", "message"), [({"minutes": 0.0}, "minutes"), ({"preset": "huge"}, "huge")]
)
def test_impossible_terms(comparison, changes, message):
    with pytest.raises(UsageError, match=message):
        Comparison(**(vars(comparison) | changes))


def test_stopped_it_lets_the_process_save(comparison, tmp_path):
    (tmp_path / "played.py").write_text(
        "import sys, pathlib\nsys.stdin.read()\npathlib.Path(sys.argv[-1] + '.saved').touch()\n"
    )

    def stop(text: str, share: float, *, lasting: bool = False) -> None:
        if not lasting:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="the same command goes on where it was"):
        run_family(comparison, variants("a"), stop)
    assert (comparison.folder / "variants" / "a.job.saved").exists()
