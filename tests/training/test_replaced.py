"""What attention replaced is trained, resumed, saved and translated with like any other model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.config import REPLACED
from regard.data.inputs import Tokens
from regard.decoding.beam import beam_search
from regard.decoding.search import Rules
from regard.models import build, folder
from regard.process.device import autocast
from regard.text.tokenizer import BEGIN, END
from regard.training import loop
from regard.training.loss import sequence_loss
from regard.training.state import State
from regard.training.trainer import Trainer

WORDS = ["ba", "de", "fi", "go", "ku", "la", "mo", "ne"]
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
}


def learn(
    tmp_path: Path, sources: list[str], targets: list[str], settings: dict[str, object]
) -> regard.Translator:
    for name, lines in (("src", sources), ("tgt", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    regard.train(
        tmp_path / "src",
        tmp_path / "tgt",
        out=tmp_path / "out",
        overrides=SETTINGS | settings,
        device="cpu",
        quiet=True,
    )
    return regard.load(tmp_path / "out")


@pytest.mark.parametrize("kind", REPLACED)
def test_a_handful_of_pairs_is_learned_by_heart(tmp_path: Path, kind: str) -> None:
    sources = ["the cat sleeps", "a dog barks", "rain falls", "we sing", "good night"]
    targets = ["die Katze schläft", "ein Hund bellt", "Regen fällt", "wir singen", "gute Nacht"]
    translator = learn(tmp_path, sources, targets, {"model.kind": kind, "train.max_steps": 120})
    assert translator.translate(sources, beam=1) == targets


@pytest.mark.parametrize("kind", REPLACED)
def test_copying_is_learned_for_unseen_sentences(tmp_path: Path, kind: str) -> None:
    """Word by word: without attention a sentence must fit into one vector, which takes longest to learn."""
    random = np.random.default_rng(1)
    lines = [" ".join(random.choice(WORDS, size=random.integers(2, 5))) for _ in range(900)]
    known, new = lines[:840], [line for line in lines[840:] if line not in set(lines[:840])]
    steps = 300 if kind == "rnn" else 200
    settings = {"model.kind": kind, "train.max_steps": steps, "train.lr": 0.015}
    found = learn(tmp_path, known, known, settings).translate(new, beam=1)
    right = sum(output == line for output, line in zip(found, new, strict=True))
    assert right >= 0.8 * len(new), f"{right} of {len(new)}"


@pytest.mark.parametrize("kind", REPLACED)
def test_beam_search_scores_what_teacher_forcing_scores(toy: Any, kind: str) -> None:
    """The rows of a state are reordered, repeated and dropped on the way; each keeps its own past."""
    torch.manual_seed(0)
    model = build(toy.config(model__kind=kind, model__dropout=0.0)).eval()
    src = torch.randint(4, 29, (3, 5))
    mask = torch.arange(5) < torch.tensor([5, 3, 4])[:, None]
    rules = Rules(least=torch.tensor([2, 3, 1]), most=torch.tensor([7, 9, 5]), penalty=1.0)
    with torch.no_grad():
        found = beam_search(model, Tokens(src, mask), rules, beam=4, n_best=4)
        for row, outputs in enumerate(found):
            for output in outputs:
                written = [*output.ids, *([] if output.truncated else [END])]
                read = torch.tensor([[BEGIN, *written[:-1]]])
                hidden = model(Tokens(src[row, None], mask[row, None]), read)
                logp = model.project(hidden)[0].log_softmax(-1)
                total = logp[torch.arange(len(written)), torch.tensor(written)].sum().item()
                assert output.score == pytest.approx(total / len(written), rel=1e-4)


class Killed(BaseException):
    """As sudden as kill -9, as far as a process can do that to itself."""


@pytest.mark.parametrize("kind", REPLACED)
def test_a_killed_run_goes_on_bit_for_bit(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    asked = {"model__kind": kind, "attention__dropout": 0.0 if kind == "rnn" else 0.2, "train__max_steps": 7}
    whole, _ = toy.run(tmp_path / "whole", **asked)
    take_step = loop.take_step

    def die(trainer: Trainer, state: State) -> None:
        if state.step == 3:
            raise Killed
        take_step(trainer, state)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "take_step", die)
        with pytest.raises(Killed):
            toy.run(tmp_path / "parts", **asked)
    again, _ = toy.run(tmp_path / "parts", **asked)
    assert all(map(torch.equal, whole.weights, again.weights))
    assert all(map(torch.equal, whole.final_weights(), again.final_weights()))


@pytest.mark.parametrize("kind", REPLACED)
def test_what_is_saved_is_loaded_bit_for_bit(toy: Any, tmp_path: Path, kind: str) -> None:
    config = toy.config(model__kind=kind)
    model = build(config).eval()
    folder.save(tmp_path, config=config, model=model, tokenizer=toy.tokenizer, card="")
    loaded = folder.load_folder(tmp_path)
    before, after = model.state_dict(), loaded.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    src, tgt = torch.randint(4, 29, (2, 5)), torch.randint(4, 29, (2, 7))
    mask = torch.ones_like(src, dtype=torch.bool)
    assert torch.equal(model(Tokens(src, mask), tgt), loaded.model(Tokens(src, mask), tgt))


@pytest.mark.parametrize("kind", REPLACED)
def test_bf16_gives_about_the_same_loss_and_gradients(toy: Any, tmp_path: Path, kind: str) -> None:
    trainer = toy.trainer(tmp_path, model__kind=kind, model__dropout=0.0)
    batch = trainer.feed.batch(0, 0)
    losses = []
    for precision in ("fp32", "bf16"):
        with autocast(torch.device("cpu"), precision):
            loss = sequence_loss(trainer.model, batch, label_smoothing=0.1) / batch.targets
        loss.backward()
        losses.append(loss.item())
        assert all(w.grad is not None and bool(w.grad.isfinite().all()) for w in trainer.weights)
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
