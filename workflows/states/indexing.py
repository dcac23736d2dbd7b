"""The state of the indexing workflow, which checkpoints hold. It is small: large things lie in its run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic, and so the schemas, takes no other before Python 3.12

from agents.chat.usage import Usage
from agents.extraction import Extracted
from graph.schema import Extraction, Passage, RelationType, Triple
from graph.server_clients import told
from graph.storage.entry import content_hash

SHOWN_FAILURES = 50
"""Failed passages listed with their reasons; all are counted, and the record keeps every reason."""

_LONGEST_REASON = 500


class FoundInPassage(TypedDict):
    """Extraction of one passage, until it is committed.

    ``content`` is the hash of what was extracted from: a passage that has changed since then is extracted again.
    """

    id: str
    content: str
    entities: list[str]
    triples: list[list[Any]]
    extractor: str
    notes: dict[str, int]
    failure: str
    types: NotRequired[dict[str, str]]
    tally: dict[str, int]


class IndexingState(TypedDict):
    """State of the indexing workflow.

    Attributes:
        report: the output, see `workflows.indexing_run.report`.
        started: when, in seconds since 1970.
        batch: ids of the passages under way.
        extractions: what was found in them.
        counts: of the whole run, up to the last commit.
        notes: what extraction dropped or defaulted, by reason.
        failed: {passage id: reason}, of the first ones.
        removals: what a sync is to remove, on which a person has still to decide: how many ``passages``, of which
            ``sources`` (the first ones, and their ``source_count``), and a ``digest`` of their ids.
        approved: digest of the removals that a person approved.
    """

    sources: list[str]
    triples: str
    sync: bool
    report: NotRequired[dict[str, Any]]
    started: float
    batch: list[str]
    extractions: list[FoundInPassage]
    counts: dict[str, int]
    notes: dict[str, int]
    failed: dict[str, str]
    removals: NotRequired[dict[str, Any] | None]
    approved: NotRequired[str]


def found_in(passage: Passage, extracted: Extracted, extractor: str) -> FoundInPassage:
    """Return what an extraction gave as state; a failed one is kept with its reason."""
    kept = extracted.extraction or Extraction((), (), extractor, failure=_reason(extracted))
    return FoundInPassage(
        id=passage.id,
        content=content_hash(passage),
        entities=list(kept.entities),
        triples=[[t.subject, t.predicate, t.object, t.relation.value, t.confidence] for t in kept.triples],
        extractor=kept.extractor,
        notes=dict(kept.notes),
        failure=kept.failure,
        types=dict(kept.types),
        tally=_tally(extracted.usage, cached=extracted.cached),
    )


def found_in_file(passage: Passage, extraction: Extraction) -> FoundInPassage:
    """Return imported triples as state."""
    return {**found_in(passage, Extracted(passage.id, extraction), extraction.extractor), "tally": {}}


def extraction_of(finding: FoundInPassage) -> Extraction:
    """Return what was found in a passage."""
    triples = (Triple(s, p, o, RelationType(relation), c) for s, p, o, relation, c in finding["triples"])
    return Extraction(
        tuple(finding["entities"]),
        tuple(triples),
        finding["extractor"],
        finding["notes"],
        finding["failure"],
        finding.get("types", {}),
    )


def added_up(*counts: Mapping[str, int]) -> dict[str, int]:
    """Return the sums by name."""
    total: Counter[str] = Counter()
    for some in counts:
        total.update(some)
    return dict(total)


def first_failures(present: Mapping[str, str], findings: Iterable[FoundInPassage]) -> dict[str, str]:
    """Return the reasons of the first passages that failed."""
    failed = {**present, **{one["id"]: one["failure"] for one in findings if one["failure"]}}
    return dict(list(failed.items())[:SHOWN_FAILURES])


def _tally(usage: Usage, *, cached: bool) -> dict[str, int]:
    return {
        "extracted": 1,
        "cached": int(cached),
        "requests": usage.requests,
        "tokens_in": usage.prompt_tokens,
        "tokens_out": usage.completion_tokens,
        "tokens_unknown": usage.unknown,
    }


def _reason(extracted: Extracted) -> str:
    reason = f"{extracted.kind}: {extracted.failure}" if extracted.kind else extracted.failure
    return told(reason)[:_LONGEST_REASON] or "no reason was told"
