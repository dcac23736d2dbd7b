"""The main workflow without a model, and ``ask``: one question in, the documented result out, in every mode."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START
from pydantic import TypeAdapter

from agents.answers.citations import parse_citations, strip_citations
from agents.answers.quotes import unmarked
from agents.roles import REFUSAL
from graph.errors import BadInput, WorkspaceDamaged, WorkspaceMissing
from graph.retrieve.modes import Mode
from tests.workflows.scripted import MakeContext, Scripted
from tests.workflows.small_world import ANSWERED, MALFORMED, QUESTION, QUESTION_PASSAGES, TEXTS, run, well_behaved
from workflows import mara, retrieval
from workflows.answering import ask
from workflows.context import Context, make_context
from workflows.results import Result
from workflows.runtime import workflow_graph

GRAPH: Any = mara.graph


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


def test_the_answer_follows_the_chain_from_one_passage_to_the_next_and_is_called_evidence(
    settings: MakeContext,
) -> None:
    result = run(settings()).result
    assert tuple(citation["passage_id"] for citation in result["citations"]) == QUESTION_PASSAGES[::-1]
    assert "1203" in result["answer"].split("\n\n")[0]
    assert (result["refused"], result["answer_kind"], result["errors"]) == (False, "evidence", [])


def test_the_result_has_the_documented_keys_and_plain_values(settings: MakeContext) -> None:
    keys = {*Result.__annotations__} - {"judge_outcome", "judgements", "bars", "final_prompt"}
    assert GRAPH.get_output_jsonschema()["properties"].keys() == keys
    for mode in Mode:
        result = GRAPH.invoke({"question": QUESTION}, context=settings(mode=mode))
        assert result.keys() == keys, mode
        assert json.loads(json.dumps(result, allow_nan=False)) == result
        assert result["models"] == {"chat": "offline", "embedding": "all-MiniLM-L6-v2", "store": "embedded"}
        assert len(json.dumps(result)) < 20_000, "no vector and no score of all passages is in the result"


def test_retrieval_within_the_workflow_is_retrieval_alone(settings: MakeContext) -> None:
    for mode in (Mode.MARA, Mode.DENSE):
        alone = run(settings(mode=mode), graph=retrieval.graph)
        whole = run(settings(mode=mode))
        assert {key: whole.result[key] for key in alone.result if key != "timings_ms"} == {
            key: value for key, value in alone.result.items() if key != "timings_ms"
        }, mode
        assert whole.visits - alone.visits == {"write_answer": 1}, mode
        assert whole.result["timings_ms"].keys() == whole.visits.keys(), mode


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


def test_a_question_in_any_script_is_answered_from_its_passage(settings: MakeContext) -> None:
    for passage, question in [
        ("han", "青石鎮以什麼聞名？"),
        ("arabic", "أين يقع وادي النور؟"),
        ("cyrillic", "Где стоит Белогорка?"),
        ("greek", "Πού γεννήθηκε η Αλκμήνη Ρούσου;"),
        ("devanagari", "सोनपुरा किसके किनारे बसा है?"),
    ]:
        done = run(settings(), question)
        assert done.passage_ids[0] == passage
        assert done.result["citations"][0]["passage_id"] == passage


def test_the_graph_runs_asynchronously_too(settings: MakeContext) -> None:
    here = GRAPH.invoke({"question": QUESTION}, context=settings())
    there = asyncio.run(GRAPH.ainvoke({"question": QUESTION}, context=settings()))
    assert {**there, "timings_ms": {}} == {**here, "timings_ms": {}}


def test_runs_side_by_side_do_not_mix(settings: MakeContext) -> None:
    questions = ["When was Marn founded?", "Who built the Tarn Dam?", "Where was Ada Brandt born?", QUESTION]
    context = settings(answer_passages=2)
    alone = [run(context, question).result for question in questions]
    with ThreadPoolExecutor(len(questions)) as pool:
        together = [done.result for done in pool.map(lambda question: run(context, question), questions)]
    for result, expected in zip(together, alone, strict=True):
        assert {**result, "timings_ms": {}} == {**expected, "timings_ms": {}}


FALLBACKS = {"filter_facts": "keep_top_facts", "weigh_relations": "neutral_relations", "write_answer": "quote_passages"}
"""The node that stands in for each."""


def test_the_workflow_is_named_for_traces() -> None:
    assert (mara.graph.get_name(), retrieval.graph.get_name()) == ("mara", "retrieval")


def test_the_drawing_names_every_node_and_shows_the_retry_loops() -> None:
    drawing = mara.graph.get_graph()
    of_retrieval = retrieval.graph.get_graph()
    assert drawing.nodes.keys() == {
        *of_retrieval.nodes,
        "write_answer",
        "quote_passages",
        "check_claims",
        "ask_back",
        "record_turn",
    }
    arrows = {(edge.source, edge.target) for edge in drawing.edges}
    within = {(edge.source, edge.target) for edge in of_retrieval.edges if edge.target != END}
    assert arrows - within == {
        ("encode_question", "write_answer"),
        ("rewrite_question", "ask_back"),
        ("complete_question", "ask_back"),
        ("ask_back", END),
        ("ask_back", "record_turn"),
        ("walk_graph", "write_answer"),
        ("retrieve_passages", "write_answer"),
        ("write_answer", "write_answer"),
        ("write_answer", "quote_passages"),
        ("write_answer", END),
        ("quote_passages", END),
        ("write_answer", "check_claims"),
        ("quote_passages", "check_claims"),
        ("check_claims", END),
        ("write_answer", "record_turn"),
        ("quote_passages", "record_turn"),
        ("check_claims", "record_turn"),
        ("record_turn", END),
    }
    assert within <= arrows
    mermaid = drawing.draw_mermaid()
    assert all(f"{name}(" in mermaid for name in drawing.nodes if name not in (START, END))
    labels = {(edge.source, edge.target): edge.data for edge in drawing.edges if edge.conditional}
    assert all(labels.values()), "every branch says when it is taken"
    for node, fallback in FALLBACKS.items():
        assert (labels[node, node], labels[node, fallback]) == (workflow_graph.AGAIN, workflow_graph.GIVEN_UP)
        assert f"{node} -. &nbsp;{workflow_graph.AGAIN}&nbsp; .-> {node};" in mermaid


KEYS_IN_ORDER = [
    "question",
    "understood",
    "mode",
    "workflow",
    "answer",
    "plain_answer",
    "refused",
    "answer_kind",
    "cut",
    "citations",
    "passages",
    "ranked_by",
    "walk",
    "facts",
    "fact_outcome",
    "relation_factors",
    "passage_weight",
    "tuning",
    "seeds",
    "timings_ms",
    "usage",
    "errors",
    "models",
    "generation",
    "as_of",
    "recorded",
]


def test_the_keys_come_in_the_documented_order(settings: MakeContext) -> None:
    for mode in ("mara", "dense"):
        result = ask(QUESTION, settings(mode=mode))
        assert list(result) == KEYS_IN_ORDER, mode
        assert json.loads(json.dumps(result, allow_nan=False)) == result
        not_always = ("understood", "walk", "relation_factors", "passage_weight", "tuning", "recorded")
        assert None not in [value for key, value in result.items() if key not in not_always], mode


def test_the_result_is_of_the_type_that_it_is_declared_to_be_and_that_of_ragenta_holds_all_of_it(
    settings: MakeContext, ragenta_settings: MakeContext
) -> None:
    contexts = [*(settings(mode=mode) for mode in Mode), settings(check_claims=True), settings(where={"no": "such"})]
    for context in (*contexts, ragenta_settings()):
        result = ask(QUESTION, context)
        TypeAdapter(Result).validate_python(result, strict=True)
        assert result.keys() <= Result.__annotations__.keys()
    assert result.keys() == Result.__annotations__.keys()


def test_the_parts_of_the_result_have_the_documented_keys(settings: MakeContext) -> None:
    result = ask(QUESTION, settings())
    assert result["citations"][0].keys() == {"number", "passage_id", "start", "end"}
    keys = {"number", "id", "title", "text", "source", "metadata", "score", "pagerank"}
    assert result["passages"][0].keys() == keys
    assert {"subject", "predicate", "object", "relation", "score", "kept"} <= result["facts"][0].keys()
    assert result["relation_factors"]
    assert result["relation_factors"].keys() == {"entity_entity", "entity_passage"}
    assert result["seeds"]["entities"][0].keys() == {"id", "text", "weight"}
    assert result["seeds"]["passages"][0].keys() == {"id", "weight"}
    assert {"chat", "embedding"} <= result["models"].keys()
    assert result["walk"]
    assert result["walk"].keys() == {"engine", "error", "arcs", "damping", "convergence"}


def test_what_was_retried_is_in_the_result(in_mara: Scripted) -> None:
    in_mara.server.script({**well_behaved(), "answerer": [MALFORMED, ANSWERED]})
    result = ask(QUESTION, in_mara.settings())
    assert result["answer"] == ANSWERED
    assert [(record["node"], record["kind"]) for record in result["errors"]] == [("write_answer", "MalformedReply")]


def test_a_question_that_cannot_be_asked_is_refused_before_the_workspace_is_opened(tmp_path: Path) -> None:
    for question in ("", " \n", "?" * 10_001, "\udcff"):
        with pytest.raises(BadInput, match="question") as failure:
            ask(question, Context(workspace=str(tmp_path / "none")))
        assert not isinstance(failure.value, WorkspaceMissing), question


def test_the_longest_question_is_answered(settings: MakeContext) -> None:
    question = f"{QUESTION} {'x' * 10_000}"[:10_000]
    assert ask(question, settings(mode="sparse"))["question"] == question


def test_a_missing_or_damaged_workspace_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no workspace", encoding="utf-8")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "record.sqlite").write_bytes(b"this is no database" * 100)
    with pytest.raises(WorkspaceMissing, match=str(tmp_path)):
        ask(QUESTION, make_context(workspace=str(tmp_path / "none")))
    with pytest.raises(BadInput, match="is a file"):
        ask(QUESTION, Context(workspace=str(tmp_path / "file")))
    with pytest.raises(WorkspaceDamaged, match=r"record\.sqlite"):
        ask(QUESTION, Context(workspace=str(tmp_path / "broken")))


def test_the_workspace_is_that_of_the_environment_or_dot_mara_in_the_working_folder(
    small_workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("MARA_WORKSPACE", str(small_workspace))
        assert ask(QUESTION, Context(mode="sparse"))["citations"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mara").symlink_to(small_workspace, target_is_directory=True)
    assert ask(QUESTION, Context(mode="sparse"))["citations"]
