"""The theorem: K² heads of self-attention over pixels are any K×K convolution (Cordonnier et al. 2020).

A head scores the pixel at distance δ from its query by a quadratic, −α|δ − Δ|². For a large α its softmax is
one at the offset Δ and zero elsewhere: the head fetches the pixel at Δ. With one head for each offset of the
kernel, the joined heads are the patch under the kernel, and the output projection W^O is the convolution's
weights. `attend.py` computes it; `regard compare --theorem` draws where each head looks.
"""

import torch
from torch import Tensor, nn

from regard.attention.attend import attend, weigh
from regard.errors import UsageError

SHARP = 32.0  # α: a neighbour one pixel off Δ weighs e^-32; a power of two keeps the scores exact in fp32


class PixelAttention(nn.Module):
    """H heads over the pixels of an image, each looking around its own offset.

    `centres` (H, 2) are the Δ in pixels, down and right; `sharpness` is α. Values are the pixels themselves;
    `out` (C_out, H·C_in) joins the heads. All of them can be trained, as in the paper.
    """

    def __init__(self, centres: Tensor, out: Tensor, bias: Tensor | None, sharpness: float = SHARP) -> None:
        super().__init__()
        self.centres = nn.Parameter(centres)
        self.sharpness = nn.Parameter(torch.tensor(sharpness, dtype=centres.dtype, device=centres.device))
        self.out = nn.Parameter(out)
        self.out_bias = None if bias is None else nn.Parameter(bias)

    def forward(self, image: Tensor) -> Tensor:
        """Pixels look at pixels: (B, C_in, Y, X) -> (B, C_out, Y, X)."""
        batch, channels, rows, columns = image.shape
        heads = len(self.centres)
        pixels = image.flatten(2).transpose(1, 2)  # (B, T, C), T = Y·X
        v = pixels[:, None].expand(-1, heads, -1, -1)  # (B, H, T, C)
        blank = image.new_zeros(batch, heads, rows * columns, 1)  # content has no say in the scores
        scores, inside = self.scores(rows, columns)
        patch = attend(blank, blank, v, bias=scores, mask=inside)  # (B, H, T, C)
        joined = patch.transpose(1, 2).reshape(batch, rows * columns, heads * channels)  # (B, T, H·C)
        found: Tensor = nn.functional.linear(joined, self.out, self.out_bias)  # (B, T, C_out)
        return found.mT.reshape(batch, -1, rows, columns)

    def scores(self, rows: int, columns: int) -> tuple[Tensor, Tensor]:
        """−α|δ − Δ|² for every head and pair of pixels, (1, H, T, T), and which may be seen, (1, H, T, T).

        The zero padding of a convolution is a head that sees nothing: where the place it looks for lies
        outside the image its whole row is masked, and such a row gives zeros. Unmasked, its softmax would
        settle on the nearest pixel of the border instead.
        """
        place = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).to(self.centres)  # (T, 2)
        wanted = place + self.centres[:, None]  # (H, T, 2)
        scores = -self.sharpness * (place - wanted[:, :, None]).square().sum(-1)  # (H, T, T)
        last = place.new_tensor([rows - 1, columns - 1])
        inside = ((wanted.round() >= 0) & (wanted.round() <= last)).all(-1)  # (H, T)
        return scores[None], inside[None, :, :, None].expand(-1, -1, -1, rows * columns)

    def weights(self, rows: int, columns: int) -> Tensor:
        """Where each head looks from each pixel of an image of that size: (H, T, T)."""
        scores, inside = self.scores(rows, columns)
        blank = scores.new_zeros(1, scores.shape[1], rows * columns, 1)
        return weigh(blank, blank, bias=scores, mask=inside)[0]


def from_convolution(
    weight: Tensor, bias: Tensor | None = None, *, sharpness: float = SHARP
) -> PixelAttention:
    """Self-attention that equals the convolution with these weights, stride 1 and padding "same".

    weight (C_out, C_in, K, K) as torch has it; one head an offset, K² in all.

    >>> weight, image = torch.randn(2, 3, 3, 3), torch.randn(1, 3, 5, 7)
    >>> twin = from_convolution(weight)
    >>> torch.allclose(twin(image), nn.functional.conv2d(image, weight, padding=1), atol=1e-4)
    True
    """
    if weight.dim() != 4:
        raise UsageError(f"a convolution's weights have 4 axes (C_out, C_in, K, K), not {weight.dim()}")
    if not sharpness > 0:
        raise UsageError(f"sharpness ({sharpness:g}) must be above 0: it holds each head at its pixel")
    reach = [torch.arange(width) - (width - 1) // 2 for width in weight.shape[2:]]  # torch's "same" padding
    centres = torch.cartesian_prod(*reach).to(weight)  # (K², 2)
    out = weight.permute(0, 2, 3, 1).flatten(1)  # (C_out, K²·C_in): head by head
    return PixelAttention(
        centres, out.detach().clone(), None if bias is None else bias.detach().clone(), sharpness
    )
