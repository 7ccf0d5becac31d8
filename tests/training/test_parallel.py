"""Kinds that write several tokens at once: what teaches them, and that it does."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import regard
from regard.config import AT_ONCE
from regard.data.batch import collate
from regard.decoding.lattice import collapse
from regard.errors import DataError, UsageError
from regard.models import build
from regard.models.blockwise import RANK, Drafter
from regard.text.tokenizer import OUR_SPECIALS
from regard.training import loop
from regard.training.ctc import Aligned, _ctc
from regard.training.drafting import Drafted
from regard.training.filling import MaskPredict, draw_hidden
from regard.training.state import State
from regard.training.trainer import Trainer

SETTINGS = {
    "model.d_model": 48,
    "model.n_heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.d_ff": 96,
    "model.dropout": 0.0,
    "train.batch_tokens": 600,
    "train.valid_every": 10_000,
    "train.save_every": 1e6,
    "train.precision": "fp32",
    "train.threads": 1,
}
SOURCES = ["the cat sleeps", "a dog barks", "rain falls", "we sing", "good night"]
TARGETS = ["die Katze schläft", "ein Hund bellt", "Regen fällt", "wir singen", "gute Nacht"]


def batch_of(toy: Any, rows: int = 5) -> Any:
    return collate(toy.store, np.arange(rows), pad_id=0, begin_id=1, end_id=2)


def write(folder: Path, sources: list[str], targets: list[str], times: int = 30) -> Path:
    lines = [f"{src}\t{tgt}\n" for src, tgt in zip(sources, targets, strict=True)]
    (folder / "pairs.tsv").write_text("".join(lines * times), encoding="utf-8")
    return folder / "pairs.tsv"


def learn(folder: Path, name: str, settings: dict[str, object], **options: Any) -> Any:
    pairs = write(folder, SOURCES, TARGETS)
    regard.train(pairs, out=folder / name, overrides=SETTINGS | settings, quiet=True, **options)
    return regard.load(folder / name)


@pytest.mark.parametrize("kind", AT_ONCE)
def test_a_handful_of_pairs_is_learned_by_heart(tmp_path: Path, kind: str) -> None:
    translator = learn(tmp_path, kind, {"model.kind": kind, "train.max_steps": 100}, preset="tiny")
    assert translator.decode.beam == 1
    assert translator.translate(SOURCES) == TARGETS
    assert translator.translate(SOURCES, batch_size=2) == TARGETS
    for length in (1, 5):
        assert {each.tokens - 1 for each in translator.stream(SOURCES, length=length)} == {length}
    assert all(len(each.text) <= 9 for each in translator.stream(SOURCES, max_chars=9))
    assert translator.translate([""]) == [""]


@pytest.mark.parametrize("kind", ["parallel", "ctc", "blockwise"])
def test_a_killed_run_goes_on_bit_for_bit(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    asked = {"model__kind": kind, "train__max_steps": 7}
    whole, _ = toy.run(tmp_path / "whole", **asked)
    take_step = loop.take_step

    class KilledError(BaseException):
        pass

    def die(trainer: Trainer, state: State) -> None:
        if state.step == 3:
            raise KilledError
        take_step(trainer, state)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "take_step", die)
        with pytest.raises(KilledError):
            toy.run(tmp_path / "parts", **asked)
    again, _ = toy.run(tmp_path / "parts", **asked)
    assert all(map(torch.equal, whole.weights, again.weights))


def test_the_loss_of_all_alignments_is_torchs(toy: Any) -> None:
    torch.manual_seed(1)
    model = build(toy.config(model__kind="ctc", model__dropout=0.0))
    batch, objective = batch_of(toy), Aligned()
    (found,) = objective.losses(model, batch)
    found.total.backward()
    gradients = [weight.grad.clone() for weight in model.parameters()]
    model.zero_grad()
    state = model.start(batch.inputs)
    ids, real = model.places(state, OUR_SPECIALS.mask)
    logp = model.logits(ids, real, state).log_softmax(-1).transpose(0, 1)
    lengths = batch.tgt_mask.sum(1) - 1
    wanted = F.ctc_loss(logp, batch.tgt_out, real.sum(1), lengths, OUR_SPECIALS.blank, reduction="sum")
    wanted.backward()
    torch.testing.assert_close(found.total, wanted)
    for gradient, weight in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, weight.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("fused", [True, False])
def test_equal_tokens_of_a_target_and_short_rows_have_torchs_gradient(
    fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(2)
    if not fused:
        monkeypatch.setattr("regard.training.ctc.fused.fits", lambda *given: False)
    blank, pad, width = OUR_SPECIALS.blank, 0, 11
    targets, lengths = torch.tensor([[5, 5, 7, 5], [6, 7, pad, pad]]), torch.tensor([4, 2])
    real = torch.arange(9) < torch.tensor([9, 7])[:, None]
    logits = (3 * torch.randn(2, 9, width)).requires_grad_()
    logp = logits.log_softmax(-1).transpose(0, 1)
    wanted = F.ctc_loss(logp, targets, real.sum(1), lengths, blank, reduction="sum")
    (gradient,) = torch.autograd.grad(wanted, logits)
    names = F.pad(targets, (1, 0), value=blank)
    found, made = _ctc(logits.detach()[real].clone(), names, real, lengths, True)
    torch.testing.assert_close(found, wanted.detach())
    torch.testing.assert_close(made, gradient[real], rtol=1e-4, atol=1e-5)


def test_a_glance_shows_labels_of_a_path_that_says_the_target(toy: Any) -> None:
    torch.manual_seed(1)
    model = build(toy.config(model__kind="ctc")).eval()
    batch = batch_of(toy)
    state = model.start(batch.inputs)
    ids, real = model.places(state, OUR_SPECIALS.mask)
    lengths = batch.tgt_mask.sum(1) - 1
    all_shown = Aligned(glance=1.0)._shown(model, ids, real, state, batch.tgt_out, lengths)
    own = model.logits(ids, real, state).argmax(-1)
    some = Aligned(glance=0.5)._shown(model, ids, real, state, batch.tgt_out, lengths)
    for row, length in enumerate(lengths.tolist()):
        shown = all_shown[row][real[row]].tolist()
        assert (all_shown[row] != OUR_SPECIALS.mask).sum() <= real[row].sum()
        if OUR_SPECIALS.mask not in shown:  # all was wrong, so all is shown
            assert collapse(shown, OUR_SPECIALS.blank) == batch.tgt_out[row, :length].tolist()
        assert (some[row] != OUR_SPECIALS.mask).sum() <= (all_shown[row] != OUR_SPECIALS.mask).sum()
    assert own.shape == ids.shape
    assert any(OUR_SPECIALS.mask not in row[on].tolist() for row, on in zip(all_shown, real, strict=True))


@pytest.mark.parametrize("frozen", [False, True])
def test_what_foresees_learns_each_token_from_those_before_it(toy: Any, frozen: bool) -> None:
    """Against a loop over sentences, places and tokens ahead."""
    torch.manual_seed(4)
    model = build(toy.config(model__kind="blockwise", model__dropout=0.0, model__draft=4)).eval()
    model.frozen, batch = frozen, batch_of(toy)
    (found,) = Drafted.of(toy.config(), OUR_SPECIALS, measuring=True).losses(model, batch)
    hidden = model(batch.inputs, batch.tgt_in)
    own = model.project(hidden)
    goals = own.argmax(-1) if frozen else batch.tgt_out
    wanted = 0.0 if frozen else F.cross_entropy(own[batch.tgt_mask], goals[batch.tgt_mask], reduction="sum")
    for row, length in enumerate(batch.tgt_mask.sum(1).tolist()):
        state = model.start(batch.inputs).select(torch.tensor([row]))
        for place in range(length):
            foreseen = hidden[row : row + 1, place : place + 1]
            for after in range(place + 1, min(length, place + 4)):
                foreseen = model.foresee(foreseen, batch.tgt_out[row, after - 1].view(1, 1), state)
                said = model.drafter.project(foreseen[0])
                wanted = wanted + F.cross_entropy(said, goals[row, after : after + 1]) / 3
    assert float(found.total.detach()) == pytest.approx(float(wanted.detach()), rel=1e-4)


def test_what_foresees_learns_from_some_places_as_from_all(toy: Any) -> None:
    torch.manual_seed(6)
    model, batch = build(toy.config(model__kind="blockwise", model__dropout=0.0)).eval(), batch_of(toy)
    model.frozen = True
    with torch.no_grad():
        (whole,) = Drafted.of(toy.config(), OUR_SPECIALS, measuring=True).losses(model, batch)
        some = [float(each.total) for _ in range(200) for each in Drafted(0.0).losses(model, batch)]
    assert len(set(some)) > 3
    assert np.mean(some) == pytest.approx(float(whole.total), rel=0.1)


def test_what_foresees_begins_as_the_output_layer() -> None:
    """In as many dimensions as there are it is the same product, in fewer the nearest one."""
    torch.manual_seed(2)
    hidden = torch.randn(5, 96)
    for rank in (48, 96):
        drafter, output = Drafter(96, 101), torch.randn(101, rank) @ torch.randn(rank, 96)
        drafter.begin(output)
        off = (drafter.project(hidden) - hidden @ output.T).norm() / (hidden @ output.T).norm()
        assert off < (1e-4 if rank <= RANK else 0.5)


def test_pairs_that_fit_are_those_that_have_a_path(toy: Any) -> None:
    for upsample in (1, 1.5, 2):
        fits = Aligned(upsample=upsample).fitting(toy.store)
        for row, fit in enumerate(fits):
            ids = toy.store.tgt.sentence(row).tolist()
            needed = len(ids) + sum(a == b for a, b in pairwise(ids))
            assert fit == (needed <= math.ceil(upsample * toy.store.src_lengths[row]))


def test_pairs_that_do_not_fit_are_counted_and_said(tmp_path: Path, capsys: Any) -> None:
    long = "one two three four five six seven eight nine ten eleven twelve"
    pairs = write(tmp_path, ["a b c d e f", "x"], ["a b c d e f", long])
    settings = SETTINGS | {"model.kind": "ctc", "train.max_steps": 2, "data.max_ratio": 99.0}
    regard.train(pairs, out=tmp_path / "out", preset="tiny", overrides=settings)
    said = capsys.readouterr().err
    assert "30 of 60 pairs are not learned from: their targets need more places than 2 for each" in said
    assert "30 of 60 pairs are not learned from" in (tmp_path / "out" / "README.md").read_text()
    only = write(tmp_path, ["x"], [long])
    with pytest.raises(DataError, match="nothing to learn from: 30 of 30 pairs are not learned from"):
        regard.train(only, out=tmp_path / "none", preset="tiny", overrides=settings, quiet=True)


def test_as_many_tokens_are_hidden_as_were_drawn() -> None:
    torch.manual_seed(3)
    real = torch.arange(11) < torch.tensor([1, 5, 11])[:, None].repeat(700, 1)
    hidden = draw_hidden(real)
    assert not (hidden & ~real).any()
    counts = hidden.sum(1)
    assert counts.min() == 1
    for places in (1, 5, 11):
        found = counts[real.sum(1) == places].float()
        assert found.max() == places
        assert found.mean() == pytest.approx((places + 1) / 2, rel=0.1)


def test_rows_that_are_to_be_cut_are_filled_with_the_end(toy: Any) -> None:
    torch.manual_seed(5)
    batch, objective = batch_of(toy, 37), MaskPredict(0.0)
    words = batch.tgt_mask.sum(1) - 1
    goals, real, open_ended = objective._canvas(batch, words)
    assert 0 < open_ended.sum() < len(words)
    for row, count in enumerate(words.tolist()):
        places = goals[row][real[row]].tolist()
        assert places[:count] == batch.tgt_out[row, :count].tolist()
        assert set(places[count:]) == ({OUR_SPECIALS.end} if open_ended[row] else set())


def test_a_student_begins_with_its_teachers_weights(tmp_path: Path) -> None:
    teacher = learn(tmp_path, "teacher", {"train.max_steps": 40}, preset="tiny").model.state_dict()
    for kind, steps in (("ctc", 1), ("parallel", 1), ("blockwise", 20)):
        settings = {"model.kind": kind, "train.max_steps": steps, "train.lr": 0.005}
        settings |= {"train.average": "last"} if kind != "blockwise" else {}
        pairs = tmp_path / "pairs.tsv"
        regard.train(
            pairs,
            out=tmp_path / kind,
            overrides=settings | {"train.batch_tokens": 600},
            start_from=tmp_path / "teacher",
            quiet=True,
        )
        student = regard.load(tmp_path / kind)
        mine = student.model.state_dict()
        shared = [name for name in teacher if name in mine]
        assert shared
        if kind == "blockwise":  # as it was, to the bit; so its output is the teacher's
            assert all(torch.equal(teacher[name], mine[name]) for name in teacher)
            assert student.translate(SOURCES) == regard.load(tmp_path / "teacher").translate(SOURCES, beam=1)
        else:
            far = max(float((teacher[name] - mine[name]).abs().max()) for name in shared)
            assert far < 0.1  # one step away
    overrides = {"model.kind": "ctc", "model.d_model": 64}
    with pytest.raises(UsageError, match=r"model.d_model is 48 in the model to train further"):
        regard.train(pairs, out=tmp_path / "no", overrides=overrides, start_from=tmp_path / "teacher")
