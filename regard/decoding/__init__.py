"""From a model to sentences: the searches over the step protocol, and the Translator around them."""

from regard.decoding.beam import beam_search
from regard.decoding.greedy import greedy
from regard.decoding.sampling import Sampling, sample
from regard.decoding.search import Hypothesis, Rules

__all__ = ["Hypothesis", "Rules", "Sampling", "beam_search", "greedy", "sample"]
