"""A look as a whole: what it holds, what it writes, what it refuses; in a notebook and for bertviz."""

import json

import pytest
import torch

import regard
import regard.look
from regard.config import DecodeConfig
from regard.errors import DataError, ModelError, UsageError
from regard.look.look import ENDINGS, Look, look
from regard.models import folder
from regard.models.table import TableModel
from regard.tasks.translation.translator import Translator


def test_the_translation_is_the_translators_own(make):
    translator = make(1)
    (wanted,) = translator.stream(["the man, a dog"])
    found = look(translator, "the man, a dog")
    assert (found.translation, found.score, found.truncated) == (wanted.text, wanted.score, wanted.truncated)
    greedy = look(translator, "the man, a dog", beam=1)
    assert greedy.translation == translator.translate(["the man, a dog"], beam=1)[0]


@pytest.mark.parametrize("training", [False, True])
def test_the_model_is_left_as_it_was(make, training):
    """In a server others use the same model: dropout that a look switched on would make them random."""
    translator = make(1)
    translator.model.train(training)
    look(translator, "the man, a dog")
    assert {module.training for module in translator.model.modules()} == {training}


def test_every_layer_and_head_is_there_and_rows_sum_to_one(seen):
    assert [each.name for each in seen.maps] == [
        *("encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.1.self"),
        *("decoder.0.cross", "decoder.1.cross"),
    ]
    for each in seen.maps:
        queries, keys = (seen.side(name) for name in each.sides)
        assert each.weights.shape == (3, len(queries.tokens), len(keys.tokens))
        torch.testing.assert_close(each.weights.sum(-1), torch.ones_like(each.weights[..., 0]))
    assert len(seen.confidence) == len(seen.target.tokens)


def test_sides_are_shifted_by_one(seen):
    assert seen.read.tokens == ("<s>", *seen.target.tokens[:-1])
    assert seen.source.tokens[-1] == "</s>"


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_is_written_by_its_ending(seen, tmp_path, ending):
    path = tmp_path / f"a{ending}"
    seen.save(path)
    assert path.stat().st_size > 3


def test_another_ending_is_refused(seen, tmp_path):
    with pytest.raises(UsageError, match=r"ends in \.gif; give one of \.html, \.json"):
        seen.save(tmp_path / "a.gif")


def test_a_head_switched_off_is_said_and_changes_the_weights_after_it(make):
    translator = make(1)
    whole = look(translator, "the man", beam=1)
    without = look(translator, "the man", beam=1, off={"encoder.0.self": [1]})
    assert without.to_dict()["off"] == {"encoder.0.self": [1]}
    torch.testing.assert_close(whole.map("encoder", 0).weights, without.map("encoder", 0).weights)
    assert not torch.allclose(whole.map("encoder", 1).weights, without.map("encoder", 1).weights)
    with pytest.raises(UsageError, match="there is no head 7"):
        look(translator, "the man", off={"encoder.0.self": [7]})


def test_only_the_named_attentions_are_kept(make):
    assert [m.name for m in look(make(1), "the man", only=["decoder.1.cross"]).maps] == ["decoder.1.cross"]


def test_without_vectors_there_is_nothing_to_walk_through(make):
    found = look(make(1), "the man", vectors=False)
    assert all(each.vectors is None for each in found.maps)
    assert "q" not in found.to_dict()["maps"][0]["heads"][0]


@pytest.mark.parametrize("text", ["", "  \t "])
def test_nothing_is_refused(make, text):
    with pytest.raises(DataError, match="the text is empty"):
        look(make(1), text)


def test_great_length_is_refused_with_both_numbers(make):
    message = r"a text of 1,001 tokens has 18,036,018 weights .* at most 4,000,000"
    with pytest.raises(DataError, match=message):
        look(make(1), "run " * 1000)


def test_a_model_without_attention_is_refused_in_one_line(make, tokenizer):
    table = TableModel(torch.randn(tokenizer.vocab_size, tokenizer.vocab_size))
    for translator in (Translator(table, tokenizer, DecodeConfig(beam=2)), make(1, model__kind="rnn")):
        with pytest.raises(ModelError, match="has no attention to look at"):
            look(translator, "the man")


@pytest.mark.parametrize(
    "settings",
    [
        *({"model__kind": kind} for kind in ("rnn-attention", "lstmn", "conv")),
        *({"attention__kind": kind, "attention__rank": 3} for kind in ("local", "bigbird", "linformer")),
        *({"positions__kind": kind} for kind in ("relative", "alibi", "rotary")),
        {"attention__score": "additive"},
    ],
    ids=lambda settings: next(iter(settings.values())),
)
def test_every_kind_that_tapes_can_be_looked_at(make, settings, tmp_path):
    found = look(make(2, **settings), "the man, a dog")
    assert found.maps
    tree = json.loads(found.to_json())
    for each in tree["maps"]:
        assert len(each["heads"][0]["weights"]) == len(tree["sides"][each["queries"]]["tokens"])
    found.save(tmp_path / "a.html")
    found.save(tmp_path / "a.svg")


def test_a_long_sentence_of_a_local_model_is_shown_with_its_zeros(make):
    translator = make(2, attention__kind="local", attention__window=3)
    found = look(translator, "run " * 520, only=["encoder.0.self"], beam=1)
    (one,) = found.maps
    torch.testing.assert_close(one.weights.sum(-1), torch.ones_like(one.weights[..., 0]))
    distance = (torch.arange(521)[:, None] - torch.arange(521)).abs()
    assert not one.weights[:, distance > 3].any()


@pytest.mark.filterwarnings("ignore")  # bertviz leaves a file open
def test_bertviz_takes_the_tensors(seen):
    from_us = seen.bertviz()
    bertviz = pytest.importorskip("bertviz", reason="bertviz is not installed")
    shown = bertviz.model_view(**from_us, html_action="return")
    assert "encoder" in shown.data.lower()
    assert from_us["cross_attention"][0].shape == (1, 3, len(seen.read.tokens), len(seen.source.tokens))


def test_a_notebook_shows_it_in_a_frame_that_can_reach_nothing(seen):
    frame = seen._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts" title="Attention of: the man')
    assert frame.count("<") == 2  # the frame's own tags; the page is in an attribute


def test_a_folder_gives_its_name_and_card(make, tokenizer, tmp_path):
    from regard.config import Config, merge
    from regard.models import build

    shape = {"model.d_model": 12, "model.n_heads": 3, "model.encoder_layers": 1, "model.decoder_layers": 1}
    config = merge(Config(), {"model.vocab_size": tokenizer.vocab_size, **shape})
    place = tmp_path / "mine"
    folder.save(place, config=config, model=build(config), tokenizer=tokenizer, card="# A card\n")
    found = regard.look(place, "the man")
    assert (found.origin.name, found.origin.card) == ("mine", "# A card\n")
    assert isinstance(found, Look)


def test_the_room_can_be_called_too(make):
    import sys

    room = sys.modules["regard.look"]
    assert isinstance(room(make(1), "the man"), Look)
    assert regard.look(make(1), "the man").text == "the man"


def test_it_shows_itself_in_one_line(make):
    found = look(make(1), "the man")
    assert repr(found) == f"<Look: 'the man' -> {found.answer!r}, {len(found.maps)} maps>"
