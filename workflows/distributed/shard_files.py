"""Shards as Parquet files of a workspace: written whole or not at all, and checked when they are read."""

from __future__ import annotations

import io
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graph.errors import DependencyMissing
from workflows.distributed.shards import Shard

if TYPE_CHECKING:
    import pyarrow

SHARDS = "shards"
"""The folder of a workspace that holds shards until they are committed."""

_SUFFIX = ".parquet"
_KEY, _DIGEST = b"mara.key", b"mara.digest"
_HINT = "pip install 'mara-rag[ray]'"


class ShardFolder:
    """The folder of the shards that are made and not committed yet, a file each: ``<key>.parquet``."""

    def __init__(self, root: Path) -> None:
        """``root`` is the workspace's folder."""
        self.folder = root / SHARDS

    def put(self, key: str, content: bytes) -> None:
        """Write a shard's file at once: it is there whole, also after a crash, or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f".{key}.{os.getpid()}"
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path(key))
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def get(self, key: str) -> Shard | None:
        """Return a shard; None where there is none, or its file is torn, damaged, foreign or of another format."""
        try:
            content = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        shard = from_parquet(content)
        return shard if shard is not None and shard.key == key else None

    def remove(self, key: str) -> None:
        """Remove a shard that is committed."""
        self._path(key).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what killed writers left unfinished. Shards of other keys stay: they may be of a run to be resumed."""
        if self.folder.is_dir():
            for path in self.folder.glob(".*"):
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove the folder: a run that has committed everything needs no shard."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.folder)

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
    (float32). The schema's metadata hold the key and the digest of the shard.
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
        },
        metadata={_KEY: shard.key.encode(), _DIGEST: shard.digest.encode()},
    )
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def from_parquet(content: bytes) -> Shard | None:
    """Return the shard of a file; None where it is none, or was changed since it was written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        metadata = table.schema.metadata or {}
        shard = _shard_of(metadata[_KEY].decode(), table)
    except Exception:
        # A damaged file makes Arrow raise whatever it likes; or it has other columns, or other types.
        return None
    return shard if shard.digest.encode() == metadata.get(_DIGEST) else None


def _shard_of(key: str, table: pyarrow.Table) -> Shard:
    found: list[Any] = [json.loads(one) for one in table["found"].to_pylist() if one is not None]
    n = len(found)
    vectors = _matrix(table["vector"])
    return Shard(
        key=key,
        found=tuple(found),
        windows=tuple(table["windows"].to_pylist()[:n]),
        vectors=vectors[:n],
        texts=tuple(table["text"].to_pylist()[n:]),
        text_vectors=vectors[n:],
    )


def _matrix(column: pyarrow.ChunkedArray) -> NDArray[np.float32]:
    array = column.combine_chunks()
    flat: NDArray[np.float32] = array.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, array.type.list_size)
