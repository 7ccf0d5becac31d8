"""metrics.jsonl: a line a log step, readable while the run goes on; TensorBoard beside it if asked for.

A run that goes on from a checkpoint first cuts the file back to that checkpoint's step, so that each
step is told once.
"""

import json
import math
from pathlib import Path
from types import TracebackType
from typing import Any

from regard.atomic import write_text
from regard.errors import StorageError, UsageError
from regard.foreign import loads

METRICS = "metrics.jsonl"


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a metrics file; one that a crash cut off, or that nobody of ours wrote, is not.

    A line of ours holds numbers under names, the step among them.
    """
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = loads(line)
        except ValueError:
            continue
        whole = isinstance(record, dict) and type(record.get("step")) is int
        if whole and all(type(value) in (int, float) and math.isfinite(value) for value in record.values()):
            records.append(record)
    return records


class Metrics:
    """Appends records; a context manager."""

    def __init__(self, folder: Path, *, step: int, tensorboard: bool = False) -> None:
        """Open the folder's metrics.jsonl, without whatever it says of steps after `step`."""
        path = folder / METRICS
        kept = [record for record in read_metrics(path) if record["step"] <= step]
        write_text(path, "".join(json.dumps(record) + "\n" for record in kept))
        self._path = path
        self._file = path.open("a", encoding="utf-8")
        self._board = _open_board(folder / "tensorboard", step) if tensorboard else None

    def write(self, record: dict[str, Any]) -> None:
        """One line, on its way to the disk at once. What is None was not measured and is left out."""
        record = {key: value for key, value in record.items() if value is not None}
        try:
            self._file.write(json.dumps(record, allow_nan=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}") from error
        if self._board is not None:
            for key in record.keys() - {"step"}:
                self._board.add_scalar(key, record[key], record["step"])

    def __enter__(self) -> "Metrics":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def require_tensorboard() -> None:
    """Say early that the package is missing, before hours of training."""
    try:
        import tensorboard  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "train.tensorboard needs the tensorboard package: pip install tensorboard"
        ) from error


def _open_board(folder: Path, step: int) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)
