"""What extracts in a run: the extractor in this process, or the workers of another engine."""

from __future__ import annotations

import os

from agents.chat.reply_cache import ReplyCache
from agents.chat.throttle import Throttle
from agents.extraction.run import ExtractionRun, Retries
from agents.extractor import ChatExtractor, Extractor
from graph.errors import BadInput
from graph.server_clients import serves_clients
from workflows.distributed.run import DistributedRun
from workflows.settings.enums import IndexingEngine
from workflows.settings.indexing import IndexingContext


def workers_of(context: IndexingContext) -> DistributedRun | None:
    """Return the workers of a run whose engine is Ray.

    Raises:
        BadInput: a client of a server named a cluster, or wants more workers than there are cores.
        DependencyMissing: the packages of the extra are not installed.
    """
    if context.engine is not IndexingEngine.RAY:
        return None
    if context.address and serves_clients():
        raise BadInput("A client may not name a Ray cluster", "Leave address out: it is for the command line")
    if context.workers > (os.cpu_count() or 1) and serves_clients():
        raise BadInput(f"{context.workers} workers are more than the server has cores", "Leave workers out")
    return DistributedRun(context)


def extraction_run(extractor: Extractor, context: IndexingContext, cache: ReplyCache | None) -> ExtractionRun:
    """Return an extractor's run under a run's limits; one that asks no model works in the caller's thread."""
    return ExtractionRun(
        extractor,
        concurrency=context.concurrency if isinstance(extractor, ChatExtractor) else 1,
        cache=cache,
        throttle=Throttle(requests_per_minute=context.requests_per_minute, tokens_per_minute=context.tokens_per_minute),
        retries=Retries(malformed=context.max_json_retries),
    )
