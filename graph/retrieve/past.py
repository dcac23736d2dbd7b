"""The index of what stood at a moment: a workspace of its own within the workspace, derived when it is asked for.

It begins as a copy of the record, from which is taken what did not stand then, and into which is put what stood there
instead; published, it is an index like any other. Its name is a hash of what stood: moments between which nothing
changed share one, and a commit makes a new one only where it changes what stood then. Here stands, too, when what stood
at a moment ended.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from uuid import uuid4

from graph.construction.edges import PASSAGE_CLASSES
from graph.embedding.embeddings import Embedder, check_embedder
from graph.errors import BadInput, WorkspaceDamaged, WorkspaceMissing
from graph.metadata_filter import meets, read_conditions
from graph.moments import last_moment, shown
from graph.own_types import OWN_TYPES
from graph.publish.derive import is_published, publish
from graph.publish.generation_vectors import is_on_server
from graph.retrieve.index_pool import IndexPool
from graph.retrieve.open_index import Index
from graph.schema import stable_id
from graph.storage.entry import Entry
from graph.storage.lock import GenerationHold, alone
from graph.storage.read_only import may_write, scratch_folder
from graph.storage.record import Record
from graph.storage.versions import Span, Versions
from graph.storage.workspace import PAST_MARK, Layer, Workspace
from graph.storage.writer import Writer

_KEPT = 4
"""Indexes of the past that stay on the disk, those that were asked last; those that are being read stay, too."""

_KEPT_OPEN = 3
_REMEMBERED = 64
_WAIT_S = 600.0
_UNFINISHED = "new-"
_OPEN_ATTEMPTS = 3

K = TypeVar("K")
V = TypeVar("V")


class PastIndexes:
    """The indexes of the past that a process has open. Safe across threads and processes."""

    def __init__(self, pool: IndexPool) -> None:
        """``pool`` opens them, and keeps them for the runs under way."""
        self._pool = pool
        self._lock = threading.Lock()
        self._folders: OrderedDict[tuple[Path, str, str, str], Path] = OrderedDict()
        self._begun: OrderedDict[tuple[Path, str, int], Path] = OrderedDict()
        self._open: OrderedDict[Path, None] = OrderedDict()
        self._scratch: dict[Path, TemporaryDirectory[str]] = {}

    def get(self, root: Path, embedder: Embedder, as_of: str, generation: int | None = None) -> Index:
        """Return the index of what stood in a workspace at the end of a date, or at a time.

        Args:
            root: the workspace.
            embedder: the model that encodes questions.
            as_of: a date or time in ISO 8601.
            generation: that of the index of this date that a run began with: while it is there, that one is returned.

        Raises:
            BadInput: it is no date, nothing stood then, or it is not known what did.
            WorkspaceMissing: there is no workspace.
            EmbeddingMismatch: another model wrote it.
            WorkspaceDamaged: its record cannot be read.
            WorkspaceLocked: another process takes too long to derive the index.
        """
        place, moment = root.absolute(), last_moment(as_of)
        for attempt in range(_OPEN_ATTEMPTS):
            begun = self._begun.get((place, moment, generation or 0))
            folder = begun if begun is not None and _is_ready(begun) else self._derived(place, embedder, moment, as_of)
            try:
                index = self._pool.get(folder, embedder, generation)
            except (WorkspaceMissing, WorkspaceDamaged):
                # Another process removed it for others that were asked since, or it has to be derived again.
                if folder == place or attempt == _OPEN_ATTEMPTS - 1:
                    raise
                shutil.rmtree(folder, ignore_errors=True)
            else:
                break
        with self._lock:
            _remember(self._begun, (place, moment, index.graph.generation), folder, _REMEMBERED)
            let_go = [] if folder == place else _remember(self._open, folder, None, _KEPT_OPEN)
        for one in let_go:
            self._pool.let_go(one)
        return index

    def close(self) -> None:
        """Forget about the indexes, which the pool closes, and remove those of workspaces that may not be written."""
        with self._lock:
            for each in (self._folders, self._begun, self._open):
                each.clear()
            for folder in self._scratch.values():
                folder.cleanup()
            self._scratch.clear()

    def _derived(self, root: Path, embedder: Embedder, moment: str, as_of: str) -> Path:
        """Return the folder of what stood at a moment, derived where it is not there."""
        workspace = Workspace(root)
        with workspace.open_record() as record, record.as_it_stands():
            check_embedder(embedder, record.embedding_model or embedder.model_id)
            asked = (root, moment, record.commit_id, record.versions.state)
            folder = self._folders.get(asked)
            if folder is None:
                folder = self._place_of(workspace, record, moment, as_of)
            if not _is_ready(folder):
                _derive(workspace, record, folder, embedder, moment)
        if folder != root:
            with suppress(OSError):
                os.utime(folder)
        with self._lock:
            _remember(self._folders, asked, folder, _REMEMBERED)
        return folder

    def _place_of(self, workspace: Workspace, record: Record, moment: str, as_of: str) -> Path:
        """Return where the index lies, or is to lie: the workspace itself where its own is of what stood then."""
        name = _name_of(record, moment, as_of)
        if is_published(workspace, record) and record.versions.still_stands(moment):
            return workspace.root
        folder = workspace.past / name
        return folder if may_write(workspace.root) or _is_ready(folder) else self._scratch_of(workspace.root) / name

    def _scratch_of(self, root: Path) -> Path:
        with self._lock:
            if root not in self._scratch:
                self._scratch[root] = scratch_folder()
            return Path(self._scratch[root].name)


def superseded_passages(
    versions: Versions, passage_ids: Iterable[str], moment: str, where: Mapping[str, Any]
) -> dict[str, str | None]:
    """Return {passage id: the date on which its words ended that stood at a moment; None where they still stand}.

    Args:
        versions: of the workspace.
        passage_ids: passages that stood then.
        moment: when.
        where: filter; of passages outside of it nothing is told.
    """
    return {key: _end(_same_words(_seen(versions.spans([key]), where), moment), moment) for key in passage_ids}


def superseded_facts(
    versions: Versions, fact_ids: Iterable[str], moment: str, where: Mapping[str, Any]
) -> dict[str, str | None]:
    """Return {fact id: the date from which on no passage said it any more; None where one still does}.

    The arguments are those of `superseded_passages`.
    """
    return {key: _end(_seen(versions.spans_of_fact(key), where), moment) for key in fact_ids}


def _name_of(record: Record, moment: str, as_of: str) -> str:
    """Return the name of what stood at a moment. Raises BadInput where nothing did, or it is not known."""
    versions = record.versions
    if not versions.are_kept:
        raise BadInput(
            f"It is not known what stood on {as_of}: this workspace keeps no versions",
            "`mara index` and `mara sync` keep them from now on; where that is switched off, --set keep_versions=true",
        )
    if moment < versions.kept_from:
        raise BadInput(
            f"It is not known what stood on {as_of}: versions are kept from {shown(versions.kept_from)} on",
            "Ask as of a later date, or load the history into a new workspace: `mara index SOURCE --set dated=DATE`",
        )
    stood = versions.digest(moment)
    if not stood:
        raise BadInput(f"Nothing stood on {as_of}", "Ask as of a later date: `mara show document NAME` has them")
    corrected = json.dumps([each.to_json() for each in record.corrections() if each.stands])
    settings = (
        record.embedding_model,
        record.vectors_id,
        record.note(PASSAGE_CLASSES),
        record.note(OWN_TYPES),
        corrected,
    )
    unfinished = "" if _is_complete(record, moment) else record.commit_id
    return stable_id("stood", stood, *settings, unfinished).removeprefix("stood-")


def _is_complete(record: Record, moment: str) -> bool:
    """Tell whether what stood at a moment is whole: an interrupted run changes nothing before its own date."""
    return record.complete or moment < record.versions.latest()


def _is_ready(folder: Path) -> bool:
    return Workspace(folder).current() is not None


def _derive(workspace: Workspace, record: Record, folder: Path, embedder: Embedder, moment: str) -> None:
    """Derive what stood at a moment into a folder, unless another process has done it; remove what is not needed.

    The folder is there once all is done: who is killed leaves an unfinished one, of another name.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent):
        if not _is_ready(folder):
            unfinished = Workspace(folder.parent / f"{_UNFINISHED}{uuid4().hex}")
            (unfinished.root / "index").mkdir(parents=True)
            (unfinished.root / PAST_MARK).touch()
            _take_vectors(workspace, unfinished)
            record.copy_to(unfinished.record_path)
            _go_back(unfinished, embedder, moment)
            shutil.rmtree(folder, ignore_errors=True)
            unfinished.root.rename(folder)
        _prune(folder)


def _take_vectors(workspace: Workspace, unfinished: Workspace) -> None:
    """Copy the generation whose vectors those of now lie on: most of that stood then, too. Else, all are written."""
    try:
        current = workspace.current()
        hold = None if current is None else workspace.hold(current)
    except OSError:
        return
    if hold is None or current is None:
        return
    try:
        layer = Layer.load(workspace.index_folder(current))
        if layer is not None and not is_on_server(workspace, current):
            own = unfinished.index_folder(layer.base)
            shutil.copytree(workspace.index_folder(layer.base), own, ignore=shutil.ignore_patterns("held.db*"))
            (unfinished.root / "CURRENT").write_text(f"{layer.base}\n", encoding="ascii")
    finally:
        hold.release()


def _go_back(workspace: Workspace, embedder: Embedder, moment: str) -> None:
    """Turn a copy of a record into that of what stood at a moment, and publish it."""
    with Record(workspace.record_path) as own:
        put_back = [_embedded(entry, model, embedder) for entry, model in own.versions.past_entries(moment)]
        removed = own.versions.not_yet(moment)
        own.part_from(complete=_is_complete(own, moment))
        Writer(own, embedder).restore(put_back, removed)
        publish(workspace, own)


def _embedded(entry: Entry, model: str, embedder: Embedder) -> Entry:
    """Return an entry with the embedder's vector, which it has unless another model embedded it."""
    if model == embedder.model_id:
        return entry
    (vector,) = embedder.embed([entry.passage.content])
    (windows,) = embedder.count_windows([entry.passage.content])
    return replace(entry, vector=vector, windows=windows)


def _alone(folder: Path) -> AbstractContextManager[None]:
    """Let no other process or thread derive anything in a folder meanwhile. Raises WorkspaceLocked."""
    message = f"Another process has been deriving an index in {folder} for {_WAIT_S:g} s"
    return alone(folder / ".lock", _WAIT_S, message, "Ask again, or stop it")


def _prune(kept: Path) -> None:
    """Remove unfinished folders, and those that were not asked for long and that no process reads."""
    others = [path for path in kept.parent.iterdir() if path.is_dir() and path != kept]
    unfinished = [path for path in others if path.name.startswith(_UNFINISHED)]
    done = sorted((path for path in others if path not in unfinished), key=_used, reverse=True)
    for path in (*unfinished, *(path for path in done[_KEPT - 1 :] if not _is_read(path))):
        shutil.rmtree(path, ignore_errors=True)


def _used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _is_read(folder: Path) -> bool:
    index = folder / "index"
    return index.is_dir() and any(GenerationHold.is_held(generation) for generation in index.iterdir())


def _remember(entries: OrderedDict[K, V], key: K, value: V, most: int) -> list[K]:
    """Note what was used last; return the keys that this leaves out."""
    entries[key] = value
    entries.move_to_end(key)
    return [entries.popitem(last=False)[0] for _ in range(len(entries) - most)]


def _seen(spans: Iterable[Span], where: Mapping[str, Any]) -> list[Span]:
    conditions = read_conditions(where)
    return [span for span in spans if meets(conditions, span.source, span.metadata)]


def _same_words(spans: Sequence[Span], moment: str) -> Iterator[Span]:
    then = {span.words for span in spans if span.stands_at(moment)}
    return (span for span in spans if span.words in then)


def _end(spans: Iterable[Span], moment: str) -> str | None:
    """Return the first moment from a given one on at which none of some spans stands, if there is one."""
    spans = list(spans)
    if not any(span.stands_at(moment) for span in spans):
        return None
    end = moment
    for span in sorted(spans, key=lambda span: span.since):
        if span.since > end:
            break
        if span.until is None:
            return None
        end = max(end, span.until)
    return shown(end)
