from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.fact_filter import OfflineFactFilter
from graph.schema import Fact, RelationType, ScoredFact


def scored(subject: str, predicate: str, object: str, score: float) -> ScoredFact:
    return ScoredFact(Fact(subject, predicate, object, RelationType.ATTRIBUTION), score)


def kept(question: str, *candidates: ScoredFact, max_facts: int = 4) -> list[str]:
    return [choice.fact.text for choice in OfflineFactFilter().choose(question, candidates, max_facts).kept]


def test_facts_that_share_words_and_score_near_the_best_stay() -> None:
    assert kept(
        "When was Nissan founded?",
        scored("Nissan", "founded", "1933", 0.9),
        scored("Nissan", "headquartered", "Yokohama", 0.8),
        scored("Nissan", "sold", "vans", 0.3),
    ) == ["Nissan founded 1933", "Nissan headquartered Yokohama"]


def test_a_fact_without_a_shared_word_needs_a_convincing_score() -> None:
    question = "Where does the river begin?"
    assert kept(question, scored("Rhône", "springs from", "glacier", 0.5)) == []
    assert kept(question, scored("Rhône", "springs from", "glacier", 0.7)) == ["Rhône springs from glacier"]


def test_function_words_are_no_shared_words() -> None:
    assert kept("Who was in the band?", scored("he", "was in", "the army", 0.5)) == []


def test_a_low_score_is_dropped_whatever_words_it_shares() -> None:
    assert kept("When was Nissan founded?", scored("Nissan", "founded", "1933", 0.1)) == []


def test_the_fact_about_the_named_entity_comes_before_one_of_equal_score() -> None:
    assert kept(
        "Who directed Emma?",
        scored("Persuasion", "directed by", "Dearbhla Walsh", 0.6),
        scored("Emma", "directed by", "Autumn de Wilde", 0.6),
        max_facts=1,
    ) == ["Emma directed by Autumn de Wilde"]


def test_accents_and_scripts_do_not_hide_a_shared_word() -> None:
    assert kept("Who lives in Sao Tome?", scored("São Tomé", "home of", "Ana", 0.5)) == ["São Tomé home of Ana"]
    assert kept("日産の本社は?", scored("日産", "本社", "横浜", 0.5)) == ["日産 本社 横浜"]
    assert kept("Где Москва?", scored("МОСКВА", "столица", "Россия", 0.5)) == ["МОСКВА столица Россия"]


def test_nothing_is_chosen_from_nothing() -> None:
    choice = OfflineFactFilter().choose("When?", [], 4)
    assert choice.kept == ()
    assert choice.dropped == 0


names = st.text(alphabet="abc 日é", max_size=5)
candidate_lists = st.lists(st.builds(scored, names, names, names, st.floats(0, 1)), max_size=8)


@given(st.text(alphabet="abc 日é?", max_size=20), candidate_lists, st.integers(0, 5))
def test_a_choice_is_a_short_subsequence_of_the_candidates_and_always_the_same(
    question: str, candidates: list[ScoredFact], max_facts: int
) -> None:
    choice = OfflineFactFilter().choose(question, candidates, max_facts)
    rest = iter(candidates)
    assert all(any(fact is candidate for candidate in rest) for fact in choice.kept)
    assert len(choice.kept) <= max_facts
    assert choice == OfflineFactFilter().choose(question, candidates, max_facts)
