"""Personal ranking: bounded, explained, and nobody else's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.construction.edges import EdgeKind
from graph.relations import PassageLink
from graph.relationships.profile import (
    REACH,
    Candidate,
    Did,
    Evidence,
    Interest,
    Placed,
    Profile,
    View,
    candidates_of,
    nearness,
    personal_ranking,
)
from graph.schema import RelationType, entity_id
from tests.builders import typed_graph

CONCEPTS = ["c0", "c1", "c2"]
DOCUMENTS = ["d0", "d1", "d2"]


def interest(weight: float, did: Did = Did.ASKED) -> Interest:
    return Interest("Silk", weight, Evidence(did, weight, "d0", "On silk"))


def order(placed: Sequence[Placed]) -> list[int]:
    return [each.place for each in placed]


candidates = st.lists(
    st.builds(Candidate, st.text(max_size=3), st.sampled_from(DOCUMENTS), st.frozensets(st.sampled_from(CONCEPTS))),
    max_size=20,
)
interests = st.dictionaries(st.sampled_from(CONCEPTS), st.floats(0, 0.999).map(interest))
views = st.builds(View, st.just("On silk"), st.integers(1, 5), st.floats(0, 1), st.booleans())
disliked = st.builds(View, st.just("On silk"), st.integers(1, 5), st.floats(-1, 0), st.just(True))
kind_profiles = st.builds(Profile, interests, st.dictionaries(st.sampled_from(DOCUMENTS), views))
profiles = st.builds(Profile, interests, st.dictionaries(st.sampled_from(DOCUMENTS), views | disliked))


@given(ranking=candidates)
def test_nobody_known_changes_nothing(ranking: list[Candidate]) -> None:
    assert personal_ranking(ranking, Profile()) == [Placed(place, 0.0, ()) for place in range(len(ranking))]


@given(ranking=candidates, profile=kind_profiles)
def test_no_passage_rises_or_falls_by_the_reach_or_more(ranking: list[Candidate], profile: Profile) -> None:
    placed = order(personal_ranking(ranking, profile))
    assert sorted(placed) == list(range(len(ranking)))
    assert all(abs(before - after) < REACH for after, before in enumerate(placed))


@given(ranking=candidates, profile=profiles)
def test_with_what_was_marked_as_not_relevant_none_moves_twice_as_far(
    ranking: list[Candidate], profile: Profile
) -> None:
    placed = personal_ranking(ranking, profile)
    assert all(abs(before - after) < 2 * REACH for after, before in enumerate(order(placed)))
    assert all(abs(each.shift) <= REACH for each in placed)


@given(ranking=candidates, profile=profiles)
def test_of_two_passages_that_are_equally_near_the_better_one_stays_before(
    ranking: list[Candidate], profile: Profile
) -> None:
    placed = personal_ranking(ranking, profile)
    for one, other in pairwise(placed):
        assert one.shift != other.shift or one.place < other.place


@given(ranking=candidates, profile=profiles)
def test_what_was_moved_of_itself_has_a_reason(ranking: list[Candidate], profile: Profile) -> None:
    assert all(bool(each.reasons) or not each.shift for each in personal_ranking(ranking, profile))


def test_a_passage_passes_those_above_it_that_are_less_near() -> None:
    ranking = [Candidate(f"p{place}", f"d{place}") for place in range(6)]
    ranking[5] = Candidate("p5", "d5", {"silk"})
    for weight, expected in ((0.8, [0, 1, 5, 2, 3, 4]), (0.5, [0, 1, 2, 3, 5, 4]), (0.2, [0, 1, 2, 3, 4, 5])):
        placed = personal_ranking(ranking, Profile({"silk": interest(weight)}))
        assert order(placed) == expected


def test_the_nearest_concept_counts_and_not_how_many_there_are() -> None:
    profile = Profile({"silk": interest(0.6), "port": interest(0.5)})
    assert nearness(Candidate("p", "d", {"silk", "port"}), profile) == nearness(Candidate("p", "d", {"silk"}), profile)


def test_views_of_a_document_count_by_its_concepts_and_marks_on_itself() -> None:
    seen = Profile({}, {"d": View("On silk", 3, 0.75, is_marked=False)})
    liked = Profile({}, {"d": View("On silk", 3, 0.75, is_marked=True)})
    loathed = Profile({"silk": interest(0.25)}, {"d": View("On silk", 3, -1.0, is_marked=True)})
    assert nearness(Candidate("p", "d"), seen) == 0
    assert nearness(Candidate("p", "d"), liked) == 0.75
    assert nearness(Candidate("p", "d", {"silk"}), loathed) == -0.75


@pytest.mark.parametrize(
    ("did", "told"), [(Did.ASKED, "you asked about Silk"), (Did.READ, "you read On silk, which explains Silk")]
)
def test_a_reason_tells_what_the_user_did_and_how_much_it_weighs(did: Did, told: str) -> None:
    (placed,) = personal_ranking([Candidate("p", "d", {"silk"})], Profile({"silk": interest(0.6, did)}))
    (reason,) = placed.reasons
    assert (reason.told, reason.weight, reason.concept, reason.document) == (told, 0.6, "silk", "d0")
    assert placed.shift == REACH * 0.6


@pytest.mark.parametrize(
    ("weight", "told"), [(1.0, "you marked it as relevant"), (-1.0, "you marked it as not relevant")]
)
def test_a_mark_is_told_first(weight: float, told: str) -> None:
    profile = Profile({"silk": interest(0.6)}, {"d": View("On silk", 1, weight, is_marked=True)})
    (placed,) = personal_ranking([Candidate("p", "d", {"silk"})], profile)
    assert [reason.told for reason in placed.reasons] == [told, "you asked about Silk"]


def test_candidates_have_the_concepts_that_their_passages_are_linked_with() -> None:
    mention = EdgeKind(RelationType.PRIMARY, PassageLink.MENTION)
    graph = typed_graph(2, 2, [(0, 2, mention, 0.5), (1, 2, mention, 0.5), (1, 3, mention, 0.5)])
    first, second = (entity_id(name) for name in graph.entity_names)
    assert [(each.id, set(each.concepts)) for each in candidates_of(graph, [1, 0])] == [
        ("p1", {second}),
        ("p0", {first, second}),
    ]
