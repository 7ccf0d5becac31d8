"""Batches as tensors, against a loop that fills in one token at a time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.config import DataConfig
from regard.data.batch import collate
from regard.data.corpus import Corpus
from regard.data.store import Store, open_store

PAD, BEGIN, END = 0, 1, 2
PAIRS = [("five5", "abc"), ("a", "b"), ("sevenly", "elevenletter"), ("xy", "z")]


@pytest.fixture
def store(write_pairs: Any, encoder: Any, tmp_path: Path) -> Store:
    corpus: Corpus = write_pairs(PAIRS)
    return open_store(corpus, encoder, DataConfig(), tmp_path / "store")


def by_hand(rows: list[list[int]]) -> torch.Tensor:
    """Rows filled up with pad."""
    width = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


@pytest.mark.parametrize("indices", [[2], [3], [1, 3], [3, 0, 1, 2], [0, 1, 2, 3], [1, 1]])
def test_collate_is_what_a_loop_makes(store: Store, indices: list[int]) -> None:
    batch = collate(store, np.array(indices, dtype=np.int32), pad_id=PAD, begin_id=BEGIN, end_id=END)
    src, tgt = zip(*[[side.tolist() for side in store.pair(index)] for index in indices], strict=True)
    assert torch.equal(batch.inputs.ids, by_hand([[*ids, END] for ids in src]))
    assert torch.equal(batch.tgt_in, by_hand([[BEGIN, *ids] for ids in tgt]))
    assert torch.equal(batch.tgt_out, by_hand([[*ids, END] for ids in tgt]))
    assert torch.equal(batch.inputs.mask, batch.inputs.ids != PAD)
    assert torch.equal(batch.tgt_mask, batch.tgt_out != PAD)
    assert batch.targets == sum(len(ids) + 1 for ids in tgt)
    assert {batch.inputs.ids.dtype, batch.tgt_in.dtype, batch.tgt_out.dtype} == {torch.int64}


def test_special_ids_are_those_asked_for(store: Store) -> None:
    batch = collate(store, np.array([1, 2]), pad_id=901, begin_id=902, end_id=903)
    assert batch.inputs.ids[0].tolist() == [4 + ord("a"), 903] + [901] * 6
    assert batch.tgt_in[0].tolist()[:3] == [902, 4 + ord("b"), 901]


def test_to_moves_every_tensor(store: Store) -> None:
    batch = collate(store, np.array([0, 2]), pad_id=PAD, begin_id=BEGIN, end_id=END)
    moved = batch.to("meta")
    assert {moved.inputs.ids.device.type, moved.inputs.real.device.type, moved.tgt_mask.device.type} == {
        "meta"
    }
    assert {moved.tgt_in.device.type, moved.tgt_out.device.type} == {"meta"}
    assert moved.targets == batch.targets
