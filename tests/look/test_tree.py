"""The tree of a beam: its outputs are those of `translate`, its sums those of the model, nothing is lost."""

import math

import pytest
import torch

from regard.data.inputs import Tokens
from regard.decoding.beam import witnessed
from regard.look.look import look
from regard.look.tree import grow, path

TEXT = "the man, a dog runs to 狗."


@pytest.fixture(scope="module", params=[1, 3])
def translator(make, request):
    made = make(request.param, extra=9, beam=3)
    made.decode = type(made.decode)(beam=3, max_ratio=0.0, max_extra=9, length_penalty=0.7)
    return made


def spelled(translator, tree, leaf):
    """What a leaf of the tree wrote."""
    number = {translator.tokenizer.token(i): i for i in range(translator.tokenizer.vocab_size)}
    ids = [number[tree[at].piece] for at in path(tree, leaf)]
    return tuple(ids[:-1] if tree[leaf].fate == "ended" else ids)


def test_it_ends_in_the_hypotheses_that_translate_returns(translator):
    tree = look(translator, TEXT).tree
    outputs = [i for i, branch in enumerate(tree) if branch.score is not None]
    outputs.sort(key=lambda at: -tree[at].score)
    (wanted,) = translator.hypotheses([TEXT], n_best=3)
    assert len(outputs) >= 3
    for leaf, hypothesis in zip(outputs, wanted, strict=False):
        assert spelled(translator, tree, leaf) == hypothesis.ids
        assert tree[leaf].score == pytest.approx(hypothesis.score, abs=1e-5)
        assert (tree[leaf].fate == "cut") == hypothesis.truncated


def test_its_sums_are_the_log_probabilities_of_the_model(translator):
    """Each branch against one pass of the whole model over what stands before it."""
    tree, tokenizer = look(translator, TEXT).tree, translator.tokenizer
    number = {tokenizer.token(i): i for i in range(tokenizer.vocab_size)}
    source = Tokens(torch.tensor([[*tokenizer.encode(TEXT), tokenizer.end_id]]))
    for leaf in range(0, len(tree), 7):
        ids = [number[tree[at].piece] for at in path(tree, leaf)]
        with torch.inference_mode():
            hidden = translator.model(source, torch.tensor([[tokenizer.begin_id, *ids[:-1]]]))
            logp = translator.model.project(hidden)[0].float().log_softmax(-1)
        assert tree[leaf].total == pytest.approx(
            float(logp.gather(1, torch.tensor(ids)[:, None]).sum()), abs=1e-3
        )


def test_every_step_keeps_what_it_should(translator):
    tree = look(translator, TEXT).tree
    depth = [len(path(tree, at)) for at in range(len(tree))]
    for step in range(1, max(depth) + 1):
        here = [branch for branch, at in zip(tree, depth, strict=True) if at == step]
        assert len(here) <= 2 * 3
        assert sum(branch.fate == "on" for branch in here) <= 3
        assert [branch.total for branch in here] == sorted((branch.total for branch in here), reverse=True)
        worst = min((branch.total for branch in here if branch.fate == "on"), default=-math.inf)
        assert all(branch.total <= worst for branch in here if branch.fate == "dropped") or step == max(depth)
    for branch in tree:
        assert branch.parent < 0 or tree[branch.parent].fate == "on"


def test_greedy_has_no_tree_and_a_large_one_is_cut_down(translator, make):
    assert look(make(1), TEXT, beam=1).tree == ()
    with witnessed() as rounds:
        list(translator.stream([TEXT]))
    whole = grow(rounds, translator.tokenizer, penalty=0.7)
    alive = [branch for branch in whole if branch.fate != "dropped"]
    less = grow(rounds, translator.tokenizer, penalty=0.7, most=len(alive))
    assert [(branch.piece, branch.total) for branch in less] == [(each.piece, each.total) for each in alive]
    assert grow(rounds, translator.tokenizer, penalty=0.7, most=len(alive) - 1) == ()


def test_nobody_watches_outside_the_block(translator):
    with witnessed() as rounds:
        pass
    list(translator.stream([TEXT]))
    assert rounds == []
