"""The main workflow without a model, and ``ask``: one question in, the documented result out, in every mode."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from agents.answers.citations import parse_citations, strip_citations
from agents.answers.quotes import unmarked
from agents.roles import REFUSAL
from graph.errors import BadInput, WorkspaceMissing
from graph.retrieve.modes import Mode
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import QUESTION, TEXTS, run
from workflows.answering import ask
from workflows.context import Context
from workflows.results import Result


def test_every_mode_answers_with_citations_into_its_own_passages(settings: MakeContext) -> None:
    for mode in Mode:
        result = run(settings(mode=mode)).result
        cited = parse_citations(result["answer"], range(1, Context().top_k + 1))
        assert cited.numbers, mode
        assert not cited.out_of_range, mode
        assert [citation["number"] for citation in result["citations"]] == list(cited.numbers), mode
        for citation in result["citations"]:
            assert citation["passage_id"] == result["passages"][citation["number"] - 1]["id"], mode
            quoted = TEXTS[citation["passage_id"]][citation["start"] : citation["end"]]
            assert quoted in result["plain_answer"], mode
        assert result["plain_answer"] == unmarked(strip_citations(result["answer"])), mode
        assert result["workflow"] == "mara", mode


def test_what_the_passages_do_not_hold_is_refused_and_why_is_told(settings: MakeContext) -> None:
    for mode in (Mode.MARA, Mode.SPARSE):
        result = run(settings(mode=mode), "How are violins tuned?").result
        assert (result["answer"], result["plain_answer"], result["citations"]) == (REFUSAL, REFUSAL, []), mode
        assert (result["refused"], result["answer_kind"]) == (True, "refusal"), mode
        assert [(record["node"], record["kind"]) for record in result["errors"]] == [("write_answer", "Evidence")], mode
        assert "No evidence for 'How are violins tuned?'" in result["errors"][0]["message"], mode


def test_without_a_model_all_passages_are_read_whatever_answer_passages_are(settings: MakeContext) -> None:
    one, many = (run(settings(answer_passages=n)).result for n in (1, 50))
    assert one["answer"] == many["answer"]
    assert one["written_from"] == many["written_from"] == list(range(1, Context().top_k + 1))
    few = run(settings(top_k=1, answer_passages=50), "Where does the Velm flow?").result
    assert [citation["number"] for citation in few["citations"]] == [1]


def test_runs_side_by_side_do_not_mix(settings: MakeContext) -> None:
    questions = ["When was Marn founded?", "Who built the Tarn Dam?", "Where was Ada Brandt born?", QUESTION]
    context = settings(answer_passages=2)
    alone = [run(context, question).result for question in questions]
    with ThreadPoolExecutor(len(questions)) as pool:
        together = [done.result for done in pool.map(lambda question: run(context, question), questions)]
    for result, expected in zip(together, alone, strict=True):
        assert {**result, "timings_ms": {}} == {**expected, "timings_ms": {}}


def test_the_result_is_of_the_type_that_it_is_declared_to_be_and_that_of_ragenta_holds_all_of_it(
    settings: MakeContext, ragenta_settings: MakeContext
) -> None:
    contexts = [*(settings(mode=mode) for mode in Mode), settings(check_claims=True), settings(where={"no": "such"})]
    for context in (*contexts, ragenta_settings()):
        result = ask(QUESTION, context)
        TypeAdapter(Result).validate_python(result, strict=True)
        assert result.keys() <= Result.__annotations__.keys()
    assert result.keys() == Result.__annotations__.keys()


def test_a_question_that_cannot_be_asked_is_refused_before_the_workspace_is_opened(tmp_path: Path) -> None:
    for question in ("", " \n", "?" * 10_001, "\udcff"):
        with pytest.raises(BadInput, match="question") as failure:
            ask(question, Context(workspace=str(tmp_path / "none")))
        assert not isinstance(failure.value, WorkspaceMissing), question


def test_the_workspace_is_that_of_the_environment_or_dot_mara_in_the_working_folder(
    small_workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("MARA_WORKSPACE", str(small_workspace))
        assert ask(QUESTION, Context(mode="sparse"))["citations"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mara").symlink_to(small_workspace, target_is_directory=True)
    assert ask(QUESTION, Context(mode="sparse"))["citations"]
