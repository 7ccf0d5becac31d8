"""The core: one pure function, `attend`, and what goes around it. It knows no model."""

from regard.attention.attend import attend, attend_readable, weigh
from regard.attention.cache import KeyValue
from regard.attention.heads import MultiHead
from regard.attention.record import Tape, record
from regard.attention.switch import heads_off

__all__ = ["KeyValue", "MultiHead", "Tape", "attend", "attend_readable", "heads_off", "record", "weigh"]
