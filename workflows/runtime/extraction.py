"""Who extracts while documents are indexed, and under which limits."""

from __future__ import annotations

from agents.chat.local_model import is_local
from agents.chat.model import ChatModel
from agents.chat.reply_cache import ReplyCache
from agents.chat.throttle import Throttle
from agents.extraction import ExtractionRun, Retries
from agents.extractor import ChatExtractor, Extractor
from agents.offline.extractor import OfflineExtractor
from graph.endpoints.address import Address
from graph.environment import environment
from graph.own_types import NO_TYPES, OwnTypes
from workflows.runtime.resources import (
    DEFAULT_CHAT_MODEL,
    OFFLINE,
    chat_model_at,
    chat_model_of,
)
from workflows.settings.indexing import IndexingContext

EXTRACTION_URLS_VARIABLE = "MARA_EXTRACTION_URLS"
"""Names the servers that extract while documents are indexed, where there are several."""


def extractor_for(context: IndexingContext, own: OwnTypes = NO_TYPES) -> Extractor:
    """Return who extracts by the workspace's own types: the chat model, or the offline extractor."""
    models = _extraction_models(context)
    return ChatExtractor(models[0], own, models[1:]) if models else OfflineExtractor(own)


def extraction_run(extractor: Extractor, context: IndexingContext, cache: ReplyCache | None) -> ExtractionRun:
    """Return an extractor's run under a run's limits; one that asks no model works in the caller's thread."""
    asked = context.extraction
    return ExtractionRun(
        extractor,
        concurrency=asked.concurrency if isinstance(extractor, ChatExtractor) else 1,
        cache=cache,
        throttle=Throttle(requests_per_minute=asked.requests_per_minute, tokens_per_minute=asked.tokens_per_minute),
        retries=Retries(malformed=asked.max_json_retries),
    )


def extraction_urls() -> list[str]:
    """Return the servers that extract side by side: ``MARA_EXTRACTION_URLS``, with commas between; none by default.

    Raises:
        BadInput: one of them is no address.
    """
    urls = [url.strip() for url in environment().mara_extraction_urls.split(",") if url.strip()]
    for url in urls:
        Address.parse(url, EXTRACTION_URLS_VARIABLE, "http://localhost:8000/v1,http://localhost:8001/v1")
    return urls


def _extraction_models(context: IndexingContext) -> list[ChatModel]:
    """Return the chat models that extract, one for each server; none where the offline extractor does."""
    named = context.model or environment().mara_chat_model
    urls = [] if named == OFFLINE or is_local(named) else extraction_urls()
    if not urls:
        model = chat_model_of(context, context.extraction.temperature)
        return [model] if model else []
    return [chat_model_at(url, named or DEFAULT_CHAT_MODEL, context.extraction.temperature) for url in urls]
