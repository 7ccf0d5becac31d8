"""The training loop: small functions over one trainer (things) and one state (numbers).

A step: take batches, add up gradients, refuse what is not finite, clip, move, average. Between steps:
validate, log, save, stop. Whatever decides what comes next is in the state or in the trainer's
tensors, so a run that is bounded by steps or epochs and killed anywhere ends bit for bit the same.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from regard.errors import DivergedError, UsageError
from regard.process.device import autocast
from regard.process.stopping import Stopped, listen
from regard.training.averaging import holding
from regard.training.checkpoint import save, saved_steps
from regard.training.metrics import Metrics
from regard.training.objective import Batch, Limit, Loss, Measurement
from regard.training.state import State, Window
from regard.training.trainer import Trainer, pack

SKIPS_ALLOWED = 5  # steps in a row that were not finite; then the run is lost


def train_loop(trainer: Trainer, state: State, metrics: Metrics) -> None:
    """Train until a bound is reached; the state says how it ended, the last checkpoint holds it all."""
    saved_at = trainer.clock()
    with listen() as request:
        if trainer.further and state.step == 0:
            measure_before(trainer, state)
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
    targets = sum(batch.targets for batch in batches)
    losses = learn(trainer, batches, targets, lr)
    state.step += 1
    if losses is not None:
        state.tokens += targets
        state.window.add(losses)
        state.window.tokens += targets
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


def learn(
    trainer: Trainer, batches: Sequence[Batch], targets: int, lr: float | None
) -> dict[str, float] | None:
    """Every loss of the batches, and the move of its group after it; the summed losses by group.

    None, where a loss or its gradients are not finite: that group is not moved. Without a rate nothing is,
    and the gradients stay.
    """
    streams = [trainer.objective.losses(trainer.model, batch) for batch in batches]
    found: dict[str, float] = {}
    finite = True
    while (loss := add_gradients(trainer, streams, targets)) is not None:
        group, total = loss
        found[group] = found.get(group, 0.0) + total
        if lr is not None:
            finite = apply_gradients(trainer, group, total, lr) and finite
    return found if finite else None


def add_gradients(
    trainer: Trainer, streams: Sequence[Iterator[Loss]], targets: int
) -> tuple[str, float] | None:
    """Gradients of the next loss of every batch, per target; its group and sum. None where there is none."""
    total = torch.zeros((), device=trainer.device)
    group = ""
    for stream in streams:
        with autocast(trainer.device, trainer.config.precision):
            loss = next(stream, None)
        if loss is None:
            continue
        group = _group_of(trainer, loss, group)
        (loss.total / targets).backward()  # type: ignore[no-untyped-call]
        total += loss.total.detach()
    return (group, float(total)) if group else None


def _group_of(trainer: Trainer, loss: Loss, before: str) -> str:
    """The group that a loss moves; refuses what is no loss, and batches that are not in step."""
    if not isinstance(loss, Loss):
        raise UsageError(f"the objective gave a {type(loss).__name__}, not a Loss")
    if loss.group not in trainer.groups or before not in ("", loss.group):
        raise UsageError(
            f"the objective gave a loss of {loss.group} where its groups are {', '.join(trainer.groups)}; "
            "every batch must give the same ones in the same order"
        )
    return loss.group


def apply_gradients(trainer: Trainer, group: str, loss: float, lr: float) -> bool:
    """Clip and move; False, and nothing moved, where the loss or the gradients are not finite."""
    weights = trainer.groups[group].weights
    gradients: list[Tensor] = [weight.grad for weight in weights if weight.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    finite = math.isfinite(loss) and bool(norm.isfinite())
    if finite:
        if trainer.config.clip:
            torch.nn.utils.clip_grads_with_norm_(weights, trainer.config.clip, norm)
        for optimizer in trainer.movers[group]:
            for part in optimizer.param_groups:
                part["lr"] = lr * trainer.groups[group].lr * part["share"]
            with autocast(trainer.device, trainer.config.precision):  # for Muon's products
                optimizer.step()
    trainer.model.zero_grad(set_to_none=True)
    return finite


def measure_before(trainer: Trainer, state: State) -> None:
    """What a model that is trained further can do already; it is the best so far."""
    if trainer.evaluator is None:
        return
    _judge(trainer, state, _measure(trainer, state, trainer.weights, first=True))
    trainer.reporter.said(f"before the first step: {measured_line(state)}")


def validate(trainer: Trainer, state: State) -> bool:
    """Measure if it is time to, and at the end; may end the run by patience. Whether it measured."""
    if trainer.evaluator is None:
        return False
    before = state.validations
    tick = trainer.budget.tick(state, trainer.feed.count(state.epoch))
    every = trainer.config.valid_every
    due = state.step % every == 0 if every else tick > state.ticks
    state.ticks = tick
    watched = state.ended and trainer.keeps_best
    if (due and not state.ended and trainer.budget.may_validate(state)) or watched:
        found = _measure(trainer, state, trainer.average.mean())
        _judge(trainer, state, found)
    if state.ended:
        _measure(trainer, state, trainer.final_weights(), last=True)
    return state.validations > before


def _measure(
    trainer: Trainer, state: State, weights: Sequence[Tensor], *, first: bool = False, last: bool = False
) -> Measurement:
    """The scores with `weights` into the state; left alone where the one that decides is not finite."""
    assert trainer.evaluator is not None
    start = trainer.clock()
    limit = Limit(start + trainer.budget.allowance(state, first=first, last=last), trainer.clock)
    with holding(trainer.weights, weights):
        found = trainer.evaluator.measure(
            trainer.model, trainer.device, trainer.config, limit=limit, last=last
        )
    if not isinstance(found, Measurement) or not found.scores:
        raise UsageError(f"the evaluator gave a {type(found).__name__}, not a Measurement with scores")
    state.seconds = trainer.clock()
    state.validating += state.seconds - start
    if found.judge.finite:
        state.validations += 1
        state.scores = {name: score for name, score in found.scores.items() if score.finite}
        state.valid_cost = min(found.seconds, trainer.budget.seconds or found.seconds)
    elif state.ended:
        raise _diverged(trainer, state)
    return found


def _judge(trainer: Trainer, state: State, found: Measurement) -> None:
    """Count validations that are no better; remember the best, end where patience ends.

    One that there was no time to complete is not judged: its score is that of other examples.
    """
    if not (found.judge.finite and found.complete):
        return
    patience = trainer.config.patience
    if found.judge.beats(state.best):
        state.best, state.best_step, state.stale = found.judge.value, state.step, 0
        if trainer.keeps_best:
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
        losses = window.losses()
        loss = sum(losses.values()) if losses else None
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
            "bits": 16 if trainer.config.precision == "bf16" else 32,
            "threads": torch.get_num_threads(),
        }
        if len(losses) > 1:
            record |= {f"loss_{group}": each for group, each in losses.items()}
        if measured:
            record |= {f"valid_{name}": score.value for name, score in state.scores.items()}
        metrics.write(record)
    trainer.reporter.stepped(state, trainer.budget.progress(state, batches), loss, speed)
    if measured:
        trainer.reporter.said(f"step {state.step}: {measured_line(state)}")


def measured_line(state: State) -> str:
    """What validation has found, for people.

    >>> from regard.measure.score import Score
    >>> measured_line(State(scores={"loss": Score(1.5), "wer": Score(0.31, label="WER", count=200)}))
    'validation loss 1.500, WER 0.310 (200)'
    """
    words = [
        score.words(name) + (f" ({score.count:,})" if score.count else "")
        for name, score in state.scores.items()
    ]
    return f"validation {', '.join(words)}"


def save_checkpoint(trainer: Trainer, state: State) -> bool:
    """Save, unless the run is in trouble: what is kept must be fit to go on from."""
    if not trainer.healthy():
        if state.ended:
            raise _diverged(trainer, state)
        return False
    if state.skipped_in_a_row and not state.ended:
        return False
    save(trainer.folder, pack(trainer, state), keep=trainer.config.keep)
    if trainer.publish and not state.ended:
        trainer.publish(state)
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
