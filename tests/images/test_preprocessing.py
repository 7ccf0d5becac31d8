"""What a folder says about its pictures: written and read back, and refused where it is broken."""

import json

import numpy as np
import pytest

from regard.errors import ModelError
from regard.images.picture import Fit
from regard.images.preprocessing import Preprocessing

PICTURES = np.random.default_rng(2).integers(0, 256, (11, 3, 5, 7), dtype=np.uint8)


def test_numbers_are_measured_in_mean_and_spread() -> None:
    made = Preprocessing.of(Fit(5, 7), PICTURES)
    found = made.normalised(PICTURES)
    assert found.dtype == np.float32
    assert np.abs(found.mean((0, 2, 3))).max() < 1e-4
    assert np.abs(found.std((0, 2, 3)) - 1).max() < 1e-4
    assert Preprocessing.from_json(made.to_json(), "x") == made


@pytest.mark.parametrize(
    "change",
    [
        {"fit": 3},
        {"mean": [0.1]},
        {"spread": [0.0, 1, 1]},
        {"fit": {"height": 10**9, "width": 1}},
        {"mean": "abc"},
    ],
)
def test_what_is_broken_is_refused(change: dict[str, object]) -> None:
    tree = json.loads(Preprocessing.of(Fit(5, 7), PICTURES).to_json()) | change
    with pytest.raises(ModelError, match="copy the folder again"):
        Preprocessing.from_json(json.dumps(tree).encode(), "x")
