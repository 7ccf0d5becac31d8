"""How pieces come in and what the feed-forward parts do, against the model's own tensors taken by hand."""

import pytest
import torch
import torch.nn.functional as F
from writers import drawn

from regard.data.inputs import Tokens
from regard.look import inside as subject
from regard.look.look import look
from regard.tasks.language.writer import Writer

SENTENCE = "the man, a dog runs to 狗."


def by_hand(model, run):
    """What went into and came out of the residual around each feed-forward part, and its hidden units."""
    found, hooks = {}, []
    for name, module in model.named_modules():
        if name.endswith("around_feed_forward"):
            hooks.append(
                module.register_forward_hook(
                    lambda m, given, out, name=name: found.setdefault(name, []).extend([given[0][0], out[0]])
                )
            )
        elif name.endswith("feed_forward.outer"):
            hooks.append(
                module.register_forward_hook(
                    lambda m, given, out, name=name: found.setdefault(name, []).append(given[0][0])
                )
            )
    with torch.no_grad():
        run()
    for hook in hooks:
        hook.remove()
    return found


def numbers(tokenizer, side):
    number = {tokenizer.token(i): i for i in range(tokenizer.vocab_size)}
    return [number[token] for token in side.tokens]


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_the_feed_forward_part_is_told_as_it_ran(make, norm, activation):
    translator = make(1, model__norm=norm, model__activation=activation)
    model, tokenizer = translator.model, translator.tokenizer
    seen = look(translator, SENTENCE)
    source, read = ([numbers(tokenizer, side)] for side in (seen.source, seen.read))
    taken = by_hand(model, lambda: model(Tokens(torch.tensor(source)), torch.tensor(read)))
    assert [(each.side, each.layer) for each in seen.fed] == [
        *[("source", 0), ("source", 1)],
        *[("target", 0), ("target", 1)],
    ]
    for each in seen.fed:
        stack = "encoder" if each.side == "source" else "decoder"
        before, after = taken[f"{stack}.{each.layer}.around_feed_forward"]
        hidden = taken[f"{stack}.{each.layer}.feed_forward.outer"][0]
        assert each.units == hidden.shape[1] == 29
        for place, row in enumerate(hidden.tolist()):
            assert each.active[place] == pytest.approx(sum(value > 0 for value in row) / 29)
            order = sorted(range(29), key=lambda unit: -abs(row[unit]))
            told = [(unit.number, unit.value) for unit in each.strongest[place]]
            assert told == [(unit, pytest.approx(row[unit])) for unit in order[: subject.UNITS]]
        if norm == "pre":
            wanted = (after - before).norm(dim=-1) / before.norm(dim=-1)
            torch.testing.assert_close(each.moved, wanted)


def test_a_unit_writes_what_its_column_points_to(make):
    translator = make(1)
    seen = look(translator, SENTENCE)
    outputs = translator.model.output_weight.detach()
    column = translator.model.decoder[1].feed_forward.outer.weight.detach()
    last = seen.fed[-1]
    for unit in (unit for place in last.strongest for unit in place):
        likelier = [float(row @ column[:, unit.number]) for row in outputs]
        best = sorted(range(len(likelier)), key=lambda number: -likelier[number])[: subject.LIKE]
        found = {likelier[i] for i in numbers(translator.tokenizer, _Pieces(unit.writes))}
        assert found == {likelier[number] for number in best}
    assert all(unit.writes == () for unit in seen.fed[0].strongest[0])


class _Pieces:
    def __init__(self, tokens):
        self.tokens = tokens


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "rotary"])
def test_pieces_come_in_with_their_vectors_and_places(make, kind):
    translator = make(1, positions__kind=kind)
    model = translator.model
    seen = look(translator, SENTENCE)
    assert list(seen.entered) == ["source", "read"]
    for name, one in seen.entered.items():
        ids = torch.tensor(numbers(translator.tokenizer, seen.side(name)))
        whole = model.embedding(ids[None])[0]  # with the places, no dropout
        tokens = model.embedding.weight[ids] * model.embedding.scale
        assert one.dimensions == tuple(range(12))
        torch.testing.assert_close(one.tokens, tokens)
        if kind == "rotary":
            assert one.positions is None
        else:
            torch.testing.assert_close(one.tokens + one.positions, whole)


def test_alike_is_the_largest_cosine(make):
    translator = make(1)
    seen = look(translator, SENTENCE)
    matrix = translator.model.embedding.weight.detach()
    ids = numbers(translator.tokenizer, seen.source)
    for number, near in zip(ids, seen.entered["source"].alike, strict=True):
        cosines = [float(F.cosine_similarity(matrix[number], row, dim=0)) for row in matrix]
        cosines[number] = -2.0
        assert [cosine for _, cosine in near] == pytest.approx(sorted(cosines, reverse=True)[: subject.LIKE])


def test_of_a_language_model_and_without_vectors():
    _, model, tokenizer = drawn("subwords")
    seen = look(Writer(model, tokenizer), "the dog", tokens=3)
    assert list(seen.entered) == ["read"]
    assert {each.side for each in seen.fed} == {"read"}
    assert [each.layer for each in seen.fed] == list(range(len(seen.fed)))
    told = seen.to_dict(vectors=False)
    assert "entered" not in told
    assert "fed" not in told
    plain = look(Writer(model, tokenizer), "the dog", tokens=3, vectors=False)
    assert (plain.entered, plain.fed) == ({}, ())


def test_a_large_vocabulary_names_nothing(make, monkeypatch):
    monkeypatch.setattr(subject, "MOST_PRODUCTS", 100)
    seen = look(make(1), SENTENCE)
    assert all(unit.writes == () for each in seen.fed for place in each.strongest for unit in place)
