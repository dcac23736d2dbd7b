"""Quality of an answer's citations and claims, and of the passages that it was written from.

Whether cited passages hold what a sentence says is judged by a lexical proxy that asks no model. It sees words, not
meaning: a sentence that reverses its source ("A acquired B" for "B acquired A") or negates it passes, and a true
paraphrase in other words fails. It compares systems that are measured alike, and no more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agents.answers.claims import split_claims, strip_marks
from agents.claim_judge import is_supported
from agents.offline.words import content_stems
from workflows.evaluation import claim_support_rate, known, mean, passage_overlap
from workflows.runs.run_folder import Row, counted
from workflows.runtime.resources import OFFLINE

CITATION_FIGURES = ("citation_recall", "citation_precision", "gold_citation_recall", "gold_citation_precision")
"""The figures on an answer's citations in a row of results."""

VERDICTS = ("supported", "quoted", "unsupported", "irrelevant")
"""The verdicts of a claim check on a claim."""


def citation_quality(answer: str, passages: Mapping[int, str]) -> tuple[float, float] | None:
    """Return the recall and precision of an answer's citations (ALCE: Gao et al. 2023); None of no sentence.

    Recall is the share of the sentences that the passages they cite support together; precision is the share of the
    citations that such a sentence needs, or that support it alone.

    `is_supported` judges, by words, where ALCE asks a model of entailment. A sentence without citation is not
    supported, and an answer without any has a precision of 0, as ALCE counts them.

    Args:
        answer: with citations.
        passages: title and text by number; a cited number without passage is no citation.
    """
    supported, needed = [], []
    for claim in split_claims(answer, passages):
        text = strip_marks(claim.text)
        sources = [passages[number] for number in claim.cited]
        supported.append(_support(text, sources))
        needed += [supported[-1] and _is_needed(text, sources, place) for place in range(len(sources))]
    recall = mean(map(float, supported))
    return None if recall is None else (recall, mean(map(float, needed)) or 0.0)


def supported_citations(answer: str, passages: Mapping[int, str]) -> dict[int, bool]:
    """Tell for each cited number whether all sentences that cite it are supported.

    A sentence is supported where the passages it cites hold together what `is_supported` asks for; a citation, where
    its passage holds some content word of that sentence besides.

    Args:
        answer: with citations.
        passages: title and text by number; a cited number without passage is no citation.
    """
    verdicts: dict[int, bool] = {}
    for claim in (each for each in split_claims(answer, passages) if each.cited):
        holds = _support(claim.text, [passages[number] for number in claim.cited])
        said = set(content_stems(claim.text))
        for number in claim.cited:
            shares = not said.isdisjoint(content_stems(passages[number]))
            verdicts[number] = verdicts.get(number, True) and holds and shares
    return verdicts


def _support(sentence: str, sources: Sequence[str]) -> bool:
    """Tell whether sources support a sentence together; none support nothing."""
    return bool(sources) and is_supported(sentence, "\n".join(sources))


def _is_needed(sentence: str, sources: Sequence[str], place: int) -> bool:
    """Tell whether a source of a supported sentence supports it alone, or the others do not without it."""
    others = [*sources[:place], *sources[place + 1 :]]
    return is_supported(sentence, sources[place]) or not _support(sentence, others)


def cited_passages(result: Mapping[str, Any]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the ids of the passages that an answer cites, and title and text of those it shows, by their numbers."""
    texts = {hit["id"]: f"{hit['title']}\n{hit['text']}" for hit in result["passages"]}
    cited = {mark["number"]: mark["passage_id"] for mark in result["citations"]}
    return cited, {number: texts[key] for number, key in cited.items() if key in texts}


def attribution_of(result: Mapping[str, Any], gold_ids: Collection[str]) -> Row:
    """Return a row's figures on an answer's citations; a refusal cites nothing, and has no sentence to carry."""
    cited, passages = cited_passages(result)
    quality = (None if result["refused"] else citation_quality(result["answer"], passages)) or (None, None)
    precision, recall = passage_overlap(cited.values(), gold_ids)
    figures = (*quality, recall, precision)
    return dict(zip(CITATION_FIGURES, figures, strict=True))


def unattributed(gold_ids: Collection[str], *, failed: bool) -> Row:
    """Return the same where there is no answer: a question that failed cites none of its gold passages."""
    return {**dict.fromkeys(CITATION_FIGURES), "gold_citation_recall": 0.0 if failed and gold_ids else None}


def checking_of(result: Mapping[str, Any]) -> Row:
    """Return a row's figures on judged passages and checked claims; None where nothing was judged or checked.

    ``written_from`` are the ids of the passages that the answer was written from; none where there was nothing to.
    """
    ids = {hit["number"]: hit["id"] for hit in result.get("passages") or ()}
    numbers = result.get("written_from")
    verdicts = [claim["verdict"] for claim in result.get("claims") or ()]
    checked_by, coverage = result.get("claims_checked_by") or None, result.get("coverage") or None
    counts = {"claims": len(verdicts), **{verdict: verdicts.count(verdict) for verdict in VERDICTS}}
    return {
        "judge_outcome": result.get("judge_outcome") or None,
        "written_from": None if numbers is None else [ids[number] for number in numbers if number in ids],
        "claims": {**counts, "checked_by": checked_by} if checked_by else None,
        "coverage": coverage,
        "follow_ups": [asked["outcome"] for asked in result.get("follow_ups") or ()] if coverage else None,
        "model_calls": (result.get("usage") or {}).get("calls"),
    }


def attribution_figures(rows: Sequence[Row]) -> Row:
    """Return the means of the rows' citation figures, each over the questions that have one."""
    return {key: mean(known(rows, key)) for key in CITATION_FIGURES}


def checking_figures(rows: Sequence[Row]) -> Row:
    """Return the figures of a system's judged passages and checked claims.

    Claims are those of all answers together; those of evidence have no rate of support, since no model judged them. The
    passages that answers were written from are held against the gold ones question by question.
    """
    checked = [row["claims"] for row in rows if row["claims"]]
    sources = [(row["written_from"], row["gold_ids"]) for row in rows if row["written_from"] is not None]
    overlaps = [passage_overlap(ids, gold) for ids, gold in sources]
    return {
        "claim_support_rate": claim_support_rate(counts for counts in checked if counts["checked_by"] != OFFLINE),
        "claims": {key: sum(counts[key] for counts in checked) for key in ("claims", *VERDICTS)},
        "coverage": counted(row["coverage"] for row in rows),
        "judge_outcomes": counted(row["judge_outcome"] for row in rows),
        "written_from": {
            "passages": mean(float(len(ids)) for ids, _ in sources),
            "precision": mean(precision for precision, _ in overlaps if precision is not None),
            "recall": mean(recall for _, recall in overlaps if recall is not None),
        },
        "follow_ups": counted(outcome for row in rows for outcome in row["follow_ups"] or ()),
        "model_calls": mean(map(float, known(rows, "model_calls"))),
    }
