"""Indexing: documents become passages, passages facts, and all of it a workspace that can be asked."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.offline.extractor import OfflineExtractor
from agents.roles import Extractor
from graph.derive import is_published, publish
from graph.documents import Documents, Refused, read_documents
from graph.embeddings import check_embedder, configured_embedder
from graph.errors import BadInput
from graph.knowledge_graph import load_header
from graph.record import Record
from graph.schema import Extraction, Passage
from graph.triples import ImportedTriples, read_triples
from graph.workspace import Workspace
from graph.writer import Writer, unchanged
from graph.writer import reembed as replace_vectors

COMMIT_PASSAGES = 256
"""Passages in one commit: what a crash can cost."""


Progress = Callable[[str, int, int], None]
"""Is told the stage, how many of its items are done, and how many there are."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What an indexing run did; every count that is not zero was something dropped, skipped or defaulted.

    Attributes:
        workspace: where it is.
        passages: how many the workspace now holds.
        added: new ones.
        replaced: ones of a known id with another content or other facts.
        unchanged: ones that were there just so.
        entities: nodes of the graph that are names.
        facts: distinct facts of the graph.
        edges: edges of the graph.
        imported: passages that took their triples from the file given.
        extracted: passages whose facts were found by the extractor.
        unmatched_triples: rows of the triples' file that belong to no passage.
        long_passages: passages longer than the embedding model reads, embedded window by window.
        identical: passages given more than once.
        refused: files that could not be read, with the reason.
        skipped: files of other kinds, by suffix.
        notes: what was dropped or defaulted in extraction, by reason.
        models: extractor and embedding model.
        seconds: how long it took.
        generation: the generation it made.
    """

    workspace: str
    passages: int
    added: int
    replaced: int
    unchanged: int
    entities: int
    facts: int
    edges: int
    imported: int
    extracted: int
    unmatched_triples: int
    long_passages: int
    identical: int
    refused: tuple[Refused, ...]
    skipped: Mapping[str, int]
    notes: Mapping[str, int]
    models: Mapping[str, str]
    seconds: float
    generation: int

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)


def index_sources(
    sources: Sequence[Path],
    root: Path,
    triples: Path | None = None,
    extractor: Extractor | None = None,
    progress: Progress = no_progress,
) -> IndexReport:
    """Read documents, find their facts, and add them to the workspace at ``root``.

    Everything is read and checked before anything is written. Passages are committed in batches, so that an
    interrupted run goes on where it stopped; readers see the new generation once all is done.

    Args:
        sources: files and folders.
        root: the workspace; made where there is none.
        triples: precomputed triples to take instead of extracting, see `graph.triples`.
        extractor: who finds facts where none are given; the offline extractor by default.
        progress: is told how far each stage has come.

    Raises:
        BadInput: a source cannot be used, or nothing was found.
        EmbeddingMismatch: the workspace was written by another embedding model.
        WorkspaceLocked: another process is writing.
        WorkspaceDamaged: the workspace cannot be read.
    """
    start = time.perf_counter()
    documents = read_documents(sources)
    imported = read_triples(triples) if triples else None
    if not documents.passages:
        raise BadInput(_nothing_found(sources, documents), "Readable: .txt, .md, .jsonl, .json")
    workspace = Workspace(root)
    workspace.create()
    embedder = configured_embedder()
    extractor = extractor or OfflineExtractor()
    with workspace.writing(), workspace.open_record() as record:
        if record.embedding_model:
            check_embedder(embedder, record.embedding_model)
        extracted = _extract(list(documents.passages.values()), imported, extractor, progress)
        known = record.fingerprints().keys()
        same = unchanged(record, extracted)
        wanted = [(passage, found) for passage, found in extracted if passage.id not in same]
        replaced = sum(passage.id in known for passage, _ in wanted)
        writer = Writer(record, embedder)
        record.mark_complete(not wanted)
        long_passages, notes = _write(writer, wanted, progress)
        record.mark_complete(True)
        graph = publish_if_needed(workspace, record, progress)
        taken = [imported.of(passage) for passage, _ in extracted] if imported else []
        from_file = [id(extraction) for extraction in taken if extraction]
        return IndexReport(
            workspace=str(root),
            passages=record.count_passages(),
            added=len(wanted) - replaced,
            replaced=replaced,
            unchanged=len(same),
            entities=graph["entities"],
            facts=graph["facts"],
            edges=graph["edges"],
            imported=len(from_file),
            extracted=len(extracted) - len(from_file),
            unmatched_triples=imported.rows - len(set(from_file)) if imported else 0,
            long_passages=long_passages,
            identical=documents.identical,
            refused=tuple(documents.refused),
            skipped=documents.skipped,
            notes=notes,
            models={"extractor": extractor.name, "embedding": embedder.model_id},
            seconds=round(time.perf_counter() - start, 3),
            generation=record.generation,
        )


def reembed_workspace(root: Path) -> dict[str, Any]:
    """Embed everything of a workspace anew with the configured model, from the record alone.

    Raises:
        WorkspaceMissing: there is none, or it is empty.
        WorkspaceLocked: another process is writing.
    """
    workspace = Workspace(root)
    embedder = configured_embedder()
    with workspace.open_record() as record:
        workspace.check_passages(record)
        with workspace.writing():
            before = record.embedding_model
            replace_vectors(record, embedder)
            publish(workspace, record)
            return {
                "workspace": str(root),
                "passages": record.count_passages(),
                "from": before,
                "to": record.embedding_model,
                "dimension": record.dimension,
                "generation": record.generation,
            }


def publish_if_needed(workspace: Workspace, record: Record, progress: Progress) -> dict[str, int]:
    """Derive the record's generation unless it is current already; return the counts of its graph."""
    progress("graph", 0, 1)
    if not is_published(workspace, record):
        publish(workspace, record)
    header = load_header(workspace.index_folder(record.generation))
    progress("graph", 1, 1)
    return {name: int(header[name]) for name in ("entities", "facts", "edges")}


def _extract(
    passages: Sequence[Passage], imported: ImportedTriples | None, extractor: Extractor, progress: Progress
) -> list[tuple[Passage, Extraction]]:
    found = []
    for done, passage in enumerate(passages):
        if done % COMMIT_PASSAGES == 0:
            progress("extract", done, len(passages))
        given = imported.of(passage) if imported else None
        found.append((passage, given or extractor.extract(passage)))
    progress("extract", len(passages), len(passages))
    return found


def _write(
    writer: Writer, wanted: Sequence[tuple[Passage, Extraction]], progress: Progress
) -> tuple[int, dict[str, int]]:
    """Embed and commit batch by batch; return how many passages were long, and the notes of extraction."""
    long_passages = 0
    notes: Counter[str] = Counter()
    for start in range(0, len(wanted), COMMIT_PASSAGES):
        progress("embed", start, len(wanted))
        report = writer.write(wanted[start : start + COMMIT_PASSAGES])
        long_passages += report.long_passages
        notes.update(report.notes)
    progress("embed", len(wanted), len(wanted))
    return long_passages, dict(notes)


def _nothing_found(sources: Sequence[Path], documents: Documents) -> str:
    places = ", ".join(map(str, sources))
    if documents.refused:
        reasons = "; ".join(refused.reason for refused in documents.refused[:3])
        return f"Nothing at {places} could be read: {reasons}"
    return f"There is no text at {places}"
