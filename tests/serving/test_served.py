"""Models by their languages: what folders and arguments say, what `auto` finds, what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from regard.config.file import read_config, tree_checksum
from regard.errors import ModelError, UsageError
from regard.serving.about import description
from regard.serving.family import Place, parse_place
from regard.serving.guess import likeliest
from regard.serving.limits import Refusal
from regard.serving.served import UNKNOWN, Directory, load_served, pairs_of


@pytest.fixture
def folder(model, tmp_path):
    """A copy of the small model."""
    return shutil.copytree(model, tmp_path / "copy")


def places(*pairs):
    return [Place(Path("nowhere"), pair) for pair in pairs]


def test_what_an_argument_says(folder):
    assert pairs_of(parse_place(str(folder))) == (UNKNOWN,)
    assert parse_place(f"en-pt-BR={folder}") == (place := Place(folder, "en-pt-BR"))
    assert pairs_of(place) == (("en", "pt-BR"),)
    assert pairs_of(parse_place(f"mine={folder}")) == (UNKNOWN,)
    with pytest.raises(UsageError, match="to itself"):
        parse_place(f"en-en={folder}")


def test_what_a_folder_says(folder):
    tree = json.loads((folder / "config.json").read_text())
    tree["text"] |= {"source": "en", "target": "de"}
    sums = tree.pop("checksums")
    tree["checksums"] = sums | {"config.json": tree_checksum(tree)}
    (folder / "config.json").write_text(json.dumps(tree))
    assert pairs_of(parse_place(str(folder))) == (("en", "de"),)
    assert pairs_of(parse_place(f"fr-it={folder}")) == (("fr", "it"),)


@pytest.mark.parametrize("text", ["", "[]", '"x"', '{"model": 3}', '{"nonsense": {"a": 1}}'])
def test_a_config_that_is_none(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        read_config(folder)


def test_a_loaded_model_knows_its_limit(folder):
    served = load_served(Place(folder, "en-de"))
    assert served.limit == 63, "64 positions, one for the end"
    assert served.count("a b") == 2


def test_pairs_are_found_however_they_are_spelled():
    directory = Directory(places("en-de", "en-pt_BR"))
    assert directory.find("EN", "pt-br") == ("en", "pt_BR")
    for pair in (("de", "en"), ("en", "fr"), ("en", "")):
        with pytest.raises(Refusal):
            directory.find(*pair)
    assert [each["code"] for each in directory.languages()] == ["de", "en", "pt_BR"]


def test_auto_is_the_only_way_or_the_script_or_nothing():
    directory = Directory(places("en-de", "ru-de", "fr-it"))
    (only,) = directory.guess("lundi", "it")
    assert only[0] == "fr"
    assert only[1] < 100
    assert directory.guess("Привет, мир", "de")[0][0] == "ru"
    assert [code for code, _ in directory.guess("hello there", "de")] == ["en", "ru"]
    assert directory.guess("hello", "xx") == []
    assert directory.guess("12 - 3", "de") == [("en", 0.0), ("ru", 0.0)]
    assert directory.guess("12 - 3") == [(code, 0.0) for code in ("en", "de", "ru", "fr", "it")]


def test_a_text_in_another_language_is_not_called_ours():
    directory = Directory(places("en-de", "ru-de"))
    text = "Das ist ein ganz gewöhnlicher Satz auf Deutsch."
    code, sure = directory.guess(text)[0]
    assert code == "de"
    assert sure > 80
    with pytest.raises(Refusal, match=r"the text is in de, by .*it needs no translation"):
        directory.guess(text, "de")
    with pytest.raises(Refusal, match=r"in fr, by .*no model here translates it to de"):
        directory.guess("Je ne sais pas où sont mes clés ce matin.", "de")


def test_languages_that_nobody_knows_are_told_by_their_vocabulary():
    directory = Directory(places("qaa-de", "qab-de"))
    assert directory.guess("hello", "de") == [("qaa", 50.0), ("qab", 50.0)]


def test_of_one_script_the_vocabulary_decides():
    assert likeliest("bonjour", ["en", "fr"], lambda code, text: {"en": 5, "fr": 2}[code]) == ["fr"]
    assert likeliest("日本語", ["ja", "en"], lambda code, text: 3) == ["ja"]
    assert likeliest("", ["en", "fr"], lambda code, text: 0) == ["en", "fr"]


def test_two_models_for_one_pair_are_refused():
    with pytest.raises(UsageError, match="en-de"):
        Directory(places("en-de", "en-de"))


def test_a_description_survives_missing_and_broken_files(folder):
    place = Place(folder, "en-de")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('broken\n[1]\n{"step": 999}\n')
    assert description(place)["metrics"][-1] == {"step": 999}
    assert "checksums" not in description(place)["config"]
    (folder / "metrics.jsonl").write_text("".join(f'{{"step": {n}}}\n' for n in range(5000)))
    assert 400 <= len(description(place)["metrics"]) <= 1000
    (folder / "metrics.jsonl").unlink()
    (folder / "README.md").unlink()
    assert (description(place)["card"], description(place)["metrics"]) == ("", [])
