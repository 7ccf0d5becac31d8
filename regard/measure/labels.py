"""Labels against what was right: accuracy, macro F1, and which was taken for which.

    F1 of a label = 2 right / (given + wanted);  macro F1 = the mean over labels given or wanted

All from one table (L, L): row the right label, column the one that was given.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from regard.measure.score import Score

Table = npt.NDArray[np.int64]


def confusion(wanted: Sequence[int], given: Sequence[int], labels: int) -> Table:
    """How often each label (row) was taken for each (column): (L, L)."""
    flat = np.asarray(wanted, np.int64) * labels + np.asarray(given, np.int64)
    return np.bincount(flat, minlength=labels * labels).reshape(labels, labels)


def label_scores(table: Table) -> dict[str, Score]:
    """Accuracy and macro F1 of a table.

    >>> {name: round(score.value, 3) for name, score in label_scores(np.array([[3, 1], [0, 4]])).items()}
    {'accuracy': 0.875, 'macro_f1': 0.873}
    """
    right, met = np.diag(table), table.sum(0) + table.sum(1)
    count, seen = int(table.sum()), met > 0
    f1 = float((2 * right[seen] / met[seen]).mean()) if count else 0.0
    accuracy = float(right.sum() / count) if count else 0.0
    return {
        "accuracy": Score(accuracy, digits=4, count=count),
        "macro_f1": Score(f1, label="macro F1", digits=4, count=count),
    }
