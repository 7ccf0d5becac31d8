"""Blockwise decoding: several tokens are proposed, read in one pass, and kept as far as they are right.

    read     y, d_1 ... d_{k-1}       the token that is known to come, and what is proposed after it
    say      g_1 ... g_k              what the model says after each of them
    keep     y, d_1 ... d_a, g_{a+1}  as long as d_i = g_i

So every token is the one that greedy search would have taken, and each pass gives one at least. No more is
proposed than is likely to be right. Rows go on at their own pace, one after the other; the engine has them
side by side. The model is `regard.models.blockwise`.
"""

from typing import Any

import torch

from regard.decoding.search import Hypothesis, Rules, log_probabilities
from regard.decoding.way import STEPS, Wanted
from regard.models.blockwise import back_to

WORTH = -1.9  # log p of all that is proposed: what is less likely costs more to read than it saves


class Blockwise:
    """Greedy, several tokens a pass; a beam and draws go step by step."""

    refines = False

    def check(self, wanted: Wanted) -> None:
        """What a step by step search can do."""
        STEPS.check(wanted)

    def search(self, model: Any, inputs: Any, rules: Rules, wanted: Wanted) -> list[list[Hypothesis]]:
        """Up to `n_best` outputs for each row of the inputs, best first."""
        if wanted.sampling is not None or wanted.decode.beam > 1:
            return STEPS.search(model, inputs, rules, wanted)
        state = model.start(inputs)
        rows = torch.arange(len(inputs), device=inputs.device)
        return [[written(model, state.select(row[None]), rules, row, wanted)[0]] for row in rows]


def written(
    model: Any, state: Any, rules: Rules, row: torch.Tensor, wanted: Wanted
) -> tuple[Hypothesis, int]:
    """The output of one row, and how many passes it took."""
    most, end = int(rules.most[row]), rules.specials.end
    ids: list[int] = []
    total, passes = 0.0, 0
    proposed = rules.beginning()[row][None]  # (T,)
    while True:
        wanted.check_time()
        passes += 1
        hidden, after = model.read(proposed[None], state)
        logits = model.project(hidden[0]).float()  # (T, V)
        kept = 0
        for place in range(len(proposed)):
            logp = log_probabilities(logits[place : place + 1], rules, len(ids), row[None])[0]
            token = int(logp.argmax())
            ids.append(token)
            total += float(logp[token])
            kept += 1
            if token == end or len(ids) == most:
                return rules.hypothesis(ids, total), passes
            if kept < len(proposed) and token != int(proposed[kept]):
                break
        state = back_to(after, state.length + kept)
        proposed = proposals(model, hidden[:, kept - 1 : kept], state, rules, row, ids)


def proposals(
    model: Any, hidden: torch.Tensor, state: Any, rules: Rules, row: torch.Tensor, ids: list[int]
) -> torch.Tensor:
    """The last of the ids, which hidden (1, 1, D) said, and what is foreseen after it: (T,)."""
    found, sure = ids[-1:], 0.0
    room = int(rules.most[row]) - len(ids) - 1  # no more than may still be read
    for place in range(min(model.ahead, room)):
        hidden = model.foresee(hidden, torch.tensor([found[-1:]], device=hidden.device), state)
        logits = model.drafter.project(hidden[0]).float()
        logp = log_probabilities(logits, rules, len(ids) + place, row[None])[0]
        best = int(logp.argmax())
        sure += float(logp[best])
        if sure < WORTH:
            break
        found.append(best)
        if best == rules.specials.end:
            break
    return torch.tensor(found, device=hidden.device)


WAY = Blockwise()

__all__ = ["WAY", "Blockwise", "proposals", "written"]
