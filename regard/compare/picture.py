"""The pictures of `regard compare`, as PNG and SVG: cost, family, decoders, where the theorem's heads look.

matplotlib is imported when something is drawn, with a backend that needs no screen.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.compare.cost import Measured, Sizes, exponent, sweep
from regard.compare.report import counted
from regard.compare.trial import Outcome
from regard.errors import StorageError

if TYPE_CHECKING:
    from regard.compare.decoding import Measured as Decoded

INK, QUIET = "#1f2933", "#9aa5b1"
COLOURS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#1864ab", "#846358", "#495057")
MARKS = "osD^vP*X"


def _figure(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A figure and its axes; no window is ever opened."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def save(figure: Any, stem: Path) -> list[Path]:
    """`stem`.png and `stem`.svg; the same figure gives the same bytes."""
    import matplotlib

    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg")]
    for path in paths:
        try:
            with matplotlib.rc_context({"svg.hashsalt": "regard"}):
                dated = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
                figure.savefig(path, dpi=150, facecolor="white", **dated)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error
    return paths


def draw_cost(found: Sequence[Measured], sizes: Sizes, stem: Path) -> list[Path]:
    """Time over L, time over d, and the longest path over L, all in log-log."""
    figure, axes = _figure(1, 3, (16, 5))
    over_length, over_width, over_path = axes[0]
    for number, each in enumerate(found):
        kind = number % len(COLOURS)
        # Lines that lie on each other are all seen: the first ones are wider.
        wide = max(1.2, 4.5 - 0.6 * number)
        style = {"color": COLOURS[kind], "marker": MARKS[kind], "markersize": 5, "linewidth": wide}
        length = sweep(each.layer, 0, sizes.width)
        width = sweep(each.layer, 1, sizes.length(each.contender))
        for axis, times, name in ((over_length, length, "L"), (over_width, width, "d")):
            slope = exponent(times)
            label = each.contender.name + (f", {name}^{slope:.2f}" if slope is not None else "")
            if times:
                axis.plot(list(times), [1e3 * t for t in times.values()], label=label, **style)
        hops = {length: count for length, count in each.paths.items() if count}
        if hops:
            over_path.plot(list(hops), list(hops.values()), label=each.contender.name, **style)
    texts = (
        (over_length, f"one layer, d = {sizes.width:,}", "length L", "ms of one thread, one sequence"),
        (over_width, f"one layer, L = {_lengths(found, sizes)}", "width d", "ms of one thread, one sequence"),
        (over_path, "longest path between two places", "length L", "layers, or steps of the recurrence"),
    )
    for axis, title, x, y in texts:
        axis.set_xscale("log", base=2)
        axis.set(yscale="log", xlabel=x, ylabel=y)
        axis.set_title(title, color=INK, fontsize=11)
        axis.grid(color=QUIET, alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        if axis.has_data():
            axis.legend(frameon=False, fontsize=8)
    return save(figure, stem)


def draw_decoding(found: "Sequence[Decoded]", stem: Path) -> list[Path]:
    """Quality over the time of one line alone, and over the lines in a second of batches."""
    figure, axes = _figure(1, 2, (13, 5), sharey=True)
    kinds = list(dict.fromkeys(each.kind for each in found))
    texts = ("one line alone: further left is faster", "in batches: further right is faster")
    for axis, title, x in zip(axes[0], texts, ("ms a line", "lines a second"), strict=True):
        for each in found:
            place = 1000 * each.latency if x == "ms a line" else each.throughput
            number = kinds.index(each.kind) % len(COLOURS)
            axis.scatter([place], [each.bleu], s=60, color=COLOURS[number], marker=MARKS[number])
            axis.annotate(
                each.name,
                (place, each.bleu),
                xytext=(6, 5),
                textcoords="offset points",
                fontsize=8,
                color=INK,
            )
        axis.set(xscale="log", xlabel=x)
        axis.set_title(title, color=INK, fontsize=11)
        axis.grid(color=QUIET, alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.25, y=0.15)
    axes[0][0].set_ylabel("BLEU")
    return save(figure, stem)


def _lengths(found: Sequence[Measured], sizes: Sizes) -> str:
    """The lengths of the sweeps over d."""
    kinds = {each.contender.core is not None: sizes.length(each.contender) for each in found}
    return ", ".join(f"{length:,} ({'attention' if kind else 'others'})" for kind, length in kinds.items())


def draw_family(outcomes: Sequence[Outcome], stem: Path) -> list[Path]:
    """A row a variant, a panel a figure; one that failed has an empty row."""
    held = [each.named() for each in outcomes]
    called = {name: score.label or name for scores in held for name, score in scores.items()}
    panels: tuple[tuple[str, str, list[float | None]], ...] = (
        *(
            (label, ".4g", [scores[name].value if name in scores else None for scores in held])
            for name, label in called.items()
        ),
        (f"training, {counted(outcomes)}/s", ",.0f", [each.tokens_per_second for each in outcomes]),
        *(
            [("use, sentences/s", ",.0f", [each.sentences_per_second for each in outcomes])]
            if any(each.sentences_per_second for each in outcomes)
            else []
        ),
        ("peak memory, MB", ",.0f", [each.peak_megabytes for each in outcomes]),
        ("parameters, millions", ",.2f", [each.parameters and each.parameters / 1e6 for each in outcomes]),
    )
    names = [each.name + (" (failed)" if each.error else "") for each in outcomes]
    figure, axes = _figure(1, len(panels), (18, 1.2 + 0.36 * len(outcomes)), sharey=True)
    for axis, (title, form, values), colour in zip(axes[0], panels, COLOURS, strict=False):
        bars = axis.barh(range(len(values)), [value or 0.0 for value in values], color=colour, height=0.7)
        labels = ["" if value is None else f"{value:{form}}" for value in values]
        axis.bar_label(bars, labels, padding=3, fontsize=8, color=INK)
        axis.set_title(title, color=INK, fontsize=11)
        axis.margins(x=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_yticks(range(len(names)), names)
    axes[0][0].invert_yaxis()
    return save(figure, stem)


def draw_heads(
    weights: Any, size: tuple[int, int], centres: Sequence[Sequence[float]], stem: Path
) -> list[Path]:
    """Where each head looks from the middle of the image and from its upper left corner.

    weights (H, T, T); a head is a panel, the pixels that ask are outlined, what they see is dark.
    """
    rows, columns = size
    side = round(len(weights) ** 0.5)
    across = side if side * side == len(weights) else len(weights)
    figure, axes = _figure(-(-len(weights) // across), across, (2.2 * across, 2.4 * len(weights) / across))
    middle = (rows // 2) * columns + columns // 2
    for number, (axis, head) in enumerate(zip(axes.flat, weights, strict=True)):
        seen = (head[middle] + head[0]).reshape(rows, columns)
        axis.imshow(seen, cmap="GnBu", vmin=0, vmax=1)
        for query in (middle, 0):
            corner = (query % columns - 0.5, query // columns - 0.5)
            axis.add_patch(_box(corner))
        down, right = (f"{value:+.0f}".replace("+0", "0") for value in centres[number])
        axis.set_title(f"head {number + 1}: Δ = ({down}, {right})", color=INK, fontsize=9)
        axis.set(xticks=[], yticks=[])
    return save(figure, stem)


def _box(corner: tuple[float, float]) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, 1, 1, fill=False, edgecolor=COLOURS[1], linewidth=1.8)
