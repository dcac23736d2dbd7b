"""Removing passages by name, with what they were before."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from graph.errors import BadInput
from graph.publish.derive import is_behind, publish
from graph.publish.generation_vectors import lies_on_older
from graph.sources.skipped import forget_skipped, skipped_by_source
from graph.storage.record import Record
from graph.storage.record_tables import Additions, NewVectors
from graph.storage.versions import Span, of_documents
from graph.storage.workspace import Workspace
from workflows.indexing_run.relating import related_if_there

_NAMED_UNKNOWN = 10
_REMOVAL = "removal"


def remove_passages(root: Path, ids: Sequence[str] = (), sources: Sequence[str] = ()) -> dict[str, Any]:
    """Remove passages and their past versions from a workspace, without a model.

    Questions to a workspace left empty say so. The name of a document, a file or an address means all that ever came
    from there, also what the workspace holds of it as past versions alone, or as the name of a file that was not read.

    The relationship graph, where there is one, is brought in step; the result tells a problem with it alone.

    Repeated with nothing written in between, a removal gives the same result, even if it was interrupted before.

    Args:
        root: the workspace.
        ids: IDs of passages, or of documents, whose passages are all removed.
        sources: files or addresses, as the passages name them, whose passages are all removed.

    Raises:
        BadInput: no name is given, or one that the workspace does not hold; then nothing is removed.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceLocked: another process is writing.
    """
    if not ids and not sources:
        raise BadInput("Nothing is named that is to be removed", "Give ids of passages or documents, or --source")
    workspace = Workspace(root)
    with workspace.writing() as lock, workspace.open_record(lock) as record:
        removal = _Removal.of(workspace, record, ids, sources)
        removal.keep(record)
        with record.transaction():
            record.versions.erase(_past_of(record, removal))
            forget_skipped(record, removal.sources)
        workspace.forget_past()
        nothing = NewVectors({}, np.zeros((0, record.dimension), dtype=np.float32))
        if not removal.is_committed(record):
            record.commit([], Additions(nothing, nothing), record.embedding_model, removal.passages)
        left = record.count_passages()
        if left and (is_behind(workspace, record) or lies_on_older(workspace)):
            publish(workspace, record, whole=True)
        elif not left:
            workspace.withdraw(record)
        replace(removal, generation=record.generation).keep(record)
        record.shorten_log()
        changes = related_if_there(workspace, record)
        return {
            "workspace": str(root),
            "removed": list(removal.passages),
            "versions": removal.versions,
            "passages": left,
            "generation": record.generation,
            "relationships": {key: changes[key] for key in changes.keys() & {"problem"}},
        }


@dataclass(frozen=True, slots=True)
class _Removal:
    """A request to remove documents; the record keeps the last one.

    Attributes:
        ids: as they were asked for.
        sources: as they were asked for.
        passages: the passages that these mean, or meant when the removal was begun.
        generation: that of the record without them, once readers know; before that 0.
        versions: how many past versions go with them.
    """

    ids: Sequence[str]
    sources: Sequence[str]
    passages: Sequence[str]
    generation: int = 0
    versions: int = 0

    @classmethod
    def of(cls, workspace: Workspace, record: Record, ids: Sequence[str], sources: Sequence[str]) -> Self:
        """Return what is to be removed now; where the same was asked for last, and all that was written last, that.

        Raises:
            BadInput: a name is unknown.
            WorkspaceMissing: there is no passage.
        """
        with suppress(ValueError, TypeError):
            last = cls(**json.loads(record.note(_REMOVAL) or "null"))
            is_asked_again = (sorted(ids), sorted(sources)) == (last.ids, last.sources)
            if is_asked_again and last.generation in (0, record.generation) and last.is_committed(record):
                return last
        if not record.versions.count():
            workspace.check_passages(record)
        removal = cls(sorted(ids), sorted(sources), sorted(_named(record, ids, sources)))
        return replace(removal, versions=len(_past_of(record, removal)))

    def is_committed(self, record: Record) -> bool:
        """Tell whether the record holds none of the passages any more."""
        return not record.states(self.passages)

    def keep(self, record: Record) -> None:
        """Note in the record what is to be removed, or was."""
        with record.transaction():
            record.set_note(_REMOVAL, json.dumps(asdict(self)))


def _named(record: Record, ids: Collection[str], sources: Collection[str]) -> set[str]:
    """Return the present passages that are named. Raises BadInput for names that mean none, now or in the past."""
    places, documents = record.sources(), record.documents()
    past = [span for span in record.versions.spans() if span.version is not None]
    going = {key for key in ids if key in places}
    going |= {key for key, document in documents.items() if document in set(ids)}
    going |= {key for key, source in places.items() if source in set(sources)}
    skipped = {name for one in skipped_by_source(record).values() for name, _ in one["files"]}
    unknown = set(ids) - places.keys() - set(documents.values())
    unknown -= {name for span in past for name in (span.passage_id, span.document)}
    strange = set(sources) - set(places.values()) - {span.source for span in past} - skipped
    problems = [
        f"no {kind} named {', '.join(map(repr, sorted(names)[:_NAMED_UNKNOWN]))}"
        for kind, names in (("passage or document", unknown), ("source", strange))
        if names
    ]
    if problems:
        raise BadInput(f"The workspace holds {' and '.join(problems)}", "Nothing was removed: correct the names")
    return going


def _past_of(record: Record, removal: _Removal) -> list[Span]:
    """Return the past versions that go with a removal."""
    named = of_documents(record.versions.spans(), {*removal.ids, *removal.passages}, removal.sources)
    return [span for span in named if span.version is not None]
