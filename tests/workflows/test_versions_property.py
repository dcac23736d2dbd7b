"""Whatever was indexed, synced and removed under whatever dates: as of any date, the index is that of what stood."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.errors import BadInput
from tests.killing import NoTies
from tests.workflows.small_world import run, write_lines
from tests.workflows.workspaces import Row, content_of_index, use_embedder
from workflows.admin.removal import remove_passages
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes, open_workspace_index
from workflows.settings.indexing import IndexingContext

DATES = ("2021-03-01", "2022-05-01", "2023-07-01", "2024-09-01")
BEFORE = "2020-01-01"
TEXTS = (
    "The Torvik lamp costs 40 euros. Ada Brandt made it.",
    "The Torvik lamp costs 45 euros. It was made in Karv.",
    "Velm Mills sells the Torvik lamp. Velm Mills was founded in 1911.",
    "Ada Brandt leads Velm Mills.",
)
QUESTION = "What does the Torvik lamp of Velm Mills cost?"


@dataclass(frozen=True)
class Step:
    """Something done to a workspace: ``index`` or ``sync`` rows, or ``remove`` ids, under a date (or at once)."""

    kind: str
    date: str
    rows: Sequence[Row]


@dataclass
class Held:
    """A row from one date to another."""

    row: Row
    since: str
    until: str | None = None


@dataclass
class History:
    """The history that a workspace should know: the times of each row."""

    held: dict[str, list[Held]] = field(default_factory=dict)

    def present(self) -> dict[str, Held]:
        return {key: all_[-1] for key, all_ in self.held.items() if all_ and all_[-1].until is None}

    def refuses(self, step: Step) -> bool:
        """Whether a row of the step, or one that a sync removes, is known to begin or end later."""
        touched = [row["id"] for row in step.rows] + (list(self.present()) if step.kind == "sync" else [])
        last = [each for key in touched for each in self.held.get(key, [])[-1:]]
        return any((each.until or each.since) > step.date for each in last)

    def take(self, step: Step) -> None:
        wanted = {row["id"]: row for row in step.rows}
        if step.kind == "remove":
            for key in wanted:
                self.held.pop(key, None)
            return
        for key, held in self.present().items():
            gone = step.kind == "sync" and key not in wanted
            if gone or (key in wanted and wanted[key] != held.row):
                held.until = step.date
                if held.since == held.until:
                    self.held[key].remove(held)
        for key, row in wanted.items():
            if key not in self.present():
                self.held.setdefault(key, []).append(Held(row, step.date))

    def stood(self, date: str) -> list[Row]:
        every = [held for all_ in self.held.values() for held in all_]
        return [each.row for each in every if each.since <= date and (each.until is None or date < each.until)]


rows = st.lists(
    st.builds(
        lambda key, text: {"id": key, "title": key, "text": text}, st.sampled_from("abcd"), st.sampled_from(TEXTS)
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda row: str(row["id"]),
)
steps = st.lists(
    st.builds(Step, st.sampled_from(("index", "sync", "sync", "remove")), st.sampled_from(DATES), rows),
    min_size=1,
    max_size=5,
)


def carried_out(step: Step, root: Path) -> None:
    if step.kind == "remove":
        remove_passages(root, [row["id"] for row in step.rows])
        return
    corpus = root.parent / "corpus.jsonl"
    write_lines(corpus, list(step.rows))
    how = IndexingContext(dated=step.date, replace_all=True)
    index_sources([corpus], root, sync=step.kind == "sync", settings=how)


def without_ends(hits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return hits without what only the past tells, their scores without the last bits: Chroma's own differ in them."""
    ranked = [{key: value for key, value in hit.items() if key != "superseded_at"} for hit in hits]
    return [{**hit, "score": round(hit["score"], 5)} for hit in ranked]


def content_at(context: Context) -> dict[str, Any]:
    content = content_of_index(open_workspace_index(context))
    return {**content, "found": [(key, round(cosine, 5)) for key, cosine in content["found"]]}


def check_as_of(root: Path, date: str, stood: Sequence[Row]) -> None:
    """Compare the index of a date with one that was made of what stood then, and what both find."""
    context = Context(workspace=str(root), as_of=date)
    if not stood:
        with pytest.raises(BadInput, match="Nothing stood on"):
            open_workspace_index(context)
        return
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus.jsonl")
        write_lines(corpus, list(stood))
        index_sources([corpus], Path(folder, "fresh"))
        fresh = Context(workspace=str(Path(folder, "fresh")))
        assert content_at(context) == content_at(fresh)
        found, expected = run(context, QUESTION).result, run(fresh, QUESTION).result
        assert found["as_of"] == date
        for key in ("passages", "facts"):
            assert without_ends(found[key]) == without_ends(expected[key])
        assert found["answer"] == expected["answer"]
        close_indexes()


def check_history(taken: Sequence[Step]) -> None:
    history = History()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, NoTies())
        root = Path(folder, "workspace")
        for step in taken:
            if step.kind == "remove":
                step = Step("remove", "", [row for row in step.rows if history.held.get(row["id"])])
                if not step.rows:
                    continue
            if step.kind != "remove" and history.refuses(step):
                with pytest.raises(BadInput, match="stand, or ended, later than"):
                    carried_out(step, root)
                continue
            carried_out(step, root)
            history.take(step)
        for date in (BEFORE, *DATES) if root.exists() else ():
            check_as_of(root, date, history.stood(date))


@settings(max_examples=2)
@given(steps)
def test_as_of_any_date_the_index_is_that_of_what_stood_then(taken: list[Step]) -> None:
    check_history(taken)
