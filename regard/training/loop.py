"""The training loop: small functions over one trainer (things) and one state (numbers).

A step: take batches, add up gradients, refuse what is not finite, clip, move, average. Between steps:
validate, log, save, stop. Whatever decides what comes next is in the state or in the trainer's
tensors, so a run that is bounded by steps or epochs and killed anywhere ends bit for bit the same.
"""

from collections.abc import Sequence
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from regard.errors import DivergedError, UsageError
from regard.measure.score import as_tree, of_tree
from regard.process.stopping import Stopped, listen
from regard.training import spread
from regard.training.checkpoint import save, saved_steps
from regard.training.metrics import Metrics
from regard.training.objective import Limit, Measurement
from regard.training.state import State, Window
from regard.training.step import keep_first, learn, next_part
from regard.training.trainer import Trainer, pack

SKIPS_ALLOWED = 5  # steps in a row that were not finite; then the run is lost


def train_loop(trainer: Trainer, state: State, metrics: Metrics | None) -> None:
    """Train until a bound is reached; the state says how it ended, the last checkpoint holds it all."""
    saved_at = trainer.clock()
    with listen() as request:
        if trainer.further and state.step == 0:
            measure_before(trainer, state)
        while not state.ended:
            take_step(trainer, state)
            signal, due = agree(trainer, state, request.signal, saved_at)
            if trainer.budget.over(state, trainer.feed.count(state.epoch)):
                state.ended = "it reached its end"
            met = meet(trainer, state)
            measured = met and validate(trainer, state)
            report(trainer, state, metrics, measured=measured)
            if met and (state.ended or signal or due):
                save_checkpoint(trainer, state)
                saved_at = trainer.clock()
            if signal and not state.ended:
                raise _stopped(trainer, signal)


def agree(trainer: Trainer, state: State, signal: int, saved_at: float) -> tuple[int, bool]:
    """The seconds of process 0 into the state of all; the signal that any was sent; is it time to save?"""
    due = trainer.clock() - saved_at >= trainer.budget.save_every(trainer.config)
    every = trainer.world.numbers(state.seconds, signal, due)
    state.seconds = every[0][0]
    return max(int(each[1]) for each in every), bool(every[0][2])


def take_step(trainer: Trainer, state: State) -> None:
    """One step of the optimiser, or one that is skipped because it is not finite."""
    start = trainer.clock()
    lr = trainer.budget.learning_rate(trainer.config, state, trainer.feed.count(state.epoch))
    part = next_part(trainer, state)
    losses = learn(trainer, part, lr)
    if trainer.rounds:
        losses = _of_all(trainer.world.gather(losses))
    state.step += 1
    if losses is not None:
        state.tokens += part.seen
        state.window.add(losses)
        state.window.tokens += part.seen
        state.skipped_in_a_row = 0
        if not trainer.rounds:
            _average(trainer, state, state.step)
    else:
        state.skipped += 1
        state.skipped_in_a_row += 1
        if state.skipped_in_a_row >= SKIPS_ALLOWED:
            raise _diverged(trainer, state)
    state.seconds = trainer.clock()
    state.window.seconds += state.seconds - start


def _of_all(every: Sequence[dict[str, float] | None]) -> dict[str, float] | None:
    """The losses of processes that go alone, summed by group; None where one of them is not finite."""
    total: dict[str, float] = {}
    for losses in every:
        if losses is None:
            return None
        for group, loss in losses.items():
            total[group] = total.get(group, 0.0) + loss
    return total


def _average(trainer: Trainer, state: State, count: int) -> None:
    trainer.average.update(count, trainer.budget.progress(state, trainer.feed.count(state.epoch)))


def meet(trainer: Trainer, state: State) -> bool:
    """Whether all processes have the same weights now; those that go alone meet first, if it is time to."""
    rounds = trainer.rounds
    if rounds is None:
        return True
    if state.step % rounds.every and not state.ended:
        return False
    rounds.meet()
    keep_first(trainer.moving, trainer.moving, trainer.world)
    _average(trainer, state, -(-state.step // rounds.every))
    return True


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
    before_this = state.step - max(1, trainer.config.outer_every)  # the last time that it could be
    due = state.step // every > before_this // every if every else tick > state.ticks
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
    start = trainer.clock()
    limit = Limit(start + trainer.budget.allowance(state, first=first, last=last), trainer.clock)
    found = _shared_out(trainer, weights, limit, last=last)
    found, state.seconds, took = _told(trainer, found, start)
    state.validating += took
    if found.judge.finite:
        state.validations += 1
        state.scores = {name: score for name, score in found.scores.items() if score.finite}
        state.valid_cost = min(found.seconds, trainer.budget.seconds or found.seconds)
    elif state.ended:
        raise _diverged(trainer, state)
    return found


def _shared_out(
    trainer: Trainer, weights: Sequence[Tensor], limit: Limit, *, last: bool
) -> Measurement | None:
    """What the evaluator finds, in every process if it shares its work, else in the first alone."""
    with trainer.holding(weights) as model:
        if getattr(trainer.evaluator, "shares", False):
            return _found(trainer, model, limit, last=last)
        with trainer.world.together():
            return _found(trainer, model, limit, last=last) if trainer.world.first else None


def _found(trainer: Trainer, model: nn.Module, limit: Limit, *, last: bool) -> Measurement:
    """What the evaluator finds."""
    assert trainer.evaluator is not None
    found = trainer.evaluator.measure(model, trainer.device, trainer.config, limit=limit, last=last)
    if not isinstance(found, Measurement) or not found.scores:
        raise UsageError(f"the evaluator gave a {type(found).__name__}, not a Measurement with scores")
    return found


def _told(trainer: Trainer, found: Measurement | None, start: float) -> tuple[Measurement, float, float]:
    """What process 0 found, its clock, and the seconds since it began; the others have waited for it."""
    now = trainer.clock()
    if trainer.world.size == 1:
        assert found is not None
        return found, now, now - start
    held = found and [as_tree(found.scores), found.complete, found.seconds, now, now - start]
    scores, complete, seconds, now, took = trainer.world.tell(held)
    return Measurement(of_tree(scores), complete, seconds), now, took


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


def report(trainer: Trainer, state: State, metrics: Metrics | None, *, measured: bool) -> None:
    """A line of metrics where one is due, and what the person at the terminal sees."""
    if metrics is None:  # another process tells
        return
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
    with ExitStack() as gathered:
        for owners in trainer.owners.values():
            gathered.enter_context(owners.whole())
        checkpoint = pack(trainer, state)
        if trainer.rounds:
            checkpoint = trainer.rounds.joined(checkpoint)
        if trainer.config.shard:
            spread.save(trainer, checkpoint)
        else:
            with trainer.world.together():
                if trainer.world.first:
                    save(trainer.folder, checkpoint, keep=trainer.config.keep)
    if trainer.publish and not state.ended:
        trainer.publish(state)
    return True


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
