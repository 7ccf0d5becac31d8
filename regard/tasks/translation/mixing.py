"""Pairs of several kinds in one run: how they are named, and how often each is seen.

    several languages    a group a pair, its sources tagged with the target: `regard.text.directions`
    back-translation     the real pairs, and beside them synthetic ones, tagged <back> (Caswell et al. 2019)

A group of n pairs has the share n^(1/T) of an epoch (Arivazhagan et al. 2019, 3.2), or the one that is set.
The group that would be seen least often is seen once an epoch, the others are repeated. Before this file:
`files.py`; after it: `prepare.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from regard.config import DataConfig
from regard.data.corpus import Corpus, Group
from regard.errors import UsageError
from regard.tasks.translation.files import corpus_of
from regard.text.directions import Directions, pair_named, tag_of
from regard.training.feed import Rows, spread

REAL, SYNTHETIC = Group(""), Group("back-translated", "<back>")

Named = Mapping[str, Any] | Sequence[Sequence[Any]]  # en-de and its files


def several(named: Named) -> tuple[Corpus, Directions]:
    """The files of each pair of languages as one mixture, and the pairs."""
    rows = list(named.items()) if isinstance(named, Mapping) else [(row[0], row[1:]) for row in named]
    directions = Directions.named(str(name) for name, _ in rows)
    members = []
    for name, files in rows:
        given = [files] if isinstance(files, str | Corpus) or not isinstance(files, Sequence) else list(files)
        corpus = corpus_of([each for each in given if each != ""])
        members.append(replace(corpus, group=Group(name, tag_of(pair_named(name)[1]))))
    return Corpus(members=tuple(members)), directions


def several_held(named: Named, directions: Directions) -> Corpus:
    """The same of what is validated on, each of a pair that is trained on."""
    corpus, held = several(named)
    if strange := [pair for pair in held.pairs if pair not in directions.pairs]:
        raise UsageError(
            f"--valid-pair {'-'.join(strange[0])}: that pair is not trained on; there are {directions}"
        )
    return corpus


def with_synthetic(real: Corpus, synthetic: Corpus) -> Corpus:
    """Real pairs with those whose source a model wrote."""
    return Corpus(members=(replace(real, group=REAL), replace(synthetic, group=SYNTHETIC)))


def tags_of(corpus: Corpus) -> tuple[str, ...]:
    """The tokens that stand before sources, in order."""
    groups = (part.group for part in corpus.parts())
    return tuple(dict.fromkeys(group.tag for group in groups if group is not None and group.tag))


def times(counts: Mapping[str, int], data: DataConfig) -> dict[str, float]:
    """How often a pair of each group is seen in an epoch.

    >>> times({"en-de": 100, "en-fr": 400}, DataConfig(temperature=2.0))
    {'en-de': 2.0, 'en-fr': 1.0}
    """
    shares = {name: count ** (1 / data.temperature) for name, count in counts.items()}
    if said := data.shares():
        if len(said) != len(counts):
            raise UsageError(
                f"data.weights ({data.weights}) has {len(said)} shares, for {len(counts)} that are mixed"
            )
        shares = dict(zip(counts, said, strict=True))
    elif SYNTHETIC.name in counts:
        shares = {REAL.name: 1.0, SYNTHETIC.name: data.synthetic}
    dense = {name: shares[name] / count for name, count in counts.items() if count}
    least = min(dense.values())
    return {name: each / least for name, each in dense.items()}


def by_file(rows: Rows, parts: Sequence[int]) -> dict[str, Rows]:
    """Rows of a store by the file that they came from, of which it kept so many each.

    >>> by_file(np.array([0, 2, 3, 4]), [2, 3])
    {'file 1': array([0]), 'file 2': array([2, 3, 4])}
    """
    edges = np.searchsorted(rows, np.cumsum([0, *parts]))
    return {f"file {n}": rows[low:high] for n, (low, high) in enumerate(pairwise(edges), 1)}


def mixed(groups: Mapping[str, Rows], data: DataConfig) -> Rows:
    """The rows of an epoch: those of each group as often as they are to be seen."""
    often = times({name: len(rows) for name, rows in groups.items()}, data)
    parts: list[Rows] = []
    for name, rows in groups.items():
        each = often.get(name, 0.0)
        whole = int(each)
        parts += [rows] * whole
        if more := round((each - whole) * len(rows)):
            parts.append(spread(rows, more))
    return np.concatenate(parts)
