"""The profile of a user: what was read, marked and asked, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.relationships.profile import Did, Profile, profile_of
from graph.relationships.record import RelationshipRecord
from graph.schema import entity_id
from tests.graph.relationships.small_graph import (
    CONCEPTS,
    EXPLAINED,
    conversation,
    say,
    small_record,
    user,
    viewed,
)

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
    for nobody in ("tom", "nobody", "' OR 1=1 --"):
        assert not profile_of(record, nobody)


def test_a_view_weighs_half_and_goes_to_the_concepts_of_the_document(record: RelationshipRecord) -> None:
    record.link(viewed("tom", "d-port"))
    profile = profile_of(record, "tom")
    assert profile.documents["d-port"].weight == 0.5
    told = 0.5 * 0.9
    assert weights(profile) == {"Port": round(RARITY_OF_TWO * told / (0.25 + told), 9)}
    best = profile.concepts[entity_id("Port")].best
    assert (best.did, best.document, best.title) == (Did.READ, "d-port", "D-Port")


def test_a_question_weighs_one(record: RelationshipRecord) -> None:
    record.put_node(conversation("own"))
    say(record, "own", "q", "Silk", by="tom")
    profile = profile_of(record, "tom")
    assert weights(profile) == {"Silk": round(RARITY_OF_ONE / 1.25, 9)}
    assert profile.concepts[entity_id("Silk")].best.did is Did.ASKED


def test_answers_and_the_questions_of_others_count_for_nothing(record: RelationshipRecord) -> None:
    record.put_node(conversation("own"))
    say(record, "own", "q", "Silk", by="tom")
    say(record, "own", "a", "Paris", at=1)
    say(record, "own", "other", "Port", by="mia", at=2)
    assert weights(profile_of(record, "tom")).keys() == {"Silk"}


@pytest.mark.parametrize(("count", "seconds", "weight"), [(1, None, 0.5), (3, None, 0.75), (1, 120, 0.75), (1, 0, 0.5)])
def test_a_document_weighs_more_the_more_often_and_the_longer_it_was_read(
    record: RelationshipRecord, count: int, seconds: int | None, weight: float
) -> None:
    record.link(viewed("tom", "d-port", count=count, seconds=seconds))
    assert profile_of(record, "tom").documents["d-port"].weight == weight


def test_a_mark_replaces_what_views_tell(record: RelationshipRecord) -> None:
    record.link(viewed("tom", "d-port", count=9, score=-0.5))
    profile = profile_of(record, "tom")
    assert profile.documents["d-port"].weight == -0.5
    assert profile.documents["d-port"].is_marked
    assert not profile.concepts


def test_what_was_done_a_half_life_before_the_last_counts_half(record: RelationshipRecord) -> None:
    record.link(viewed("tom", "d-port", at="2026-03-01T00:00:00.000000+00:00"))
    record.link(viewed("tom", "d-silk", at="2026-03-31T00:00:00.000000+00:00"))
    documents = profile_of(record, "tom").documents
    assert documents["d-port"].weight == pytest.approx(0.25)
    assert documents["d-silk"].weight == 0.5


def test_a_later_day_changes_no_profile(record: RelationshipRecord) -> None:
    """The half-life counts from what the user did last, so the same history gives the same profile at any time."""
    record.link(viewed("tom", "d-port", at="1999-03-01T00:00:00.000000+00:00"))
    assert profile_of(record, "tom").documents["d-port"].weight == 0.5


@given(
    others=st.lists(st.tuples(st.sampled_from(sorted(EXPLAINED)), st.integers(1, 9), st.none() | st.floats(-1, 1))),
    asked=st.lists(st.sampled_from(CONCEPTS)),
)
def test_nobodys_profile_changes_by_anothers_history(
    tmp_path_factory: pytest.TempPathFactory, others: list[tuple[str, int, float | None]], asked: list[str]
) -> None:
    with small_record(tmp_path_factory.mktemp("shared")) as record:
        before = profile_of(record, "mia")
        record.put_nodes([user("tom"), conversation("own")])
        record.link_all(viewed("tom", document, count, score=score) for document, count, score in others)
        for place, name in enumerate(asked):
            say(record, "own", f"t{place}", name, by="tom", at=place, when="2027-01-01T00:00:00.000000+00:00")
        assert before
        assert profile_of(record, "mia") == before
