"""What a card of pictures shows: which class was taken for which, heads that began as a convolution, and
pictures with what was said of them.

matplotlib draws; what comes out is a PNG's bytes.
"""

import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from regard.attention.quadratic import Quadratic
from regard.errors import printable
from regard.measure.labels import Table

MOST_NAMES = 40  # classes that can be named along an axis
STAYED, MOVED = "#0b7285", "#b00020"  # heads, and (the second) what was said wrongly
_LONGEST = 18  # characters of a name


def _named(label: str) -> str:
    text = printable(label).replace("$", r"\$")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def confusion_picture(table: Table, labels: Sequence[str]) -> bytes:
    """The table (L, L): rows are what was right, columns what was given, each row as shares."""
    from matplotlib.figure import Figure

    count = len(labels)
    side = min(12.0, 2.5 + 0.42 * min(count, MOST_NAMES))
    figure = Figure(figsize=(side, side), layout="constrained")
    axes = figure.add_subplot()
    shares = table / np.maximum(table.sum(1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xlabel("given")
    axes.set_ylabel("right")
    if count <= MOST_NAMES:
        axes.set_xticks(range(count), [_named(label) for label in labels], rotation=90, fontsize=8)
        axes.set_yticks(range(count), [_named(label) for label in labels], fontsize=8)
    if count <= MOST_NAMES // 2:
        for row, column in np.argwhere(table):
            dark = shares[row, column] > 0.5
            axes.text(
                column,
                row,
                f"{table[row, column]:,}",
                ha="center",
                va="center",
                fontsize=7,
                color="w" if dark else "k",
            )
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=100)
    return held.getvalue()


def heads_picture(layers: Sequence[Quadratic]) -> bytes:
    """A panel a layer: a kernel's places, where each head looks now, and as widely as the ring says.

    Heads in the first colour are still within half a place of where they began; the others have an arrow
    from there.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    figure = Figure(figsize=(2.8 * len(layers), 3.1), layout="constrained")
    for number, (axes, heads) in enumerate(
        zip(figure.subplots(1, len(layers), squeeze=False)[0], layers, strict=True)
    ):
        begun, now = heads.kernel_places().tolist(), heads.centres.detach().tolist()
        width = (2 * heads.log_sharpness.detach().exp()).rsqrt().clamp(max=2.0).tolist()
        kept = heads.stayed().tolist()
        for (row, column), (down, across), ring, same in zip(begun, now, width, kept, strict=True):
            colour = STAYED if same else MOVED
            axes.plot(column, row, "s", color="#d5dbe1", markersize=13, zorder=0)
            axes.add_patch(Circle((across, down), ring, fill=False, color=colour, alpha=0.5))
            if not same:
                how = {"arrowstyle": "->", "color": colour}
                axes.annotate("", (across, down), (column, row), arrowprops=how)
            axes.plot(across, down, ".", color=colour)
        axes.plot(0, 0, "+", color="#1f2933", markersize=9)
        reach = 1.5 + max(abs(value) for place in [*begun, *now] for value in place)
        axes.set(xlim=(-reach, reach), ylim=(reach, -reach), aspect="equal", xticks=[], yticks=[])
        axes.set_title(f"layer {number}: {sum(kept)} of {len(kept)} stayed", fontsize=9)
    figure.supxlabel(
        "squares: places of the kernel around a patch (+); dots: where heads look now, rings: how widely",
        fontsize=7,
    )
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=100)
    return held.getvalue()


def sheet(
    pictures: Sequence[npt.NDArray[np.uint8]], titles: Sequence[str], columns: int = 8, *, size: float = 1.25
) -> bytes:
    """Pictures (C, H, W), each with a line below it; a line that begins with ! is red."""
    from matplotlib.figure import Figure

    rows = -(-len(pictures) // columns)
    figure = Figure(figsize=(size * columns, (size + 0.25) * rows), layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    for axes in grid:
        axes.axis("off")
    for axes, picture, title in zip(grid, pictures, titles, strict=False):
        image = picture[0] if len(picture) == 1 else picture.transpose(1, 2, 0)
        axes.imshow(image, cmap="gray", vmin=0, vmax=255)
        wrong = title.startswith("!")
        axes.set_title(_named(title.removeprefix("!")), fontsize=9, color=MOVED if wrong else "#222222")
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=100)
    return held.getvalue()
