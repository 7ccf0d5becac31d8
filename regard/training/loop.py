"""The training loop: small functions over one trainer (things) and one state (numbers).

A step: take batches, add up gradients, refuse what is not finite, clip, move, average. Between steps:
validate, log, save, stop. Whatever decides what comes next is in the state or in the trainer's
tensors, so a run that is bounded by steps or epochs and killed anywhere ends bit for bit the same.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.errors import DivergedError
from regard.training.averaging import holding
from regard.training.checkpoint import save, saved_steps
from regard.training.device import autocast
from regard.training.loss import sequence_loss
from regard.training.metrics import Metrics
from regard.training.state import State, Window
from regard.training.stopping import Stopped, listen
from regard.training.trainer import Trainer, pack
from regard.training.validation import BLEU_PAIRS, LOSS_PAIRS

SKIPS_ALLOWED = 5  # steps in a row that were not finite; then the run is lost


def train_loop(trainer: Trainer, state: State, metrics: Metrics) -> None:
    """Train until a bound is reached; the state says how it ended, the last checkpoint holds it all."""
    saved_at = trainer.clock()
    with listen() as request:
        while not state.ended:
            take_step(trainer, state)
            if trainer.budget.over(state, trainer.feed.count(state.epoch)):
                state.ended = "it reached its end"
            measured = validate(trainer, state)
            report(trainer, state, metrics, measured=measured)
            if state.ended or request.signal or trainer.clock() - saved_at >= _save_every(trainer):
                save_checkpoint(trainer, state)
                saved_at = trainer.clock()
            if request.signal and not state.ended:
                raise _stopped(trainer, request.signal)


def take_step(trainer: Trainer, state: State) -> None:
    """One step of the optimiser, or one that is skipped because it is not finite."""
    start = trainer.clock()
    lr = trainer.budget.learning_rate(trainer.config, state, trainer.feed.count(state.epoch))
    batches = next_batches(trainer, state)
    tokens = sum(batch.tokens for batch in batches)
    loss = add_gradients(trainer, batches, tokens)
    state.step += 1
    if apply_gradients(trainer, loss, lr):
        state.tokens += tokens
        state.window.loss += loss
        state.window.tokens += tokens
        state.skipped_in_a_row = 0
        trainer.average.update(state.step, trainer.budget.progress(state, trainer.feed.count(state.epoch)))
    else:
        state.skipped += 1
        state.skipped_in_a_row += 1
        if state.skipped_in_a_row >= SKIPS_ALLOWED:
            raise _diverged(trainer, state)
    state.seconds = trainer.clock()
    state.window.seconds += state.seconds - start


def next_batches(trainer: Trainer, state: State) -> list[Batch]:
    """The batches of the next step; moves the position past them, over the end of an epoch if need be."""
    batches: list[Batch] = []
    last = trainer.budget.epochs or math.inf
    while len(batches) < trainer.config.accumulate and state.epoch < last:
        batches.append(trainer.feed.batch(state.epoch, state.position).to(trainer.device))
        state.position += 1
        if state.position == trainer.feed.count(state.epoch):
            state.epoch, state.position = state.epoch + 1, 0
    return batches


def add_gradients(trainer: Trainer, batches: Sequence[Batch], tokens: int) -> float:
    """Gradients of the loss per token over all batches; the summed loss."""
    total = torch.zeros((), device=trainer.device)
    for batch in batches:
        with autocast(trainer.device, trainer.config.precision):
            loss = sequence_loss(trainer.model, batch, label_smoothing=trainer.config.label_smoothing)  # type: ignore[arg-type]
        (loss / tokens).backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
    return float(total)


def apply_gradients(trainer: Trainer, loss: float, lr: float) -> bool:
    """Clip and move; False, and nothing moved, where the loss or the gradients are not finite."""
    gradients: list[Tensor] = [weight.grad for weight in trainer.weights if weight.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    finite = math.isfinite(loss) and bool(norm.isfinite())
    if finite:
        if trainer.config.clip:
            torch.nn.utils.clip_grads_with_norm_(trainer.weights, trainer.config.clip, norm)
        for optimizer in trainer.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr
            optimizer.step()
    trainer.model.zero_grad(set_to_none=True)
    return finite


def validate(trainer: Trainer, state: State) -> bool:
    """Measure if it is time to, and at the end; may end the run by patience. Whether it measured."""
    if trainer.validation is None:
        return False
    before = state.validations
    tick = trainer.budget.tick(state, trainer.feed.count(state.epoch))
    if every := trainer.config.valid_every:
        due = state.step % every == 0
    else:
        due = tick > state.ticks and trainer.budget.may_validate(state)
    state.ticks = tick
    patience = trainer.config.patience
    if (due and not state.ended) or (state.ended and patience):
        _measure(trainer, state, trainer.average.mean(), BLEU_PAIRS)
        _judge(trainer, state)
    if state.ended:
        pairs = LOSS_PAIRS if trainer.budget.may_be_thorough(state) else BLEU_PAIRS
        _measure(trainer, state, trainer.final_weights(), pairs)
    return state.validations > before


def _measure(trainer: Trainer, state: State, weights: Sequence[Tensor], pairs: int) -> None:
    """Loss and BLEU with `weights` into the state; left alone where they are not finite."""
    assert trainer.validation is not None
    start = trainer.clock()
    with holding(trainer.weights, weights):
        score = trainer.validation.measure(trainer.model, trainer.device, trainer.config, pairs=pairs)
    state.seconds = trainer.clock()
    state.validating += state.seconds - start
    if math.isfinite(score.loss):
        state.validations += 1
        state.valid_loss, state.valid_bleu, state.valid_pairs = score.loss, score.bleu, score.sentences
        state.valid_chrf, state.signature = score.chrf, score.signature
    elif state.ended:
        raise _diverged(trainer, state)


def _judge(trainer: Trainer, state: State) -> None:
    """Count validations without a better loss; remember the best, end where patience ends."""
    if state.valid_loss is None:
        return
    patience = trainer.config.patience
    if state.best_loss is None or state.valid_loss < state.best_loss:
        state.best_loss, state.best_step, state.stale = state.valid_loss, state.step, 0
        if patience:
            trainer.best.keep(trainer.average.mean())
        return
    state.stale += 1
    if patience and state.stale >= patience and not state.ended:
        state.ended = f"the last {patience} validations were no better than that of step {state.best_step}"


def report(trainer: Trainer, state: State, metrics: Metrics, *, measured: bool) -> None:
    """A line of metrics where one is due, and what the person at the terminal sees."""
    loss = speed = None
    batches = trainer.feed.count(state.epoch)
    if measured or state.ended or state.step % trainer.config.log_every == 0:
        window, state.window = state.window, Window()
        loss = window.loss / window.tokens if window.tokens else None
        speed = window.tokens / window.seconds if window.seconds else None
        record = {
            "step": state.step,
            "epoch": round(state.epoch + state.position / batches, 3),
            "seconds": round(state.seconds, 3),
            "tokens": state.tokens,
            "tokens_per_second": round(speed, 1) if speed else None,
            "loss": loss,
            "lr": trainer.optimizers[0].param_groups[0]["lr"],
            "skipped": state.skipped or None,
        }
        metrics.write(
            record | ({"valid_loss": state.valid_loss, "valid_bleu": state.valid_bleu} if measured else {})
        )
    trainer.reporter.stepped(state, trainer.budget.progress(state, batches), loss, speed)
    if measured:
        trainer.reporter.said(
            f"step {state.step}: validation loss {state.valid_loss:.3f}, BLEU {state.valid_bleu:.1f}"
        )


def save_checkpoint(trainer: Trainer, state: State) -> bool:
    """Save, unless the run is in trouble: what is kept must be fit to go on from."""
    if not trainer.healthy():
        if state.ended:
            raise _diverged(trainer, state)
        return False
    if state.skipped_in_a_row and not state.ended:
        return False
    save(trainer.folder, pack(trainer, state), keep=trainer.config.keep)
    return True


def _save_every(trainer: Trainer) -> float:
    return trainer.budget.save_every(trainer.config)


def _last_saved(trainer: Trainer) -> str:
    steps = saved_steps(trainer.folder)
    return f"the last checkpoint is of step {steps[-1]}" if steps else "there is no checkpoint yet"


def _stopped(trainer: Trainer, number: int) -> Stopped:
    return Stopped(number, f"stopped; {_last_saved(trainer)}, the same command goes on from it")


def _diverged(trainer: Trainer, state: State) -> DivergedError:
    return DivergedError(
        f"training diverged: {state.skipped_in_a_row} steps in a row up to step {state.step} were not "
        f"finite; {_last_saved(trainer)}; try a train.lr below {trainer.config.lr:g}"
    )
