"""Indexing: documents become passages, passages facts, and all of it a workspace that can be asked.

load_documents ─ plan_changes ─┬─ extract (a few passages each) ─ embed ─ commit ─┬─ publish ─ relate
                  │            │        ⟲ the next batch ────────────────────────┘    │
                  │            └────────────── nothing to write ──────────────────────┘
                  └ confirm_removals (interrupt) ┘

The state is small; documents, vectors and the open record lie in a session (`workflows.indexing_run.session`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy, Send

from agents.extractor import Extractor
from graph.construction.knowledge_graph import load_header
from graph.embedding.embeddings import configured_embedder
from graph.environment import refresh_environment
from graph.errors import BadInput
from graph.publish.derive import is_published, publish
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from graph.storage.writer import reembed as replace_vectors
from workflows.indexing_run.relating import related, related_if_there
from workflows.indexing_run.removal_review import are_approved, check_approved, rejection_of, removals_of
from workflows.indexing_run.report import IndexReport, report_of, seconds_since
from workflows.indexing_run.session import Progress as Progress
from workflows.indexing_run.session import Session
from workflows.indexing_run.session_registry import at_work, cancel_session, close_session
from workflows.runtime.access import indexing_context_of
from workflows.runtime.cancellable import interruptibly
from workflows.runtime.resources import fresh_generations
from workflows.runtime.tracing import about_indexing, described
from workflows.runtime.workflow_graph import TRANSPORT_RETRIES
from workflows.settings.indexing import SOURCES_LIMIT, IndexingContext, Sources
from workflows.states.indexing import (
    IndexingOutput,
    IndexingState,
    Request,
    RunKey,
    Slice,
    added_up,
    first_failures,
    run_key,
)

COMMIT_PASSAGES = 64
"""Passages in one commit: what a crash can cost."""

WORKFLOW = "indexing"

Update = dict[str, Any]
State = TypeVar("State")


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


def named_in_traces(node: Callable[[State, Runtime[IndexingContext]], Update]) -> Callable[..., Update]:
    """Add the workspace and the extractor to a node's trace."""

    @wraps(node)
    def named(state: State, runtime: Runtime[IndexingContext]) -> Update:
        with described(lambda: about_indexing(indexing_context_of(runtime))):
            return node(state, runtime)

    return named


@named_in_traces
def load_documents(state: Request, runtime: Runtime[IndexingContext]) -> Update:
    """Start fresh: read the documents and the triples, before anything is written."""
    close_session(state.get("run", ""))
    context = indexing_context_of(runtime)
    started = time.time()
    asked = checked_request(state, context.run or uuid.uuid4().hex)
    with at_work(asked, context, opened=False):
        return {
            **asked,
            "started": started,
            "batch": [],
            "slice_size": 1,
            "extractions": None,
            "counts": {},
            "notes": {},
            "retries": {},
            "failed": {},
            "report": {},
            "removals": None,
            "approved": "",
        }


@named_in_traces
def plan_changes(state: IndexingState, runtime: Runtime[IndexingContext]) -> Update:
    """Become the workspace's writer, and compare the documents with its record."""
    with at_work(run_key(state), indexing_context_of(runtime)) as session:
        return begin_writing("plan_changes", session, state, indexing_context_of(runtime))


@named_in_traces
def confirm_removals(state: IndexingState, runtime: Runtime[IndexingContext]) -> Update:
    """Ask whether passages may be removed; meanwhile others may write, so the changes are planned again afterwards."""
    removals = state.get("removals")
    if not removals:
        raise BadInput("Nothing is to be removed", "Fork before plan_changes")
    close_session(state["run"])
    if not are_approved(removals):
        return {"removals": None, "report": {"rejected": rejection_of(removals)}}
    approved: IndexingState = {**state, "approved": removals["digest"]}
    with at_work(run_key(state), indexing_context_of(runtime)) as session:
        return begin_writing("confirm_removals", session, approved, indexing_context_of(runtime))


def begin_writing(node: str, session: Session, state: IndexingState, context: IndexingContext) -> Update:
    """Return the first batch; nothing yet where removals have still to be confirmed."""
    removals = removals_of(session) if context.confirm_removals else None
    approved = state.get("approved", "")
    if removals and removals["digest"] != approved:
        return {"removals": removals, "batch": []}
    batch = session.next_batch(COMMIT_PASSAGES)
    if batch:
        progress_of(node, session)("extract", 0, len(session.pending))
    return {"removals": None, "approved": approved, "batch": batch, "slice_size": session.slice_size}


@named_in_traces
def extract(state: Slice, runtime: Runtime[IndexingContext]) -> Update:
    """Find the facts of a few passages; one that keeps failing is kept with its reason."""
    with at_work(run_key(state), indexing_context_of(runtime)) as session:
        return {"extractions": session.extract(state["ids"], progress_of("extract", session))}


@named_in_traces
def embed(state: IndexingState, runtime: Runtime[IndexingContext]) -> Update:
    """Embed the batch: its passages, and the names and facts that are new."""
    with at_work(run_key(state), indexing_context_of(runtime)) as session:
        tell = progress_of("embed", session)
        done, total = session.progress()
        if not done:
            tell("embed", done, total)
        session.embed(state["extractions"])
        tell("embed", done + len(state["extractions"]), total)
        return {}


@named_in_traces
def commit(state: IndexingState, runtime: Runtime[IndexingContext]) -> Update:
    """Commit the batch and, with the first one, the removals; begin the next batch."""
    context = indexing_context_of(runtime)
    with at_work(run_key(state), context) as session:
        if context.confirm_removals:
            check_approved(session, state.get("approved", ""))
        done = session.commit(state["extractions"])
        if done.counts:
            progress_of("commit", session)("commit", *session.progress())
        found = [one for one in state["extractions"] if one["id"] in done.written]
        return {
            "batch": session.next_batch(COMMIT_PASSAGES),
            "extractions": None,
            "counts": added_up(state["counts"], done.counts, *(one["tally"] for one in found)),
            "notes": added_up(state["notes"], done.notes),
            "retries": added_up(state["retries"], *(one["retries"] for one in found)),
            "failed": first_failures(state["failed"], found),
        }


@named_in_traces
def publish_generation(state: IndexingState, runtime: Runtime[IndexingContext]) -> Update:
    """Derive the graph and the search index from the record, let readers have them, and report."""
    with at_work(run_key(state), indexing_context_of(runtime)) as session:
        tell = progress_of("publish", session)
        if not session.record.complete:
            session.record.mark_complete(True)
        session.keep_skipped()
        graph = publish_if_needed(session.workspace, session.record, tell)
        return {"report": report_of(session, state, graph)}


@named_in_traces
def relate_documents(state: IndexingState, runtime: Runtime[IndexingContext]) -> Update:
    """Bring the relationship graph in step with what was published, unless that is switched off."""
    context = indexing_context_of(runtime)
    report = {**state["report"]}
    with at_work(run_key(state), context) as session:
        if context.relationships:
            tell = progress_of("relate", session)
            tell("relate", 0, 1)
            report["relationships"] = related(session.workspace, session.record)
            tell("relate", 1, 1)
        report["seconds"] = seconds_since(state["started"])
    close_session(state["run"])
    return {"report": report}


A_BATCH = "slices of a batch"
NOTHING_TO_EXTRACT = "nothing to extract"
TO_CONFIRM = "removals to confirm"
REJECTED = "rejected"


def next_step(state: IndexingState) -> list[Send] | str:
    """Extract the batch, one slice per node; without a batch, publish."""
    batch, size = state["batch"], max(1, state["slice_size"])
    starts = range(0, len(batch), size)
    slices = [Send("extract", Slice(**run_key(state), ids=batch[start : start + size])) for start in starts]
    return slices or "all committed"


def first_step(state: IndexingState) -> list[Send] | str:
    """Ask about removals first; then extract the first batch; without one, commit the removals."""
    if state.get("removals"):
        return TO_CONFIRM
    step = next_step(state)
    return NOTHING_TO_EXTRACT if isinstance(step, str) else step


def after_confirming(state: IndexingState) -> list[Send] | str:
    """Stop where the removals were rejected; ask again where they are others by now; else begin to write."""
    return REJECTED if "rejected" in state.get("report", {}) else first_step(state)


def build(
    transport_retries: RetryPolicy = TRANSPORT_RETRIES,
) -> StateGraph[IndexingState, IndexingContext, Sources, IndexingOutput]:
    """Return the builder of the indexing workflow, to compile with a checkpointer of one's own."""
    builder = StateGraph(
        IndexingState, context_schema=IndexingContext, input_schema=Sources, output_schema=IndexingOutput
    )
    builder.add_node("load_documents", load_documents)
    builder.add_node("plan_changes", plan_changes)
    builder.add_node("extract", extract, input_schema=Slice)
    builder.add_node("embed", embed, retry_policy=transport_retries)
    builder.add_node("commit", commit)
    builder.add_node("publish", publish_generation)
    builder.add_node("relate", relate_documents)
    builder.add_edge(START, "load_documents")
    builder.add_edge("load_documents", "plan_changes")
    builder.add_node("confirm_removals", confirm_removals)
    steps: dict[Hashable, str] = {A_BATCH: "extract", NOTHING_TO_EXTRACT: "commit", TO_CONFIRM: "confirm_removals"}
    builder.add_conditional_edges("plan_changes", first_step, steps)
    builder.add_conditional_edges("confirm_removals", after_confirming, {**steps, REJECTED: END})
    builder.add_edge("extract", "embed")
    builder.add_edge("embed", "commit")
    builder.add_conditional_edges("commit", next_step, {A_BATCH: "extract", "all committed": "publish"})
    builder.add_edge("publish", "relate")
    builder.add_edge("relate", END)
    return builder


LIMITS: RunnableConfig = {"recursion_limit": 1_000_000, "max_concurrency": 16}
"""Steps of a run: three for each batch of any corpus that fits the machine. Nodes at work at once: a batch's slices;
how many requests to a model are on their way is a setting of the run."""

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
    refresh_environment()
    run = uuid.uuid4().hex
    context = (settings or IndexingContext()).called_by(run, str(root), extractor)
    asked: Any = {"sources": [str(source) for source in sources], "triples": str(triples or ""), "sync": sync}

    def work() -> dict[str, Any]:
        report: dict[str, Any] = {}
        try:
            chunks: Iterator[Any] = graph.stream(asked, context=context, stream_mode=["custom", "values"])
            for kind, chunk in chunks:
                if kind == "custom":
                    progress(chunk["stage"], chunk["done"], chunk["total"])
                else:
                    report = chunk.get("report", report)
        finally:
            close_session(run)
        return report

    return IndexReport.from_json(interruptibly(work, lambda: cancel_session(run)))


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
        with workspace.writing() as lease:
            record.fence(lease.check, lease.kept)
            before = record.embedding_model
            with record.kept():
                replace_vectors(record, embedder)
            publish(workspace, record)
            return {
                "workspace": str(root),
                "relationships": related_if_there(workspace, record),
                "passages": record.count_passages(),
                "from": before,
                "to": record.embedding_model,
                "dimension": record.dimension,
                "generation": record.generation,
            }


def publish_if_needed(workspace: Workspace, record: Record, progress: Progress) -> dict[str, int]:
    """Derive the record's generation unless it is current already; return the counts of its graph.

    In a server, the next question begins with it.
    """
    progress("graph", 0, 1)
    if not is_published(workspace, record):
        publish(workspace, record)
        fresh_generations().catch_up(workspace.root)
    header = load_header(workspace.index_folder(record.generation))
    progress("graph", 1, 1)
    return {name: int(header[name]) for name in ("entities", "facts", "edges")}


def checked_request(state: Request, run: str) -> RunKey:
    """Return the request of a run. Raises BadInput where it is malformed."""
    sources, triples, sync = state.get("sources"), state.get("triples") or "", state.get("sync") or False
    if not isinstance(sources, list) or not all(isinstance(name, str) for name in sources) or not sources:
        raise BadInput("No sources are given", "Give a list of files and folders: sources")
    if len(sources) > SOURCES_LIMIT:
        raise BadInput(f"{len(sources):,} sources are too many", f"Give at most {SOURCES_LIMIT:,}: a folder is one")
    if not isinstance(triples, str) or not isinstance(sync, bool):
        raise BadInput("triples is to be a path, and sync true or false", "Correct the input")
    return RunKey(run=run, sources=sources, triples=triples, sync=sync)


def progress_of(node: str, session: Session) -> Progress:
    """Return a function that writes a stage's progress to the stream."""
    write = get_stream_writer()

    def tell(stage: str, done: int, total: int) -> None:
        counts = {"failed": session.failed, "tokens": session.tokens, "rate": session.rate()}
        write({"node": node, "stage": stage, "done": done, "total": total, **counts})

    return tell
