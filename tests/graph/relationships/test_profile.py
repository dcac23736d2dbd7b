"""The profile of a user: what was read, marked and asked, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from graph.relationships.profile import (
    REACH,
    Candidate,
    Did,
    Evidence,
    Interest,
    Placed,
    Profile,
    View,
    nearness,
    personal_ranking,
    profile_of,
)
from graph.relationships.record import RelationshipRecord
from graph.schema import entity_id
from tests.graph.relationships.small_graph import conversation, say, small_record, user, viewed

RARITY_OF_ONE = 1.0
RARITY_OF_TWO = math.log(8 / 2) / math.log(8)
"""Of a concept that one, and that two, of the seven documents explain."""


@pytest.fixture
def record(tmp_path: Path) -> Iterator[RelationshipRecord]:
    with small_record(tmp_path) as record:
        record.put_node(user("tom"))
        yield record


def weights(profile: Profile) -> dict[str, float]:
    return {interest.name: round(interest.weight, 9) for interest in profile.concepts.values()}


def test_a_stranger_has_none(record: RelationshipRecord) -> None:
    for user_id in ("tom", "unknown"):
        assert not profile_of(record, user_id)


def test_a_view_weighs_half_and_goes_to_the_concepts_of_the_document(record: RelationshipRecord) -> None:
    record.link(viewed("tom", "d-port"))
    profile = profile_of(record, "tom")
    assert profile.documents["d-port"].weight == 0.5
    weight = 0.5 * 0.9
    assert weights(profile) == {"Port": round(RARITY_OF_TWO * weight / (0.25 + weight), 9)}
    best = profile.concepts[entity_id("Port")].best
    assert (best.did, best.document, best.title) == (Did.READ, "d-port", "D-Port")


def test_a_question_weighs_one_and_answers_and_others_questions_nothing(record: RelationshipRecord) -> None:
    record.put_node(conversation("own"))
    say(record, "own", "q", "Silk", by="tom")
    say(record, "own", "a", "Paris", at=1)
    say(record, "own", "other", "Port", by="mia", at=2)
    profile = profile_of(record, "tom")
    assert weights(profile) == {"Silk": round(RARITY_OF_ONE / 1.25, 9)}
    assert profile.concepts[entity_id("Silk")].best.did is Did.ASKED


def test_a_document_weighs_by_how_often_and_long_it_was_read_or_its_mark(record: RelationshipRecord) -> None:
    for count, seconds, weight in [(1, None, 0.5), (3, None, 0.75), (1, 120, 0.75), (1, 0, 0.5)]:
        record.link(viewed("tom", "d-port", count=count, seconds=seconds))
        assert profile_of(record, "tom").documents["d-port"].weight == weight
    record.link(viewed("tom", "d-port", count=9, score=-0.5))
    profile = profile_of(record, "tom")
    assert (profile.documents["d-port"].weight, profile.documents["d-port"].is_marked) == (-0.5, True)
    assert not profile.concepts


def test_what_was_done_a_half_life_before_the_last_counts_half_on_any_later_day(record: RelationshipRecord) -> None:
    record.link(viewed("tom", "d-port", at="1999-03-01T00:00:00.000000+00:00"))
    assert profile_of(record, "tom").documents["d-port"].weight == 0.5
    record.link(viewed("tom", "d-silk", at="1999-03-31T00:00:00.000000+00:00"))
    documents = profile_of(record, "tom").documents
    assert documents["d-port"].weight == pytest.approx(0.25)
    assert documents["d-silk"].weight == 0.5


def interest(weight: float, did: Did = Did.ASKED) -> Interest:
    return Interest("Silk", weight, Evidence(did, weight, "d0", "On silk"))


def order(placed: Sequence[Placed]) -> list[int]:
    return [each.place for each in placed]


def test_a_passage_passes_those_above_it_that_are_less_near() -> None:
    ranking = [Candidate(f"p{place}", f"d{place}") for place in range(6)]
    ranking[5] = Candidate("p5", "d5", {"silk"})
    for weight, expected in ((0.8, [0, 1, 5, 2, 3, 4]), (0.5, [0, 1, 2, 3, 5, 4]), (0.2, [0, 1, 2, 3, 4, 5])):
        placed = personal_ranking(ranking, Profile({"silk": interest(weight)}))
        assert order(placed) == expected


def test_the_nearest_concept_counts_alone_and_marks_count_on_the_document_itself() -> None:
    two = Profile({"silk": interest(0.6), "port": interest(0.5)})
    seen = Profile({}, {"d": View("On silk", 3, 0.75, is_marked=False)})
    liked = Profile({}, {"d": View("On silk", 3, 0.75, is_marked=True)})
    loathed = Profile({"silk": interest(0.25)}, {"d": View("On silk", 3, -1.0, is_marked=True)})
    assert nearness(Candidate("p", "d", {"silk", "port"}), two) == nearness(Candidate("p", "d", {"silk"}), two)
    assert nearness(Candidate("p", "d"), seen) == 0
    assert nearness(Candidate("p", "d"), liked) == 0.75
    assert nearness(Candidate("p", "d", {"silk"}), Profile(two.concepts, liked.documents)) == 1
    assert nearness(Candidate("p", "d", {"silk"}), loathed) == -0.75


def test_a_reason_tells_what_the_user_did_and_how_much_it_weighs_a_mark_first() -> None:
    ranking = [Candidate("p", "d", {"silk"})]
    for did, said in {Did.ASKED: "you asked about Silk", Did.READ: "you read On silk, which explains Silk"}.items():
        (placed,) = personal_ranking(ranking, Profile({"silk": interest(0.6, did)}))
        (reason,) = placed.reasons
        assert (reason.told, reason.weight, reason.concept, reason.document) == (said, 0.6, "silk", "d0")
        assert placed.shift == REACH * 0.6
    for weight, said in {1.0: "you marked it as relevant", -1.0: "you marked it as not relevant"}.items():
        profile = Profile({"silk": interest(0.6)}, {"d": View("On silk", 1, weight, is_marked=True)})
        (placed,) = personal_ranking(ranking, profile)
        assert [reason.told for reason in placed.reasons] == [said, "you asked about Silk"]
