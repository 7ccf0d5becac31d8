"""Which examples are trained on."""

from dataclasses import dataclass

from regard.config.rules import between
from regard.errors import UsageError, shown


@dataclass(frozen=True)
class DataConfig:
    """Which examples are trained on."""

    max_length: int = 256  # tokens on either side; longer pairs are left out
    max_ratio: float = 9.0  # tokens of one side per token of the other; more is left out
    temperature: float = (
        2.0  # several pairs of languages: 1 takes them as large as they are, more levels them
    )
    weights: str = ""  # several files, or pairs of languages: their shares of an epoch, in order
    synthetic: float = 1.0  # back-translation: synthetic pairs for each real one
    context: int = 256  # running text: tokens of a row, which is what a model sees at once

    def __post_init__(self) -> None:
        between("data.max_length", self.max_length, 2, 1_000_000)
        between("data.context", self.context, 2, 1_000_000)
        between("data.temperature", self.temperature, 1, 1000)
        between("data.synthetic", self.synthetic, 0.001, 1000)
        between("data.max_ratio", self.max_ratio, 1, 1_000_000)
        self.shares()

    def shares(self) -> list[float]:
        """The numbers of `weights`."""
        try:
            found = [float(number) for number in self.weights.split(",")] if self.weights else []
        except ValueError:
            found = [0.0]
        if not all(0 < number < 1e6 for number in found):
            raise UsageError(f"data.weights ({shown(self.weights, 40)}) must be a list of shares such as 3,1")
        return found
