"""The table of kinds: every word of the config, in every role."""

import pytest
import torch

from regard.attention.order import Positions
from regard.attention.positions import POSITIONS, RELATIONS, build_positions, build_relations, build_source
from regard.attention.relative import Relative
from regard.attention.rotary import Rotary
from regard.attention.structural import Depth, Structural
from regard.config import POSITION_KINDS, Config, PositionsConfig, merge
from regard.errors import UsageError


def test_every_word_of_the_config_is_in_a_table() -> None:
    assert {*POSITIONS, *RELATIONS, "none"} == set(POSITION_KINDS)


@pytest.mark.parametrize("kind", POSITION_KINDS)
def test_between_two_sequences_there_is_no_distance(kind: str) -> None:
    assert type(build_relations(PositionsConfig(kind=kind), "cross", 3, 4)) is Positions


def test_the_roles() -> None:
    def built(kind: str, role: str) -> type:
        return type(build_relations(PositionsConfig(kind=kind), role, 3, 4))

    assert built("relative", "encoder") is built("relative", "decoder") is Relative
    assert built("rotary", "encoder") is built("rotary", "decoder") is Rotary
    assert built("structural", "encoder") is Structural
    assert built("structural", "decoder") is Positions  # the target has no tree
    assert built("sinusoidal", "encoder") is Positions
    assert type(build_source("structural", 8)) is Depth
    assert type(build_source("relative", 8)) is Positions


def test_none_changes_nothing() -> None:
    positions, x = build_positions("none", 4, 8), torch.randn(2, 3, 5, 4)
    assert torch.equal(positions.embed(x[:, 0], 5), x[:, 0])
    assert torch.equal(positions.turn(x, 5), x)
    assert positions.bias(x, 5) is None
    assert positions.gather(x) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"positions.kind": "rotary", "model.d_model": 12, "model.n_heads": 4},
            r"head width \(3\) must be even",
        ),
        (
            {"positions.kind": "rotary", "model.d_model": 12, "model.decoder_heads": 4, "model.n_heads": 2},
            "even",
        ),
        ({"positions.kind": "relative", "positions.clip": 0}, r"positions.clip \(0\)"),
    ],
)
def test_what_cannot_work_is_refused_by_the_config(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        merge(Config(), changes)
