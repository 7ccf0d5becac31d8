"""What models that write all at once looked at: of the passes that really ran."""

from typing import Any

import pytest
import torch

from regard.attention import record
from regard.data.inputs import pad_sources
from regard.look.at_once import spoken
from regard.look.look import look
from regard.look.words import SILENT
from regard.tasks.translation.retrace import retrace
from regard.tasks.translation.tracing import trace

TEXT = "the small dog runs"


def test_the_places_of_each_token() -> None:
    assert spoken([0, 5, 5, 0, 5, 7, 0], blank=0) == [range(1, 3), range(4, 5), range(5, 6)]


@pytest.mark.parametrize("kind", ["parallel", "ctc"])
def test_the_last_pass_is_shown_and_every_pass_is_told(kind: str, make: Any) -> None:
    translator = make(3, model__kind=kind)
    seen = look(translator, TEXT)
    (wanted,) = translator.translate([TEXT], beam=1)
    assert seen.answer == wanted
    assert {each.kind for each in seen.maps} == {"encoder", "decoder", "cross"} | (
        {"places"} if kind == "ctc" and len(seen.passes[-1].tokens) != len(seen.target.tokens) else set()
    )
    for one in seen.maps:
        queries, keys = (seen.side(name) for name in one.sides)
        assert one.weights.shape[1:] == (len(queries.tokens), len(keys.tokens))
        assert torch.allclose(one.weights.sum(-1), one.weights.new_ones(one.weights.shape[:2]))
    assert len(seen.confidence) == len(seen.target.tokens)
    told = seen.to_dict()["passes"]
    assert len(told) == 1 if kind == "ctc" else 2 <= len(told) <= 4
    assert all(told[0]["written"])
    assert len(told[-1]["tokens"]) == len(told[-1]["looked"])
    if kind == "parallel":
        assert told[-1]["tokens"] == list(seen.target.tokens)
        assert sum(told[1]["written"]) < len(told[1]["written"]) or len(told[1]["written"]) == 1
    assert seen.figure().to_svg()
    assert "regard-look" in seen.to_html()


def test_ctcs_rows_are_means_of_the_places_that_say_a_token(make: Any) -> None:
    translator = make(3, model__kind="ctc")
    seen = look(translator, TEXT)
    ids = [*translator.tokenizer.encode(TEXT), translator.tokenizer.end_id]
    with torch.inference_mode(), record() as tape:
        state = translator.model.start(pad_sources([ids]))
        known, real = translator.model.places(state, translator.tokenizer.specials.mask)
        translator.model.write(known, real, state)
    whole = tape["decoder.0.cross"][-1][0]  # (H, T, S)
    path = seen.passes[0].tokens
    silent = [-1 if token == SILENT else number for number, token in enumerate(path)]
    spans = spoken([path.index(path[at]) if at >= 0 else -1 for at in silent], blank=-1)
    rows = torch.stack([whole[:, list(span)].mean(1) for span in spans], 1)
    torch.testing.assert_close(seen.map("cross", 0).weights, rows)


@pytest.mark.parametrize("kind", ["parallel", "ctc"])
def test_what_was_written_is_traced_for_the_server(kind: str, make: Any) -> None:
    translator = make(3, model__kind=kind)
    texts = [TEXT, "a river bank"]
    found = list(translator.stream(texts, beam=1))
    read = translator.tokenizer.encode_batch(texts)
    seen = retrace(translator, read, [each.ids for each in found])
    for (sure, layers), each, ids in zip(seen, found, read, strict=True):
        assert len(sure) == len(each.ids)
        assert all(0 < p <= 1 for p in sure)
        assert all(layer.shape == (len(each.ids), len(ids)) for layer in layers)
    assert len(trace(translator, texts, [(each.ids, each.text) for each in found])) == 2
