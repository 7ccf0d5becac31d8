"""Walks side by side: each writes what it writes alone, whoever comes and goes beside it."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from writers import drawn

from regard.decoding.sampling import Sampling
from regard.decoding.search import Walk
from regard.decoding.together import beneath, read_together
from regard.engine import path
from regard.engine.decoder import PackedDecoder
from regard.tasks.language.writer import Wish, Writer

WISHES = (
    (["the cat"], Wish(tokens=11, slide=False)),
    (["a", "the dog sat on"], Wish(tokens=7, sampling=Sampling(2.0, seed=3), draws=2, slide=False)),
    (["the mat"], Wish(tokens=9, presence=0.7, frequency=0.3, bias=((5, 2.0),), slide=False)),
    (["dog"], Wish(tokens=13, penalty=1.7, sampling=Sampling(1.5, top_k=5, seed=8))),
    (["on the cat and the dog " * 4], Wish(tokens=23, slide=True)),  # outgrows its places
)


@pytest.fixture(scope="module", params=["readable", "fp32", "int8"])
def writer(request: pytest.FixtureRequest) -> Writer:
    _, model, tokenizer = drawn(positions__max_length=29)
    found = Writer(model, tokenizer)
    if request.param != "readable":
        if path.available():
            pytest.skip("no native engine")
        found.engine = PackedDecoder(model, precision=request.param, threads=1)
    return found


def alone(writer: Writer, prompts: Sequence[str], wish: Wish) -> dict[int, list[int]]:
    """The ids that each row writes."""
    rows: dict[int, list[int]] = {}
    with torch.inference_mode():
        for step in writer.walk([writer.ids(prompt) for prompt in prompts], wish):
            for row, number in zip(step.sentence.tolist(), step.ids.tolist(), strict=True):
                rows.setdefault(row, []).append(number)
    return rows


def test_neighbours_change_nothing(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more walk joins before each pass, and each leaves when it is done."""
    wanted = [alone(writer, *asked) for asked in WISHES]
    found: list[dict[int, list[int]]] = [{} for _ in WISHES]
    passes: list[int] = []
    if writer.engine is not None:
        step = writer.engine.step
        monkeypatch.setattr(writer.engine, "step", lambda ids, s: (passes.append(len(ids)), step(ids, s))[1])
    coming, under_way = list(enumerate(WISHES)), dict[int, Walk[Any]]()
    with torch.inference_mode():
        while coming or under_way:
            if coming:
                number, (prompts, wish) = coming.pop()
                under_way[number] = writer.begin([writer.ids(prompt) for prompt in prompts], wish)
            read = read_together(list(under_way.values()))
            for (number, walk), given in zip(list(under_way.items()), read, strict=True):
                taken = walk.take(*given)
                for row, chosen in zip(taken.sentence.tolist(), taken.ids.tolist(), strict=True):
                    found[number].setdefault(row, []).append(chosen)
                if not walk.leave():
                    del under_way[number]
    assert found == wanted
    assert writer.engine is None or max(passes) >= 6, "they share a pass"


def test_what_lies_beneath(writer: Writer) -> None:
    with torch.inference_mode():
        walk = writer.begin([[5, 6]], Wish(tokens=2, penalty=2.0, presence=1.0))
    assert beneath(walk.model) is (writer.engine or writer.model)
