"""Vectors: one a line and in order, whatever stands beside a line; files compared; input that is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.cli.main import run as command
from regard.data.inputs import Tokens
from regard.tasks.embed.embedder import Embedder, cosines, nearest
from regard.tasks.encoder import POOLINGS, EmbedConfig
from regard.tasks.encoder.reader import batches

LINES = ["the cats sat on a mat.", "", "a dog", "the dog sat", "cat cat cat cat cat cat"]


@pytest.fixture(scope="module")
def embedder(sentence_encoder: Path) -> Embedder:
    return regard.load(sentence_encoder)


@settings(max_examples=15)
@given(order=st.permutations(range(len(LINES))), word=st.sampled_from(POOLINGS), normal=st.booleans())
def test_a_vector_is_its_lines_own(embedder: Embedder, order: list[int], word: str, normal: bool) -> None:
    made = Embedder(embedder.reader.body, embedder.reader.tokenizer, EmbedConfig(word, normal))
    alone = [made.embed([line])[0] for line in LINES]
    among = made.embed([LINES[number] for number in order])
    assert among.shape == (len(LINES), 22)
    for place, number in enumerate(order):
        assert np.allclose(among[place], alone[number], atol=1e-5)
        assert not normal or np.isclose(np.linalg.norm(among[place]), 1, atol=1e-5)


@pytest.mark.parametrize("engine", ["native", "readable"])
def test_it_is_the_mean_of_the_places_that_the_model_gives(sentence_encoder: Path, engine: str) -> None:
    embedder = regard.load(sentence_encoder, precision="fp32", engine=engine)
    assert (embedder.reader.engine is not None) == (engine == "native")
    ids = torch.tensor([[2, *embedder.reader.tokenizer.encode(LINES[0]), 3]])
    with torch.no_grad():
        mean = embedder.reader.body.encode(Tokens(ids))[0].mean(0)
    assert np.allclose(embedder.embed(LINES[:1])[0], mean / mean.norm(), atol=1e-5)


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 90))
def test_batches_hold_every_row_once(lengths: list[int], tokens: int) -> None:
    found = list(batches(lengths, tokens))
    assert sorted(number for batch in found for number in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[number] for number in batch) <= tokens


def test_int8_is_near_and_what_only_the_engine_can_do_is_refused_without_it(
    sentence_encoder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    embedder = regard.load(sentence_encoder, precision="int8")
    assert embedder.reader.engine.precision == "int8"
    exact = regard.load(sentence_encoder, engine="readable").embed(LINES)
    assert 0.99 < cosines(embedder.embed(LINES), exact).min() < 1
    text = tmp_path / "in.txt"
    text.write_text("a dog\n", encoding="utf-8")
    for more, said in (
        (["--precision", "fp8"], "precision (fp8) must be one of auto, int8, bf16, fp32"),
        (["--engine", "none"], "engine (none) must be one of auto, native, readable"),
        (["--engine", "readable", "--precision", "int8"], "--precision int8 needs the native engine"),
    ):
        assert _embed(sentence_encoder, "-i", text, *more) == 2
        assert said in capfd.readouterr().err


def test_heads_that_are_off_are_off_whatever_reads(embedder: Embedder) -> None:
    plain = embedder.embed(LINES)
    with regard.heads_off({"encoder.0.self": [0]}):
        without = embedder.embed(LINES)
    readable = Embedder(embedder.reader.body, embedder.reader.tokenizer, embedder.how)
    with regard.heads_off({"encoder.0.self": [0]}):
        assert np.array_equal(without, readable.embed(LINES))
    assert not np.allclose(plain, without, atol=1e-2)


def test_the_nearest_are_those_that_a_loop_finds() -> None:
    draw = np.random.default_rng(5)
    ours, theirs = draw.normal(size=(7, 5)).astype("f4"), draw.normal(size=(11, 5)).astype("f4")
    for row, found in zip(ours, nearest(ours, theirs, 3), strict=True):
        all_of = cosines(np.repeat(row[None], 11, 0), theirs)
        wanted = sorted(range(11), key=lambda number, all_of=all_of: -all_of[number])[:3]
        assert [number for number, _ in found] == wanted
        assert np.allclose([value for _, value in found], all_of[wanted], atol=1e-5)
        by_hand = row @ theirs[wanted[0]] / np.linalg.norm(row) / np.linalg.norm(theirs[wanted[0]])
        assert np.isclose(found[0][1], by_hand, atol=1e-5)


def _embed(folder: Path, *more: object) -> int:
    return command(["embed", "-m", str(folder), *map(str, more)])


def test_lines_in_rows_out(sentence_encoder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "in.txt"
    text.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    assert _embed(sentence_encoder, "-i", text, "-o", tmp_path / "out.npy") == 0
    assert "1 texts were longer" not in capfd.readouterr().err
    array = np.load(tmp_path / "out.npy")
    assert array.shape == (len(LINES), 22)
    assert array.dtype == np.float32
    assert _embed(sentence_encoder, "-i", text) == 0
    listed = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert np.allclose(listed, array, atol=1e-6)
    assert _embed(sentence_encoder, "-i", text, "--similar", text) == 0
    assert [float(line) for line in capfd.readouterr().out.split()] == [1.0] * len(LINES)
    assert _embed(sentence_encoder, "-i", text, "--similar", text, "--top", 2) == 0
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [each["nearest"][0]["line"] for each in found] == [1, 2, 3, 4, 5]
    assert all(len(each["nearest"]) == 2 for each in found)


def test_a_long_text_is_cut_and_said_or_refused(
    sentence_encoder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "long.txt"
    text.write_text("a\n" + "cat " * 40 + "\n", encoding="utf-8")
    assert _embed(sentence_encoder, "-i", text) == 0
    assert "1 texts were longer than the 13 tokens" in capfd.readouterr().err
    assert _embed(sentence_encoder, "-i", text, "--overflow", "refuse") == 2
    assert "text 2 has 42 tokens and the model reads 13" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--overflow", "bend"], "--overflow (bend) must be one of cut, refuse"),
        (["--top", "3"], "--top is how many lines of --similar"),
        (["--pooling", "sum"], "embed.pooling (sum) must be one of mean, first, max"),
        (["--similar", "{two}"], "has 1 lines and"),
        (["--similar", "{none}", "--top", "1"], "is empty"),
        (["--similar", "nowhere"], "does not exist"),
        (["-o", "/nowhere/out.npy"], "cannot write /nowhere/out.npy"),
    ],
)
def test_bad_input_is_one_line(
    sentence_encoder: Path, tmp_path: Path, more: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    files = {"one": "a\n", "two": "a\nb\n", "none": ""}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    given = [each.format(**{name: tmp_path / name for name in files}) for each in more]
    assert _embed(sentence_encoder, "-i", tmp_path / "one", *given) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]


def test_a_folder_of_another_kind_says_what_it_is_for(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _embed(model) == 2
    assert "holds a translator; use regard translate" in capfd.readouterr().err
