"""A user's own types from a file to an answer: extracted by rule and by model, weighed, walked, shown and given up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from graph.construction.knowledge_graph import load
from graph.storage.workspace import Workspace
from tests.scripted_server import ScriptedServer
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import Indexer, ask
from workflows.admin.inspection import entity_edges, published_graph, workspace_stats
from workflows.context import Context, Question
from workflows.explaining import explain, write_explanation
from workflows.indexing import index_sources
from workflows.retrieval import graph as retrieval
from workflows.runtime.resources import close_indexes
from workflows.settings.indexing import IndexingContext

TYPES = """
[relations.SUPPLIES]
meaning = "one company delivers goods, parts or fuel to the other"
examples = ["Orrin Foundry supplies Halden Pumps"]
cues = ["suppl*", "deliver* to", "fuelled by"]
questions = ["vendor*"]

[entities.Supplier]
meaning = "a company that makes what others build in"
cues = ["foundry", "rubber"]

[entities.Pump]
shapes = ["HX-###"]
"""
ROWS = [
    {
        "id": "halden",
        "title": "Halden Pumps",
        "text": "The HX-200 is its best pump. Halden Pumps was bought by Vestra Holding. Nordlys Insurance insures"
        " Halden Pumps. Orrin Foundry supplies parts to Halden Pumps.",
    },
    {"id": "vestra", "title": "Vestra Holding", "text": "Vestra Holding is a company in Odense. It has 40 employees."},
    {"id": "orrin", "title": "Orrin Foundry", "text": "Orrin Foundry is a company in Esbjerg. It has 54 employees."},
    {
        "id": "nordlys",
        "title": "Nordlys Insurance",
        "text": "Nordlys Insurance is a company in Vejle. It has 47 people.",
    },
]
TypesFile = Callable[[str], IndexingContext]


@pytest.fixture
def types(tmp_path: Path) -> TypesFile:
    """Write a file of types, and return the settings that name it."""

    def write(content: str) -> IndexingContext:
        path = tmp_path / "types.toml"
        path.write_text(content)
        return IndexingContext(types=str(path))

    return write


def relations_of(root: Path) -> set[tuple[str, str]]:
    """Return (subject, relation type) of every fact."""
    workspace = Workspace(root)
    current = workspace.current()
    assert current is not None
    graph = load(workspace.index_folder(current))
    return {(fact.fact.subject, fact.fact.relation.value) for fact in graph.facts.values()}


def retrieved(root: Path, question: str, **changes: Any) -> dict[str, Any]:
    """Return the state that retrieval ends with."""
    state: dict[str, Any] = retrieval.invoke(
        Question(question=question), context=Context(workspace=str(root), **changes)
    )
    return state


def ranked(root: Path, question: str, **changes: Any) -> dict[str, float]:
    """Return {passage id: score}, best first."""
    return {hit["id"]: hit["score"] for hit in retrieved(root, question, **changes)["passages"]}


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same rows indexed without own types, and with them, by the embedded model."""
    folder = tmp_path_factory.mktemp("suppliers")
    write_lines(folder / "corpus.jsonl", ROWS)
    (folder / "types.toml").write_text(TYPES)
    index_sources([folder / "corpus.jsonl"], folder / "plain")
    typed = IndexingContext(types=str(folder / "types.toml"))
    index_sources([folder / "corpus.jsonl"], folder / "typed", settings=typed)
    close_indexes()
    return folder / "plain", folder / "typed"


def typed_entities(root: Path) -> dict[str, str | None]:
    with published_graph(root) as (_, graph):
        return {
            name: graph.entity_type(node) for node, name in enumerate(graph.entity_labels) if graph.entity_type(node)
        }


def extractors(root: Path) -> Mapping[str, int]:
    counts: Mapping[str, int] = workspace_stats(root)["extractors"]
    return counts


@pytest.mark.usefixtures("embedder")
class TestIndexing:
    def test_cues_make_facts_of_own_types_and_the_workspace_keeps_them_for_later_runs(
        self, index: Indexer, root: Path, types: TypesFile
    ) -> None:
        report = index(ROWS, settings=types(TYPES))
        assert report.unfound_types == []
        assert ("Orrin Foundry", "SUPPLIES") in relations_of(root)
        stats = workspace_stats(root)
        assert stats["own_types"] == ["SUPPLIES", "Pump", "Supplier"]
        assert stats["edges_by_type"]["SUPPLIES"] == 1
        assert typed_entities(root) == {"Orrin Foundry": "Supplier", "HX-200": "Pump"}
        again = index(ROWS)
        assert again.unchanged == 4
        assert len(extractors(root)) == 1

    def test_other_rules_extract_again_and_other_meanings_do_not(
        self, index: Indexer, root: Path, types: TypesFile
    ) -> None:
        index(ROWS, settings=types(TYPES))
        same = index(ROWS, settings=types(TYPES.replace("one company delivers", "a firm delivers")))
        assert (same.unchanged, same.replaced) == (4, 0)
        assert entity_edges(root, "Orrin Foundry", "Halden Pumps")["edges"][0]["meaning"].startswith("a firm delivers")
        other = index(ROWS, settings=types(TYPES.replace('"suppl*", ', "")))
        assert (other.unchanged, other.replaced) == (0, 4)
        assert workspace_stats(root)["own_types"]
        assert "SUPPLIES" not in workspace_stats(root)["edges_by_type"]


@pytest.mark.usefixtures("embedder")
class TestModel:
    TRIPLE: Mapping[str, Any] = {
        "subject": "Orrin Foundry",
        "predicate": "pours iron for",
        "object": "Halden Pumps",
        "relation": "SUPPLIES",
        "confidence": 0.9,
    }

    def extracted(self, **changes: Any) -> str:
        typed = [{"entity": "Orrin Foundry", "type": "supplier"}, {"entity": "Nobody", "type": "Supplier"}]
        reply = {"entities": ["Orrin Foundry", "Halden Pumps"], "triples": [{**self.TRIPLE, **changes}]}
        return json.dumps({**reply, "entity_types": typed})

    def test_the_extractor_is_told_the_types_and_its_reply_may_use_them(
        self, index: Indexer, root: Path, types: TypesFile, chat_server: ScriptedServer
    ) -> None:
        chat_server.script({"extractor": [self.extracted()]})
        settings = types(TYPES).model_copy(update={"model": "scripted"})
        report = index(ROWS[:1], settings=settings)
        assert relations_of(root) == {("Orrin Foundry", "SUPPLIES")}
        assert typed_entities(root)["Orrin Foundry"] == "Supplier"
        assert report.notes["unusable entity types"] == 1
        (request,) = chat_server.requests_of("extractor")
        system = request.body["messages"][0]["content"]
        assert "- SUPPLIES: one company delivers goods, parts or fuel to the other (Orrin Foundry supplies" in system
        assert "- Supplier: a company that makes what others build in" in system
        schema = request.body["response_format"]["json_schema"]["schema"]["properties"]
        assert schema["triples"]["items"]["properties"]["relation"]["enum"][-1] == "SUPPLIES"
        assert schema["entity_types"]["items"]["properties"]["type"]["enum"] == ["Pump", "Supplier"]

    def test_the_manager_weighs_own_types_beside_the_others(
        self, index: Indexer, root: Path, types: TypesFile, chat_server: ScriptedServer
    ) -> None:
        index(ROWS, settings=types(TYPES).model_copy(update={"model": "offline"}))
        shares = {"HIERARCHICAL": 0.05, "TEMPORAL": 0.05, "SPATIAL": 0.1, "CAUSALITY": 0.05, "ATTRIBUTION": 0.05}
        passages = {"PRIMARY": 0.4, "SECONDARY": 0.3, "PERIPHERAL": 0.3}
        reply = {"entity_entity": {**shares, "supplies": 0.7}, "entity_passage": passages, "passage_weight": 0.05}
        chat_server.script({"manager": [json.dumps(reply)]})
        state = retrieved(root, "Who pours iron for Halden Pumps?", model="scripted", filter_facts=False)
        assert state["relation_factors"]["entity_entity"] == pytest.approx({**shares, "SUPPLIES": 0.7})
        assert [error for error in state["errors"] if error["kind"] in ("Defaulted", "UnknownRelation")] == []
        (request,) = chat_server.requests_of("manager")
        asked = request.body["response_format"]["json_schema"]["schema"]["properties"]["entity_entity"]
        assert asked["required"][-1] == "SUPPLIES"
        assert "The types SUPPLIES are of this graph alone" in request.body["messages"][0]["content"]


class TestAnswers:
    """With the embedded model, since rankings are compared."""

    def test_the_passage_that_an_own_type_leads_to_rises(self, roots: tuple[Path, Path]) -> None:
        for question, places in [
            ("How many employees has the company that supplies Halden Pumps?", (1, 1)),
            ("Where is the vendor of Halden Pumps?", (2, 1)),
        ]:
            plain, typed = (ranked(root, question) for root in roots)
            assert (list(plain).index("orrin"), list(typed).index("orrin")) == places
            assert typed["orrin"] / typed["vestra"] > plain["orrin"] / plain["vestra"], question
            assert typed["orrin"] > ranked(roots[1], question, weigh_relations=False)["orrin"]

    def test_an_explanation_names_them_with_their_meaning_and_under_a_filter_no_type_of_a_name(
        self, roots: tuple[Path, Path], tmp_path: Path
    ) -> None:
        question = "How many employees has the company that supplies Halden Pumps?"
        explanation = explain(ask(roots[1], question), Context(workspace=str(roots[1])))
        assert explanation.own_relations["SUPPLIES"].startswith("one company delivers goods")
        assert "SUPPLIES" in {edge.relation for edge in explanation.edges}
        assert {node.label: node.type for node in explanation.nodes}["Orrin Foundry"] == "Supplier"
        for name, words in (
            ("page.html", "--SUPPLIES: #b320f7;"),
            ("data.json", "SUPPLIES"),
        ):
            write_explanation(explanation, tmp_path / name)
            assert words in (tmp_path / name).read_text()
        where = {"source": "corpus.jsonl"}
        filtered = explain(ask(roots[1], question, where=where), Context(workspace=str(roots[1]), where=where))
        assert {node.type for node in filtered.nodes} == {""}, "a hidden passage may have given it"
