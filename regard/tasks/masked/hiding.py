"""Which words of a row are hidden, and what stands in their place (Devlin et al. 2019, 3.1; whole words).

Every word is hidden with the same chance, all its pieces together. Of ten that are hidden eight become masks,
one another token, and one stays as it is, so that a model cannot rely on seeing a mask. What stands for no
text is never hidden. What is drawn depends on the seed and the place of the batch alone.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regard.text.tokenizer import Tokenizer

Ids = npt.NDArray[np.int64]
Where = npt.NDArray[np.bool_]
MASKED, CHANGED = 0.8, 0.9  # up to the first: a mask; up to the second: another token; else as it was


class Hidden(NamedTuple):
    """Rows as the model is fed them (B, L), and where it is asked what stood there (B, L)."""

    ids: Ids
    asked: Where


def hide(ids: Ids, real: Where, tokenizer: Tokenizer, share: float, random: np.random.Generator) -> Hidden:
    """Hide a share of the words of rows (B, L); at least one, where there is any."""
    silent = np.isin(ids, [*tokenizer.specials.never, tokenizer.begin_id, tokenizer.end_id]) | ~real
    begins = np.array([tokenizer.begins(row) for row in ids.tolist()]) | silent
    begins[:, 1:] |= silent[:, :-1]
    begins[:, 0] = True
    word = np.cumsum(begins.reshape(-1)).reshape(begins.shape) - 1  # (B, L)
    count = int(word[-1, -1]) + 1
    chance, fate = random.random(count), random.random(count)
    spoken = word[~silent]
    if len(spoken) and chance[spoken].min() >= share:
        chance[spoken[chance[spoken].argmin()]] = 0.0
    asked = (chance[word] < share) & ~silent
    strange = random.integers(0, tokenizer.vocab_size, ids.shape)
    strange = np.where(np.isin(strange, tokenizer.specials.never), ids, strange)
    shown = np.where(fate[word] < MASKED, tokenizer.mask_id, np.where(fate[word] < CHANGED, strange, ids))
    return Hidden(np.where(asked, shown, ids), asked)
