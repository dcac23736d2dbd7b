"""When what stood at a moment ended: which passages and facts of the past a newer version superseded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from graph.metadata_filter import meets, read_conditions
from graph.moments import shown
from graph.storage.versions import Span, Versions


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
