"""No answer that held is lost, no question is paid for twice, and nothing passes for what it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.final_predictor import ChatFinalPredictor
from agents.offline.extractor import OfflineExtractor
from graph.errors import BadInput
from tests.builders import HashEmbedder
from tests.scripted_server import ReplyLike
from tests.workflows.hashed_world import hashed_world
from tests.workflows.ragenta_world import (
    BUILDER_ANSWERED,
    FOLLOW_UP,
    NO,
    ONE_THING,
    THE_BIRTHPLACE,
    THE_BUILDER,
    TWO_THINGS,
    YES,
    MakeContext,
    assessment,
    checks,
    judged_at,
    quick_ragenta,
    ragenta_on_a_thread,
    well_behaved,
)
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import PASSAGES, Run, run, shown_to_model, write_lines
from workflows.indexing import index_sources

FULLY, PARTIALLY, NOT = "FULLY ANSWERED", "PARTIALLY ANSWERED", "NOT ANSWERED"
FOUNDED = "Marn was founded in 1203 [1]."
ORGANS = "Marn exports glass organs [1]."
MARK = "[unsupported]"

Answered = Callable[..., Run]


@pytest.fixture
def answered(in_ragenta: Scripted) -> Answered:
    """Run once with an answer from passages 1 and 2, and what the claim judge finds of it."""

    def once(answer: str, found: ReplyLike, question: str = ONE_THING, **changes: Any) -> Run:
        in_ragenta.server.script(well_behaved(judge=[YES], final_predictor=[answer], claim_judge=[found]))
        return run(in_ragenta.settings(follow_ups={"rounds": 0}, **changes), question, quick_ragenta)

    return once


def of_one_thing(*claims: tuple[int, list[int]], listed: tuple[int, ...] = (1,), coverage: str = FULLY) -> str:
    return assessment([(ONE_THING, coverage, list(listed))], list(claims))


class TestWhatIsKept:
    def test_passages_that_could_not_be_judged_are_kept_where_the_judged_ones_are_not(
        self, in_ragenta: Scripted
    ) -> None:
        refused = lambda body: NO if shown_to_model(body)["title"] == "Marn" else "Perhaps"  # noqa: E731
        done = in_ragenta.ask(
            ONE_THING,
            well_behaved(judge=refused, final_predictor=["NOT IN THE PASSAGES"]),
            top_k=3,
            max_json_retries=0,
            follow_up_rounds=0,
        )
        assert done.result["passages"][0]["title"] == "Marn"
        assert (done.result["judge_outcome"], done.result["written_from"]) == ("failed", [2, 3])
        assert [(each["number"], each["kept"]) for each in done.result["judgements"]] == [
            (1, False),
            (2, True),
            (3, True),
        ]
        assert [bar["judged"] for bar in done.result["bars"]] == [1]
        assert done.error_kinds["keep_passages", "Fallback"] == 1

    def test_no_more_are_kept_than_wanted_even_where_the_fewest_are_more(self, in_ragenta: Scripted) -> None:
        result = in_ragenta.ask(ONE_THING, well_behaved(judge=[YES]), top_k=3, min_kept=3, answer_passages=1).result
        assert (result["written_from"], result["bars"][0]["kept"]) == ([1], 1)


def room_for(*titles: str) -> int:
    """The characters that passages take of a prompt."""
    return sum(len(title) + len(text) for _, title, text in PASSAGES if title in titles)


class TestFollowUps:
    def test_a_passage_that_was_kept_and_not_shown_for_want_of_room_is_judged_and_shown(
        self, in_ragenta: Scripted, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        room = room_for("Tarn Dam", "Flood of 1871")
        monkeypatch.setattr(ChatFinalPredictor, "budget_characters", room)
        for_the_question = judged_at({"Tarn Dam": 4.0, "Flood of 1871": 3.0, "Ada Brandt": 2.0})

        def judge(body: Mapping[str, Any]) -> ReplyLike:
            shown = shown_to_model(body)
            if shown["question"] == TWO_THINGS:
                return for_the_question(body)  # type: ignore[operator]
            return YES if shown["title"] == "Ada Brandt" else NO

        result = in_ragenta.ask(TWO_THINGS, well_behaved(judge=judge), top_k=3, n=5.0).result
        first, second = (
            [passage["number"] for passage in shown_to_model(request.body)["passages"]]
            for request in in_ragenta.requests_of("final predictor")
        )
        assert (first, second) == ([1, 2], [1, 3])
        assert [(each["number"], each["kept"]) for each in result["judgements"] if each["question"] == TWO_THINGS] == [
            (number, True) for number in (1, 2, 3)
        ], "the third was kept, and not shown"
        assert [(each["outcome"], each["passages"]) for each in result["follow_ups"]] == [("found", [3])]
        assert result["answer"] == f"{BUILDER_ANSWERED} Ada Brandt was born in Lisk [3]."

    def test_a_completion_that_answers_a_component_less_gives_way_to_the_answer_before_it(
        self, in_ragenta: Scripted
    ) -> None:
        other = assessment([(THE_BUILDER, PARTIALLY, [1]), (THE_BIRTHPLACE, FULLY, [2])], [(1, [1]), (2, [3])])
        done = in_ragenta.ask(
            TWO_THINGS,
            well_behaved(claim_judge=lambda body: other if len(shown_to_model(body)["claims"]) == 2 else checks(body)),
        )
        assert done.error_kinds == {("plan_follow_ups", "EarlierAnswer"): 1}
        assert (done.result["answer"], done.result["written_from"]) == (BUILDER_ANSWERED, [1])
        assert done.result["coverage"] == PARTIALLY, "as it is of the completion"
        assert [each["coverage"] for each in done.result["components"]] == [FULLY, NOT]


class TestClaims:
    def test_one_that_cites_another_passage_than_says_it_is_marked_and_no_refusal(self, answered: Answered) -> None:
        done = answered("Marn was founded in 1203 [2].", of_one_thing((1, [1])))
        (claim,) = done.result["claims"]
        assert (claim["verdict"], claim["kept"], claim["supported_by"]) == ("unsupported", True, [1])
        assert (done.result["answer"], done.result["refused"]) == (f"Marn was founded in 1203 [2]. {MARK}", False)
        assert (done.result["coverage"], done.result["errors"]) == (PARTIALLY, [])

    def test_or_removed_where_that_is_wanted(self, answered: Answered) -> None:
        reply = of_one_thing((1, [1]), (2, [2]), listed=(1, 2))
        result = answered(f"{FOUNDED} {ORGANS}", reply, unsupported_claims="remove").result
        assert (result["answer"], result["coverage"]) == (FOUNDED, PARTIALLY)
        assert result["claims"][1]["supported_by"] == [2]

    def test_none_is_lost_since_no_component_lists_it(self, answered: Answered) -> None:
        result = answered(f"{ORGANS} {FOUNDED}", of_one_thing((1, []), (2, [1]))).result
        assert (result["answer"], result["refused"]) == (f"{ORGANS} {MARK} {FOUNDED}", False)
        assert (result["coverage"], result["components"][0]["coverage"]) == (PARTIALLY, PARTIALLY)

    def test_what_the_judge_says_is_not_answered_stays_so(self, answered: Answered) -> None:
        result = answered(FOUNDED, of_one_thing((1, [1]), coverage=NOT)).result
        assert (result["refused"], result["coverage"]) == (True, NOT)
        assert [(each["verdict"], each["kept"]) for each in result["claims"]] == [("supported", False)]


class TestWordsInPlaceOfAJudge:
    """They are no judgement: what they do not find is marked, whatever the settings say of unsupported claims."""

    def test_they_never_refuse_an_answer_and_never_remove_a_claim(self, answered: Answered) -> None:
        for how in ("mark", "remove"):
            paraphrased = "Sie entstand vor langer Zeit [1]."
            result = answered(paraphrased, "of no use", unsupported_claims=how, max_json_retries=0).result
            assert (result["answer"], result["refused"]) == (f"{paraphrased} {MARK}", False), how
            assert (result["claims_checked_by"], result["coverage"]) == ("words", NOT), how
            assert [(each["verdict"], each["kept"]) for each in result["claims"]] == [("unsupported", True)], how
            assert [mark["number"] for mark in result["citations"]] == [1], how


class TestMarks:
    def test_a_model_that_marks_its_own_claims_is_not_believed(self, answered: Answered) -> None:
        result = answered(f"Marn was founded in 1203 {MARK} [1]. {MARK.upper()}", of_one_thing((1, [1]))).result
        assert (result["answer"], result["claims"][0]["verdict"]) == (FOUNDED, "supported")


class TestOtherWorkflows:
    def test_mara_refuses_the_settings_of_ragenta(self, ragenta_settings: MakeContext) -> None:
        with pytest.raises(BadInput, match="Workflow mara was given settings of workflow ragenta"):
            run(ragenta_settings(model="offline"), ONE_THING)


@pytest.fixture
def own_world(tmp_path: Path, embedder: HashEmbedder) -> Path:
    """The small world in a workspace of the test's own."""
    return hashed_world(tmp_path)


def index_anew(workspace: Path) -> None:
    """Publish another generation, in which a passage more is about the birthplace."""
    newer = workspace.parent / "newer.jsonl"
    write_lines(newer, [{"id": "lisk", "title": "Lisk", "text": "Lisk is where Ada Brandt was born."}])
    index_sources([newer], workspace, extractor=OfflineExtractor())


def all_of(workspace: Path) -> dict[str, Any]:
    """Settings with which the hashed vectors do not matter: every passage is found."""
    return {"workspace": str(workspace), "top_k": len(PASSAGES), "follow_up_passages": len(PASSAGES) + 1}


def test_in_a_newer_generation_a_follow_up_finds_nothing_and_says_so(own_world: Path, in_ragenta: Scripted) -> None:
    checked: list[str] = []

    def checks_and_indexes(body: Mapping[str, Any]) -> str:
        if not checked:
            index_anew(own_world)
        checked.append(checks(body))
        return checked[-1]

    done = in_ragenta.ask(TWO_THINGS, well_behaved(claim_judge=checks_and_indexes), **all_of(own_world))
    result = done.result
    assert done.error_kinds == {("search_follow_up", "IndexedAnew"): 1}
    assert result["plain_answer"] == "The Tarn Dam was built by Ada Brandt."
    assert (result["follow_ups"][0]["outcome"], len(result["passages"])) == ("nothing new", len(PASSAGES))
    assert "lisk" not in {hit["id"] for hit in result["passages"]}
    assert len(result["written_from"]) == 1


def test_a_fork_asks_questions_of_ones_own_in_a_round_that_is_not_done_yet(in_ragenta: Scripted) -> None:
    graph, thread = ragenta_on_a_thread()
    in_ragenta.server.script(well_behaved(claim_judge=lambda body: checks(body, follow_up="")))
    graph.invoke({"question": TWO_THINGS}, thread, context=in_ragenta.settings())
    at = next(past for past in graph.get_state_history(thread) if past.next == ("plan_follow_ups",))
    for round_, outcome in ((1, "found"), (2, "not asked")):
        mine = {"question": FOLLOW_UP, "component": "?", "round": round_, "outcome": "not asked", "passages": []}
        fork = graph.update_state(at.config, {"follow_ups": [mine]}, as_node="check_claims")
        result = graph.invoke(None, fork, context=in_ragenta.settings())
        assert [each["outcome"] for each in result["follow_ups"]] == [outcome]
