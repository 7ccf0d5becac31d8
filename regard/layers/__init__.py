"""Between attention and a model: embedding, feed-forward, residual and norm, whole layers."""

from regard.layers.decoder import DecoderLayer
from regard.layers.embedding import Embedding
from regard.layers.encoder import EncoderLayer
from regard.layers.feed_forward import FeedForward
from regard.layers.residual import Residual

__all__ = ["DecoderLayer", "Embedding", "EncoderLayer", "FeedForward", "Residual"]
