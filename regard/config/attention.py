"""How queries meet keys: the kernel (a word of `KERNELS`), with its own keys, and the score (`SCORES`)."""

from dataclasses import dataclass

from regard.config.rules import between, one_of, rule
from regard.kinds import KERNELS, SCORES


@dataclass(frozen=True)
class AttentionConfig:
    """How queries meet keys."""

    kind: str = "full"
    score: str = "scaled-dot"
    dropout: float = 0.0
    window: int = 256  # local: places seen to the left, and in an encoder to the right too
    ahead: int = -1  # local, in an encoder: places seen to the right; -1: as many as to the left
    block: int = 64  # bigbird: places in a block
    window_blocks: int = 3  # bigbird: blocks seen around a block, itself counted
    global_blocks: int = 2  # bigbird: blocks at the beginning that see all and are seen by all
    random_blocks: int = 3  # bigbird: blocks drawn at random for each block, head and layer
    seed: int = 0  # bigbird: of the random blocks
    rank: int = 256  # linformer: rows that keys and values are projected to
    share: str = "heads"  # linformer: who shares a projection
    max_length: int = 4096  # linformer: longest sequence that is projected

    def __post_init__(self) -> None:
        one_of("attention.kind", self.kind, KERNELS)
        one_of("attention.share", self.share, ("heads", "layers", "none"))
        for name in ("window", "block", "rank", "max_length"):
            between(f"attention.{name}", getattr(self, name), 1, 1_000_000)
        rule(
            self.ahead == -1 or 0 <= self.ahead <= 1_000_000,
            f"attention.ahead ({self.ahead}) must be between 0 and 1000000, or -1 for as attention.window",
        )
        for name in ("window_blocks", "global_blocks", "random_blocks"):
            between(f"attention.{name}", getattr(self, name), 0, 65536)
        between("attention.seed", self.seed, 0, 2**32)
        rule(
            self.window_blocks % 2 == 1,
            f"attention.window_blocks ({self.window_blocks}) must be odd: a block and as many on either side",
        )
        rule(
            self.rank <= self.max_length,
            f"attention.rank ({self.rank}) must be at most attention.max_length ({self.max_length})",
        )
        one_of("attention.score", self.score, SCORES)
        between("attention.dropout", self.dropout, 0, 0.95)
