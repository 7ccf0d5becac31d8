"""Which examples are trained on."""

from dataclasses import dataclass

from regard.config.rules import between


@dataclass(frozen=True)
class DataConfig:
    """Which examples are trained on."""

    max_length: int = 256  # tokens on either side; longer pairs are left out
    max_ratio: float = 9.0  # tokens of one side per token of the other; more is left out
    temperature: float = (
        2.0  # several pairs of languages: 1 takes them as large as they are, more levels them
    )
    synthetic: float = 1.0  # back-translation: synthetic pairs for each real one
    context: int = 256  # running text: tokens of a row, which is what a model sees at once

    def __post_init__(self) -> None:
        between("data.max_length", self.max_length, 2, 1_000_000)
        between("data.context", self.context, 2, 1_000_000)
        between("data.temperature", self.temperature, 1, 1000)
        between("data.synthetic", self.synthetic, 0.001, 1000)
        between("data.max_ratio", self.max_ratio, 1, 1_000_000)
