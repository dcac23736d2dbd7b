"""Indexing: documents become passages, passages facts, and all of it a workspace that can be asked.

load_documents ─ plan_changes ─┬─ extract (a batch of passages) ─ embed ─┬─ commit ─┬─ publish ─ relate
                  │            │         ⟲ the next batch ───────────────┼──────────┘
                  │            └───────────── nothing to extract ────────┘
                  └ confirm_removals (interrupt) ┴ rejected: the end

The state is small; documents, vectors and the open record lie in the run (`workflows.indexing_run.run`), which each
stream of the graph begins and ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy, interrupt
from pydantic import ValidationError

from agents.extractor import Extractor
from graph.embedding.embeddings import configured_embedder
from graph.environment import refresh_environment
from graph.errors import BadInput
from graph.publish import derive
from graph.server_clients import told_to_clients
from graph.storage.workspace import Workspace
from graph.storage.writer import reembed as replace_vectors
from workflows.indexing_run.relating import related, related_if_there
from workflows.indexing_run.report import IndexReport, report_of, seconds_since
from workflows.indexing_run.run import IndexingRun, RunKey
from workflows.indexing_run.run import Progress as Progress
from workflows.runtime.access import indexing_context_of
from workflows.runtime.human_review import can_wait, decision_in, review_of
from workflows.runtime.own_run import interruptibly
from workflows.runtime.tracing import about_indexing, described
from workflows.runtime.workflow_graph import TRANSPORT_RETRIES, compiled_as, settings_around
from workflows.settings.indexing import IndexingContext, Sources
from workflows.settings.problems import problems_of
from workflows.states.indexing import IndexingState, added_up, first_failures
from workflows.states.records import Update
from workflows.states.shared import part_of

COMMIT_PASSAGES = 512
"""Passages in one commit: what a crash can cost."""

REMOVE = "remove_passages"
"""The action that is to be approved."""

SHOWN_SOURCES = 50
"""Sources of removed passages that are shown; all are counted."""

WORKFLOW = "indexing"

Work = Callable[[IndexingState, IndexingRun], Update]


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


def indexing_node(work: Work) -> Callable[..., Update]:
    """Make a node of LangGraph from a function of a state and of the run: named in traces, telling progress as it."""

    def run_node(state: IndexingState, runtime: Runtime[IndexingContext]) -> Update:
        def emit(event: dict[str, Any]) -> None:
            runtime.stream_writer({"node": name, **event})

        with told_to_clients():
            context = indexing_context_of(runtime)
            run: IndexingRun = context.run
            with described(lambda: about_indexing(context)), run.lent(key_in(state), context, emit):
                return work(state, run)

    name = run_node.__name__ = run_node.__qualname__ = work.__name__
    run_node.__doc__ = work.__doc__
    return run_node


@indexing_node
def load_documents(state: IndexingState, run: IndexingRun) -> Update:
    """Start fresh: read the documents and the triples, before anything is written."""
    started = time.time()
    run.read()
    return {
        **asdict(key_in(state)),
        "started": started,
        "batch": [],
        "extractions": [],
        "counts": {},
        "notes": {},
        "failed": {},
        "report": {},
        "removals": None,
        "approved": "",
    }


@indexing_node
def plan_changes(state: IndexingState, run: IndexingRun) -> Update:
    """Become the workspace's writer, and compare the documents with its record."""
    run.open()
    return begin_writing(run, state.get("approved", ""))


@indexing_node
def confirm_removals(state: IndexingState, run: IndexingRun) -> Update:
    """Ask whether passages may be removed; meanwhile others may write, so the changes are planned again afterwards."""
    removals = state.get("removals")
    if not removals:
        raise BadInput("Nothing is to be removed", "Fork before plan_changes")
    if not are_approved(removals):
        return {"removals": None, "report": {"rejected": rejection_of(removals)}}
    run.open()
    return begin_writing(run, removals["digest"])


def begin_writing(run: IndexingRun, approved: str) -> Update:
    """Return the first batch; nothing yet where removals have still to be confirmed."""
    removals = removals_of(run) if run.context.confirm_removals else None
    if removals and removals["digest"] != approved:
        return {"removals": removals, "batch": []}
    batch = run.next_batch(COMMIT_PASSAGES)
    if batch:
        run.tell("extract", 0, len(run.pending))
    return {"removals": None, "approved": approved, "batch": batch}


@indexing_node
def extract(state: IndexingState, run: IndexingRun) -> Update:
    """Find the facts of the batch, several passages at once; one that keeps failing is kept with its reason."""
    run.open()
    return {"extractions": run.extract(state["batch"])}


@indexing_node
def embed(state: IndexingState, run: IndexingRun) -> Update:
    """Embed the batch: its passages, and the names and facts that are new."""
    run.open()
    if not run.done:
        run.tell("embed", 0, run.total)
    run.embed(state["extractions"])
    run.tell("embed", run.done + len(state["extractions"]), run.total)
    return {}


@indexing_node
def commit(state: IndexingState, run: IndexingRun) -> Update:
    """Commit the batch and, with the first one, the removals; begin the next batch."""
    run.open()
    if run.context.confirm_removals:
        check_approved(run, state.get("approved", ""))
    done = run.commit(state["extractions"])
    if done.counts:
        run.tell("commit", run.done, run.total)
    return {
        "batch": run.next_batch(COMMIT_PASSAGES),
        "extractions": [],
        "counts": added_up(state["counts"], done.counts, *(one["tally"] for one in done.found)),
        "notes": added_up(state["notes"], done.notes),
        "failed": first_failures(state["failed"], done.found),
    }


@indexing_node
def publish(state: IndexingState, run: IndexingRun) -> Update:
    """Derive the graph and the search index from the record, let readers have them, and report."""
    run.open()
    return {"report": report_of(run, state, run.publish())}


@indexing_node
def relate(state: IndexingState, run: IndexingRun) -> Update:
    """Bring the relationship graph in step with what was published, unless that is switched off."""
    run.open()
    report = {**state["report"]}
    if run.context.relationships:
        run.tell("relate", 0, 1)
        report["relationships"] = related(run.workspace, run.record)
        run.tell("relate", 1, 1)
    return {"report": {**report, "seconds": seconds_since(state["started"])}}


def removals_of(run: IndexingRun) -> dict[str, Any] | None:
    """Return what a run is to remove, in a few words and with a digest of all of it; None where nothing."""
    ids = run.to_remove
    if not ids:
        return None
    source_by_id = run.record.sources()
    sources = sorted({source_by_id[key] for key in ids})
    return {
        "passages": len(ids),
        "sources": sources[:SHOWN_SOURCES],
        "source_count": len(sources),
        "digest": _digest_of(ids),
    }


def are_approved(removals: Mapping[str, Any]) -> bool:
    """Interrupt until a person has decided; tell whether they approved.

    Raises:
        BadInput: the run cannot wait for a person, since no checkpointer keeps it.
    """
    if not can_wait():
        raise BadInput(
            f"The sync would remove {_told(removals)}, and a run without a thread cannot ask whether it may",
            "Run it on a thread, or set confirm_removals to false",
        )
    description = f"The sync would remove {_told(removals)}. Approve to remove them; reject to change nothing."
    shown = {"passages": removals["passages"], "sources": removals["sources"]}
    while True:
        decision = decision_in(interrupt(review_of(REMOVE, shown, description, "approve", "reject"))).get("type")
        if decision in ("approve", "reject"):
            return bool(decision == "approve")


def check_approved(run: IndexingRun, approved: str) -> None:
    """Raise BadInput where a run is about to remove something else than a person approved."""
    if run.to_remove and _digest_of(run.to_remove) != approved:
        raise BadInput(
            f"The {len(run.to_remove)} passages to remove are not those that were approved: something has changed",
            "Run the sync again",
        )


def rejection_of(removals: Mapping[str, Any]) -> str:
    """Return what the report of a run says whose removals were rejected."""
    return f"The removal of {_told(removals)} was rejected: nothing was changed"


def _told(removals: Mapping[str, Any]) -> str:
    shown = ", ".join(removals["sources"])
    more = removals["source_count"] - len(removals["sources"])
    return f"{removals['passages']} passages of {shown}{f' and {more} more sources' if more else ''}"


def _digest_of(ids: Iterable[str]) -> str:
    return sha256("\n".join(sorted(ids)).encode()).hexdigest()[:32]


A_BATCH = "a batch"
NOTHING_TO_EXTRACT = "nothing to extract"
TO_CONFIRM = "removals to confirm"
REJECTED = "rejected"
ALL_COMMITTED = "all committed"


def first_step(state: IndexingState) -> str:
    """Ask about removals first; then extract the first batch; without one, commit the removals."""
    if state.get("removals"):
        return TO_CONFIRM
    return A_BATCH if state["batch"] else NOTHING_TO_EXTRACT


def after_confirming(state: IndexingState) -> str:
    """Stop where the removals were rejected; ask again where they are others by now; else begin to write."""
    return REJECTED if "rejected" in state.get("report", {}) else first_step(state)


def next_step(state: IndexingState) -> str:
    """Extract the next batch; without one, publish."""
    return A_BATCH if state["batch"] else ALL_COMMITTED


class IndexingGraph(CompiledStateGraph[IndexingState, IndexingContext, Sources, Any]):
    """The compiled workflow: each stream of it is one run, which it hands to the nodes and closes at its end."""

    def stream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **kwargs: Any
    ) -> Iterator[Any]:
        """Run the workflow; every synchronous way does so."""
        settings = _settings_with_run(context)
        with closing(settings.run):
            yield from super().stream(input, config, context=settings, **kwargs)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Run the workflow; every asynchronous way does so."""
        settings = _settings_with_run(context)
        chunks: Any = super().astream(input, config, context=settings, **kwargs)
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
        finally:
            await asyncio.to_thread(settings.run.close)


def _settings_with_run(context: Any) -> IndexingContext:
    """Return the settings of a stream, which carry its run to the nodes: a new one, where the caller gives none."""
    if context is None:
        context = settings_around()
    settings = IndexingContext.model_validate(context or {})
    return settings if settings.run is not None else settings.with_run(IndexingRun())


class IndexingBuilder(StateGraph[IndexingState, IndexingContext, Sources, Any]):
    """Builds the workflow, to compile with a checkpointer of one's own."""

    def compile(self, *args: Any, **kwargs: Any) -> IndexingGraph:
        """Return the compiled workflow."""
        return compiled_as(IndexingGraph, super().compile(*args, **kwargs))


def build(transport_retries: RetryPolicy = TRANSPORT_RETRIES) -> IndexingBuilder:
    """Return the builder of the indexing workflow."""
    builder = IndexingBuilder(
        IndexingState,
        context_schema=IndexingContext,
        input_schema=Sources,
        output_schema=part_of(IndexingState, ("report",), "IndexingOutput"),
    )
    for each in (load_documents, plan_changes, extract, embed, commit, publish, relate, confirm_removals):
        builder.add_node(each, retry_policy=transport_retries if each is embed else None)
    builder.add_edge(START, "load_documents")
    builder.add_edge("load_documents", "plan_changes")
    steps: dict[Hashable, str] = {A_BATCH: "extract", NOTHING_TO_EXTRACT: "commit", TO_CONFIRM: "confirm_removals"}
    builder.add_conditional_edges("plan_changes", first_step, steps)
    builder.add_conditional_edges("confirm_removals", after_confirming, {**steps, REJECTED: END})
    builder.add_edge("extract", "embed")
    builder.add_edge("embed", "commit")
    builder.add_conditional_edges("commit", next_step, {A_BATCH: "extract", ALL_COMMITTED: "publish"})
    builder.add_edge("publish", "relate")
    builder.add_edge("relate", END)
    return builder


LIMITS: RunnableConfig = {"recursion_limit": 1_000_000}
"""Steps of a run: three for each batch of any corpus that fits the machine. How many requests to a model are on their
way is a setting of the run."""

graph = build().compile(name=WORKFLOW).with_config(LIMITS)


def index_sources(
    sources: Sequence[Path],
    root: Path,
    triples: Path | None = None,
    extractor: Extractor | None = None,
    progress: Progress = no_progress,
    *,
    sync: bool = False,
    settings: IndexingContext | None = None,
) -> IndexReport:
    """Read documents, find their facts, and add them to the workspace at ``root``.

    Everything is read and checked before anything is written. Passages are committed in batches, so that an
    interrupted run can be resumed; readers see the new generation once all is done.

    Args:
        sources: files and folders.
        root: the workspace; made where there is none.
        triples: precomputed triples to take instead of extracting, see `graph.sources.triples`.
        extractor: extractor of facts; by default the configured chat model, else the offline one.
        progress: called as each stage advances.
        sync: whether to remove passages that are no longer in the sources. Passages of a file that could not be read
            this time stay, and are counted.
        settings: settings of the run; its workspace is ``root``.

    Raises:
        BadInput: a source cannot be used, nothing was found, or a sync would keep nothing.
        EmbeddingMismatch: the workspace was written by another embedding model.
        ModelUnavailable: the chat or embedding model cannot be used.
        WorkspaceLocked: another process is writing.
        WorkspaceDamaged: the workspace cannot be read.
    """
    run = IndexingRun(extractor)
    context = (settings or IndexingContext()).called_for(str(root)).with_run(run)
    asked: Any = {"sources": [str(source) for source in sources], "triples": str(triples or ""), "sync": sync}

    def work() -> dict[str, Any]:
        report: dict[str, Any] = {}
        for kind, chunk in graph.stream(asked, context=context, stream_mode=["custom", "values"]):
            if kind == "custom":
                progress(chunk["stage"], chunk["done"], chunk["total"])
            else:
                report = chunk.get("report", report)
        return report

    return IndexReport.from_json(interruptibly(work, run.cancel))


def reembed_workspace(root: Path) -> dict[str, Any]:
    """Recompute all embeddings of a workspace with the configured model, from the record alone.

    Raises:
        WorkspaceMissing: there is none, or it is empty.
        WorkspaceLocked: another process is writing.
    """
    refresh_environment()
    workspace = Workspace(root)
    embedder = configured_embedder()
    with workspace.open_record() as record:
        workspace.check_passages(record)
        with workspace.writing() as lock:
            record.fence(lock.check)
            before = record.embedding_model
            replace_vectors(record, embedder)
            derive.publish(workspace, record)
            return {
                "workspace": str(root),
                "relationships": related_if_there(workspace, record),
                "passages": record.count_passages(),
                "from": before,
                "to": record.embedding_model,
                "dimension": record.dimension,
                "generation": record.generation,
            }


def key_in(state: IndexingState) -> RunKey:
    """Return the part of a state that names its run. Raises BadInput where it is malformed."""
    given = {name: value for name, value in state.items() if name in Sources.model_fields and value is not None}
    try:
        return RunKey(**Sources.model_validate(given).model_dump())
    except ValidationError as fault:
        raise BadInput(f"The input cannot be used ({problems_of(fault)})", "Correct it") from fault
