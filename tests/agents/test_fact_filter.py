from __future__ import annotations

import json

import pytest

from agents.fact_filter import ChatFactFilter, FactChoice, FactFilter, OfflineFactFilter
from graph.errors import MalformedReply
from graph.schema import Fact, RelationType, ScoredFact
from tests.chatting import model_on
from tests.scripted_server import ScriptedServer, scripted


def scored(subject: str, predicate: str, object_: str, score: float) -> ScoredFact:
    return ScoredFact(Fact(subject, predicate, object_, RelationType.ATTRIBUTION), score)


COMPOSED = scored("Salka", "composed by", "Ivar Lund", 0.9)
PREMIERED = scored("Salka", "premiered in", "1911", 0.8)
BORN = scored("Ivar Lund", "born in", "Aalborg", 0.7)
CANDIDATES = (COMPOSED, PREMIERED, BORN)


def filter_on(server: ScriptedServer) -> FactFilter:
    return ChatFactFilter(model_on(server))


def choose(facts: object, max_facts: int = 4) -> FactChoice:
    with scripted([json.dumps({"facts": facts})]) as server:
        return filter_on(server).choose("Where was the composer of Salka born?", CANDIDATES, max_facts)


def test_picked_candidates_are_kept_once_in_the_candidates_order_and_inventions_counted() -> None:
    assert choose([3, 1, 3]) == FactChoice((COMPOSED, BORN))
    for number in (0, -1, 4, 2**70):
        assert choose([number, 1]) == FactChoice((COMPOSED,), dropped=1)
    assert choose([3, 2, 1, 9], max_facts=2) == FactChoice((COMPOSED, PREMIERED), dropped=1)


def test_nothing_but_inventions_or_a_reply_of_another_shape_is_malformed() -> None:
    for reply in (
        *('{"facts": "none"}', '{"facts": ["1"]}', '{"facts": [1.5]}', '{"facts": [true]}', '{"facts": [[1]]}'),
        *('{"facts": [["Salka", "composed by", "Ivar Lund"]]}', '{"chosen": []}', "[]", '{"facts": [1'),
    ):
        with scripted([reply]) as server, pytest.raises(MalformedReply):
            filter_on(server).choose("Where?", CANDIDATES, 4)
    raw = "<think>hm</think>" + json.dumps({"facts": [4, 0]})
    with scripted([raw]) as server, pytest.raises(MalformedReply, match="they are numbered 1 to 3") as caught:
        filter_on(server).choose("Where?", CANDIDATES, 4)
    assert caught.value.raw == raw, "as it came"


def test_the_request_states_the_limit_lets_a_grammar_enforce_it_and_shows_one_wording_once() -> None:
    twin = ScoredFact(Fact("Salka", "composed by", "Ivar Lund", RelationType.TEMPORAL), 0.5)
    with scripted(['{"facts": [1]}']) as server:
        assert filter_on(server).choose("Where?", (), 4) == FactChoice(())
        assert server.requests == [], "nothing is asked without candidates"
        assert filter_on(server).choose("Where?", (COMPOSED, twin, BORN), 2).kept == (COMPOSED,), "the better one"
    (request,) = server.requests
    material = json.loads(request.text_of(1).splitlines()[2])
    assert material["facts"] == [[1, "Salka", "composed by", "Ivar Lund"], [2, "Ivar Lund", "born in", "Aalborg"]]
    assert material["max_facts"] == 2
    facts = request.body["response_format"]["json_schema"]["schema"]["properties"]["facts"]
    assert facts == {"type": "array", "items": {"type": "integer", "enum": [1, 2]}, "maxItems": 2}


def kept_offline(question: str, *candidates: ScoredFact, max_facts: int = 4) -> list[str]:
    return [choice.fact.text for choice in OfflineFactFilter().choose(question, candidates, max_facts).kept]


class TestOffline:
    FOUNDED = "When was Nissan founded?"

    def test_facts_that_share_words_and_score_near_the_best_stay(self) -> None:
        seat, vans = scored("Nissan", "headquartered", "Yokohama", 0.8), scored("Nissan", "sold", "vans", 0.3)
        facts = kept_offline(self.FOUNDED, scored("Nissan", "founded", "1933", 0.9), seat, vans)
        assert facts == ["Nissan founded 1933", "Nissan headquartered Yokohama"]
        assert kept_offline(self.FOUNDED, scored("Nissan", "founded", "1933", 0.1)) == []

    def test_a_fact_without_a_shared_word_needs_a_convincing_score(self) -> None:
        question = "Where does the river begin?"
        assert kept_offline(question, scored("Rhône", "springs from", "glacier", 0.5)) == []
        assert kept_offline(question, scored("Rhône", "springs from", "glacier", 0.7)) == ["Rhône springs from glacier"]

    def test_the_fact_about_the_named_entity_comes_before_one_of_equal_score(self) -> None:
        other, named = (scored(name, "directed by", "Autumn de Wilde", 0.6) for name in ("Persuasion", "Emma"))
        assert kept_offline("Who directed Emma?", other, named, max_facts=1) == ["Emma directed by Autumn de Wilde"]
