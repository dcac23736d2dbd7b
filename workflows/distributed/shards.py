"""Shards: neighbouring passages that one worker extracts and embeds, known by all that their result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.corrections.apply import Stated
from graph.embedding.embeddings import Embedder
from graph.schema import Extraction, Passage, stable_id
from graph.storage.entry import content_hash, facts_of, fingerprint, names_of
from graph.storage.writer import clean_extraction
from workflows.states.indexing import FoundInPassage, extraction_of, found_in_file

SHARD_FORMAT = 1
"""Part of every key: shards that another version wrote are made again."""

SHARD_PASSAGES = 64
"""Passages of a shard, as many as of a commit: what a killed worker can cost."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Passages that are to be extracted and embedded together.

    Attributes:
        key: names the shard, and its file.
        passages: in the order of the commit.
        given: what a file of triples says of passages, by their ids: these are not extracted.
    """

    key: str
    passages: tuple[Passage, ...]
    given: Mapping[str, FoundInPassage]


@dataclass(frozen=True, slots=True)
class Shard:
    """What was found in the passages of a task, with all vectors that committing them can ask for.

    Attributes:
        key: that of the task.
        found: one for each passage, in the order of the task.
        windows: in how many pieces each passage was read for its vector.
        vectors: unit vectors of the passages, shape (passages, dimension).
        texts: the names and facts of the passages, as they are embedded.
        text_vectors: their unit vectors, shape (texts, dimension).
    """

    key: str
    found: tuple[FoundInPassage, ...]
    windows: tuple[int, ...]
    vectors: NDArray[np.float32]
    texts: tuple[str, ...]
    text_vectors: NDArray[np.float32]

    @property
    def failed(self) -> int:
        """How many of its passages could not be extracted."""
        return sum(bool(one["failure"]) for one in self.found)

    @property
    def tokens(self) -> int:
        """Tokens that its extraction took."""
        return sum(one["tally"].get("tokens_in", 0) + one["tally"].get("tokens_out", 0) for one in self.found)

    @property
    def digest(self) -> str:
        """A hash of all that it holds: a file whose content has another one is torn."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(json.dumps([self.key, self.found, self.windows, self.texts], sort_keys=True).encode())
        for vectors in (self.vectors, self.text_vectors):
            digest.update(repr(vectors.shape).encode())
            digest.update(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
        return digest.hexdigest()

    def answers(self, task: ShardTask) -> bool:
        """Tell whether it holds what was found in just the passages of a task."""
        held = [(one["id"], one["content"]) for one in self.found]
        return self.key == task.key and held == [(each.id, content_hash(each)) for each in task.passages]


def plan_shards(
    passages: Iterable[Passage], given: Mapping[str, Extraction], extractor: str, embedding_model: str
) -> Iterator[ShardTask]:
    """Yield the tasks of a run: its passages in their order, `SHARD_PASSAGES` at a time.

    Args:
        passages: those that are to be written.
        given: imported extractions, by passage id.
        extractor: names the extractor and all settings that its extractions depend on.
        embedding_model: id of the model.
    """
    batch: list[Passage] = []
    for passage in passages:
        batch.append(passage)
        if len(batch) == SHARD_PASSAGES:
            yield shard_task(batch, given, extractor, embedding_model)
            batch = []
    if batch:
        yield shard_task(batch, given, extractor, embedding_model)


def shard_task(
    passages: Sequence[Passage], given: Mapping[str, Extraction], extractor: str, embedding_model: str
) -> ShardTask:
    """Return the task of some passages, which are one shard; the arguments are those of `plan_shards`."""
    held = [(passage, given[passage.id]) for passage in passages if passage.id in given]
    mine = {passage.id: found_in_file(passage, extraction) for passage, extraction in held}
    told = {passage.id: fingerprint(passage, extraction) for passage, extraction in held}
    parts = (part for each in passages for part in (each.id, content_hash(each), told.get(each.id, "")))
    key = stable_id("shard", str(SHARD_FORMAT), extractor, embedding_model, *parts)
    return ShardTask(key, tuple(passages), mine)


def texts_to_embed(extractions: Iterable[tuple[Passage, Extraction]]) -> list[str]:
    """Return the names and facts of some passages as the record embeds them, each once, in the order of the passages.

    Corrections are the record's: what they make of these is embedded when the passages are committed.
    """
    texts: dict[str, None] = {}
    for passage, extraction in extractions:
        stated = Stated.of(passage, clean_extraction(extraction))
        texts.update(dict.fromkeys(names_of(stated).values()))
        texts.update(dict.fromkeys(facts_of(stated).values()))
    return list(texts)


def embedded(task: ShardTask, found: Sequence[FoundInPassage], passages: Embedder, texts: Embedder) -> Shard:
    """Return the shard of a task from what was found in its passages.

    Args:
        task: the passages.
        found: in their order.
        passages: embeds the passages.
        texts: the same model, for names and facts; it may keep vectors of texts that come again.
    """
    contents = [passage.content for passage in task.passages]
    wanted = texts_to_embed(zip(task.passages, map(extraction_of, found), strict=True))
    return Shard(
        key=task.key,
        found=tuple(found),
        windows=tuple(passages.count_windows(contents)),
        vectors=passages.embed(contents),
        texts=tuple(wanted),
        text_vectors=texts.embed(wanted),
    )
