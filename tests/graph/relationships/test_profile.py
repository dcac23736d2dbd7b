"""The profile of a user: what was read, marked and asked, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from graph.relationships.profile import (
    REACH,
    Candidate,
    Placed,
    Profile,
    Reason,
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
    return {key: round(interest.weight, 9) for key, interest in profile.interests.items()}


def worth(told: float, rarity: float = RARITY_OF_ONE) -> float:
    """Return the weight of an interest, by all that tells of it."""
    return round(rarity * told / (0.25 + told), 9)


PORT, SILK = entity_id("Port"), entity_id("Silk")


def test_a_stranger_has_none(record: RelationshipRecord) -> None:
    for user_id in ("tom", "unknown"):
        assert not profile_of(record, user_id)


def test_a_view_weighs_half_and_goes_to_the_concepts_of_the_document(record: RelationshipRecord) -> None:
    record.link(viewed("tom", "d-port"))
    profile = profile_of(record, "tom")
    assert weights(profile) == {PORT: worth(0.5 * 0.9, RARITY_OF_TWO)}
    reason = profile.interests[PORT]
    assert (reason.told, reason.document) == ("you read D-Port, which explains Port", "d-port")


def test_a_question_weighs_one_and_answers_and_others_questions_nothing(record: RelationshipRecord) -> None:
    record.put_node(conversation("own"))
    say(record, "own", "q", "Silk", by="tom")
    say(record, "own", "a", "Paris", at=1)
    say(record, "own", "other", "Port", by="mia", at=2)
    profile = profile_of(record, "tom")
    assert weights(profile) == {SILK: worth(1)}
    assert (profile.interests[SILK].told, profile.interests[SILK].document) == ("you asked about Silk", "")


def test_a_document_weighs_by_how_often_and_long_it_was_read_or_its_mark(record: RelationshipRecord) -> None:
    for count, seconds, weight in [(1, None, 0.5), (3, None, 0.75), (1, 120, 0.75), (1, 0, 0.5)]:
        record.link(viewed("tom", "d-silk", count=count, seconds=seconds))
        assert weights(profile_of(record, "tom")) == {SILK: worth(weight)}
    record.link(viewed("tom", "d-silk", count=9, score=-0.5))
    assert profile_of(record, "tom") == Profile({}, {"d-silk": -0.5})


def test_what_was_done_a_half_life_before_the_last_counts_half_on_any_later_day(record: RelationshipRecord) -> None:
    record.link(viewed("tom", "d-silk", at="1999-03-01T00:00:00.000000+00:00"))
    assert weights(profile_of(record, "tom")) == {SILK: worth(0.5)}
    record.link(viewed("tom", "d-port", at="1999-03-31T00:00:00.000000+00:00"))
    assert weights(profile_of(record, "tom")) == {SILK: worth(0.25), PORT: worth(0.5 * 0.9, RARITY_OF_TWO)}


def interest(weight: float, concept: str = "silk") -> Reason:
    return Reason("you read On silk, which explains Silk", weight, concept, "d0")


def order(placed: Sequence[Placed]) -> list[int]:
    return [each.place for each in placed]


def test_a_passage_passes_those_above_it_that_are_less_near() -> None:
    ranking = [Candidate(f"p{place}", f"d{place}") for place in range(6)]
    ranking[5] = Candidate("p5", "d5", {"silk"})
    for weight, expected in ((0.8, [0, 1, 5, 2, 3, 4]), (0.5, [0, 1, 2, 3, 5, 4]), (0.2, [0, 1, 2, 3, 4, 5])):
        placed = personal_ranking(ranking, Profile({"silk": interest(weight)}))
        assert order(placed) == expected


def test_the_nearest_concept_counts_alone_and_marks_count_on_the_document_itself() -> None:
    two = Profile({"silk": interest(0.6), "port": interest(0.5, "port")})
    liked = Profile({}, {"d": 0.75})
    loathed = Profile({"silk": interest(0.25)}, {"d": -1.0})
    assert nearness(Candidate("p", "d", {"silk", "port"}), two) == nearness(Candidate("p", "d", {"silk"}), two)
    assert nearness(Candidate("p", "d"), two) == 0
    assert nearness(Candidate("p", "d"), liked) == 0.75
    assert nearness(Candidate("p", "d", {"silk"}), Profile(two.interests, liked.marks)) == 1
    assert nearness(Candidate("p", "d", {"silk"}), loathed) == -0.75


def test_reasons_come_by_weight_a_mark_first() -> None:
    interests = {"silk": interest(0.6), "port": interest(0.7, "port")}
    for weight, said in {1.0: "you marked it as relevant", -1.0: "you marked it as not relevant"}.items():
        (placed,) = personal_ranking([Candidate("p", "d", {"silk", "port"})], Profile(interests, {"d": weight}))
        assert placed.reasons == (Reason(said, weight, document="d"), interests["port"], interests["silk"])
        assert placed.shift == REACH * max(-1.0, min(1.0, 0.7 + weight))
