"""Runs the notebooks of docs/notebooks and keeps what they show, so that they can be read where nothing runs.

python docs/notebooks.py                                 all of them
python docs/notebooks.py docs/notebooks/build_your_own.ipynb

What changes from run to run and means nothing (times, the kernel's version) is left out, so that a new run of
the same code changes little. tests/test_notebooks.py runs them and keeps nothing.
"""

import argparse
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HOME = Path(__file__).parent / "notebooks"
LIMIT = 600  # seconds that a cell may take; a busy machine is slow


def run(path: Path) -> Any:
    """The notebook with what its cells showed; CellExecutionError where one fails."""
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=LIMIT, kernel_name="python3", record_timing=False).execute()
    book.metadata["language_info"] = {"name": "python"}
    for cell in book.cells:
        for output in cell.get("outputs", []):
            output.pop("metadata", None)
            if output["output_type"] in ("execute_result", "display_data"):
                output["metadata"] = {}
    return book


def main() -> None:
    """Run those that were named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    for path in parser.parse_args().notebooks or sorted(HOME.glob("*.ipynb")):
        nbformat.write(run(path), path)
        print(path)


if __name__ == "__main__":
    main()
