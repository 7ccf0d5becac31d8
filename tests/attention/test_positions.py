"""The table of kinds: every word of the config, in every role."""

import pytest
import torch

from regard.attention.order import Positions
from regard.attention.positions import Scheme, build_positions, build_relations, build_source
from regard.attention.relative import Relative
from regard.attention.rotary import Rotary
from regard.attention.site import Site, crossing, reading, writing
from regard.attention.structural import Depth, Structural
from regard.config import POSITION_KINDS, Config, PositionsConfig, merge
from regard.errors import UsageError
from regard.kinds import POSITIONS


def test_every_word_of_the_config_is_in_a_table() -> None:
    assert set(POSITIONS) == set(POSITION_KINDS)
    assert all(isinstance(POSITIONS[kind], Scheme) for kind in POSITION_KINDS)


@pytest.mark.parametrize("kind", POSITION_KINDS)
def test_between_two_sequences_there_is_no_distance(kind: str) -> None:
    assert type(build_relations(PositionsConfig(kind=kind), crossing(0), 3, 4)) is Positions


def test_the_roles() -> None:
    def built(kind: str, site: Site) -> type:
        return type(build_relations(PositionsConfig(kind=kind), site, 3, 4))

    assert built("relative", reading(0)) is built("relative", writing(0)) is Relative
    assert built("rotary", reading(0)) is built("rotary", writing(0)) is Rotary
    assert built("structural", reading(0)) is Structural
    assert built("structural", writing(0)) is Positions  # the target has no tree
    assert built("sinusoidal", reading(0)) is Positions
    assert type(build_source(PositionsConfig("structural"), 8)) is Depth
    assert type(build_source(PositionsConfig("relative"), 8)) is Positions


def test_none_changes_nothing() -> None:
    positions, x = build_positions(PositionsConfig("none"), 4), torch.randn(2, 3, 5, 4)
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
