"""The preview of a run, made without writing: the changes to a workspace, and the cost of their extraction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents.chat.reply_cache import ReplyCache
from agents.extraction import estimate_extraction
from agents.extractor import ChatExtractor
from graph.schema import Passage
from graph.sources.skipped import NAMED_FILES, by_reason
from graph.storage.record import RecordReader
from graph.storage.workspace import REPLY_CACHE
from workflows.indexing_run.changes import Changes
from workflows.indexing_run.run import IndexingRun, RunKey
from workflows.runtime.extraction import extraction_run
from workflows.settings.indexing import IndexingContext


def preview_changes(
    sources: Sequence[Path],
    root: Path,
    triples: Path | None = None,
    *,
    sync: bool = False,
    settings: IndexingContext | None = None,
    sample: int = 0,
) -> dict[str, Any]:
    """Return what indexing or a sync would change in a workspace, and what its extraction would take.

    Nothing is written except the model's replies to the sample, which are kept for the run itself.

    Args:
        sources: files and folders.
        root: the workspace, which need not be there.
        triples: precomputed triples.
        sync: whether passages that the sources do not hold would go.
        settings: of the run.
        sample: how many passages are extracted, and paid for, to tell what all of them would take.

    Raises:
        BadInput: as `index_sources` does.
        ModelUnavailable: the model cannot be asked for the sample.
    """
    context = (settings or IndexingContext()).called_for(str(root))
    key = RunKey(sources=[str(source) for source in sources], triples=str(triples or ""), sync=sync)
    with IndexingRun().lent(key, context, lambda event: None) as run:
        run.read()
    passages = run.documents.passages
    with TemporaryDirectory() as scratch:
        changes, source_by_id = _changes_of(run, Path(scratch))
    to_write = {key: passages[key] for key in changes.to_write}
    asked = [passage for passage in to_write.values() if run.imported_for(passage) is None]
    wanted = {key: passage.source for key, passage in to_write.items()}
    return {
        "workspace": str(root),
        "passages": len(passages),
        "added": list(changes.added),
        "changed": list(changes.changed),
        "removed": list(changes.removed),
        "reread": len(changes.reread),
        "unchanged": len(changes.unchanged),
        "kept_of_refused": len(changes.spared),
        "sources": {
            "added": _sources_of(changes.added, wanted),
            "changed": _sources_of(changes.changed, wanted),
            "removed": _sources_of(changes.removed, source_by_id),
        },
        "refused": [asdict(refused) for refused in run.documents.refused],
        "skipped": [asdict(skipped) for skipped in run.documents.skipped[:NAMED_FILES]],
        "skipped_counts": by_reason(run.documents.skipped),
        "own_types": run.own.names,
        "unfound_types": run.unfound_types,
        "extractor": run.extractor.name,
        "extraction": _estimate(run, asked, sample),
    }


def _changes_of(run: IndexingRun, scratch: Path) -> tuple[Changes, Mapping[str, str]]:
    """Return what a run would change, and {id: source} of what the workspace holds."""
    if not run.workspace.record_path.exists():
        return Changes(tuple(run.documents.passages), (), (), ()), {}
    run.workspace.open_record().close()
    with RecordReader(run.workspace.record_path) as record:
        return run.plan(record), record.sources()


def _sources_of(ids: Collection[str], sources: Mapping[str, str]) -> list[str]:
    return sorted({sources[key] for key in ids})


def _estimate(run: IndexingRun, passages: Sequence[Passage], sample: int) -> dict[str, Any]:
    """Return what the extraction of some passages would take; without a sample, estimated from kept replies."""
    asks = isinstance(run.extractor, ChatExtractor)
    path = run.root / REPLY_CACHE
    if asks and sample:
        run.root.mkdir(parents=True, exist_ok=True)
    cache = ReplyCache(path) if asks and (path.exists() or sample) else None
    try:
        with extraction_run(run.extractor, run.context, cache) as extraction:
            return asdict(estimate_extraction(extraction, passages, sample=sample, prices=run.prices))
    finally:
        if cache is not None:
            cache.close()
