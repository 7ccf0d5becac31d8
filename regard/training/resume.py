"""Where a run begins: at its newest checkpoint, or at the first step; in several processes at the same place.

Process 0 reads the checkpoint and tells the others, whose machines need not see its disk. Then: `loop.py`.
"""

import hashlib
from collections.abc import Mapping

from regard.errors import UsageError
from regard.training import spread
from regard.training.checkpoint import Checkpoint, newest
from regard.training.metrics import METRICS, read_metrics
from regard.training.state import State
from regard.training.trainer import Clock, Trainer, unpack
from regard.training.workspace import Run
from regard.training.world import World

IN_A_TREE = "tree"  # how the gradients of a step's batches are summed (`sums.py`), as run.json says it


def resume(trainer: Trainer, held: Run, clock: Clock, files: Mapping[str, bytes]) -> State:
    """The state to begin with, in every process that of the first; they must begin with the same weights."""
    world = trainer.world
    checkpoint = spread.newest(trainer) if trainer.config.shard else _whole(trainer, held)
    with world.together():
        state = _new(trainer, clock) if checkpoint is None else _going_on(trainer, held, clock, checkpoint)
    if world.size > 1:
        state = State.from_json(world.tell(state.to_json()))
        for owners in trainer.owners.values():
            owners.forget()
        known = {f"the file {name}": _sha(content) for name, content in files.items()}
        weights = None if trainer.shards else trainer.digest()  # those that are cut were compared before that
        world.same(known | {"weights": weights, "batches in an epoch": trainer.feed.count(state.epoch)})
    return state


def _whole(trainer: Trainer, held: Run) -> Checkpoint | None:
    """The newest checkpoint of the folder of process 0, in every one."""
    with trainer.world.together():
        found = _found(trainer, held) if trainer.world.first else None
    return _told(found, trainer.world)


def _found(trainer: Trainer, held: Run) -> Checkpoint | None:
    """The newest checkpoint; a run that began with sums in another order goes on with them, alone."""
    found = newest(trainer.folder)
    if found is not None and trainer.in_a_tree and held.chosen.get("sums") != IN_A_TREE:
        trainer.in_order = True
        if trainer.world.size > 1:
            folder = trainer.folder.parent
            raise UsageError(f"{folder} was begun by an older version and can go on in one process only")
    return found


def _new(trainer: Trainer, clock: Clock) -> State:
    trainer.clock = clock
    return State(seconds=clock(), began=clock())


def _going_on(trainer: Trainer, held: Run, clock: Clock, checkpoint: Checkpoint) -> State:
    """The state that a checkpoint holds; its tensors are the trainer's now."""
    folder = trainer.folder.parent
    state = unpack(trainer, checkpoint)
    if held.result.get("steps") == state.step and not held.finished:
        state.ended = ""  # it was finished, and goes on to another bound
    used = [state.seconds]
    if trainer.budget.seconds:  # what was trained after the checkpoint is lost, its time is spent
        used += [record["seconds"] for record in read_metrics(folder / METRICS) if "seconds" in record]
    trainer.clock = Clock(max(used) + clock())
    trainer.reporter.said(f"going on from step {state.step:,}")
    return state


def _told(checkpoint: Checkpoint | None, world: World) -> Checkpoint | None:
    """The checkpoint of process 0, in every one."""
    if world.size == 1:
        return checkpoint
    head = world.tell(checkpoint and [checkpoint.step, checkpoint.numbers])
    if head is None:
        return None
    return Checkpoint(head[0], world.tell_tensors(checkpoint.tensors if checkpoint else None), head[1])


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
