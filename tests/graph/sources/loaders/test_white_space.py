"""Long runs of white space are cut while reading, whatever the source; shorter ones stay as they are."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from graph.sources.documents import read_documents
from graph.sources.loaders.document import LONGEST_SPACE, SPACE_LEFT, Document, Heading, short_spaced_document

LONG = " " * (LONGEST_SPACE + 1)


def test_a_long_run_is_cut_to_a_space_and_counted(tmp_path: Path) -> None:
    for name, content in [
        ("moor.txt", f"Anna Berg was born{LONG}in Moor."),
        ("moor.jsonl", json.dumps({"text": f"Anna Berg was born{LONG}in Moor."})),
        ("moor.csv", f"text\nAnna Berg was born{LONG}in Moor.\n"),
        ("links.jsonl", json.dumps({"url": "http://moor.org/", "text": f"Anna Berg was born{LONG}in Moor."})),
    ]:
        (tmp_path / name).write_text(content)
        documents = read_documents([tmp_path / name])
        (passage,) = documents.passages.values()
        assert passage.text.endswith("Anna Berg was born in Moor."), name
        assert documents.notes[SPACE_LEFT] == 1, name


def test_lines_and_paragraphs_stay_apart() -> None:
    for run, left in [(f"{LONG}\n{LONG}", "\n"), ("\n" * 999, "\n\n"), ("\t" * 999, " ")]:
        document, n_runs = short_spaced_document(Document("", f"Anna{run}Berg", "moor.txt"))
        assert (document.text, n_runs) == (f"Anna{left}Berg", 1), run


@given(st.lists(st.sampled_from(["Anna", "Berg", " ", "\n", LONG, f"{LONG}\n\n"]), max_size=12))
def test_headings_pages_and_links_stand_where_they_stood(parts: list[str]) -> None:
    offsets = [len("".join(parts[:n])) for n, part in enumerate(parts) if part.strip()]
    document = Document(
        "",
        "".join(parts),
        "moor.md",
        headings=[Heading(offset, 1, "Anna") for offset in offsets],
        pages=offsets,
        links=[(offset, "http://moor.org/") for offset in offsets],
    )
    short, _ = short_spaced_document(document)
    words = [part for part in parts if part.strip()]
    for places in ([each.offset for each in short.headings], short.pages, [offset for offset, _ in short.links]):
        assert [short.text[place : place + 4] for place in places] == words
