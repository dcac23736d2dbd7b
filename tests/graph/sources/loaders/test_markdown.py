from __future__ import annotations

import json
from pathlib import Path

from graph.sources.documents import read_documents
from graph.sources.loaders.markdown import FRONT_MATTER_LEFT, parse_markdown
from tests.graph.sources.loaders.files import passage_of_file, write


class TestMarkdown:
    def test_the_title_is_front_matter_else_the_first_heading(self, tmp_path: Path) -> None:
        for content, title in [
            ("---\ntitle: Nissan\ndate: 1\n---\n# Other\ntext", "Nissan"),
            ('---\ntitle: "Nissan: a history"\n---\ntext', "Nissan: a history"),
            ('---\ntitle: Nissan\'s "Leaf"\n---\ntext', 'Nissan\'s "Leaf"'),
            ("---\ntitle:\nauthor: Somebody\n---\n# Nissan\ntext", "Nissan"),
            ("---\ndate: 1\n---\n## Nissan ##\ntext", "Nissan"),
            ("text\n\n# Nissan\n\n# Other", "Nissan"),
            ("# C#\ntext", "C#"),
            ("#hashtag\ntext", ""),
            ("```\n# install\n```\n\nNissan\n======\n", "Nissan"),
        ]:
            assert passage_of_file(write(tmp_path / "a.md", content)).title == title, content


class TestTables:
    def test_each_row_carries_the_names_of_its_columns(self) -> None:
        for table, text in [
            ("| Part | Price |\n|---|---:|\n| bolt | 3 |\n| nut | |", "Part: bolt; Price: 3\nPart: nut"),
            ("Part | **Price**\n--- | ---\nbolt | 3 \\| 4", "Part: bolt; Price: 3 | 4"),
            ("Part | **Price**\n--- | ---\nbolt | 3 \\| 4 | 5", "bolt | 3 \\| 4 | 5"),
            ("| | |\n|---|---|\n| Term | two years |\n| Notice | a month |", "Term: two years\nNotice: a month"),
            ("| Part | Price |\n| bolt | 3 |", "| Part | Price |\n| bolt | 3 |"),
            ("```\na | b\n--|--\n1 | 2\n```", "```\na | b\n--|--\n1 | 2\n```"),
        ]:
            assert parse_markdown(f"before\n\n{table}\n\n## after", "a.md").text == f"before\n\n{text}\n\n## after", (
                table
            )


class TestFrontMatter:
    def test_scalars_and_lists_are_metadata(self) -> None:
        for entry, value in [
            ("key: value", "value"),
            ("key: 2.50", 2.5),
            ('key: "2.50"', "2.50"),
            ("key: [cars, 'Japan', 1933]", "cars, Japan, 1933"),
            ("key:\n  - cars\n  - Japan", "cars, Japan"),
            ("key: >\n  one\n  two", "one two"),
            ("a key: value", None),
        ]:
            document = parse_markdown(f"---\ntitle: T\n{entry}\n---\ntext", "a.md")
            assert document.metadata == ({"key": value} if value is not None else {"a key": "value"}), entry
            assert (document.title, document.text, dict(document.notes)) == ("T", "text", {}), entry

    def test_what_is_nested_reserved_or_no_entry_is_left_out_and_counted(self, tmp_path: Path) -> None:
        for entry in ["key: {a: 1}", "key:\n  - a: 1", "nonsense", "page: 3", "'#tag': x"]:
            documents = read_documents([write(tmp_path / "a.md", f"---\nauthor: Ida\n{entry}\n---\ntext")])
            (passage,) = documents.passages.values()
            assert passage.metadata.keys() - {"file", "document", "chunk", "chunks", "start", "end"} == {"author"}, (
                entry
            )
            assert documents.notes == {FRONT_MATTER_LEFT: 1}, entry


class TestHeadings:
    def test_they_stand_outside_code(self) -> None:
        for text, headings in [
            ("# One\n\n## Two ##\n###### Six", [(1, "One"), (2, "Two"), (6, "Six")]),
            ("One\n===\n\nTwo\n---\ntext", [(1, "One"), (2, "Two")]),
            ("- item\n---\n> quote\n===", []),
            ("a | b\n--- | ---\n1 | 2", []),
            ("```python\n# comment\n```\n# Real", [(1, "Real")]),
            ("~~~\n# comment\n```\n# more\n~~~\n# Real", [(1, "Real")]),
            ("#one\n#\n", []),
        ]:
            assert [(heading.level, heading.text) for heading in parse_markdown(text, "a.md").headings] == headings, (
                text
            )


class TestNotebook:
    def test_its_cells_are_one_document_without_results(self, tmp_path: Path) -> None:
        output = {"output_type": "stream", "name": "stdout", "text": ["3\n"]}
        cells = [
            {"cell_type": "markdown", "source": ["# Flow\n", "\n", "It is measured."]},
            {"cell_type": "code", "source": "# no heading\nprint(3)", "outputs": [output]},
            {"cell_type": "markdown", "source": "## Result\n\n| Year | Flow |\n|---|---|\n| 1900 | 3 |"},
        ]
        path = write(tmp_path / "a.ipynb", json.dumps({"nbformat": 4, "cells": cells}))
        passage = passage_of_file(path)
        assert passage.title == "Flow"
        assert passage.text == (
            "# Flow\n\nIt is measured.\n\n```\n# no heading\nprint(3)\n```\n\n## Result\n\nYear: 1900; Flow: 3"
        )
