"""How outputs are searched for; kept in the folder's generation.json, for people to edit."""

from dataclasses import dataclass

from regard.config.rules import between, one_of


@dataclass(frozen=True)
class DecodeConfig:
    """How translations are searched for; kept in the folder's generation.json."""

    beam: int = 5
    length_penalty: float = 1.4  # a hypothesis scores log p / length ** penalty
    max_ratio: float = 2.0  # longest output: max_extra + max_ratio * source length
    max_extra: int = 32
    min_ratio: float = 0.0
    max_source: int = 1024  # tokens of the longest line that is translated; a longer one is refused
    iterations: int = 4  # model.kind=parallel: times that all is written; the least sure anew each time
    lengths: int = 3  # model.kind=parallel: lengths that are tried, the likeliest first
    length: str = "predict"  # model.kind=parallel: foreseen from the source, or cut at the end token
    context: int = 0  # tokens that a model that writes on looks back over; 0: as far as its positions go

    def __post_init__(self) -> None:
        between("decode.beam", self.beam, 1, 1000)
        between("decode.length_penalty", self.length_penalty, 0, 10)
        between("decode.max_ratio", self.max_ratio, 0, 1000)
        between("decode.max_extra", self.max_extra, 1, 100_000)
        between("decode.min_ratio", self.min_ratio, 0, 1000)
        between("decode.iterations", self.iterations, 1, 1000)
        between("decode.lengths", self.lengths, 1, 1000)
        one_of("decode.length", self.length, ("predict", "end"))
        between("decode.context", self.context, 0, 1_000_000)
        between("decode.max_source", self.max_source, 1, 10_000_000)
