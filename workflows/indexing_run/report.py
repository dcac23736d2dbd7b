"""The report of an indexing run: what it wrote, dropped, skipped, defaulted and paid for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from graph.server_clients import told
from graph.sources.loaders.document import Refused
from graph.sources.skipped import NAMED_FILES, by_reason

if TYPE_CHECKING:
    from workflows.indexing_run.run import IndexingRun
    from workflows.states.indexing import IndexingState


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The report of an indexing run.

    Attributes:
        workspace: path of the workspace.
        passages: number of passages in the workspace after the run.
        added: new passages.
        replaced: passages of a known id with new content, from another extractor, or without an extraction so far.
        unchanged: passages left as they were.
        entities: entity nodes of the graph.
        facts: distinct facts of the graph.
        edges: edges of the graph.
        imported: passages whose triples came from the triples file.
        extracted: passages that the extractor read in this run, failed ones included.
        unmatched_triples: rows of the triples file that belong to no passage.
        identical: passages that appeared more than once.
        refused: files that could not be read, with the reason; the first ones.
        skipped: the first files that are no documents, with the reason.
        notes: items dropped or defaulted in reading and extraction, by reason.
        models: extractor and embedding model.
        seconds: duration of the run.
        generation: generation that the run published.
        removed: passages no longer in the sources of a sync.
        kept_of_refused: passages that a sync kept because their source could not be read this time.
        refused_count: files that could not be read.
        skipped_counts: files that are no documents, by reason.
        failed: {passage id: why extraction failed}; the first ones. They are still found by their text.
        failed_count: number of failed passages.
        cached: passages served from kept replies of the model.
        requests: requests sent to the model.
        tokens_in: input tokens, as the server counts them.
        tokens_out: output tokens.
        tokens_unknown: replies without a token count.
        cost: price of the tokens; None without prices.
        relationships: changes to the relationship graph, or the problem with it; empty where it is switched off.
        unfound_types: the user's own types that no rule finds, where rules extract.
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
    identical: int
    refused: Sequence[Refused]
    skipped: Sequence[Refused]
    notes: Mapping[str, int]
    models: Mapping[str, str]
    seconds: float
    generation: int
    removed: int = 0
    kept_of_refused: int = 0
    refused_count: int = 0
    skipped_counts: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    failed_count: int = 0
    cached: int = 0
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_unknown: int = 0
    cost: float | None = None
    relationships: Mapping[str, int | str] = field(default_factory=dict)
    unfound_types: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> IndexReport:
        """Return the report of `to_json`, or of a state."""
        lists = {name: [Refused(**each) for each in values[name]] for name in ("refused", "skipped")}
        return IndexReport(**{**values, **lists})


def seconds_since(started: float) -> float:
    """Return how long a run that started then has taken, to the millisecond."""
    return round(time.time() - started, 3)


def _shown(files: Sequence[Refused]) -> list[Refused]:
    return [Refused(told(one.source), told(one.reason)) for one in files[:NAMED_FILES]]


def report_of(run: IndexingRun, state: IndexingState, graph: Mapping[str, int]) -> dict[str, Any]:
    """Return the report of a run that has just published, as plain values.

    Args:
        run: still open.
        state: its state, with the totals of all commits.
        graph: counts of the published graph.
    """
    documents, counts = run.documents, Counter(state["counts"])
    asked = documents.passages.values() if run.imported else ()
    imported = [extraction for passage in asked if (extraction := run.imported_for(passage))]
    added = counts["written"] - counts["replaced"]
    names = ("cached", "requests", "tokens_in", "tokens_out", "tokens_unknown")
    spent: dict[str, Any] = {name: counts[name] for name in names}
    return IndexReport(
        workspace=told(str(run.root)),
        passages=run.record.count_passages(),
        added=added,
        replaced=counts["replaced"],
        unchanged=len(documents.passages) - added - counts["replaced"],
        entities=graph["entities"],
        facts=graph["facts"],
        edges=graph["edges"],
        imported=len(imported),
        extracted=counts["extracted"],
        unmatched_triples=run.imported.rows - len(set(map(id, imported))) if run.imported else 0,
        identical=documents.identical,
        refused=_shown(documents.refused),
        skipped=_shown(documents.skipped),
        skipped_counts=by_reason(documents.skipped),
        notes=dict(Counter(documents.notes) + Counter(state["notes"])),
        models={"extractor": run.extractor.name, "embedding": run.embedder.model_id},
        seconds=seconds_since(state["started"]),
        generation=run.record.generation,
        removed=counts["removed"],
        kept_of_refused=len(run.changes.spared),
        refused_count=len(documents.refused),
        failed=state["failed"],
        failed_count=counts["failed"],
        cost=run.prices.cost(spent["tokens_in"], spent["tokens_out"]) if run.prices else None,
        unfound_types=run.unfound_types,
        **spent,
    ).to_json()
