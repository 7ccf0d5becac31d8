"""The family of translators that `regard compare` sets side by side."""

from typing import Any

from regard.tasks.task import Family

VARIANTS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "dot": {"attention.score": "dot"},
    "cosine": {"attention.score": "cosine"},
    "additive": {"attention.score": "additive"},
    "general": {"attention.score": "general"},
    "learned": {"positions.kind": "learned"},
    "relative": {"positions.kind": "relative"},
    "sinusoidal": {"positions.kind": "sinusoidal"},
    "alibi": {"positions.kind": "alibi"},
    "no positions": {"positions.kind": "none"},
    "1 head": {"model.n_heads": 1},
    "8 heads": {"model.n_heads": 8},
    "multi-query": {"model.kv_heads": 1},
    "post-norm": {"model.norm": "post"},
    "rnn": {"model.kind": "rnn"},
    "rnn-attention": {"model.kind": "rnn-attention"},
    "lstmn": {"model.kind": "lstmn"},
    "conv": {"model.kind": "conv"},
}
FAMILY = Family(VARIANTS, "regard.cli.compare:phrasebook")
