"""ALiBi against transformers' own slopes and biases, and against its formula."""

import pytest
import torch

from regard.attention.alibi import Alibi, slopes


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8, 12, 16, 21])
def test_slopes_equal_transformers(heads: int) -> None:
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    theirs = bloom.build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)
    torch.testing.assert_close(torch.tensor(slopes(heads)), theirs[:, 0, 1])


def test_under_a_causal_softmax_it_is_transformers_bias() -> None:
    """Bloom adds slope · j, which differs by a constant a row: the weights are the same."""
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    length = 9
    theirs = bloom.build_alibi_tensor(torch.ones(1, length, dtype=torch.long), 3, torch.float32)  # (H, 1, S)
    scores, future = torch.randn(3, length, length), ~torch.ones(length, length).tril().bool()
    ours = Alibi(3).bias(torch.zeros(1, 3, length, 4), length)[0]
    expected = (scores + theirs).masked_fill(future, float("-inf")).softmax(-1)
    torch.testing.assert_close((scores + ours).masked_fill(future, float("-inf")).softmax(-1), expected)


def test_every_pair_costs_its_distance_in_both_directions() -> None:
    bias = Alibi(3).bias(torch.zeros(2, 3, 5, 4), 9, offset=2)
    assert bias.shape == (1, 3, 5, 9)
    for head, slope in enumerate(slopes(3)):
        for i in range(5):
            for j in range(9):
                assert bias[0, head, i, j].item() == pytest.approx(-slope * abs(2 + i - j), abs=1e-5)
