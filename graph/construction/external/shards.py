"""Which passages are read together, and where what they say is kept between two builds."""

from __future__ import annotations

import hashlib
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from graph.construction.external.kept_pairs import FOLDER
from graph.construction.external.layout import Shard
from graph.construction.external.scan import SCAN_VERSION, scan
from graph.corrections.apply import Corrections
from graph.storage.record import Record
from graph.storage.workspace import Workspace

_NEW = "new-"


@dataclass(frozen=True, slots=True)
class Cut:
    """Neighbouring passages, by their ids, and what tells whether they changed."""

    first: str
    last: str
    size: int
    key: str


def cut_passages(stated: Iterable[tuple[str, str]], made_with: Sequence[str], size: int) -> Iterator[Cut]:
    """Yield shards of about ``size`` passages, twice that at most.

    Where one ends depends on the ids near by: a passage that comes or goes changes its own shard and, at most, the
    next one.

    Args:
        stated: (passage id, fingerprint), in the order of the ids.
        made_with: what else a shard's files depend on.
        size: how many passages a shard has.
    """
    held: list[str] = []
    made_of = _start(made_with)
    for key, fingerprint in stated:
        held.append(key)
        made_of.update(f"{len(key)} {key} {fingerprint}\n".encode())
        if len(held) == 2 * size or zlib.crc32(key.encode()) % size == 0:
            yield Cut(held[0], key, len(held), made_of.hexdigest())
            held, made_of = [], _start(made_with)
    if held:
        yield Cut(held[0], held[-1], len(held), made_of.hexdigest())


def _start(made_with: Sequence[str]) -> hashlib.blake2b:
    return hashlib.blake2b("\x00".join((str(SCAN_VERSION), *made_with)).encode(), digest_size=16)


@dataclass(frozen=True, slots=True)
class ScanTask:
    """A task: to read what the passages of a shard say."""

    workspace: Path
    cut: Cut
    folder: Path


def scan_shard(task: ScanTask) -> None:
    """Write a shard's folder, whole at once; nothing where it is there already."""
    if task.folder.is_dir():
        return
    unfinished = task.folder.with_name(f"{_NEW}{uuid4().hex}")
    unfinished.mkdir(parents=True)
    try:
        with Workspace(task.workspace).open_record() as record:
            entries = record.entries_between(task.cut.first, task.cut.last)
            scan(entries, Corrections(record.corrections()), record.dimension, unfinished)
        unfinished.rename(task.folder)
    except OSError:
        # A process that a killed build left may have written the same shard meanwhile.
        if not task.folder.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def shards_of(cuts: Iterable[Cut], cache: Path) -> tuple[Shard, ...]:
    """Return the shards, with their places among all passages."""
    shards, start = [], 0
    for cut in cuts:
        shards.append(Shard(cache / cut.key, start, cut.size))
        start += cut.size
    return tuple(shards)


def cuts_of(record: Record, size: int) -> list[Cut]:
    """Return the shards of a record's passages."""
    made_with = (record.workspace_id, record.embedding_model, record.vectors_id)
    return list(cut_passages(record.stated_in_order(), made_with, size))


def prune_cache(cache: Path, used: Iterable[Shard]) -> None:
    """Remove the folders of shards that no passage needs any more."""
    kept = {FOLDER, *(shard.folder.name for shard in used)}
    for folder in cache.iterdir():
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
