"""A ResNet against that of transformers is in tests/interop/test_detr.py; here, its text and its strides."""

import pytest
import torch

from regard.errors import UsageError
from regard.layers.resnet import ResidualPatches, shape_of


@pytest.mark.parametrize(
    "text", ["", "wide 8 12x1", "basic 8", "basic x 12x1", "basic 8 12", "basic 8 12x-1"]
)
def test_a_text_that_says_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="must be like bottleneck 64"):
        shape_of(text)


def test_a_patch_is_as_large_as_the_stages_make_it() -> None:
    reads = ResidualPatches(1, 8, 11, "basic 8 12x1 20x2")
    assert reads(torch.randn(2, 1, 45, 61)).shape == (2, 6 * 8, 11)
    with pytest.raises(UsageError, match=r"patches have 8 pixels; detection.stride is 16"):
        ResidualPatches(1, 16, 11, "basic 8 12x1 20x2")
