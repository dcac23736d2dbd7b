"""Shards as files: whole or not there, and whatever was done to one is noticed."""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.builders import HashEmbedder, extraction_of, passage_of
from workflows.distributed.shards import Shard, ShardFolder, embedded, from_parquet, plan_shards, to_parquet
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
    assert one.digest == other.digest
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


def test_a_file_with_a_byte_changed_is_no_shard_or_the_same(shard: Shard) -> None:
    content = to_parquet(shard)
    chance = random.Random(2)
    for _ in range(300):
        changed = bytearray(content)
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        read = from_parquet(bytes(changed))
        assert read is None or read.digest == shard.digest


def test_a_file_of_another_shard_or_program_is_not_taken(shard: Shard, tmp_path: Path) -> None:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = ShardFolder(tmp_path)
    folder.put("shard-another", to_parquet(shard))
    assert folder.get("shard-another") is None
    foreign = io.BytesIO()
    pq.write_table(pa.table({"found": ["{}"]}), foreign)
    folder.put(shard.key, foreign.getvalue())
    assert folder.get(shard.key) is None
