"""Questions as of a date: answered from what stood then, by the provenance of then, and told what came since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.sources.documents import read_documents
from graph.storage.workspace import Workspace
from tests.workflows.command_line import Mara
from tests.workflows.velmora_shop import QUESTIONS, STATES, write_state
from workflows.answering import ask
from workflows.context import Context, make_context
from workflows.indexing import index_sources
from workflows.runtime.history import HISTORY_UNWRITTEN
from workflows.settings.indexing import IndexingContext


def asked(root: Path, question: str, as_of: str = "", workflow: str = "mara", **settings: Any) -> dict[str, Any]:
    return dict(ask(question, make_context(workflow, workspace=str(root), as_of=as_of, **settings)))


def texts_of(state: int, folder: Path) -> set[str]:
    """Return the texts of the passages of a state."""
    write_state(folder, STATES[state])
    return {passage.text for passage in read_documents([folder]).passages.values()}


class TestAnswers:
    def test_are_right_as_of_their_date_and_hold_nothing_of_another_version(self, shop: Path, tmp_path: Path) -> None:
        for each in QUESTIONS:
            result = asked(shop, each.question, each.as_of)
            assert each.holds in result["answer"]
            assert not any(word in result["answer"] for word in each.lacks)
            assert {hit["text"] for hit in result["passages"]} <= texts_of(each.state, tmp_path / "papers")
            assert result["as_of"] == each.as_of

    def test_are_of_their_date_in_every_mode(self, shop: Path, tmp_path: Path) -> None:
        for mode in ("dense", "sparse", "hybrid", "hipporag2"):
            result = asked(shop, QUESTIONS[0].question, QUESTIONS[0].as_of, mode=mode)
            assert {hit["text"] for hit in result["passages"]} <= texts_of(0, tmp_path / "papers"), mode
            assert result["passages"][0]["text"] == "The Torvik lamp costs 40 euros.", mode


def ends_of(hits: list[dict[str, Any]], key: str) -> dict[str, str | None]:
    return {hit[key]: hit["superseded_at"] for hit in hits}


class TestSuperseded:
    def test_passages_tell_when_their_words_ended(self, shop: Path) -> None:
        ends = ends_of(asked(shop, "What does the Torvik lamp cost?", "2023-06-15")["passages"], "text")
        assert ends["The Torvik lamp costs 40 euros."] == "2024-02-01"
        assert ends["The Sandby desk costs 210 euros."] == "2025-03-01"
        assert ends["The Karv stool costs 35 euros."] == "2024-02-01"
        assert ends["The shop in Sandby opens at 9 in the morning."] == "2025-03-01"

    def test_a_fact_ends_where_no_passage_says_it_any_more(self, shop: Path) -> None:
        facts = asked(shop, "When was Velmora founded?", "2023-06-15", fact_candidates=50)["facts"]
        ends = {(fact["subject"], fact["object"]): fact["superseded_at"] for fact in facts}
        assert ends["Nils Aker", "Sandby"] == "2024-02-01"
        # The passage that says it was replaced in between by another one, which says it, too.
        assert ends["Velmora", "1998"] == "2025-03-01"


class TestDates:
    def test_before_anything_stood_the_answer_is_an_error_that_says_so(self, shop: Path, mara: Mara) -> None:
        outcome = mara("ask", "What does the Torvik lamp cost?", "-w", shop, "--as-of", "2022-12-31")
        assert outcome.code == 2
        assert "Nothing stood on 2022-12-31" in outcome.err


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tenants whose papers say the same at first; one drops it a year before the other."""
    folder = tmp_path_factory.mktemp("tenants")
    said, dropped = "The Torvik lamp costs 40 euros.", "Velmora sells lamps."
    for date, a, b in (("2023", said, said), ("2024", dropped, said), ("2025", dropped, dropped)):
        rows = f"id,title,text,tenant\na-1,Lamp,{a},a\nb-1,Lamp,{b},b\n"
        (folder / "papers.csv").write_text(rows, encoding="utf-8")
        index_sources([folder / "papers.csv"], folder / "workspace", settings=IndexingContext(dated=date))
    return folder / "workspace"


class TestFilter:
    def test_tells_nothing_of_when_hidden_passages_ended(self, tenants: Path) -> None:
        fixed = Context(workspace=str(tenants), as_of="2023-06").within({"tenant": "a"})
        (fact,) = (fact for fact in ask("Torvik lamp?", fixed)["facts"] if fact["object"] == "40 euros")
        assert fact["superseded_at"] == "2024-01-01"
        everybody = asked(tenants, "Torvik lamp?", "2023-06")["facts"]
        assert [fact["superseded_at"] for fact in everybody if fact["object"] == "40 euros"] == ["2025-01-01"]


class TestWorkspacesFromBefore:
    def test_no_date_can_be_asked_for_where_no_versions_are_kept(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("The Torvik lamp costs 40 euros.", encoding="utf-8")
        how = IndexingContext(keep_versions=False)
        index_sources([tmp_path / "a.txt"], tmp_path / "workspace", settings=how)
        with pytest.raises(BadInput, match="this workspace keeps no versions"):
            asked(tmp_path / "workspace", "What does the lamp cost?", "2024")
        with pytest.raises(BadInput, match="keeps no versions has no dates"):
            index_sources([tmp_path / "a.txt"], tmp_path / "workspace", settings=IndexingContext(dated="2024"))

    def test_what_was_there_stands_from_the_first_run_that_keeps_versions(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("The Torvik lamp costs 40 euros.", encoding="utf-8")
        root, papers = tmp_path / "workspace", [tmp_path / "a.txt"]
        index_sources(papers, root, settings=IndexingContext(keep_versions=False))
        index_sources(papers, root, settings=IndexingContext(keep_versions=True))
        with Workspace(root).open_record() as record:
            assert record.versions.kept_from > "2026"
        with pytest.raises(BadInput, match=r"versions are kept from .* on"):
            asked(root, "What does the Torvik lamp cost?", "2024")
        assert "40 euros" in asked(root, "What does the Torvik lamp cost?", "2999")["answer"]
        with pytest.raises(BadInput, match="stand, or ended, later than 2024-01-01"):
            index_sources(papers, root, settings=IndexingContext(dated="2024"))


def test_what_documents_came_from_is_no_condition_as_of_a_date(shop: Path) -> None:
    for condition in ({"source": "prices.csv"}, {"newer_than": "2023"}):
        context = make_context(workspace=str(shop), as_of="2023-06-01", provenance=condition)
        with pytest.raises(BadInput, match="as it is now alone"):
            ask("What does it cost?", context)


def test_a_turn_that_cites_the_past_is_not_told_to_index_again(shop: Path) -> None:
    context = make_context(
        workspace=str(shop), as_of="2023-06-01", conversation_id="past", user_id="ada", model="offline"
    )
    result = ask("What does the Karv stool cost?", context)
    messages = [each["message"] for each in result["errors"] if each["kind"] == HISTORY_UNWRITTEN]
    assert len(messages) == 1
    assert "stood in the past only" in messages[0]
    assert result["recorded"] is not None
