"""Blockwise decoding: several tokens are proposed, read in one pass, and kept as far as they are right.

    read     y, d_1 ... d_{k-1}       the token that is known to come, and what the heads propose after it
    say      g_1 ... g_k              what the model says after each of them
    keep     y, d_1 ... d_a, g_{a+1}  as long as d_i = g_i

So every token is the one that greedy search would have taken, and each pass gives one at least. Rows go on at
their own pace, one after the other; the engine has them side by side. The model is `regard.models.blockwise`.
"""

from typing import Any

import torch

from regard.decoding.search import Hypothesis, Rules, log_probabilities
from regard.decoding.way import STEPS, Wanted
from regard.models.blockwise import back_to


class Blockwise:
    """Greedy, several tokens a pass; a beam and draws go step by step."""

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
        last = torch.tensor(ids[-1], device=proposed.device)
        drafts = model.project(model.draft(hidden[0, kept - 1], last)).float()  # (k - 1, V)
        room = most - len(ids) - 1  # no more than may still be read
        proposed = torch.cat([last[None], drafts.argmax(-1)])[: max(1, room + 1)]


WAY = Blockwise()

__all__ = ["WAY", "Blockwise", "written"]
