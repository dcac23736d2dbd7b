"""Follow-up questions: judged like the rest, merged under new numbers, within their budget, to complete the draft."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from itertools import count
from typing import Any

from graph.retrieve.modes import Mode
from tests.scripted_server import Reply, Script, ScriptedServer
from tests.workflows.ragenta_world import (
    BUILDER_ANSWERED,
    FOLLOW_UP,
    NO,
    REFUSED,
    SAID,
    SUPPORTS,
    THE_BIRTHPLACE,
    THE_BUILDER,
    TWO_THINGS,
    YES,
    assessment,
    chat_requests,
    checks,
    in_turn,
    quick_ragenta,
    ragenta_on_a_thread,
    well_behaved,
    writes,
)
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import MALFORMED, run, shown_to_model

COMPLETED = f"{BUILDER_ANSWERED} Ada Brandt was born in Lisk [3]."


def asked_of(server: ScriptedServer, role: str) -> list[tuple[str, str]]:
    """Return the question and the passage's title of each request of a role."""
    shown = [shown_to_model(request.body) for request in server.requests_of(role)]
    return [(each["question"], each["title"]) for each in shown]


def says_yes_to(titles: Collection[str]) -> Script:
    return lambda body: YES if shown_to_model(body)["title"] in titles else NO


def says_yes_for(titles: Mapping[str, str]) -> Script:
    """Return a judge that finds one passage helpful for each question, by title."""

    def reply(body: Mapping[str, Any]) -> Reply:
        shown = shown_to_model(body)
        return YES if shown["title"] == titles.get(shown["question"]) else NO

    return reply


def outcomes(result: Mapping[str, Any]) -> list[tuple[str, str, list[int]]]:
    return [(each["question"], each["outcome"], each["passages"]) for each in result["follow_ups"]]


def follows_up(*rounds: list[str]) -> Script:
    """Return a claim judge for which the second thing stays unanswered, and that asks these questions after it."""

    turns = count()

    def reply(body: Mapping[str, Any]) -> str:
        questions = rounds[min(next(turns), len(rounds) - 1)]
        said = json.loads(checks(body))
        said["components"][1].update(coverage="NOT ANSWERED", claims=[])
        said["follow_ups"] = [{"component": 2, "question": question} for question in questions]
        return json.dumps(said)

    return reply


def test_what_a_follow_up_finds_completes_the_draft_and_its_citations_stay(in_ragenta: Scripted) -> None:
    done = in_ragenta.ask(TWO_THINGS)
    passages = [(hit["number"], hit["id"], hit.get("follow_up")) for hit in done.result["passages"]]
    assert passages == [(1, "tarn-dam", None), (2, "flood", None), (3, "brandt", 1)]
    assert done.result["answer"] == COMPLETED
    assert [(mark["number"], mark["passage_id"]) for mark in done.result["citations"]] == [
        (1, "tarn-dam"),
        (3, "brandt"),
    ]
    assert done.result["follow_ups"] == [
        {"question": FOLLOW_UP, "component": THE_BIRTHPLACE, "round": 1, "outcome": "found", "passages": [3]}
    ]
    claims = [(claim["number"], claim["cited"], claim["component"]) for claim in done.result["claims"]]
    assert claims == [(1, [1], 1), (2, [3], 2)]
    assert (done.result["coverage"], done.result["written_from"]) == ("FULLY ANSWERED", [1, 3])
    assert done.result["errors"] == []
    assert done.result["usage"]["calls"] == chat_requests(in_ragenta.server) == 10
    once, twice = ("search_follow_up", "merge_passages"), ("keep_passages", "write_answer", "check_claims")
    assert [done.visits[node] for node in (*once, *twice)] == [1, 1, 2, 2, 2]
    for role in ("predictor", "judge"):
        judged = [(TWO_THINGS, "Tarn Dam"), (TWO_THINGS, "Flood of 1871"), (FOLLOW_UP, "Ada Brandt")]
        assert sorted(asked_of(in_ragenta.server, role)) == sorted(judged), "no passage that is kept is judged again"


def test_the_draft_is_shown_with_what_was_asked_since_and_with_all_kept_passages(in_ragenta: Scripted) -> None:
    result = in_ragenta.ask(TWO_THINGS).result
    first, second = in_ragenta.requests_of("final predictor")
    assert "draft" not in shown_to_model(first.body)
    shown = shown_to_model(second.body)
    assert (shown["question"], shown["draft"]) == (TWO_THINGS, BUILDER_ANSWERED)
    assert shown["follow_up_questions"] == [FOLLOW_UP]
    assert {passage["number"]: passage["title"] for passage in shown["passages"]} == {1: "Tarn Dam", 3: "Ada Brandt"}
    assert result["final_prompt"] == "\n\n".join(message["content"] for message in second.body["messages"])


def test_passages_of_follow_ups_are_judged_for_the_follow_up_and_have_a_bar_of_their_own(in_ragenta: Scripted) -> None:
    result = in_ragenta.ask(TWO_THINGS, follow_up_passages=3).result
    judged = [(each["question"], each["number"], each["kept"]) for each in result["judgements"]]
    of_the_question = [(TWO_THINGS, 1, True), (TWO_THINGS, 2, False)]
    assert judged == [*of_the_question, (FOLLOW_UP, 3, True), (FOLLOW_UP, 4, False)]
    bars = [(bar["question"], bar["judged"], bar["kept"]) for bar in result["bars"]]
    assert bars == [(TWO_THINGS, 2, 1), (FOLLOW_UP, 2, 1)]


def test_a_passage_that_was_rejected_is_judged_anew_and_keeps_its_number(in_ragenta: Scripted) -> None:
    result = in_ragenta.ask(TWO_THINGS, top_k=3).result
    passages = [(hit["number"], hit["id"], hit.get("follow_up")) for hit in result["passages"]]
    assert passages == [(1, "tarn-dam", None), (2, "flood", None), (3, "brandt", None)]
    of_brandt = [(e["question"], e["kept"]) for e in result["judgements"] if e["passage_id"] == "brandt"]
    assert of_brandt == [(TWO_THINGS, False), (FOLLOW_UP, True)]
    assert result["answer"] == COMPLETED
    assert outcomes(result) == [(FOLLOW_UP, "found", [3])]


def test_a_follow_up_that_finds_nothing_leaves_the_answer_as_it_was(in_ragenta: Scripted) -> None:
    for outcome, supported, top_k, judged in (("nothing found", ["Tarn Dam"], 2, 3), ("nothing new", list(SAID), 4, 4)):
        scripts = well_behaved(judge=says_yes_to(supported), final_predictor=[BUILDER_ANSWERED])
        done = in_ragenta.ask(TWO_THINGS, scripts, top_k=top_k, follow_up_passages=2)
        assert outcomes(done.result) == [(FOLLOW_UP, outcome, [])]
        assert (done.result["answer"], done.result["coverage"]) == (BUILDER_ANSWERED, "PARTIALLY ANSWERED")
        assert done.visits["write_answer"] == done.visits["check_claims"] == done.visits["merge_passages"] == 1
        assert len(done.result["judgements"]) == judged, outcome
        assert done.result["usage"]["calls"] == chat_requests(in_ragenta.server)


def test_a_follow_up_none_of_whose_passages_could_be_judged_says_so(in_ragenta: Scripted) -> None:
    fails = lambda body: "Perhaps" if shown_to_model(body)["question"] == FOLLOW_UP else YES  # noqa: E731
    result = in_ragenta.ask(
        TWO_THINGS, well_behaved(judge=fails, final_predictor=[BUILDER_ANSWERED]), follow_up_passages=3
    ).result
    assert outcomes(result) == [(FOLLOW_UP, "not judged", [])]
    assert (result["answer"], result["judge_outcome"]) == (BUILDER_ANSWERED, "kept")
    unjudged = [each for each in result["judgements"] if each["judged_by"] == "unjudged"]
    assert {each["question"] for each in unjudged} == {FOLLOW_UP}
    assert [error["node"] for error in result["errors"]].count("leave_unjudged") == len(unjudged)


def test_follow_ups_take_turns_and_a_passage_of_two_is_judged_for_each_under_one_number(in_ragenta: Scripted) -> None:
    orlo = "Where was Duke Orlo born?"
    result = in_ragenta.ask(
        TWO_THINGS,
        well_behaved(
            claim_judge=in_turn(checks, follow_up_reply([FOLLOW_UP, orlo])),
            judge=says_yes_for({**SUPPORTS, orlo: "Duke Orlo"}),
        ),
        follow_up_passages=4,
    ).result
    passages = [(hit["number"], hit["id"], hit["follow_up"]) for hit in result["passages"][2:]]
    assert passages[:2] == [(3, "brandt", 1), (4, "orlo", 2)]
    assert len({hit["id"] for hit in result["passages"]}) == len(result["passages"])
    assert [hit["number"] for hit in result["passages"]] == list(range(1, len(result["passages"]) + 1))
    judged = [asked for asked in asked_of(in_ragenta.server, "judge") if asked[0] != TWO_THINGS]
    assert len(judged) == len(set(judged))
    assert {(FOLLOW_UP, "Ada Brandt"), (orlo, "Ada Brandt")} <= set(judged)
    assert outcomes(result) == [(FOLLOW_UP, "found", [3]), (orlo, "found", [4])]
    assert result["written_from"] == [1, 3, 4]
    (draft,) = [shown_to_model(r.body) for r in in_ragenta.requests_of("final predictor")[1:]]
    assert draft["follow_up_questions"] == [FOLLOW_UP, orlo]


def follow_up_reply(questions: list[str]) -> str:
    """The claim judge's reply to the first answer."""
    return assessment(
        [(THE_BUILDER, "FULLY ANSWERED", [1]), (THE_BIRTHPLACE, "NOT ANSWERED", [])],
        [(1, [1])],
        [(2, question) for question in questions],
    )


def test_each_round_has_all_its_attempts(in_ragenta: Scripted) -> None:
    def malformed_twice(script: Any) -> Script:
        turns = count()
        return lambda body: MALFORMED if next(turns) % 3 < 2 else script(body)

    proper = well_behaved()
    for role, node in (("final predictor", "write_answer"), ("claim judge", "judge_claims")):
        result = in_ragenta.ask(TWO_THINGS, {**proper, role: malformed_twice(proper[role])}, max_json_retries=2).result
        assert [(error["node"], error["attempt"]) for error in result["errors"]] == [(node, 1), (node, 2)] * 2
        assert result["answer"] == COMPLETED, role


def test_only_supported_claims_are_in_the_draft(in_ragenta: Scripted) -> None:
    first = f"{SAID['Tarn Dam']} [1]. It was built in 1999 [1]. It is tall [1]."
    assessed = assessment(
        [(THE_BUILDER, "FULLY ANSWERED", [1]), (THE_BIRTHPLACE, "NOT ANSWERED", [])],
        [(1, [1]), (2, []), (3, [1])],
        [(2, FOLLOW_UP)],
        irrelevant=(3,),
    )
    result = in_ragenta.ask(
        TWO_THINGS, well_behaved(final_predictor=in_turn(writes, first), claim_judge=in_turn(checks, assessed))
    ).result
    assert shown_to_model(in_ragenta.requests_of("final predictor")[1].body)["draft"] == BUILDER_ANSWERED
    assert result["answer"] == COMPLETED


def test_after_a_refusal_the_answer_is_written_without_a_draft(in_ragenta: Scripted) -> None:
    nothing = assessment(
        [(THE_BUILDER, "NOT ANSWERED", []), (THE_BIRTHPLACE, "NOT ANSWERED", [])], [], [(2, FOLLOW_UP)]
    )
    result = in_ragenta.ask(
        TWO_THINGS, well_behaved(final_predictor=in_turn(writes, REFUSED), claim_judge=in_turn(checks, nothing))
    ).result
    assert "draft" not in shown_to_model(in_ragenta.requests_of("final predictor")[1].body)
    assert result["plain_answer"] == "Ada Brandt was born in Lisk. The Tarn Dam was built by Ada Brandt."
    assert (result["refused"], result["coverage"]) == (False, "FULLY ANSWERED")


def test_a_completion_that_loses_a_citation_is_malformed(in_ragenta: Scripted) -> None:
    lost = "Ada Brandt was born in Lisk [3]."

    def forgets(times: int) -> Script:
        return lambda body: lost if "draft" in shown_to_model(body) and len(body["messages"]) < times else writes(body)

    for times, refusals in ((3, 1), (9, 3)):
        result = in_ragenta.ask(TWO_THINGS, well_behaved(final_predictor=forgets(times))).result
        refused = [error for error in result["errors"] if error["node"] == "write_answer"]
        assert len(refused) == refusals
        assert all("no longer cites 1:" in error["message"] and error["raw"] == lost for error in refused)
        assert result["answer"].startswith(BUILDER_ANSWERED)
        assert {mark["number"] for mark in result["citations"]} == {1, 3}
        assert result["claims"][0]["verdict"] == "supported"
        if refusals == 1:
            assert result["answer"] == COMPLETED
    assert "**She was born in Lisk.** [3]" in result["answer"]
    (fallback,) = [error for error in result["errors"] if error["kind"] == "Fallback"]
    assert (fallback["node"], fallback["attempt"]) == ("quote_passages", 3)


def test_follow_ups_are_asked_in_so_many_rounds(in_ragenta: Scripted) -> None:
    questions = [FOLLOW_UP, "Where was Duke Orlo born?", "What is Kesh known for?"]
    finds = dict(zip(questions, ("Ada Brandt", "Duke Orlo", "Kesh"), strict=True))
    for rounds in (0, 2):
        claim_judge = follows_up(*([question] for question in questions))
        scripts = well_behaved(claim_judge=claim_judge, judge=says_yes_for({**SUPPORTS, **finds}))
        done = in_ragenta.ask(TWO_THINGS, scripts, follow_up_rounds=rounds)
        asked = [(each["question"], each["round"], each["outcome"]) for each in done.result["follow_ups"]]
        assert asked == [(question, place, "found") for place, question in enumerate(questions[:rounds], start=1)]
        assert done.visits["write_answer"] == done.visits["check_claims"] == rounds + 1
        judged = asked_of(in_ragenta.server, "judge")
        assert len(judged) == len(set(judged))
        passages = done.result["passages"]
        found_by = [hit["follow_up"] for hit in passages if "follow_up" in hit]
        assert found_by == sorted(found_by)
        assert [hit["number"] for hit in passages] == list(range(1, len(passages) + 1))
        assert done.result["answer"].startswith(BUILDER_ANSWERED)
        assert done.result["usage"]["calls"] == chat_requests(in_ragenta.server)
        last = shown_to_model(in_ragenta.requests_of("claim judge")[-1].body)
        assert {passage["number"] for passage in last["passages"]} == set(done.result["written_from"])


def test_no_more_follow_ups_are_asked_than_wanted_and_the_others_are_told(in_ragenta: Scripted) -> None:
    questions = [FOLLOW_UP, "Where was Duke Orlo born?", "What is Kesh known for?", "Who rebuilt the Sund Bridge?"]
    for most, dropped in ((1, ["3"]), (0, [])):
        scripts = well_behaved(claim_judge=follows_up(questions), judge=says_yes_for({TWO_THINGS: "Tarn Dam"}))
        done = in_ragenta.ask(TWO_THINGS, scripts, max_follow_ups=most)
        assert [each["question"] for each in done.result["follow_ups"]] == questions[:most]
        assert done.visits["search_follow_up"] == most
        messages = [error["message"] for error in done.result["errors"] if error["kind"] == "DroppedFollowUps"]
        assert [message.split()[0] for message in messages] == dropped, "told where any is wanted"


def test_without_judges_the_best_passages_of_each_follow_up_are_kept(in_ragenta: Scripted) -> None:
    result = in_ragenta.ask(TWO_THINGS, judge_passages=False, answer_passages=1, follow_up_passages=3).result
    assert outcomes(result) == [(FOLLOW_UP, "found", [3])]
    assert result["plain_answer"] == "The Tarn Dam was built by Ada Brandt. Ada Brandt was born in Lisk."
    assert in_ragenta.requests_of("judge") == in_ragenta.requests_of("predictor") == []


def test_on_a_thread_follow_ups_run_as_without_one(in_ragenta: Scripted) -> None:
    graph, thread = ragenta_on_a_thread()
    context = in_ragenta.settings(mode=Mode.MARA, top_k=1)
    saved = graph.invoke({"question": TWO_THINGS}, thread, context=context)
    plain = run(context, TWO_THINGS, quick_ragenta).result
    assert {**saved, "timings_ms": {}} == {**plain, "timings_ms": {}}
    assert saved["timings_ms"].keys() == plain["timings_ms"].keys()


def test_a_follow_up_that_cannot_be_a_question_does_not_break_the_run(in_ragenta: Scripted) -> None:
    odd = ["\\ud800 lone?", "\\u0000", " \\n ", "x" * 501, "# Judge\\n```json"]
    for question in odd:
        reply = follow_up_reply([]).replace(
            '"follow_ups": []', f'"follow_ups": [{{"component": 2, "question": "{question}"}}]'
        )
        result = in_ragenta.ask(
            TWO_THINGS, well_behaved(claim_judge=in_turn(checks, reply), judge=says_yes_for({TWO_THINGS: "Tarn Dam"}))
        ).result
        assert result["answer"] == BUILDER_ANSWERED, question
