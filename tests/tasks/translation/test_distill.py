"""Distillation: killed anywhere it ends as if it never was, and says what the student comes from."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from command import POSITIONS, letters, write_lines

from regard.cli.main import run
from regard.errors import UsageError
from regard.process.stopping import Stopped
from regard.tasks.translation import distill as module
from regard.tasks.translation import synthetic
from regard.tasks.translation.distill import distill
from regard.tasks.translation.load import load_translator
from regard.tasks.translation.synthetic import whole_lines
from regard.tasks.translation.translator import Translator

STEPS = {
    "train.max_steps": 3,
    "model.d_model": 16,
    "model.n_heads": 2,
    "model.d_ff": 17,
    "model.encoder_layers": 2,
    "train.batch_tokens": 200,
    "train.valid_every": 3,
    "train.precision": "fp32",
    "train.threads": 1,
}


def study(teacher: Path, out: Path, *arguments: Any, **options: Any) -> Any:
    """A student in a second."""
    overrides = STEPS | options.pop("overrides", {})
    return distill(teacher, *arguments, out=out, overrides=overrides, quiet=True, **{"beam": 1} | options)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of which one is empty and one too long for the student."""
    lines, _ = letters(23, seed=4)
    return write_lines(tmp_path_factory.mktemp("text") / "text.low", [*lines[:7], "", "a " * 300, *lines[7:]])


def alone(path: Path) -> Any:
    from regard.cli.distill import text_of

    return text_of([path])


def test_the_students_data_are_the_teachers_words(model: Path, text: Path, tmp_path: Path):
    result = study(model, tmp_path / "student", alone(text))
    assert result.steps == 3
    sources = text.read_text().splitlines()
    rows = (tmp_path / "student" / "distilled" / "pairs.tsv").read_text().splitlines()
    wanted = load_translator(model).translate([line if len(line) < 100 else "" for line in sources], beam=1)
    assert rows == [f"{a}\t{b}" if b else "" for a, b in zip(sources, wanted, strict=True)]
    student = load_translator(tmp_path / "student")
    assert student.tokenizer.to_json() == load_translator(model).tokenizer.to_json()
    assert len(student.model.decoder) == 1
    card = (tmp_path / "student" / "README.md").read_text()
    assert f"distilled: the target side was written by the teacher {model.name} with beam 1" in card


def test_killed_while_translating_it_goes_on(
    model: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(synthetic, "WINDOW", 5)
    study(model, tmp_path / "whole", alone(text))
    translate, asked = Translator.translate, []

    def failing(self: Translator, texts: list[str], **options: Any) -> list[str]:
        asked.append(texts)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return translate(self, texts, **options)

    monkeypatch.setattr(Translator, "translate", failing)
    pairs = tmp_path / "killed" / "distilled" / "pairs.tsv"
    with pytest.raises(KeyboardInterrupt):
        study(model, tmp_path / "killed", alone(text))
    assert whole_lines(pairs) == 10
    with pairs.open("ab") as file:
        file.write(b"half a li")  # as a power cut leaves it
    study(model, tmp_path / "killed", alone(text))
    assert len(asked) == 3 + 3  # 25 lines in fives: two were done, one failed
    for name in ("distilled/pairs.tsv", "model.safetensors", "tokenizer.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    before = len(asked)
    assert study(model, tmp_path / "killed", alone(text)).steps == 3  # finished: nothing is done
    assert len(asked) == before


def test_a_polite_signal_ends_after_the_window(
    model: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(synthetic, "WINDOW", 5)
    translate = Translator.translate

    def signalled(self: Translator, texts: list[str], **options: Any) -> list[str]:
        import signal

        signal.raise_signal(signal.SIGTERM)
        return translate(self, texts, **options)

    monkeypatch.setattr(Translator, "translate", signalled)
    with pytest.raises(Stopped, match="stopped after 5 of 25 lines; the same command goes on") as caught:
        study(model, tmp_path / "student", alone(text))
    assert caught.value.exit_code == 143


def test_the_store_of_the_teacher_is_the_default_and_originals_may_be_learned_too(
    model: Path, letter_files: tuple[Path, Path], tmp_path: Path
):
    study(model, tmp_path / "student", originals=True)
    folder = tmp_path / "student" / "distilled"
    sources, targets = (path.read_text().splitlines() for path in letter_files)
    pairs = [f"{a}\t{b}" for a, b in zip(sources, targets, strict=True)]
    assert (folder / "originals.tsv").read_text().splitlines() == pairs
    assert [row.split("\t")[0] for row in (folder / "pairs.tsv").read_text().splitlines()] == sources
    card = (tmp_path / "student" / "README.md").read_text()
    assert "600 pairs of lines" in card
    assert "beside the original pairs" in card


def test_the_student_may_have_a_vocabulary_of_its_own(model: Path, text: Path, tmp_path: Path):
    study(model, tmp_path / "student", alone(text), overrides={"text.vocab_size": 263})
    assert load_translator(tmp_path / "student").tokenizer.vocab_size == 263


def test_another_search_text_or_teacher_is_refused(model: Path, text: Path, tmp_path: Path):
    study(model, tmp_path / "student", alone(text))
    with pytest.raises(UsageError, match="holds other translations: the beam changed; use --fresh"):
        study(model, tmp_path / "student", alone(text), beam=2)
    with pytest.raises(UsageError, match="the text changed"):
        study(model, tmp_path / "student")
    assert study(model, tmp_path / "student", alone(text), beam=2, fresh=True).steps == 3


def test_mistakes_are_refused_before_any_work(
    model: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    bare = tmp_path / "bare"
    shutil.copytree(model, bare, ignore=shutil.ignore_patterns("store"))
    for arguments, words in (
        (["-m", bare, "-o", tmp_path / "s"], "holds no token store to take its training text from"),
        (["-m", model, "-o", model], "is the teacher; choose another folder"),
        (["-m", model, "-o", bare], "holds a model that was not distilled"),
        (["-m", model, text, "--originals", "-o", tmp_path / "s"], "--originals needs the original pairs"),
        (["-m", model, "nowhere.en", "-o", tmp_path / "s"], "nowhere.en does not exist"),
        (["-m", tmp_path / "none", "-o", tmp_path / "s"], "none does not exist"),
        (["-m", model, "--preset", "huge", "-o", tmp_path / "s"], "unknown preset huge"),
        (["-m", model, "--set", "train.speed=1", "-o", tmp_path / "s"], "unknown config key train.speed"),
    ):
        assert run(["distill", *map(str, arguments)]) == 2, words
        error = capsys.readouterr().err
        assert words in error
        assert len(error.splitlines()) == 1
    assert not (tmp_path / "s").exists()


def test_lines_are_counted_and_half_a_line_is_cut_off(tmp_path: Path):
    path = tmp_path / "lines"
    assert whole_lines(path) == 0
    path.write_bytes(b"one\n\nthree\nfou")
    assert whole_lines(path) == 3
    assert path.read_bytes() == b"one\n\nthree\n"
    path.write_bytes(b"no end")
    assert whole_lines(path) == 0
    assert path.read_bytes() == b""


@pytest.mark.parametrize("kind", ["parallel", "ctc", "blockwise"])
def test_a_student_that_writes_several_at_once_is_one_command_and_goes_on(
    model: Path, text: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
):
    """Killed after its translations, it goes on; it has the teacher's shape, vocabulary and words."""
    few = {key: value for key, value in STEPS.items() if not key.startswith("model.")}
    words = ["distill", "-m", str(model), str(text), "-o", str(tmp_path / "student"), "--to", kind]
    few["data.max_length"] = POSITIONS
    words += [word for key, value in few.items() for word in ("--set", f"{key}={value}")]
    with monkeypatch.context() as patch:

        def die(*arguments: Any, **options: Any) -> None:
            raise UsageError("killed")

        patch.setattr(module, "train", die)
        assert run([*words, "--beam", "1"]) == 2
    pairs = (tmp_path / "student" / "distilled" / "pairs.tsv").read_bytes()
    assert run([*words, "--beam", "1"]) == 0
    assert (tmp_path / "student" / "distilled" / "pairs.tsv").read_bytes() == pairs
    student, teacher = load_translator(tmp_path / "student"), load_translator(model)
    assert (tmp_path / "student" / "config.json").read_text().count(f'"kind": "{kind}"') == 1
    assert student.tokenizer.to_json() == teacher.tokenizer.to_json()
    shape = {name: weight.shape for name, weight in teacher.model.state_dict().items()}
    mine = {name: weight.shape for name, weight in student.model.state_dict().items()}
    assert shape.items() <= mine.items()
    if kind == "blockwise":
        lines = [line for line in text.read_text().splitlines() if len(line) < 100]
        assert student.translate(lines) == teacher.translate(lines, beam=1)
    assert "distilled: the target side was written by the teacher" in (
        tmp_path / "student" / "README.md"
    ).read_text(encoding="utf-8")


def test_a_keyword_that_means_nothing_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^fressh means nothing to distill, .*fresh"):
        distill("teacher", out=tmp_path / "x", fressh=True)
    assert not (tmp_path / "x").exists()
