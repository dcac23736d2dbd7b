from __future__ import annotations

from graph.schema import ENTITY_RELATIONS, RelationType
from graph.taxonomy import question_cues, type_triple

HIERARCHICAL = RelationType.HIERARCHICAL
TEMPORAL = RelationType.TEMPORAL
SPATIAL = RelationType.SPATIAL
CAUSALITY = RelationType.CAUSALITY
ATTRIBUTION = RelationType.ATTRIBUTION


def check_types(relation: RelationType, statements: list[str]) -> None:
    """Hold each "predicate/object" to a type."""
    for statement in statements:
        predicate, end = statement.split("/")
        assert type_triple("X", predicate, end) == (relation, True), statement


class TestCanonicalNames:
    def test_a_predicate_that_names_the_type_of_a_fact_comes_before_every_cue(self) -> None:
        assert type_triple("Lisbon", "spatial", "1755") == (SPATIAL, True)
        assert type_triple("drought", "CAUSAL", "capital of misery") == (CAUSALITY, True)
        assert type_triple("Lisbon", "synonymy", "Lisboa") == (ATTRIBUTION, False), "no fact carries it"


class TestStatements:
    def test_the_object_decides_between_a_date_a_place_and_a_maker(self) -> None:
        for relation, statements in {
            TEMPORAL: ["founded/1933", "founded in/1933", "born in/1821", "was born on/5 May 1821", "生まれた/1933年"],
            SPATIAL: ["founded in/Yokohama", "born in/Paris"],
            ATTRIBUTION: [
                *("founded by/Yoshisuke Aikawa", "founded/Nissan"),
                *("wrote/1984", "has population of/1900", "has/1933", "directed/1917"),
            ],
        }.items():
            check_types(relation, statements)

    def test_the_cue_next_to_the_object_decides(self) -> None:
        for relation, statements in {
            HIERARCHICAL: ["is the capital of/Chile", "composed of/granite", "married/Bo", "PART_OF/Y", "part-of/Y"],
            TEMPORAL: ["is the date of/the treaty", "rose to power after/the war", "preceded by/Regency"],
            SPATIAL: [
                "is a city in/Chile",
                "bordered by/Peru",
                "based in/Peru",
                "aired on/Channel 4",
                "comes from/Peru",
            ],
            CAUSALITY: ["led to/reform", "resulted in/Peace", "killed by/frost"],
            ATTRIBUTION: [
                *("is a film directed by/Kim", "was named after/Ada", "composed by/Verdi", "led by/Ada"),
                *("based on/Emma", "known for her work on/Emma"),
            ],
        }.items():
            check_types(relation, statements)

    def test_after_a_bare_is_the_object_tells(self) -> None:
        for relation, statements in {
            HIERARCHICAL: ["is/a whale", "is/1993 film", "is/American actor", "is/capital of Chile"],
            ATTRIBUTION: ["is/author of Emma", "is/beautiful", "is/300 km", "is/Ada Byron"],
            TEMPORAL: ["is/1933"],
        }.items():
            check_types(relation, statements)

    def test_a_date_as_subject_tells_where_the_predicate_does_not(self) -> None:
        assert type_triple("1989", "saw", "elections") == (TEMPORAL, True)
        assert type_triple("1984", "written by", "Orwell") == (ATTRIBUTION, True)

    def test_no_cue_is_attribution_and_says_so_and_longer_words_hold_none(self) -> None:
        longer = ("disaster", "misadventure", "parting", "intoxicates", "causality-free")
        for triple in [
            ("", "", ""),
            ("X", "is", " "),
            ("А", "родился в", "Москва"),
            *(("X", word, "y") for word in longer),
        ]:
            assert type_triple(*triple) == (ATTRIBUTION, False), triple

    def test_a_preposition_alone_needs_a_name_to_be_a_place(self) -> None:
        assert type_triple("X", "shown at", "Oslo") == (SPATIAL, True)
        assert type_triple("X", "shown at", "dawn") == (ATTRIBUTION, False)


class TestQuestions:
    def test_the_words_of_a_question_tell_what_it_asks_for(self) -> None:
        for relation, questions in {
            TEMPORAL: ["When was Nissan founded?", "In which year did the mill close?"],
            CAUSALITY: ["What caused World War I?", "Why did the bridge fall?"],
            SPATIAL: ["Where is the museum?", "Which city hosts the fair?"],
            HIERARCHICAL: ["What is the capital of Chile?", "What kind of animal is an axolotl?"],
            ATTRIBUTION: ["Who wrote Emma?", "How many keys does a piano have?"],
        }.items():
            for question in questions:
                cues = question_cues(question)
                assert max(cues, key=lambda each: cues[each]) is relation, question

    def test_asking_outright_weighs_more_than_mentioning_and_without_cues_nothing_does(self) -> None:
        assert question_cues("When did it rain?")[TEMPORAL] > question_cues("What is a date palm?")[TEMPORAL] > 0
        for question in ("", "Tell me of it", "日産とは?", "¿Qué pasó?"):
            assert question_cues(question) == dict.fromkeys(ENTITY_RELATIONS, 0.0)
