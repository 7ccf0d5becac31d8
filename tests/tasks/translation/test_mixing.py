"""Several kinds of pairs in one run: what is seen how often, and one model for several languages."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import letters, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.cli.main import run
from regard.config import DataConfig
from regard.config.file import read_config
from regard.data.store import reopen_store
from regard.errors import UsageError
from regard.look import look
from regard.serving.engine import Order
from regard.serving.engine import run as serve
from regard.serving.family import Place
from regard.serving.served import Directory, load_served
from regard.tasks.train import train
from regard.tasks.translation.evaluate import evaluation
from regard.tasks.translation.load import load_translator
from regard.tasks.translation.mixing import by_file, mixed, times
from regard.tasks.translation.validation import Groups

SETTINGS: dict[str, Any] = {
    "train.max_steps": 100,
    "train.lr": 0.01,
    "model.d_model": 32,
    "model.n_heads": 2,
    "model.d_ff": 37,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.dropout": 0.0,
    "train.optimizer": "adam",
    "train.batch_tokens": 512,
    "train.valid_every": 50,
    "train.precision": "fp32",
    "train.threads": 1,
}
DIGITS = str.maketrans("abcdefgh", "12345678")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """English in small letters, German in capitals, French in digits; of French there is less."""
    folder = tmp_path_factory.mktemp("pairs")
    small, capital = letters(280)
    write_lines(folder / "a.en", small)
    write_lines(folder / "a.de", capital)
    write_lines(folder / "b.en", small[:70])
    write_lines(folder / "b.fr", [line.translate(DIGITS) for line in small[:70]])
    return folder


def pairs(files: Path) -> dict[str, tuple[Path, Path]]:
    return {
        "en-de": (files / "a.en", files / "a.de"),
        "en-fr": (files / "b.en", files / "b.fr"),
        "de-en": (files / "a.de", files / "a.en"),
    }


@pytest.fixture(scope="module")
def polyglot(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model for three pairs."""
    out = tmp_path_factory.mktemp("model") / "polyglot"
    train(pairs=pairs(files), out=out, preset="tiny", overrides=SETTINGS, quiet=True)
    return out


@settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 500), min_size=1, max_size=5),
    temperature=st.floats(1, 100),
)
def test_every_row_is_seen_and_shares_are_kept(sizes: list[int], temperature: float):
    data = DataConfig(temperature=temperature)
    ends = np.cumsum(sizes)
    groups = {
        f"{i}": np.arange(end - size, end) for i, (size, end) in enumerate(zip(sizes, ends, strict=True))
    }
    rows = mixed(groups, data)
    often = times({name: len(each) for name, each in groups.items()}, data)
    assert min(often.values()) == 1
    assert often[f"{sizes.index(max(sizes))}"] == pytest.approx(1)
    assert set(rows.tolist()) == set(range(int(ends[-1])))
    for name, each in groups.items():
        seen = np.isin(rows, each).sum()
        assert abs(seen - often[name] * len(each)) <= 1


def test_synthetic_pairs_have_the_share_that_is_asked_for():
    counts = {"": 100, "back-translated": 400}
    assert times(counts, DataConfig(synthetic=1.0)) == {"": 4.0, "back-translated": 1.0}
    assert times(counts, DataConfig(synthetic=8.0)) == {"": 1.0, "back-translated": 2.0}


def test_the_token_decides_what_is_written(polyglot: Path):
    lines, _ = letters(20, seed=7)
    for engine in ("readable", "native"):
        translator = load_translator(polyglot, engine=engine, precision="fp32")
        german = " ".join(translator.to("de").translate(lines, beam=1)).replace(" ", "")
        french = " ".join(translator.to("fr", "en").translate(lines, beam=1)).replace(" ", "")
        assert sum(map(str.isupper, german)) > 0.9 * len(german) > 30
        assert sum(map(str.isdigit, french)) > 0.9 * len(french) > 30
    with pytest.raises(UsageError, match=r"writes de, fr, en; say which: --to de"):
        translator.translate(lines)


def test_the_engine_writes_what_the_readable_search_writes(polyglot: Path):
    lines, _ = letters(13, seed=9)
    both = [
        load_translator(polyglot, engine=each, precision="fp32").to("fr") for each in ("readable", "native")
    ]
    assert both[0].translate([*lines, "", " "]) == both[1].translate([*lines, "", " "])


def test_zero_shot_is_said(polyglot: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["translate", "-m", str(polyglot), "--from", "de", "--to", "fr", "--lines", "A B"]
    assert run(arguments) == 0
    told = capsys.readouterr()
    assert told.err.splitlines() == ["de-fr is zero-shot: this model learned en-de, en-fr, de-en"]
    assert len(told.out.splitlines()) == 1
    assert load_translator(polyglot, source="en", target="fr").notes == []
    assert load_translator(polyglot, source="de", target="fr").to("fr", "en").notes == []


def test_the_folder_says_its_pairs_and_the_score_of_each(polyglot: Path):
    text = read_config(polyglot).text
    assert (text.pairs, text.source, text.target) == ("en-de en-fr de-en", "", "")
    card = (polyglot / "README.md").read_text()
    assert "# A translator: English to German, English to French, German to English" in card
    assert "| BLEU | chrF | BLEU en-de | BLEU en-fr | BLEU de-en |" in card
    assert "- en-fr: 69 pairs, seen 2 times an epoch" in card
    assert "Zero-shot, never trained: de-fr, fr-de, fr-en." in card


def test_a_tag_stands_before_every_source_of_the_store(polyglot: Path):
    store = reopen_store(polyglot / "store" / "train")
    tags = load_translator(polyglot).tokenizer.tags
    assert store is not None
    groups = store.groups()
    assert {name: len(rows) for name, rows in groups.items()} == {"en-de": 280, "en-fr": 70, "de-en": 280}
    for name, rows in groups.items():
        assert {int(store.src.sentence(int(row))[0]) for row in rows} == {tags[f">>{name[3:]}<<"]}


def test_killed_it_ends_as_if_it_never_was(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    quick = SETTINGS | {"train.max_steps": 4, "train.valid_every": 2, "train.save_every": 1}

    def go(name: str) -> None:
        train(pairs=pairs(files), out=tmp_path / name, preset="tiny", overrides=quick, quiet=True)

    go("whole")
    measure = Groups.measure
    monkeypatch.setattr(Groups, "measure", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        go("killed")
    monkeypatch.setattr(Groups, "measure", measure)
    go("killed")
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_test_set_says_its_languages_by_its_names(polyglot: Path, files: Path, tmp_path: Path):
    found = evaluation(polyglot, [files / "b.en", files / "b.fr"], beam=1, exact=True)
    assert found.scores["exact"].value > 0  # digits: by the other token there would be none
    for name in ("x", "y"):
        write_lines(tmp_path / name, ["a b"])
    with pytest.raises(UsageError, match="say which"):
        evaluation(polyglot, [tmp_path / "x", tmp_path / "y"])


def test_a_look_shows_the_token(polyglot: Path):
    seen = look(polyglot, "a b", target="fr")
    assert seen.sides["source"].tokens[0] == ">>fr<<"
    assert seen.sides["source"].special[0]
    assert seen.answer == load_translator(polyglot, engine="readable").to("fr").translate("a b")
    (told,) = load_translator(polyglot).to("fr").texts(["a b c"], words=True)
    assert told.words
    assert all(each["text"] in "abc" for word in told.words for each in word["from"])


def test_a_server_has_every_direction(polyglot: Path):
    place = Place(polyglot)
    directory = Directory([place])
    told = {each["code"]: each for each in directory.languages()}
    assert told["en"]["targets"] == ["de", "fr"]
    assert "zero_shot" not in told["en"]
    assert told["de"]["targets"] == ["en", "fr"]
    assert told["de"]["zero_shot"] == ["fr"]
    directory.models[place.name] = load_served(place)
    pair = directory.find("de", "fr")
    ((found,),) = serve(directory.models, Order(directory.named(pair), target="fr"), ["A B"])
    assert found.text == load_translator(polyglot).to("fr").translate(["A B"])[0]
    ((other,),) = serve(directory.models, Order(place.name, target="de"), ["a b"])
    assert other.text == load_translator(polyglot).to("de").translate(["a b"])[0]


def test_a_pivot_goes_by_way_of_a_language_within_one_model(polyglot: Path):
    place = Place(polyglot)
    directory = Directory([place], pivot="en")
    directory.models[place.name] = load_served(place)
    directory.join()
    assert ("de", "fr") not in directory.zero_shot
    ((found,),) = serve(directory.models, Order(directory.named(("de", "fr")), target="fr"), ["A B"])
    translator = load_translator(polyglot)
    (between,) = translator.to("en").translate(["A B"])
    assert [found.text] == translator.to("fr").translate([between])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pair", "en-de", "a.en", "a.de", "--pair", "en-de", "a.en", "a.de"], "en-de is there twice"),
        (["--pair", "en", "a.en", "a.de"], "en is no pair of languages"),
        (["--pair", "en-de"], "give a pair and its files"),
        (["a.en", "a.de", "--pair", "en-de", "a.en", "a.de"], "name all files"),
        (["--valid-pair", "en-de", "a.en", "a.de"], "belongs to a --pair"),
        (
            ["--pair", "en-de", "a.en", "a.de", "--valid-pair", "de-en", "a.de", "a.en"],
            "de-en: that pair is not trained on",
        ),
        (["--pair", "en-de", "a.en", "nothing.de"], "nothing.de"),
    ],
)
def test_a_slip_of_the_pen_is_one_line(
    arguments: list[str],
    said: str,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(files)
    assert run(["train", *arguments, "-o", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_what_others_cannot_hold_is_refused_before_anything_is_written(
    polyglot: Path, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out, both = str(tmp_path / "out"), [str(files / "a.en"), str(files / "a.de")]
    for arguments, said in (
        (["export", "-m", str(polyglot), "--to", "ctranslate2", "-o", out], "serves 3 pairs by a token"),
        (["distill", "-m", str(polyglot), "-o", out, str(files / "a.en")], "a student learns one pair"),
        (
            ["train", *both, "--from", str(polyglot), "-o", out],
            "name the pair",
        ),
        (
            [
                "train",
                "--pair",
                "en-cs",
                str(files / "a.en"),
                str(files / "a.de"),
                "--from",
                str(polyglot),
                "-o",
                out,
            ],
            "never learned to write cs",
        ),
    ):
        assert run(arguments) == 2
        told = capsys.readouterr().err
        assert said in told
        assert len(told.splitlines()) == 1
        assert not (tmp_path / "out").exists()


def test_files_have_the_shares_that_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = by_file(np.arange(5, 100), [90, 10, 0])
    assert [len(each) for each in rows.values()] == [85, 10, 0]
    drawn = mixed(rows, DataConfig(weights="1,4,9"))
    assert [int((drawn < 90).sum()), int((drawn >= 90).sum())] == [85, 340]
    with pytest.raises(UsageError, match=r"data\.weights \(1,4\) has 2 shares, for 3 that are mixed"):
        mixed(rows, DataConfig(weights="1,4"))
    for wrong in ("3,x", "3,0", ",", "-1"):
        with pytest.raises(UsageError, match=r"data\.weights .* must be a list of shares"):
            DataConfig(weights=wrong)
    small, capital = letters(150)
    for name, low, high in (("a", 0, 120), ("b", 120, 150)):
        write_lines(tmp_path / f"{name}.en", small[low:high])
        write_lines(tmp_path / f"{name}.de", capital[low:high])
    sides = [",".join(str(tmp_path / f"{name}.{side}") for name in "ab") for side in ("en", "de")]
    flags = [
        flag
        for key, value in (SETTINGS | {"train.max_steps": 3}).items()
        for flag in ("--set", f"{key}={value}")
    ]
    flags += ["--set", "data.weights=1,2"]
    assert run(["train", *sides, "-o", str(tmp_path / "model"), *flags]) == 0
    store = reopen_store(tmp_path / "model" / "store" / "train")
    assert store is not None
    assert store.report.parts == [120, 30]
    assert run(["train", *sides, "-o", str(tmp_path / "other"), *flags, "--set", "data.weights=1,2,3"]) == 2
    assert "has 3 shares, for 2 that are mixed" in capsys.readouterr().err
