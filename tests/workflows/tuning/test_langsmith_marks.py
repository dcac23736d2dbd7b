"""Feedback from traces: what people said of runs in LangSmith becomes marks, and nothing else does."""

from __future__ import annotations

import json
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from graph.errors import BadInput, ServiceUnavailable, WorkspaceMissing
from graph.storage.marks import Mark, MarkKind, read_marks
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, passage_of, publish_workspace
from tests.docs.pages import ROOT, blocks, read
from tests.trace_server import TraceServer
from tests.workflows.command_line import Mara
from tests.workflows.langsmith_api import KEY, LangSmithApi
from workflows.answering import ask
from workflows.context import make_context
from workflows.retrieval import graph as retrieval
from workflows.runtime.resources import close_indexes
from workflows.tuning import marks_of_runs
from workflows.tuning.marks_of_runs import record_mark, record_traces

GOLD, CITED, PERSON = MarkKind
RIVER, LAKE = "Which river?", "Which lake?"
PROJECT = "answers"
PROJECT_ID = str(UUID(int=7))
TENANT = str(UUID(int=8))

Values = dict[str, Any]


class MarkedTraces(LangSmithApi):
    """As much of LangSmith's API as is asked for what people said of a project's runs.

    Attributes:
        runs: with their fields as the API names them, in order.
        feedback: likewise.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Values] = []
        self.feedback: list[Values] = []

    def add_run(self, question: str, root: Path, **changes: Any) -> str:
        """Add a root run on a workspace; return its id."""
        with Workspace(root).open_record() as record:
            metadata = {"mara_workspace_id": record.workspace_id}
        run = {
            "id": str(uuid4()),
            "name": "mara",
            "is_root": True,
            "start_time": "2026-01-02T00:00:00+00:00",
            "metadata": metadata,
            "inputs": {"question": question},
            "outputs": {"citations": []},
        }
        self.runs.append(run | changes)
        return str(run["id"])

    def mark(self, run_id: str, key: str, score: float | None, value: Any = None, **changes: Any) -> None:
        """Add what a person says of a run, later than everything before it."""
        moment = f"2026-01-03T00:00:{len(self.feedback) % 60:02}+00:00"
        said = {
            "id": str(uuid4()),
            "run_id": run_id,
            "trace_id": run_id,
            "key": key,
            "score": score,
            "value": value,
            "created_at": moment,
            "modified_at": moment,
            "feedback_source": {"type": "api"},
        }
        self.feedback.append(said | changes)

    def reply(self, method: str, path: str, query: dict[str, list[str]], sent: Any) -> Any:
        if path == "/sessions":
            about = {"tenant_id": TENANT, "reference_dataset_id": None, "start_time": "2026-01-01T00:00:00+00:00"}
            project = {"id": PROJECT_ID, "name": PROJECT, **about}
            return [project] if query["name"] == [PROJECT] else []
        if path == "/feedback" and sent:
            self.feedback.append({"trace_id": sent["run_id"], **sent})
            return self.feedback[-1]
        if path == "/feedback":
            marks = [each for each in self.feedback if each["run_id"] in query["run"]]
            start, count = int(query["offset"][0]), int(query["limit"][0])
            return marks[start : start + count]
        if path == "/api/v2/runs/query":
            return self._runs(sent)
        if path == "/info":
            return {"version": "0.16.2"}
        raise AssertionError(path)

    def _runs(self, sent: Values) -> Values:
        assert sent["project_ids"] == [PROJECT_ID]
        assert sent["min_start_time"] < "2026-01-01"
        wanted = [each for each in self.runs if each["id"] in sent.get("ids", [run["id"] for run in self.runs])]
        if "is_root" in sent:
            wanted = [each for each in wanted if each["is_root"] == sent["is_root"]]
        for each in wanted:
            marks = [said["key"] for said in self.feedback if said["run_id"] == each["id"]]
            each["feedback_stats"] = {key: {"n": marks.count(key)} for key in marks}
        start = int(sent.get("cursor", 0))
        page = wanted[start : start + sent["page_size"]]
        fields = {name.lower() for name in sent["selects"]}
        more = str(start + len(page)) if start + len(page) < len(wanted) else None
        items = [{key: value for key, value in each.items() if key in fields} for each in page]
        return {"items": items, "next_cursor": more}


@pytest.fixture
def langsmith(monkeypatch: pytest.MonkeyPatch) -> Iterator[MarkedTraces]:
    server = MarkedTraces()
    with server.running(monkeypatch):
        yield server


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    passages = [passage_of(key, key.title(), f"{key} is told of.") for key in ("velm", "sund", "marn")]
    return publish_workspace(tmp_path_factory.mktemp("traced") / "workspace", passages).root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "workspace"))


def citing(*passages: str) -> Values:
    return {"citations": [{"number": 1, "passage_id": passage, "start": None, "end": None} for passage in passages]}


class TestMarks:
    def test_feedback_on_a_passage_is_a_persons_mark_of_it(self, langsmith: MarkedTraces, root: Path) -> None:
        run = langsmith.add_run(RIVER, root)
        langsmith.mark(run, "passage", 1, "velm")
        langsmith.mark(run, "passage", 0, "sund", feedback_source={"type": "app"})
        done = record_traces(root, PROJECT)
        assert read_marks(root) == [Mark(RIVER, "sund", PERSON, served=False), Mark(RIVER, "velm", PERSON)]
        assert done["marks"] == {"gold": 0, "cited": 0, "person": 2}
        assert (done["new"], done["held"], done["questions"], done["left_out"]) == (2, 2, 1, {})
        assert done["runs"] == {"read": 1, "with_feedback": 1}
        assert langsmith.keys == {KEY}

    def test_a_good_answer_marks_its_citations_and_a_bad_one_nothing(self, langsmith: MarkedTraces, root: Path) -> None:
        langsmith.mark(langsmith.add_run(LAKE, root, outputs=citing("sund", "sund", "velm")), "user_score", 1.0)
        langsmith.mark(langsmith.add_run(RIVER, root, outputs=citing("sund")), "user_score", 0)
        done = record_traces(root, PROJECT)
        assert (done["marks"]["cited"], done["left_out"]) == (2, {"negative answers": 1})
        assert read_marks(root) == [Mark(LAKE, "sund", CITED), Mark(LAKE, "velm", CITED)]

    def test_a_word_on_a_passage_counts_before_one_on_the_answer(self, langsmith: MarkedTraces, root: Path) -> None:
        run = langsmith.add_run(LAKE, root, outputs=citing("sund"))
        langsmith.mark(run, "passage", 0, "sund")
        langsmith.mark(run, "user_score", 1)
        assert record_traces(root, PROJECT)["questions"] == 0

    def test_the_last_word_stays_in_any_order_of_the_list_and_recorded_again_nothing_changes(
        self, langsmith: MarkedTraces, root: Path
    ) -> None:
        for score in (1, 0):
            langsmith.mark(langsmith.add_run(RIVER, root, name="retrieval"), "passage", score, "velm")
        langsmith.feedback.reverse()
        langsmith.runs.reverse()
        done = record_traces(root, PROJECT)
        assert (done["contradicted"], done["held"]) == (1, 1)
        assert read_marks(root) == [Mark(RIVER, "velm", PERSON, served=False)]
        again = record_traces(root, PROJECT)
        assert [again[name] for name in ("new", "changed", "unchanged", "held")] == [0, 0, 1, 1]

    def test_all_pages_are_read(self, langsmith: MarkedTraces, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(marks_of_runs, "_RUNS_A_PAGE", 2)
        monkeypatch.setattr(marks_of_runs, "_RUNS_AT_ONCE", 3)
        for number in range(7):
            langsmith.mark(langsmith.add_run(f"Which river {number}?", root), "passage", 1, "velm")
        for _ in range(120):
            langsmith.mark(str(langsmith.runs[0]["id"]), "passage", 1, "sund")
        done = record_traces(root, PROJECT)
        assert (done["runs"], done["held"]) == ({"read": 7, "with_feedback": 7}, 8)

    def test_the_traces_of_our_workflows_are_understood(
        self, langsmith: MarkedTraces, root: Path, embedder: HashEmbedder
    ) -> None:
        context = make_context(workspace=str(root), model="offline")
        plain: Any = {"question": "sund?"}
        with TraceServer() as server, server.tracing():
            answered = ask("velm?", context)
            retrieval.invoke(plain, context=context)
        close_indexes()
        for question in ("velm?", "sund?"):
            run = next(each for each in server.trees() if question in json.dumps(each.inputs))
            fields = {name: getattr(run, name) for name in ("name", "inputs", "outputs", "metadata")}
            langsmith.mark(langsmith.add_run("", root, **fields), "passage", 1, "marn")
            langsmith.mark(str(langsmith.runs[-1]["id"]), "user_score", 1)
        done = record_traces(root, PROJECT)
        cited = {Mark("velm?", each["passage_id"], CITED) for each in answered["citations"]}
        assert cited
        assert set(read_marks(root)) == {Mark("velm?", "marn", PERSON), Mark("sund?", "marn", PERSON), *cited}
        assert done["left_out"] == {"positive answers that cite nothing": 1}

    def test_feedback_as_the_documentation_gives_it_is_read(
        self, langsmith: MarkedTraces, root: Path, tmp_path: Path
    ) -> None:
        run = langsmith.add_run(LAKE, root, outputs=citing("sund"))
        page = read(ROOT / "docs" / "studio.md")
        (example,) = (block.body for block in blocks(page) if "create_feedback" in block.body)
        (tmp_path / "example.py").write_text(example.replace(str(UUID(int=1)), run).replace("cars-nissan", "velm"))
        runpy.run_path(str(tmp_path / "example.py"))
        assert {each["session_id"] for each in langsmith.feedback} == {PROJECT_ID}
        record_traces(root, PROJECT)
        assert read_marks(root) == [Mark(LAKE, "sund", CITED), Mark(LAKE, "velm", PERSON)]


class TestLeftOut:
    def test_feedback_that_is_no_mark_is_counted(self, langsmith: MarkedTraces, root: Path) -> None:
        run = langsmith.add_run(RIVER, root)
        langsmith.mark(run, "correctness", 1)
        langsmith.mark(run, "correctness", 0)
        langsmith.mark(run, "passage", 1, "velm", feedback_source={"type": "model"})
        langsmith.mark(run, "passage", 1, "velm", feedback_source=None)
        for score, value in ((0.5, "velm"), (None, "velm"), (1, None), (1, {"id": "velm"}), (1, "")):
            langsmith.mark(run, "passage", score, value)
        for score in (0.7, None, -1, 5):
            langsmith.mark(run, "user_score", score)
        langsmith.mark(run, "user_score", 1)
        done = record_traces(root, PROJECT)
        assert done["unknown_keys"] == {"correctness": 2}
        assert done["left_out"] == {
            "answer feedback without a score of 1 or 0": 4,
            "feedback that is not a person's": 2,
            "passage feedback without an id and a score of 1 or 0": 5,
            "positive answers that cite nothing": 1,
        }
        assert read_marks(root) == []

    def test_passages_that_the_workspace_does_not_hold_are_counted(self, langsmith: MarkedTraces, root: Path) -> None:
        run = langsmith.add_run(RIVER, root, outputs=citing("gone", "velm"))
        langsmith.mark(run, "user_score", 1)
        langsmith.mark(run, "passage", 1, "lost")
        assert record_traces(root, PROJECT)["unknown_passages"] == 2
        assert read_marks(root) == [Mark(RIVER, "velm", CITED)]

    def test_runs_of_other_workspaces_and_programs_are_counted(self, langsmith: MarkedTraces, root: Path) -> None:
        others: tuple[Values, ...] = (
            {"metadata": {"mara_workspace_id": "another"}},
            {"metadata": {}},
            {"metadata": None},
            {"name": "chatbot"},
            {"inputs": {"input": "velm?"}},
            {"inputs": {"question": " "}},
            {"inputs": None},
            {"inputs": {"input": {"question": 5}}},
        )
        for changes in others:
            langsmith.mark(langsmith.add_run(RIVER, root, **changes), "passage", 1, "velm")
        langsmith.mark(langsmith.add_run(RIVER, root, is_root=False), "passage", 1, "velm")
        langsmith.add_run(RIVER, root)
        done = record_traces(root, PROJECT)
        assert done["left_out"] == {
            "runs of other programs": 1,
            "runs on other workspaces": 1,
            "runs that name no workspace": 2,
            "runs without a question": 4,
        }
        assert done["runs"] == {"read": 9, "with_feedback": 8}
        assert read_marks(root) == []

    def test_outputs_of_another_shape_cite_nothing(self, langsmith: MarkedTraces, root: Path) -> None:
        shapes: list[Any] = [None, {}, {"citations": 5}, {"citations": ["velm", {"passage_id": 5}]}]
        for outputs in shapes:
            langsmith.mark(langsmith.add_run(RIVER, root, outputs=outputs), "user_score", 1)
        left_out = record_traces(root, PROJECT)["left_out"]
        assert left_out == {"positive answers that cite nothing": len(shapes)}


class TestFaults:
    def test_a_key_is_needed(self, root: Path) -> None:
        with pytest.raises(ServiceUnavailable, match="LANGSMITH_API_KEY"):
            record_traces(root, PROJECT)

    def test_a_refusal_of_langsmith_says_what_to_check(self, langsmith: MarkedTraces, root: Path) -> None:
        langsmith.mark(langsmith.add_run(RIVER, root), "passage", 1, "velm")
        for path, status in (("/sessions", 401), ("/api/v2/runs/query", 404), ("/feedback", 422)):
            langsmith.down = {path: status}
            with pytest.raises(ServiceUnavailable, match="LANGSMITH_ENDPOINT") as raised:
                record_traces(root, PROJECT)
            assert "lsv2" not in str(raised.value)
        assert read_marks(root) == []

    def test_an_address_without_a_server_is_an_error_without_the_key(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, mara: Mara
    ) -> None:
        monkeypatch.setenv("LANGSMITH_API_KEY", KEY)
        monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setattr("time.sleep", lambda seconds: None)  # between the client's tries
        refused = mara("tune", "mark", "--from-langsmith", PROJECT, "-w", root)
        assert refused.code == 3
        assert "cannot be read" in refused.err
        assert "lsv2" not in refused.err + refused.out

    def test_without_the_project_or_a_workspace_nothing_is_recorded(
        self, langsmith: MarkedTraces, root: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(WorkspaceMissing):
            record_traces(tmp_path / "none", PROJECT)
        assert langsmith.asked == []
        with pytest.raises(BadInput, match="no project 'none'"):
            record_traces(root, "none")


class TestCommand:
    def test_recorded_and_left_out_feedback_is_shown(self, mara: Mara, langsmith: MarkedTraces, root: Path) -> None:
        run = langsmith.add_run(RIVER, root)
        langsmith.mark(run, "passage", 1, "velm")
        langsmith.mark(run, "[bold]", 1)
        langsmith.mark(langsmith.add_run(RIVER, root), "passage", 0, "velm")
        shown = mara("tune", "mark", "--from-langsmith", PROJECT, "-w", root)
        assert shown.code == 0
        assert "2 of 2 traces in answers have feedback" in shown.out
        assert "no mark from: 1 feedback '[bold]'" in shown.out
        assert "the last word stays: 1 marks" in shown.out
        assert "person 1; new 1" in shown.out
        report = mara("tune", "mark", "--from-langsmith", PROJECT, "-w", root, "--json").json
        assert (report["unchanged"], report["project"], report["unknown_keys"]) == (1, PROJECT, {"[bold]": 1})

    def test_it_is_one_thing_alone(self, mara: Mara, langsmith: MarkedTraces, root: Path) -> None:
        record_mark(root, RIVER, ["velm"], served=True)
        for options in (("run",), ("--list",), ("--forget",), ("--question", RIVER), ("--did-not-serve",)):
            assert mara("tune", "mark", "--from-langsmith", PROJECT, "-w", root, *options).code == 2, options
        assert langsmith.asked == []
        assert len(read_marks(root)) == 1
