"""The engine: what `Translator` asks instead of the readable searches, with the same answers in fp32.

    engine = Engine(model, precision="int8")
    engine.search(sources, rules, beam=5)

int8 stores a weight in a byte, with a factor a column, and so what it is multiplied with, with one a row.
bf16 stores the upper half of a float; products and sums are those of fp32.
Before this file: `library.py`; after it: `load.py`.
"""

import ctypes
from collections.abc import Sequence

import torch

from regard.decoding.blockwise import WORTH
from regard.decoding.search import Hypothesis, Rules
from regard.decoding.way import Wanted
from regard.engine import library
from regard.engine.path import available
from regard.engine.places import Places
from regard.engine.shortlist import Shortlist
from regard.engine.weights import BOTH, lay_out, unsupported
from regard.errors import UsageError
from regard.models.transformer import Transformer
from regard.process.machine import cores

PRECISIONS = ("auto", "int8", "bf16", "fp32")
ENGINES = ("auto", "native", "readable")


class Engine:
    """One model in packed weights. Calls from several threads at once are fine."""

    def __init__(
        self,
        model: Transformer,
        *,
        precision: str = "auto",
        threads: int = 0,
        shortlist: Shortlist | None = None,
    ) -> None:
        """`threads` 0: as many as torch uses and may run. Later changes to the model's weights are not seen.

        With a `shortlist`, a sentence is written with the tokens that it allows; the mass of the others
        is estimated.
        """
        reason = refusal(model)
        if reason is not None:
            raise UsageError(f"the native engine cannot run this model: {reason}")
        self.precision = precision_named(precision, auto="int8")
        self.threads = at_most(threads)
        self._packed = library.Packed(lay_out(model), precision=self.precision)
        self._places = Places(model.embedding.positions, self._packed.d_model, self._packed.planes)
        if shortlist is not None:
            self._packed.narrow(shortlist)

    def answer(
        self, sources: Sequence[Sequence[int]], rules: Rules, wanted: Wanted, *, batch_size: int = 32
    ) -> list[list[Hypothesis]]:
        """`search`, as whoever translates asks for it."""
        return self.search(
            sources, rules, beam=wanted.decode.beam, n_best=wanted.outputs, batch_size=batch_size
        )

    def search(
        self,
        sources: Sequence[Sequence[int]],
        rules: Rules,
        *,
        beam: int = 1,
        n_best: int = 1,
        batch_size: int = 32,
        threads: int = 0,
        cancel: ctypes.c_int32 | None = None,
    ) -> list[list[Hypothesis]]:
        """The `n_best` outputs of each source, which closes with its end token; best first.

        Each thread works on `batch_size` sentences at a time, or all together on one; neither that nor
        `threads` (0: those of the engine) changes a result. Setting `cancel` to 1 from another thread ends
        the call after the step under way, with empty lists.
        """
        if not 1 <= n_best <= beam:
            raise UsageError(f"n_best ({n_best}) must be at least 1 and at most beam ({beam})")
        if not sources:
            return []
        most = rules.most.tolist()
        if beam == 1 and self._packed.drafts:
            batch_size = min(batch_size, self._packed.drafted_together(max(most), threads or self.threads))
        call = library.Call(
            sources=sources,
            least=rules.least.tolist(),
            most=most,
            slots=batch_size,
            threads=threads or self.threads,
            beam=beam,
            n_best=n_best,
            penalty=rules.penalty,
            begin=rules.specials.begin,
            end=rules.specials.end,
            vocab_size=2**31 - 1 if rules.vocab_size is None else rules.vocab_size,
            banned=sorted(set(rules.specials.never)),
            worth=WORTH,
            cancel=cancel,
        )
        found = self._packed.translate(call, self._places.table(max(*map(len, sources), *most)))
        if found is None:
            return [[] for _ in sources]
        return [[Hypothesis(each.ids, each.score, each.cut) for each in outputs] for outputs in found]


def precision_named(word: str, *, auto: str) -> str:
    """The precision that a word names."""
    if word not in PRECISIONS:
        raise UsageError(f"precision ({word}) must be one of {', '.join(PRECISIONS)}")
    return auto if word == "auto" else word


def at_most(threads: int) -> int:
    """So many threads; 0: as many as torch uses and may run."""
    return threads or min(torch.get_num_threads(), cores())


def refusal(model: object, wanted: str = BOTH) -> str | None:
    """Why the engine cannot run this model here, as a model of that kind; None where it can."""
    return available() or unsupported(model, wanted)


def left_aside(model: object, wanted: str = BOTH, *, precision: str, engine: str) -> str | None:
    """Why the engine is not taken for a model; None where it is. Refuses a wish that only it could grant."""
    precision_named(precision, auto="")
    if engine not in ENGINES:
        raise UsageError(f"engine ({engine}) must be one of {', '.join(ENGINES)}")
    reason = "it was asked for" if engine == "readable" else refusal(model, wanted)
    if reason is not None and (engine == "native" or precision in ("int8", "bf16")):
        wish = "--engine native" if engine == "native" else f"--precision {precision}"
        raise UsageError(f"{wish} needs the native engine, which cannot be used: {reason}")
    return reason
