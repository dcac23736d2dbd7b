"""Shards as files: whole or not there, and whatever was done to one is noticed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.builders import HashEmbedder, extraction_of, passage_of
from workflows.distributed.shards import Shard, ShardFolder, embedded, plan_shards, to_parquet
from workflows.states.indexing import found_in_file

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra ray is not installed: `make scale`"),
]


@pytest.fixture
def shard() -> Shard:
    passages = [passage_of(f"p{n}", f"Lake {n}", "It lies in Karv, « 湖 ».", year=n) for n in range(9)]
    (task,) = plan_shards(passages, {}, "rules", "hash")
    found = [found_in_file(each, extraction_of([(each.title, "lies in", "Karv")], ["Karv"])) for each in passages]
    return embedded(task, found, HashEmbedder())


def assert_same(one: Shard | None, other: Shard) -> None:
    assert one is not None
    assert np.array_equal(one.vectors, other.vectors)
    assert np.array_equal(one.text_vectors, other.text_vectors)
    assert (one.key, one.found, one.windows, one.texts) == (other.key, other.found, other.windows, other.texts)


def test_a_shard_is_read_as_it_was_written(shard: Shard, tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path)
    assert folder.get(shard.key) is None
    folder.put(shard.key, to_parquet(shard))
    assert_same(folder.get(shard.key), shard)
    folder.remove(shard.key)
    assert folder.get(shard.key) is None


def test_a_damaged_file_or_one_of_another_program_is_not_taken(shard: Shard, tmp_path: Path) -> None:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    content = to_parquet(shard)
    foreign = io.BytesIO()
    pq.write_table(pa.table({"found": ["{}"]}), foreign)
    middle = len(content) // 3
    turned = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    folder = ShardFolder(tmp_path)
    for damaged in (content[:-9], turned, foreign.getvalue(), b""):
        folder.put(shard.key, damaged)
        assert folder.get(shard.key) is None
