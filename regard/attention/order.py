"""What every kind of position is: a module with five places to act, and nothing done in any of them.

On the embeddings (`embed`), on what queries and keys are made of (`add`), on both of them (`turn`), on the
scores (`bias`), and on what is gathered from the values (`gather`). `positions.py` has their
table; `heads.py` calls the last four.
"""

from typing import Any, ClassVar

from torch import Tensor, nn


class Positions(nn.Module):
    """Base of all schemes; does nothing, which is the scheme `none`.

    `offset` is the place of the first one given; of `embed` it may be one a row (B,), and places before 0 are
    padding. `places` is what is known of the places beside their order (trees, a grid), as the model hands it
    in; most schemes have no use for it.
    """

    native: ClassVar[str] = "nothing"  # see `linear.py`
    max_length: int | None = None  # longest sequence; None: any
    reads_trees = False  # whether `places` must be the trees of the sentences
    needs_weights = False  # whether `gather` has something to say; the readable path computes then

    def embed(self, x: Tensor, offset: int | Tensor = 0, places: Any = None) -> Tensor:
        """Embeddings (B, T, D) of the places from `offset` on, with their positions."""
        return x

    def add(self, x: Tensor, offset: int = 0, places: Any = None) -> Tensor | None:
        """What is added to x (B, T, D) where it looks and is looked at, and not where it is taken."""
        return None

    def turn(self, x: Tensor, offset: int = 0, places: Any = None) -> Tensor:
        """Queries or keys (B, H, T, K) of the places from `offset` on, with their positions."""
        return x

    def bias(self, q: Tensor, keys: int, offset: int = 0, places: Any = None) -> Tensor | None:
        """What is added to the scores of q (B, H, T, K), whose first place is `offset`, with S keys."""
        return None

    def gather(self, weights: Tensor, offset: int = 0, places: Any = None) -> Tensor | None:
        """What is added to the output (B, H, T, K) for weights (B, H, T, S); `offset` as in `bias`."""
        return None
