"""The asking of a run: its questions side by side, until all are answered, something breaks, or a service is gone."""

from __future__ import annotations

import contextvars
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from graph import errors
from graph.errors import (
    BadInput,
    DependencyMissing,
    EmbeddingMismatch,
    MaraError,
    ServiceUnavailable,
    WorkspaceDamaged,
    WorkspaceLocked,
    WorkspaceMissing,
)
from graph.retrieve.open_index import Index
from graph.storage.workspace import Workspace, resolve_workspace
from workflows.context import Context
from workflows.runs.run_folder import Answered, Key, Row, RunFolder
from workflows.runtime.own_run import interruptibly
from workflows.runtime.resources import OFFLINE, chat_model_name, models_of, tuning_for
from workflows.runtime.versions import versions_of

Q = TypeVar("Q")

Progress = Callable[[str, int, int], None]
"""A callback for progress: receives the system asked, the number of questions answered, and their total."""

GIVE_UP_AFTER = 5
"""Questions in a row that a model or a server fails, to stop a run."""

OF_ALL_QUESTIONS = (WorkspaceMissing, WorkspaceDamaged, WorkspaceLocked, EmbeddingMismatch, DependencyMissing)
"""Errors that are about no question in particular: no other one will fare better."""


@dataclass(frozen=True, slots=True)
class Round(Generic[Q]):
    """The questions of a run that one system is asked.

    Attributes:
        system: its name, which progress is told.
        questions: all of them in order, each with the key of its row.
        ask: returns the rows of a question, and why a model or a server failed it, if one did.
        concurrency: questions asked side by side.
        warm_up: is given the first question that has no answer yet, before any is asked.
    """

    system: str
    questions: Mapping[Key, Q]
    ask: Callable[[Q], tuple[Answered, ServiceUnavailable | None]]
    concurrency: int = 1
    warm_up: Callable[[Q], None] = lambda question: None


def ask_rounds(folder: RunFolder, rounds: Sequence[Round[Q]], progress: Progress) -> None:
    """Ask, round by round, what has no answer in a run's folder, and what a model or a server failed before.

    Ctrl-C stops it at once; what was answered is kept.

    Raises:
        ServiceUnavailable: several questions in a row failed for the same kind of reason.
        BaseException: what `Round.ask` raises.
    """
    crew = SideBySide(max((len(each.questions) for each in rounds), default=0))

    def ask_all() -> None:
        for each in rounds:
            _ask_round(folder, each, crew, progress)

    interruptibly(ask_all, crew.stop)


def _ask_round(folder: RunFolder, asked: Round[Q], crew: SideBySide, progress: Progress) -> None:
    answered, total = folder.answered, len(asked.questions)
    left = [
        question
        for key, question in asked.questions.items()
        if key not in answered or may_pass(answered[key].row["failed"])
    ]
    done = total - len(left)

    def advance(by: int = 1) -> None:
        nonlocal done
        done += by
        progress(asked.system, done, total)

    def ask(question: Q) -> ServiceUnavailable | None:
        answer, fault = asked.ask(question)
        folder.add(answer)
        return fault

    advance(0)
    if left and not crew.stopped:
        asked.warm_up(left[0])
        crew.do(left, ask, asked.concurrency, advance)


class SideBySide:
    """Does one piece of work for each of many items; an error stops all, and so does a service that fails in a row.

    Args:
        items: how many there are in all: where these are few, fewer failures in a row are enough.
    """

    def __init__(self, items: int) -> None:
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._patience = min(GIVE_UP_AFTER, items)

    @property
    def stopped(self) -> bool:
        """Whether nothing more is begun."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Begin nothing more; work under way is finished."""
        self._stopped.set()

    def do(
        self,
        items: Sequence[Q],
        work: Callable[[Q], ServiceUnavailable | None],
        concurrency: int,
        advance: Callable[[], None],
    ) -> None:
        """Do the work for each item, and return when all is done or stopped.

        Args:
            items: in the order in which they are begun.
            work: returns why a service failed it, or None.
            concurrency: how many are under way at once.
            advance: called after each item, by one thread at a time.

        Raises:
            ServiceUnavailable: several in a row failed, and this is the last one's fault.
        """

        def unless_stopped(item: Q) -> None:
            if self.stopped:
                return
            try:
                fault = work(item)
                with self._lock:
                    self._failed_in_a_row = self._failed_in_a_row + 1 if fault else 0
                    gives_up = self._failed_in_a_row >= self._patience
                    advance()
                if fault is not None and gives_up:
                    raise fault
            except BaseException:
                self.stop()
                raise

        with ThreadPoolExecutor(concurrency, "asking") as pool:
            here = contextvars.copy_context
            tasks = [pool.submit(here().run, unless_stopped, item) for item in items]
            for task in as_completed(tasks):
                task.result()


def check_place(out: Path, context: Context) -> Path:
    """Return the workspace that is asked. Raises BadInput for a run's folder within it."""
    workspace = resolve_workspace(context.workspace)
    if out.resolve().is_relative_to(workspace.resolve()):
        raise BadInput(f"{out} lies in the workspace", "Name a folder outside: mara manages what is in there")
    return workspace


def about_workspace(workspace: Path, context: Context, index: Index, code: Iterable[str]) -> Row:
    """Return what a run's settings tell of the workspace, the models, and the versions of packages and own code."""
    with Workspace(workspace).open_record() as record:
        workspace_id = record.workspace_id
    return {
        "workspace_id": workspace_id,
        "generation": index.graph.generation,
        "models": models_of(context, index),
        "versions": versions_of(code),
    }


def described(context: Context, controls: Sequence[str] = ()) -> Row:
    """Return the settings of a workflow as plain values, down to those of the walk, without the workspace's place.

    Args:
        context: the settings.
        controls: what stands in for its agents.
    """
    tuning = tuning_for(context)
    values = {
        "workflow": context.workflow.value,
        "mode": context.mode.value,
        "controls": list(controls),
        "chat_model": chat_model_name(context),
        "context": context.model_dump(mode="json", exclude={"workspace", "mode"}, exclude_none=True),
        "walk": asdict(context.walk_settings()) if context.mode.walks else None,
        "tuning": {"version": tuning.version, "strengths": dict(tuning.strengths)} if tuning.version else None,
    }
    plain: Row = json.loads(json.dumps(values, default=str))
    return plain


def workers(context: Context, wanted: int | None, with_model: int) -> int:
    """Return how many questions are asked side by side: one without a chat model, which would gain nothing."""
    return wanted or (1 if chat_model_name(context) == OFFLINE else with_model)


def outcome_of(
    ask: Callable[[], Mapping[str, Any]], generation: int
) -> tuple[Mapping[str, Any], Row | None, ServiceUnavailable | None]:
    """Ask a question; return its result, why it has none as its row tells it, and the fault of a model or a server.

    Args:
        ask: asks the question, and returns a result.
        generation: of the workspace, with which the run began.

    Raises:
        BadInput: the workspace was indexed again since the run began.
        MaraError: the workspace or a package is at fault.
    """
    try:
        result = ask()
    except OF_ALL_QUESTIONS:
        raise
    except MaraError as fault:
        failed = {"kind": fault.kind, "message": str(fault)}
        return {}, failed, fault if isinstance(fault, ServiceUnavailable) else None
    if result["generation"] != generation:
        raise BadInput(
            f"The workspace was indexed again while it was asked (generation {result['generation']}, not {generation})",
            "Start the run again with --restart, or name another folder with --out",
        )
    return result, None, None


def may_pass(failed: Mapping[str, str] | None) -> bool:
    """Tell whether what failed a question (its ``kind``) lies in a model or a server, not in the question."""
    kind = getattr(errors, failed["kind"], MaraError) if failed is not None else MaraError
    return issubclass(kind, ServiceUnavailable)
