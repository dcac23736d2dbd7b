from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from graph.schema import Passage
from graph.sources.loaders.document import Document, Heading
from graph.sources.splitting import CHUNK_OVERLAP, CHUNK_TOKENS, estimate_tokens, split_document


def split(title: str, text: str, source: str) -> list[Passage]:
    return split_document(Document(title, text, source))


def document(sentences: int, seed: int = 1) -> str:
    """Prose without repetition, in paragraphs of several lengths."""
    pick = random.Random(seed)
    words = ["alpha", "beta", "gamma", "delta", "river", "city", "harbour", "bridge", "tower", "lake"]
    said = [" ".join(pick.choices(words, k=12)).capitalize() + f" {i}." for i in range(sentences)]
    return "".join(sentence + pick.choice([" ", " ", "\n\n", "\n"]) for sentence in said)


class TestChunks:
    def test_a_document_that_fits_is_one_passage(self) -> None:
        (passage,) = split("Nissan", " In 1933.\n", "a.txt")
        place = {key: passage.metadata[key] for key in ("chunk", "chunks", "start", "end")}
        assert (passage.text, place) == ("In 1933.", {"chunk": 0, "chunks": 1, "start": 1, "end": 9})
        assert "references" not in passage.metadata
        assert split("Nissan", " \n\t", "a.txt") == []

    def test_each_chunk_fits_the_model_and_is_the_text_between_its_places(self) -> None:
        for text in [
            document(80),
            " ".join(f"name{i}" for i in range(1500)),
            "日産自動車は横浜にある会社です。" * 60,
            "word " * 1000,
        ]:
            chunks = split("Nissan", text, "a.txt")
            assert len(chunks) > 2, text
            for number, chunk in enumerate(chunks):
                start, end = chunk.metadata["start"], chunk.metadata["end"]
                assert isinstance(start, int), text
                assert isinstance(end, int), text
                assert text[start:end] == chunk.text, text
                assert estimate_tokens(chunk.title) + estimate_tokens(chunk.text) <= CHUNK_TOKENS, text
                assert (chunk.metadata["chunk"], chunk.metadata["chunks"]) == (number, len(chunks)), text
            assert len({chunk.metadata["document"] for chunk in chunks}) == 1, text

    def test_chunks_cover_the_text_and_share_what_is_between_them(self) -> None:
        text = document(80).replace("\n", " ")
        spans = [(int(c.metadata["start"]), int(c.metadata["end"])) for c in split("", text, "a.txt")]
        assert spans[0][0] == 0
        assert text[spans[-1][1] :].strip() == ""
        for (_, end), (start, _) in pairwise(spans):
            assert start < end
            assert 0 < estimate_tokens(text[start:end]) <= CHUNK_OVERLAP

    def test_the_same_text_gives_the_same_ids_and_another_source_others(self) -> None:
        one, again = (split("T", document(60), "a.txt") for _ in range(2))
        longer = split("T", document(60) + "One more sentence.", "a.txt")
        assert [p.id for p in one[:-1]] == [p.id for p in longer[: len(one) - 1]]
        other = split("T", document(60), "b.txt")
        assert one == again
        assert not {p.id for p in one} & {p.id for p in other}
        assert one[0].metadata["document"] != other[0].metadata["document"]

    @settings(max_examples=15, deadline=None)
    @given(
        st.lists(
            st.sampled_from(["word", "日本", "a.b", ". ", "\n\n", "\n", " ", "。", "\t\u3000"]),
            min_size=300,
            max_size=900,
        )
    )
    def test_places_hold_for_any_text(self, pieces: list[str]) -> None:
        text = "".join(pieces)
        for chunk in split("", text, "a"):
            if "start" in chunk.metadata:
                assert text[int(chunk.metadata["start"]) : int(chunk.metadata["end"])] == chunk.text


class TestSections:
    def sections(self, document: Document) -> list[object]:
        return [passage.metadata.get("section") for passage in split_document(document, 20, 2)]

    def test_a_chunk_names_the_headings_over_its_start(self) -> None:
        blocks = [("Cars", 1), ("Makers", 2), ("Nissan", 3), ("Models", 2), ("Ships", 1)]
        text, headings = "", []
        for name, level in blocks:
            headings.append(Heading(len(text), level, name))
            text += f"{name}\n\n" + "river city tower bridge harbour lake alpha beta gamma.\n\n"
        cars = Document("Other", text, "a.md", headings=headings)
        assert self.sections(cars) == ["Cars", "Cars > Makers", "Cars > Makers > Nissan", "Cars > Models", "Ships"]

    def test_the_heading_that_is_the_title_is_no_section_and_none_is_over_what_comes_before(self) -> None:
        assert self.sections(Document("", "Text.\n\nCars", "a", headings=[Heading(7, 1, "Cars")])) == [None]
        headings = [Heading(0, 1, "Cars"), Heading(6, 2, "Makers")]
        assert self.sections(Document("Cars", "Cars\n\nMakers", "a", headings=headings)) == [None]
        assert self.sections(Document("Cars", "\n\n\n\n\n\nMakers", "a", headings=headings)) == ["Makers"]


def test_pages_are_those_of_the_first_and_the_last_character() -> None:
    pages = ["alpha beta " * 8, "", "gamma delta " * 8, "short"]
    text = "\n\n".join(page.strip() for page in pages if page)
    starts = [0, text.index("gamma"), text.index("gamma"), text.index("short")]
    chunks = split_document(Document("", text, "a.pdf", pages=starts), 24, 0)
    found = [(chunk.metadata["page"], chunk.metadata.get("page_end")) for chunk in chunks]
    assert found == [(1, None), (3, 4)]
    (whole,) = split_document(Document("", text, "a.pdf", pages=starts), 200, 0)
    assert (whole.metadata["page"], whole.metadata["page_end"]) == (1, 4)


class TestReferences:
    def test_each_chunk_refers_to_the_pages_that_it_links_to_once(self) -> None:
        text = f"alpha beta gamma delta{' river' * 8}.\n\nharbour bridge tower lake{' city' * 8}."
        place = text.index("harbour")
        links = [(0, "http://a/"), (6, "http://b/"), (11, "http://a/"), (place - 1, "http://c/"), (place, "http://a/")]
        first, second = split_document(Document("", text, "a.html", links=links), 16, 0)
        assert first.metadata["references"] == "http://a/ http://b/"
        assert second.metadata["references"] == "http://c/ http://a/"

    def test_a_document_refers_to_the_first_hundred(self) -> None:
        links = [(0, "http://a/" + "x" * 1000), *((0, f"http://a/{number % 130}") for number in range(300))]
        linking = Document("", "x", "a.html", links=links)
        (passage,) = split_document(linking)
        assert str(passage.metadata["references"]).split() == [f"http://a/{n}" for n in range(100)]


def test_tokens_are_estimated_by_words_and_by_characters_of_unspaced_scripts() -> None:
    assert estimate_tokens("ten words " * 5) == 13
    assert estimate_tokens("日産自動車") == 5
    assert estimate_tokens("") == 0
