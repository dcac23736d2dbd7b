"""Shards: their keys, and that a record made of them is the record of one process."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graph.schema import Extraction, Passage
from graph.storage.record import Record
from graph.storage.writer import Writer
from tests.builders import HashEmbedder, extraction_of, passage_of
from workflows.distributed.run import ShardVectors
from workflows.distributed.shards import SHARD_PASSAGES, Shard, ShardTask, embedded, plan_shards
from workflows.states.indexing import found_in_file

NOTHING: dict[str, Extraction] = {}
MODEL = HashEmbedder()


def passages(count: int) -> list[Passage]:
    return [passage_of(f"p{n}", f"Lake {n}", f"Lake {n} lies in Karv.") for n in range(count)]


def extraction(passage: Passage) -> Extraction:
    """The extraction of one of `passages`: a name of its own, one that all share, and a statement without an object."""
    return extraction_of([(passage.title, "lies in", "Karv"), ("Karv", "has", "")], ["Karv", "karv", passage.title])


def plan(wanted: Sequence[Passage], extractor: str = "rules", model: str = "hash") -> list[ShardTask]:
    return [*plan_shards(wanted, NOTHING, extractor, model)]


def made(task: ShardTask) -> Shard:
    found = [found_in_file(passage, extraction(passage)) for passage in task.passages]
    return embedded(task, found, MODEL)


def test_shards_hold_all_passages_in_their_order_as_many_as_a_commit() -> None:
    wanted = passages(2 * SHARD_PASSAGES + 3)
    tasks = plan(wanted)
    assert [len(task.passages) for task in tasks] == [SHARD_PASSAGES, SHARD_PASSAGES, 3]
    assert [passage for task in tasks for passage in task.passages] == wanted


def test_a_shard_of_anything_else_has_another_key() -> None:
    wanted = passages(3)
    first, second, third = wanted
    values: list[dict[str, Any]] = [{"id": "q"}, {"title": "Q"}, {"text": "Q."}, {"source": "q.txt"}]
    values.append({"metadata": {"year": 1}})
    others = [plan([first, replace(second, **value), third]) for value in values]
    others += [plan(wanted[::-1]), plan(wanted[:2]), plan(wanted, extractor="another"), plan(wanted, model="another")]
    for verb in ("feeds", "drains"):
        imported = {"p1": extraction_of([("Lake 1", verb, "Lake 2")])}
        others.append([*plan_shards(wanted, imported, "rules", "hash")])
    keys = [tasks[0].key for tasks in (plan(wanted), *others)]
    assert len(set(keys)) == len(keys)
    assert plan(passages(3))[0].key == keys[0]


def test_the_record_made_of_shards_is_that_of_one_process_and_nothing_is_embedded_again(tmp_path: Path) -> None:
    tasks = plan(passages(SHARD_PASSAGES + 9))
    vectors = ShardVectors(MODEL)
    for place, model in (("whole", MODEL), ("shards", vectors)):
        with Record(tmp_path / place, create=True) as record:
            writer = Writer(record, model)
            for task in tasks:
                if model is vectors:
                    vectors.forget()
                    vectors.learn(made(task), task.passages)
                writer.write([(passage, extraction(passage)) for passage in task.passages])
    assert rows(tmp_path / "shards") == rows(tmp_path / "whole")
    assert vectors.computed == 0


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    tables = ("passages", "names", "facts", "passage_names", "passage_facts")
    with sqlite3.connect(path) as database:
        return {table: [*database.execute(f"SELECT * FROM {table}")] for table in tables}


def test_texts_that_no_shard_holds_are_computed_by_the_model() -> None:
    (task,) = plan(passages(2))
    vectors = ShardVectors(MODEL)
    vectors.learn(made(task), task.passages)
    texts = ["a name that a correction made", "karv", task.passages[0].content, "karv"]
    assert np.array_equal(vectors.embed(texts), MODEL.embed(texts))
    assert vectors.computed == 1
    assert vectors.count_windows(texts) == MODEL.count_windows(texts)
    assert vectors.embed([]).shape == (0, MODEL.dimension)
    assert vectors.model_id == MODEL.model_id
    vectors.forget()
    vectors.embed(["karv"])
    assert vectors.computed == 2
