"""A source is shown by the words that an answer cites of it, and by the heading over them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workflows.output.quoted import excerpt_of, section_of

TEXT = (
    "## Parties\n\nThe slipway is let to the Kestrel Boatyard. It lies at Quay 4.\n\n"
    "## Prices 2026\n\nThe **monthly** rent is EUR 2,150. It is due at once."
)
RENT = TEXT.index("The **monthly**")


def hit(text: str = TEXT, section: str = "Lease > Parties") -> dict[str, Any]:
    return {"number": 1, "title": "Lease", "text": text, "metadata": {"section": section} if section else {}}


def cited(start: int | None, number: int = 1) -> list[dict[str, Any]]:
    return [{"number": 2, "start": 0, "end": 3}, {"number": number, "start": start, "end": start and start + 5}]


def test_the_excerpt_is_what_is_cited_with_the_words_that_follow() -> None:
    assert excerpt_of(hit(), cited(RENT)) == "… The monthly rent is EUR 2,150. It is due at once."
    assert excerpt_of(hit(), cited(RENT + 8)) == "… The monthly rent is EUR 2,150. It is due at once."
    assert len(excerpt_of(hit("Karv lies in Ostra. " * 99), cited(400))) < 250


def test_without_a_place_of_its_words_a_passage_is_shown_by_its_beginning() -> None:
    beginning = "Parties The slipway is let to the Kestrel Boatyard. It lies at Quay 4. Prices 2026"
    for citations in ([], cited(None), cited(RENT, number=3)):
        assert excerpt_of(hit(), citations).startswith(beginning)
        assert section_of(hit(), citations) == "Lease > Parties"


def test_the_section_is_the_heading_over_the_cited_words() -> None:
    assert section_of(hit(), cited(RENT)) == "Prices 2026"
    assert section_of(hit(section=""), cited(RENT)) == "Prices 2026"


def test_a_heading_that_its_section_or_title_names_is_shown_with_its_path() -> None:
    assert section_of(hit(), cited(TEXT.index("The slipway"))) == "Lease > Parties"
    assert section_of(hit("# Lease\n\nIt is long."), cited(9)) == "Lease > Parties"
    assert section_of(hit("It is long. It is old."), cited(12)) == "Lease > Parties"


@given(st.text(alphabet="ab.# \n1", max_size=60), st.integers(0, 60))
def test_any_place_of_any_text_can_be_shown(text: str, start: int) -> None:
    assert isinstance(excerpt_of(hit(text), cited(start)), str)
    assert isinstance(section_of(hit(text), cited(start)), str)
