"""Where the tokens of a model that writes all at once came from: one pass of which nothing is known.

The twin of the forced pass that `tracing.py` makes with models that write token by token. Of CTC, a token
stands where the likeliest path that says the output has it. After this file: `tracing.py`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.attention.record import record
from regard.data.inputs import pad_sources
from regard.decoding.lattice import align, extended
from regard.models.ctc import canvas

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translator


def writes_at_once(model: Any) -> bool:
    """Whether all places are asked for together."""
    return hasattr(model, "guess")


def retrace(
    translator: "Translator", read: Sequence[list[int]], written: Sequence[Sequence[int]]
) -> list[tuple[list[float], list[Tensor]]]:
    """Of each row the probabilities (T,) of what was written, and where it looked (T, S), a layer each.

    One pass of which nothing is known; CTC's tokens stand where the likeliest path that says them has them.
    """
    model, specials = translator.model, translator.tokenizer.specials
    device = next(iter(model.parameters())).device
    inputs = pad_sources([[*ids, specials.end] for ids in read]).to(device)
    with torch.inference_mode(), record() as tape:
        state = model.start(inputs)
        lengths = torch.tensor([len(ids) for ids in written], device=device)
        aligned = hasattr(model, "places")
        ids, real = model.places(state, specials.mask) if aligned else canvas(lengths, specials.mask)
        logp = model.logits(ids, real, state).log_softmax(-1)
    layers = [tape[site.name][-1].mean(1).cpu() for site in tape.sites() if site.kind == "cross"]
    found = []
    for row, tokens in enumerate(written):
        goals = torch.tensor([list(tokens)], device=device)
        spans = [range(place, place + 1) for place in range(len(tokens))]
        if aligned:
            labels = extended(goals, specials.blank)
            places = real[row].sum()[None]
            said = logp[row, None, : int(places)].gather(2, labels[:, None].expand(-1, int(places), -1))
            path = align(said, labels, places, goals.new_tensor([len(tokens)]))
            odd = path[0].tolist()  # the i-th token is label 2 i + 1
            spans = [_span(odd, 2 * number + 1) for number in range(len(tokens))]
        sure = [
            max(float(logp[row, at, token]) for at in span) for span, token in zip(spans, tokens, strict=True)
        ]
        width = len(read[row])
        looked = [torch.stack([layer[row, list(span), :width].mean(0) for span in spans]) for layer in layers]
        found.append((torch.tensor(sure).exp().tolist(), looked))
    return found


def _span(path: Sequence[int], label: int) -> range:
    """Where a path says a label; a target that does not fit has nothing better than the first place."""
    places = [place for place, each in enumerate(path) if each == label]
    return range(places[0], places[-1] + 1) if places else range(1)


__all__ = ["retrace", "writes_at_once"]
