"""What uses a model shows itself: a line at a prompt, a table in a notebook.

Before this file: a loaded model; after it: `Translator`, `Writer` and what else `regard.load` gives.
"""

from typing import Any

from torch import nn

MOST = 5  # names of labels that are told


class ShowsItself:
    """Base of what uses a model."""

    def __repr__(self) -> str:
        """What it is, for a person at a prompt."""
        return f"<{type(self).__name__}: {', '.join(self._told().values())}>"

    def _repr_markdown_(self) -> str:
        """The same in a notebook."""
        told = {name: value.replace("|", r"\|") for name, value in self._told().items()}
        rows = "".join(f"| {name} | {value} |\n" for name, value in told.items())
        return f"| {type(self).__name__} | |\n|---|---|\n{rows}"

    def _body(self) -> Any:
        """The model that is used."""
        return vars(self)["model"]

    def _told(self) -> dict[str, str]:
        """The model, and where there are any its vocabulary and its labels."""
        told = {"model": counted(self._body())}
        if tokenizer := getattr(self, "tokenizer", None):
            told["vocabulary"] = f"{tokenizer.vocab_size:,} pieces"
        if names := list(getattr(self, "names", ())):
            more = ", ..." if len(names) > MOST else ""
            told["labels"] = f"{len(names)} labels: {', '.join(names[:MOST])}{more}"
        return told


def counted(model: Any) -> str:
    """The name of a model, and how large it is."""
    count = sum(each.numel() for each in model.parameters()) if isinstance(model, nn.Module) else 0
    return type(model).__name__ + (f", {count:,} parameters" if count else "")
