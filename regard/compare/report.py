"""The tables of `regard compare`: Markdown for people, plain values for JSON.

`cost.py` and `family.py` measure; here their numbers become words. `picture.py` draws the same.
"""

from collections.abc import Sequence
from typing import Any

from regard.compare.cost import TAIL, Measured, Sizes, exponents, sweep
from regard.compare.layers import WINDOW
from regard.compare.trial import Outcome
from regard.measure.score import Score

TOLERANCE = 0.25  # between a fitted exponent and theory, before a word is said about it


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is left, the others are right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def cost_facts(measured: Measured, sizes: Sizes) -> dict[str, Any]:
    """One layer as plain values, theory beside measurement."""
    theory = measured.contender.theory
    length, width = exponents(measured, sizes, measured.term)
    whole = exponents(measured, sizes, measured.layer)
    return {
        "layer": measured.contender.name,
        "theory": None if theory is None else vars(theory),
        "exponent_length": length,
        "exponent_width": width,
        "exponent_length_with_projections": whole[0] if measured.core else None,
        "exponent_width_with_projections": whole[1] if measured.core else None,
        "sequential_operations": measured.chains,
        "longest_path": measured.paths,
        "seconds": [{"length": p[0], "width": p[1], "layer": t} for p, t in sorted(measured.layer.items())],
        "seconds_attention_alone": [
            {"length": p[0], "width": p[1], "seconds": t} for p, t in sorted(measured.core.items())
        ],
        "failed": measured.failed or None,
    }


def cost_report(found: Sequence[Measured], sizes: Sizes) -> str:
    """The table of theory and measurement, and what has to be said about it."""
    header = [
        *("layer", "cost per layer", "exponent of L", "exponent of d"),
        *(f"ms at L = {sizes.lengths[-1]:,}, d = {sizes.width:,}", "sequential operations"),
        "longest path",
    ]
    rows = [_cost_row(each, sizes) for each in found]
    return table(header, rows) + "\n\n" + "\n".join(f"- {line}" for line in _remarks(found, sizes))


def _cost_row(each: Measured, sizes: Sizes) -> list[str]:
    theory = each.contender.theory
    length, width = exponents(each, sizes, each.term)
    largest = each.layer.get((sizes.lengths[-1], sizes.width))
    written = [f"O({order})" for order in (theory.sequential, theory.path)] if theory else ["", ""]
    return [
        each.contender.name,
        f"O({theory.cost})" if theory else "",
        _both(f"{theory.length:g}" if theory else "", _number(length)),
        _both(f"{theory.width:g}" if theory else "", _number(width)),
        "" if largest is None else f"{largest * 1e3:.3g}",
        _both(written[0], chain_in_words(each.chains)),
        _both(written[1], _path(each)),
    ]


def _both(theory: str, measured: str) -> str:
    """Theory, then measurement; a dash for what is not known."""
    return f"{theory or '-'} / {measured or '-'}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _path(each: Measured) -> str:
    if not each.paths:
        return ""
    length = max(each.paths)
    hops = each.paths[length]
    return f"{'never' if hops is None else f'{hops:,}'} at L = {length:,}"


def chain_in_words(chains: dict[int, int]) -> str:
    """How the chain grows with L: a number, or a straight line through the counts.

    >>> chain_in_words({16: 8, 32: 8}), chain_in_words({16: 129, 32: 257, 64: 513})
    ('8', '8 L + 1')
    """
    if not chains:
        return ""
    (first, low), *_, (last, high) = sorted(chains.items())
    slope, rest = divmod(high - low, last - first)
    start = low - slope * first
    if rest or any(count != start + slope * length for length, count in chains.items()):
        return f"{min(chains.values()):,} to {max(chains.values()):,}"
    return f"{slope} L{f' + {start}' if start else ''}" if slope else f"{high:,}"


def _remarks(found: Sequence[Measured], sizes: Sizes) -> list[str]:
    """Where the figures come from, and where they are not what theory says, why."""
    lines = [
        "A slash stands between theory and measurement.",
        f"Exponents are fitted in log-log on the {TAIL} largest sizes, where the leading term rules: over L "
        f"at d = {sizes.width:,}, over d at the longest L for attention and at a short one for the others. "
        "Time is processor time of one thread, for one sequence. The exponents of attention are those of the "
        "attention itself, without its projections.",
        "Sequential operations: the longest chain of operations that wait for each other, in the graph of "
        "the computation; an operation on whole tensors counts one.",
        "Longest path: layers (steps of the recurrence) until the gradient shows that every output depends "
        "on every input, or on every earlier one where only the past is seen. "
        f"Convolutions are {WINDOW} wide.",
    ]
    for each in found:
        lines += [f"{each.contender.name}: {text}" for text in _explained(each, sizes)]
    return lines


def _explained(each: Measured, sizes: Sizes) -> list[str]:
    if each.failed:
        return [f"could not be measured: {each.failed}"]
    lines = []
    missing = [point for point in sizes.points(each.contender) if point not in each.layer]
    if missing:
        length, width = missing[0]
        lines.append(
            f"the time was up before {len(missing)} sizes, from L = {length:,} and d = {width:,} on; "
            "--seconds gives more"
        )
    if each.core:
        lines.append(_projections(each, sizes))
    for name, value, wanted in _pairs(each, sizes):
        if value is not None and abs(value - wanted) > TOLERANCE:
            lines.append(
                f"{name}^{value:.2f} is not {name}^{wanted:g}: at these sizes {_term(each)} does not rule, "
                "but calls, memory or caches do"
            )
    return lines


def _pairs(each: Measured, sizes: Sizes) -> list[tuple[str, float | None, float]]:
    theory = each.contender.theory
    if theory is None:
        return []
    length, width = exponents(each, sizes, each.term)
    return [("L", length, theory.length), ("d", width, theory.width)]


def _term(each: Measured) -> str:
    return each.contender.theory.cost if each.contender.theory else ""


def _projections(each: Measured, sizes: Sizes) -> str:
    """How much of an attention layer is attention: the rest is four products of O(L d²)."""
    layer, core = sweep(each.layer, 0, sizes.width), sweep(each.core, 0, sizes.width)
    parts = [f"{core[n] / layer[n]:.0%} at L = {n:,}" for n in (min(layer), max(layer))] if layer else []
    length, width = exponents(each, sizes, each.layer)
    grows = f", so that the whole layer grows as L^{_number(length)} and d^{_number(width)}" if length else ""
    return (
        f"the attention itself is {' and '.join(parts)} of the layer's time, its projections (4 L d²) are "
        f"the rest{grows}"
    )


def family_report(outcomes: Sequence[Outcome]) -> str:
    """The variants side by side, and the reasons of those that failed."""
    labels = {name: score.label or name for each in outcomes for name, score in each.named().items()}
    used = any(each.sentences_per_second for each in outcomes)
    header = ["variant", *labels.values(), f"training {counted(outcomes)}/s"]
    header += ["sentences/s"] if used else []
    header += ["peak MB", "parameters", "steps"]
    rows = [_family_row(each, list(labels), used=used) for each in outcomes]
    lines = [f"- {each.name} failed: {each.error}" for each in outcomes if each.error]
    if best := best_of(outcomes):
        name, score = next(iter(best.named().items()))
        which = "highest" if score.higher else "lowest"
        lines.insert(0, f"- the {which} {score.label or name}: {best.name}, {score.value:.{score.digits}f}")
    return table(header, rows) + ("\n\n" + "\n".join(lines) if lines else "")


def counted(outcomes: Sequence[Outcome]) -> str:
    """What the variants learned from, for people: tokens, pictures."""
    return next((each.counted for each in outcomes if each.tokens_per_second), Outcome.counted)


def best_of(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The variant whose first score is the best, if several have one."""
    judged = [each for each in outcomes if each.scores]
    if len(judged) < 2:
        return None
    firsts = [next(iter(each.named().values())) for each in judged]
    choose = max if firsts[0].higher else min
    return judged[choose(range(len(judged)), key=lambda i: firsts[i].value)]


def shown(score: Score) -> str:
    """A score in a table: one decimal where there is much of it, else its own."""
    return f"{score.value:.{1 if abs(score.value) >= 10 else score.digits}f}"


def _family_row(each: Outcome, names: Sequence[str], *, used: bool) -> list[str]:
    if each.error:
        return [each.name, "failed", *[""] * (len(names) + 3 + used)]
    held = each.named()
    return [
        each.name,
        *(shown(held[name]) if name in held else "" for name in names),
        f"{each.tokens_per_second:,.0f}" if each.tokens_per_second else "",
        *([f"{each.sentences_per_second:,.0f}" if each.sentences_per_second else ""] if used else []),
        f"{each.peak_megabytes:,.0f}" if each.peak_megabytes else "",
        f"{each.parameters:,}",
        f"{each.steps:,}",
    ]
