"""The API for programs: a question as JSON, and what `mara ask --json` writes as JSON, or the passages alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from workflows.ask import ask
from workflows.context import QUESTION_LIMIT, Context, asking, check_question
from workflows.results import TOTAL
from workflows.runtime.brake import Brake, braked
from workflows.serving.page.requests import Asked

RETRIEVAL_SETTINGS = ("workspace", "mode", "where", "as_of", "top_k")
ASK_SETTINGS = ("workflow", *RETRIEVAL_SETTINGS)
"""What a program may set beside the question."""


async def ask_once(asked: Asked) -> dict[str, Any]:
    """Return the whole result of a question."""
    question, context = _read(asked, ASK_SETTINGS)
    return await _counted(asked, lambda brake: dict(ask(question, context, callbacks=[brake])))


async def retrieve(asked: Asked) -> dict[str, Any]:
    """Return the passages for a question, and how they were found."""
    question, context = _read(asked, RETRIEVAL_SETTINGS)
    return await _counted(asked, lambda brake: _retrieved(question, context, brake))


async def _counted(asked: Asked, work: Any) -> dict[str, Any]:
    result: dict[str, Any] = await braked(work)
    asked.service.metrics.answered(result)
    return result


def _retrieved(question: str, context: Context, brake: Brake) -> dict[str, Any]:
    from workflows.retrieval import graph

    start = time.perf_counter()
    result: dict[str, Any] = graph.invoke(asking(question), {"callbacks": [brake]}, context=context)
    total_ms = round((time.perf_counter() - start) * 1000, 3)
    return {**result, "timings_ms": {**result["timings_ms"], TOTAL: total_ms}}


def _read(asked: Asked, allowed: tuple[str, ...]) -> tuple[str, Context]:
    """Return the question of a request, and its settings within what its asker may see. Raises BadInput."""
    question = check_question(asked.text("question", 10 * QUESTION_LIMIT))
    settings: Mapping[str, Any] = {name: value for name, value in asked.body.items() if name != "question"}
    return question, asked.site.context(asked.identity, settings, allowed)
