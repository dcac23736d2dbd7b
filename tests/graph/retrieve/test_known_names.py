from __future__ import annotations

from collections.abc import Iterator

import pytest

from graph.retrieve.known_names import KnownNames, Pronoun
from graph.retrieve.open_index import Index, open_index
from graph.retrieve.selection import Selection
from tests.builders import HashEmbedder, passage_of, publish_workspace

PASSAGES = [
    passage_of("orlo", "Orlo Brandt", "Orlo Brandt built ships. He lived in Marn, and it was his home."),
    passage_of("ada", "Ada Brandt", "Ada Brandt was an engineer. She was born in Lisk."),
    passage_of("marn", "Marn", "Marn is a town. Its mayor says that he likes it."),
    passage_of("tea", "tea", "People drink tea, and tea is good."),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("names")
    publish_workspace(root, PASSAGES)
    opened = open_index(root, HashEmbedder())
    yield opened
    opened.close()


def test_a_name_has_the_pronoun_that_its_passage_uses_first(index: Index) -> None:
    names = KnownNames(index.graph)
    pronouns = {
        "Orlo Brandt": Pronoun.HE,
        "Ada Brandt": Pronoun.SHE,
        "Marn": Pronoun.THING,
        "tea": Pronoun.THING,
        "Lisk": Pronoun.UNKNOWN,
        "": Pronoun.UNKNOWN,
    }
    assert {name: names.pronoun_of(name) for name in pronouns} == pronouns


def test_a_name_in_small_letters_is_found_as_the_corpus_writes_it(index: Index) -> None:
    names = KnownNames(index.graph)
    assert names.spelled("when did ada brandt come to marn") == ["Ada Brandt", "Marn"]
    assert names.spelled("who drinks tea") == []
    assert not names.knows("tea")
    assert names.knows("Marn")


def test_a_passage_that_the_filter_hides_tells_nothing_of_its_name(index: Index) -> None:
    shown = Selection.of(index.graph, index.graph.passages_of(["orlo", "marn", "tea"]))
    names = KnownNames(index.graph, shown)
    assert names.pronoun_of("Ada Brandt") is Pronoun.UNKNOWN
    assert not names.knows("Ada Brandt")
    assert names.spelled("ada brandt of marn") == ["Marn"]
