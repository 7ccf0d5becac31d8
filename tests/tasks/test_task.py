"""Which task a folder holds, and what is said to a verb that was given another's."""

import json
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest
from command import ROOT, environment
from writers import write_writer

from regard.config import Config, merge, to_dict
from regard.config.file import tree_checksum
from regard.errors import ModelError, UsageError
from regard.kinds import TASKS
from regard.tasks.task import Task, expect, task_named, task_of

OLD = Path(__file__).parent.parent / "old_folder"


class Other(Task):
    """Something else."""

    name: ClassVar = "other"
    noun: ClassVar = "oracle"
    verb: ClassVar = "ask"


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of another task."""
    monkeypatch.setattr(TASKS, "_held", dict(TASKS._held))
    TASKS.add("other", Other())
    tree = to_dict(merge(Config(), {"task": "other"}))
    sums = {"config.json": tree_checksum(tree)}
    (tmp_path / "config.json").write_text(json.dumps(tree | {"checksums": sums}), encoding="utf-8")
    return tmp_path


def test_an_older_folder_is_a_translator() -> None:
    assert task_of(OLD / "finished").name == "translation"
    expect(OLD / "finished", "translation")


def test_a_folder_of_another_task_is_refused_with_what_it_is_good_for(other: Path) -> None:
    assert task_of(other).name == "other"
    with pytest.raises(UsageError, match=f"^{other} holds an oracle; use regard ask$"):
        expect(other, "translation")


def test_a_task_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TASKS, "_held", dict(TASKS._held) | {"wrong": 5})
    with pytest.raises(UsageError, match="task=wrong is a int, not a Task"):
        task_named("wrong")
    with pytest.raises(UsageError, match=r"task \(nothing\) must be one of translation"):
        merge(Config(), {"task": "nothing"})


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no config\.json"):
        task_of(tmp_path)


def test_using_a_model_imports_nothing_of_training(tmp_path: Path) -> None:
    """Translated, looked at and scored; and a language model that writes on."""
    translator = ROOT / "tests" / "old_folder" / "finished"
    code = """if True:
        import sys
        from pathlib import Path
        import regard
        from regard.tasks.language.writer import Wish
        from regard.tasks.task import task_of

        translator, writer, text = map(Path, sys.argv[1:])
        regard.load(translator).translate(["a b"])
        regard.look(translator, "a b").to_html()
        task_of(translator).evaluate(translator, [text])
        list(regard.load(writer).generate(["the"], Wish(tokens=3)))
        sys.exit("\\n".join(name for name in sys.modules if name.startswith("regard.training")) or 0)
    """
    text = tmp_path / "test.tsv"
    text.write_text("a b\tA B\n")
    arguments = [str(each) for each in (translator, write_writer(tmp_path / "writer"), text)]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
