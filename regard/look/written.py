"""What a language model looked at, reading a text and writing on.

It writes as `regard generate` writes; then the whole is read in one pass, whose weights are those of the
steps (a place sees itself and what stands before it, whatever comes later). So each piece of the text has its
probability too, and what the model would rather have read. Before this file: `regard.tasks.language`; after
it: `look.py`.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

import torch

from regard.attention.record import record
from regard.attention.switch import heads_off
from regard.data.inputs import Tokens
from regard.decoding.sampling import Sampling
from regard.errors import ModelError, UsageError
from regard.look.inside import watching
from regard.look.look import MOST_NUMBERS, Guess, Look, check_size, opened
from regard.look.maps import maps_of
from regard.look.outlook import outlooks, top
from regard.look.trace import RUNNERS, heard
from regard.look.translated import others
from regard.look.words import Side
from regard.tasks.language import TASK
from regard.tasks.language.writer import Wish, Writer

TOKENS = 24  # written on, unless told


def look_at_writing(
    model: Any,
    text: str,
    *,
    tokens: int = TOKENS,
    sampling: Sampling | None = None,
    vectors: bool = True,
    off: Mapping[str, Iterable[int]] | None = None,
    only: Collection[str] | None = None,
    most: int = MOST_NUMBERS,
) -> Look:
    """Read `text`, write `tokens` more, and keep what every head looked at.

    `model` is a folder or a `Writer`. `tokens` 0 only reads. `sampling` draws instead of taking the
    likeliest. The others are those of `look_at_translation`.
    """
    writer, origin = opened(model, partial(TASK.load, engine="readable"))
    silent = {name: sorted(set(heads)) for name, heads in (off or {}).items()}
    start = _start(writer, text, tokens)
    keep = None if only is None else frozenset(only).__contains__
    check_size(writer.model, len(start) + tokens, keep, most)
    with heads_off(silent), torch.inference_mode():
        answer, ids, ended = _write(writer, text, start, tokens, sampling)
        numbers = check_size(writer.model, len(ids), keep, most)
        vectors = vectors and numbers <= most
        with record(vectors=vectors) as tape, watching(writer.model if vectors else None) as inside:
            hidden = writer.model(Tokens(torch.tensor([ids[:-1]])))
        logp = writer.model.project(hidden)[0].float().log_softmax(-1)  # (T, V)
    taped = maps_of(heard(tape, keep).values())
    if not taped:
        raise ModelError(f"{origin.name} has no attention to look at: its model taped nothing")
    tokenizer, own = writer.tokenizer, logp[len(start) - 1 :]
    written = ids[len(start) :]
    return Look(
        text=text,
        answer=answer,
        sides={"read": Side.of(ids[:-1], tokenizer), "target": Side.of(ids[1:], tokenizer)},
        maps=taped,
        guesses=_guesses(logp, ids[1:], tokenizer),
        # A row at a time: no second table of all places and pieces is made.
        outlook=outlooks((top(row[None]) for row in logp), [0] * len(logp), tokenizer),
        entered=inside.entered(["read"], tokenizer),
        fed=inside.fed(tokenizer),
        given=len(start) - 1,
        score=float(own.gather(1, torch.tensor(written)[:, None]).sum()) if written else 0.0,
        truncated=bool(tokens) and not ended,
        titles={"read": "Text", "target": "What comes next"},
        task=writer.task,
        origin=origin,
        off=silent,
    )


def _start(writer: Any, text: str, tokens: int) -> list[int]:
    """The ids that are read first; refused where they and what is written are more than the model holds."""
    tokenizer, longest = writer.tokenizer, writer.model.max_length
    ids: list[int] = tokenizer.encode(text)
    if tokenizer.leads or not ids:
        ids = [tokenizer.begin_id, *ids]
    if not 0 <= tokens <= 10**6:
        raise UsageError(f"tokens ({tokens}) must be between 0 and 1000000")
    if len(ids) + tokens < 2:
        raise UsageError("there is nothing to look at: give a text, or let some tokens be written")
    if longest is not None and len(ids) + tokens - 1 > longest:
        raise UsageError(
            f"a text of {len(ids)} tokens and {tokens} more do not fit into the model's {longest} places; "
            "give less text, or ask for fewer (--tokens)"
        )
    return ids


def _write(
    writer: Any, text: str, start: list[int], tokens: int, sampling: Sampling | None
) -> tuple[str, list[int], bool]:
    """What is written after the text, the ids of all of it, and whether it came to its end."""
    if not tokens:
        return "", start, True
    wish = Wish(tokens=tokens, sampling=sampling, slide=False)
    (found,) = Writer(writer.model, writer.tokenizer).generate([text], wish)
    ended = found.ended == "end"
    return found.text, [*start, *found.ids, *([writer.tokenizer.end_id] if ended else [])], ended


def _guesses(logp: torch.Tensor, ids: list[int], tokenizer: Any) -> tuple[Guess, ...]:
    """What the model thought of each piece, from log p (T, V)."""
    best, numbers = logp.topk(min(RUNNERS + 1, logp.shape[1]), -1)
    return tuple(
        Guess(
            math.exp(float(row[number])),
            others(zip(those, map(math.exp, sure), strict=True), number, tokenizer),
        )
        for row, number, those, sure in zip(logp, ids, numbers.tolist(), best.tolist(), strict=True)
    )
