"""Shards: neighbouring passages that one worker extracts and embeds, known by all that their result depends on."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graph.corrections.apply import Stated
from graph.embedding.embeddings import Embedder
from graph.errors import DependencyMissing
from graph.schema import Extraction, Passage, stable_id
from graph.storage.entry import content_hash, facts_of, fingerprint, names_of
from graph.storage.workspace import write_atomically
from graph.storage.writer import clean_extraction
from workflows.states.indexing import FoundInPassage, extraction_of, found_in_file

if TYPE_CHECKING:
    import pyarrow

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
class Totals:
    """The totals of several shards.

    Attributes:
        passages: how many.
        failed: how many of them could not be extracted.
        tokens: that their extraction took.
    """

    passages: int = 0
    failed: int = 0
    tokens: int = 0

    def plus(self, more: Totals) -> Totals:
        """Return the sums."""
        return Totals(self.passages + more.passages, self.failed + more.failed, self.tokens + more.tokens)


@dataclass(frozen=True, slots=True)
class Shard:
    """The extractions of the passages of a task, with all vectors that committing them can ask for.

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
    def totals(self) -> Totals:
        """The totals that it adds to a run."""
        tallies = [one["tally"] for one in self.found]
        return Totals(
            passages=len(self.found),
            failed=sum(bool(one["failure"]) for one in self.found),
            tokens=sum(tally.get("tokens_in", 0) + tally.get("tokens_out", 0) for tally in tallies),
        )


def plan_shards(
    passages: Iterable[Passage], imported: Mapping[str, Extraction], extractor: str, embedding_model: str
) -> Iterator[ShardTask]:
    """Yield the tasks of a run: its passages in their order, `SHARD_PASSAGES` at a time.

    Args:
        passages: those that are to be written.
        imported: imported extractions, by passage id.
        extractor: names the extractor and all settings that its extractions depend on.
        embedding_model: id of the model.
    """
    left = iter(passages)
    while batch := list(islice(left, SHARD_PASSAGES)):
        pairs = [(passage, imported[passage.id]) for passage in batch if passage.id in imported]
        fingerprints = {passage.id: fingerprint(passage, extraction) for passage, extraction in pairs}
        parts = (part for each in batch for part in (each.id, content_hash(each), fingerprints.get(each.id, "")))
        key = stable_id("shard", str(SHARD_FORMAT), extractor, embedding_model, *parts)
        yield ShardTask(
            key, tuple(batch), {passage.id: found_in_file(passage, extraction) for passage, extraction in pairs}
        )


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


def embedded(task: ShardTask, findings: Sequence[FoundInPassage], model: Embedder) -> Shard:
    """Return the shard of a task from what was found in its passages, in their order."""
    contents = [passage.content for passage in task.passages]
    wanted = texts_to_embed(zip(task.passages, map(extraction_of, findings), strict=True))
    return Shard(
        key=task.key,
        found=tuple(findings),
        windows=tuple(model.count_windows(contents)),
        vectors=model.embed(contents),
        texts=tuple(wanted),
        text_vectors=model.embed(wanted),
    )


SHARDS = "shards"
"""The folder of a workspace that holds shards until they are committed."""

_SUFFIX = ".parquet"
_HINT = "pip install 'mara-rag[ray]'"


class ShardFolder:
    """The folder of the shards that are made and not committed yet, a file each: ``<key>.parquet``."""

    def __init__(self, root: Path) -> None:
        """``root`` is the workspace's folder."""
        self.folder = root / SHARDS

    def put(self, key: str, content: bytes) -> None:
        """Write a shard's file at once: it is there whole, also after a crash, or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path(key), content)

    def get(self, key: str) -> Shard | None:
        """Return a shard; None where there is none, or its file is damaged."""
        try:
            content = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        return from_parquet(key, content)

    def remove(self, key: str) -> None:
        """Remove a shard that is committed."""
        self._path(key).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what killed writers left unfinished. Shards of other keys stay: they may be of a run to be resumed."""
        for path in self.folder.glob(".*"):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove the folder: a run that has committed everything needs no shard."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"


def check_arrow() -> None:
    """Raise DependencyMissing where the packages of the extra are not installed."""
    from importlib.util import find_spec

    for package in ("ray", "pyarrow"):
        if find_spec(package) is None:
            raise DependencyMissing(f"Indexing on Ray needs the package {package}", f"Install it: {_HINT}")


def to_parquet(shard: Shard) -> bytes:
    """Return the file of a shard: a row for each passage, then one for each name or fact.

    Columns: ``found`` (JSON of what was found in a passage), ``windows``, ``text`` (of a name or fact) and ``vector``
    (float32).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, m = len(shard.found), len(shard.texts)
    vectors = np.concatenate([part.reshape(-1) for part in (shard.vectors, shard.text_vectors)])
    table = pa.table(
        {
            "found": pa.array([json.dumps(one) for one in shard.found] + [None] * m, pa.string()),
            "windows": pa.array([*shard.windows, *([None] * m)], pa.int32()),
            "text": pa.array([*([None] * n), *shard.texts], pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors, pa.float32()), shard.vectors.shape[1]),
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def from_parquet(key: str, content: bytes) -> Shard | None:
    """Return the shard of a file; None where it is none, or a page of it does not fit its checksum."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        findings: list[Any] = [json.loads(one) for one in table["found"].to_pylist() if one is not None]
        n, vectors = len(findings), _matrix(table["vector"])
        return Shard(
            key=key,
            found=tuple(findings),
            windows=tuple(table["windows"].to_pylist()[:n]),
            vectors=vectors[:n],
            texts=tuple(table["text"].to_pylist()[n:]),
            text_vectors=vectors[n:],
        )
    except Exception:
        # A damaged file makes Arrow raise whatever it likes; or it has other columns, or other types.
        return None


def _matrix(column: pyarrow.ChunkedArray) -> NDArray[np.float32]:
    array = column.combine_chunks()
    flat: NDArray[np.float32] = array.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, array.type.list_size)
