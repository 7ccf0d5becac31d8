"""`regard look`: a file by its ending, the translation on stdout; one line for what is wrong."""

import json
import re
from pathlib import Path

import pytest
from command import complaint, write_lines

from regard.cli import main


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`run(*arguments)`: exit code, stdout, stderr; in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main.run(["look", *map(str, arguments)])
        return (code, *capfd.readouterr())

    return call


@pytest.mark.parametrize("ending", ["html", "svg", "png", "json", "pharaoh"])
def test_the_ending_says_what_is_written(run, model, ending):
    code, out, err = run("-m", model, "a b c", "-o", f"x.{ending}")
    assert (code, out, err) == (0, "A B C\n", f"wrote x.{ending}\n")
    starts = {
        "html": b"<!DOCTYPE html>",
        "svg": b"<svg",
        "png": b"\x89PNG",
        "json": b"{",
        "pharaoh": b"",
    }
    written = Path(f"x.{ending}").read_bytes()
    assert written.startswith(starts[ending])
    if ending == "pharaoh":  # which words go together is the model's affair, and its rounding's
        assert re.fullmatch(rb"[012]-0( [012]-[012])*\n", written)


def test_without_a_name_it_is_attention_html(run, model):
    assert run("-m", model, "a b")[0] == 0
    assert Path("attention.html").exists()


def test_json_holds_the_walk_and_the_models_name(run, model):
    run("-m", model, "a b", "-o", "x.json", "--beam", "1")
    tree = json.loads(Path("x.json").read_text(encoding="utf-8"))
    assert tree["model"]["name"] == model.name
    assert tree["beam"] == 1
    assert "q" in tree["maps"][0]["heads"][0]


def test_a_figure_of_one_head(run, model):
    assert run("-m", model, "a b", "-o", "x.svg", "--kind", "encoder", "--layer", "1", "--head", "0")[0] == 0
    assert "encoder.1.self, head 0" in Path("x.svg").read_text(encoding="utf-8")


def test_one_word_in_several_sentences(run, model):
    code, out, _ = run("-m", model, "--word", "a", "a b", "c a d", "-o", "x.json")
    assert code == 0
    assert len(out.splitlines()) == 2
    tree = json.loads(Path("x.json").read_text(encoding="utf-8"))
    assert [each["place"] for each in tree["occurrences"]] == [0, 1]


def test_heads_are_ranked(run, model, tmp_path):
    src = write_lines(tmp_path / "test.low", ["a b c d e", "h g f e d", "b a"])
    ref = write_lines(tmp_path / "test.up", ["A B C D E", "H G F E D", "B A"])
    code, out, err = run("--ablate", "-m", model, src, ref, "--limit", "2", "-o", "heads.json")
    assert code == 0, err
    assert out.startswith("BLEU ")
    assert "2 sentences" in out
    tree = json.loads(Path("heads.json").read_text(encoding="utf-8"))
    assert len(tree["heads"]) == len(out.splitlines()) - 3
    assert "of 19 passes" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "-o", "x.gif"], "x.gif ends in .gif; give one of .html, .json"),
        (["a", "-o", "x"], "x ends in nothing"),
        (["a", "b"], "2 texts given; put the sentence in quotes"),
        (["  "], "the text is empty"),
        (["a", "-o", "gone/x.svg"], "No such file or directory: gone/x.svg"),
        (["a", "-o", "x.svg", "--head", "9"], "there is no head 9"),
        (["a b", "--word", "z"], "does not hold the word 'z'"),
        (["a", "--word", "a", "-o", "x.pharaoh"], "give one of .html, .json, .png, .svg"),
        (["--ablate", "gone.a", "gone.b"], "gone.a"),
        (["--ablate", "a", "b", "-o", "x.html"], "does not end in .json"),
        (["--ablate", "a", "b", "--limit", "0"], "limit (0) must be at least 1"),
        (["a " * 70], "tokens"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run, model, arguments, message):
    code, out, err = run("-m", model, *arguments)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("regard: error: ")
    assert message in line


def test_no_model_no_traceback(regard, tmp_path):
    assert "does not exist" in complaint(regard("look", "-m", tmp_path / "none", "a"))
