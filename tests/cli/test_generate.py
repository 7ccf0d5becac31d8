"""`regard generate`: a prompt written on, prompts by the line, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from command import Run, complaint

from regard.config import Config, merge
from regard.models.decoder import Decoder
from regard.models.folder import save
from regard.text.running import RunningText


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with weights as they are drawn."""
    torch.manual_seed(4)
    tokenizer = RunningText.learn(["the cat sat on the mat\n" * 9], "characters")
    shape = {
        "model.vocab_size": tokenizer.vocab_size,
        "model.d_model": 16,
        "model.n_heads": 2,
        "model.d_ff": 17,
    }
    more = {
        "model.decoder_layers": 1,
        "model.kind": "decoder",
        "task": "language",
        "positions.kind": "rotary",
    }
    config = merge(Config(), shape | more)
    place = tmp_path_factory.mktemp("language") / "model"
    save(place, config=config, model=Decoder(config), tokenizer=tokenizer, card="# A model\n")
    return place


def test_a_prompt_is_written_on(folder: Path, regard: Run) -> None:
    done = regard("generate", "-m", folder, "the cat", "--tokens", 9)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the cat")
    assert regard("generate", "-m", folder, "the cat", "--tokens", 9).stdout == done.stdout
    likeliest = regard("generate", "-m", folder, "the cat", "--tokens", 9, "--temperature", 0)
    assert likeliest.stdout == done.stdout


def test_lines_in_are_lines_out(folder: Path, regard: Run) -> None:
    done = regard("generate", "-m", folder, "--tokens", 7, "--temperature", 1.5, input="the\n\ncat sat\n")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split("\n")) == 4
    asked = ["generate", "-m", folder, "--json", "--tokens", 7, "--temperature", 1.5, "-n", 2]
    found = [json.loads(line) for line in regard(*asked, input="the\n\ncat sat\n").stdout.splitlines()]
    assert [each["prompt"] for each in found] == ["the", "the", "", "", "cat sat", "cat sat"]
    assert all(len(each["logprobs"]) == len(each["ids"]) + (each["ended"] == "end") for each in found)
    assert found[0]["text"].replace("\n", " ").replace("\r", " ") == done.stdout.split("\n")[0]


def test_what_is_refused(folder: Path, model: Path, regard: Run) -> None:
    assert "holds a translator; use regard translate" in complaint(regard("generate", "-m", model, "a"))
    assert "holds a language model; use regard generate" in complaint(regard("translate", "-m", folder))
    for flags, words in (
        (["--top-k", "3"], "it needs --temperature above 0"),
        (["--overflow", "burst"], "--overflow (burst) must be one of slide, refuse"),
        (["-n", "2"], "would all be the same"),
        (["--tokens", "0"], "tokens (0)"),
        (["--temperature", "1", "--min-p", "2"], "min_p (2)"),
        (["--repetition-penalty", "0"], "repetition_penalty (0)"),
        (["-i", "prompts.txt"], "a prompt and -i prompts.txt were given"),
    ):
        assert words in complaint(regard("generate", "-m", folder, "a", *flags))


def test_a_prompt_that_is_refused_is_not_printed(folder: Path, regard: Run, tmp_path: Path) -> None:
    short = shutil.copytree(folder, tmp_path / "short")
    (short / "generation.json").write_text('{"context": 16}', encoding="utf-8")
    done = regard("generate", "-m", short, "the cat sat on the mat", "--overflow", "refuse")
    assert "do not fit into the model's 16 places" in complaint(done)
    assert done.stdout == ""
