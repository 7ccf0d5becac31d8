"""Looking inside: the attention of the very decoding that gave an answer, as a page, a figure or data.

`regard.look(...)` is the function `look`, and this room has the same name; so the room can be called, too,
whichever of the two was loaded first.
"""

import sys
from types import ModuleType
from typing import Any

from regard.look.ablate import HeadLoss, rank_heads
from regard.look.beside import Beside, look_beside
from regard.look.context import Contexts, compare_word
from regard.look.look import Look, look

__all__ = ["Beside", "Contexts", "HeadLoss", "Look", "compare_word", "look", "look_beside", "rank_heads"]


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Look:
        return look(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
