"""Every setting: a file a table, with its keys, their defaults and the rules they keep.

`tree.py` holds the tables together, `toml.py` reads what people write, `file.py` what a model folder says.
"""

from regard.config.attention import AttentionConfig
from regard.config.data import DataConfig
from regard.config.decode import DecodeConfig
from regard.config.model import AT_ONCE, ATTENDING, REPLACED, ModelConfig
from regard.config.positions import POSITION_KINDS, PositionsConfig
from regard.config.text import TextConfig
from regard.config.toml import flatten, parse_set, read_toml
from regard.config.train import TrainConfig
from regard.config.tree import Config, from_dict, known_keys, merge, to_dict, to_json

__all__ = [
    "ATTENDING",
    "AT_ONCE",
    "POSITION_KINDS",
    "REPLACED",
    "AttentionConfig",
    "Config",
    "DataConfig",
    "DecodeConfig",
    "ModelConfig",
    "PositionsConfig",
    "TextConfig",
    "TrainConfig",
    "flatten",
    "from_dict",
    "known_keys",
    "merge",
    "parse_set",
    "read_toml",
    "to_dict",
    "to_json",
]
