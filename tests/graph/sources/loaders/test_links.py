from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from graph.sources.documents import Documents, read_documents
from graph.sources.loaders import is_link_list
from tests.graph.sources.loaders.files import lines, write

URL = "https://ex.org/a"


def read(folder: Path, *rows: Any) -> Documents:
    return read_documents([write(folder / "links.jsonl", lines(*rows))])


def test_a_list_is_known_by_its_name() -> None:
    for name, is_list in [
        ("links.jsonl", True),
        ("news.links.tsv", True),
        ("links.txt", False),
        ("hyperlinks.jsonl", False),
    ]:
        assert is_link_list(Path(name)) is is_list, name


class TestRows:
    def test_the_page_is_in_the_row_or_beside_the_list(self, tmp_path: Path) -> None:
        for row in [
            {"url": URL, "title": "Nissan", "text": "In 1933."},
            {"url": "HTTPS://ex.org:443/a#x", "html": "<h1>Nissan</h1>", "note": "ignored"},
            {"url": URL, "path": "pages/a.html"},
        ]:
            write(tmp_path / "pages/a.html", "<link rel=canonical href='https://other.org/'><h1>Nissan</h1>")
            (passage,) = read(tmp_path, row).passages.values()
            assert (passage.title, passage.source) == ("Nissan", URL), row

    def test_in_a_folder_its_pages_are_not_read_again(self, tmp_path: Path) -> None:
        write(tmp_path / "a/page.html", "<p>In 1933.")
        write(tmp_path / "a/other.html", "<p>It grew.")
        write(tmp_path / "links.jsonl", lines({"url": URL, "path": "a/page.html"}))
        found = [(p.source, p.text) for p in read_documents([tmp_path]).passages.values()]
        assert found == [(URL, "In 1933."), ("a/other.html", "It grew.")]


class TestRefused:
    def test_a_row_is_refused_by_its_line_and_the_others_are_read(self, tmp_path: Path) -> None:
        folder = tmp_path / "list"
        write(tmp_path / "secret.txt", "secret")
        write(folder / "in.txt", "inside")
        write(folder / "sub/x.txt", "x")
        os.mkfifo(folder / "pipe.txt")
        (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
        (folder / "loop.txt").symlink_to("loop.txt")
        rows: list[tuple[Any, str]] = [
            ({"url": URL}, "no web address with its page"),
            ({"url": URL, "path": "../secret.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "sub/../../secret.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "/etc/hostname"}, "leads out of the list's folder"),
            ({"url": URL, "path": "out.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "loop.txt"}, "cannot be read"),
            ({"url": URL, "path": "gone.txt"}, r"'gone.txt' cannot be read \(No such file"),
            ({"url": URL, "path": "pipe.txt"}, "is not a plain file"),
            ({"url": URL, "path": "links.jsonl"}, "of a kind that is not read"),
            ({"url": URL, "text": "x", "html": "y"}, "no web address with its page"),
            ({"url": URL, "text": " "}, "holds no text"),
            ({"url": URL, "text": "\ud800"}, "no web address with its page"),
            ({"url": "ftp://ex.org/a", "text": "x"}, "no web address with its page"),
            ({"text": "x"}, "no web address with its page"),
        ]
        written = [{"url": "https://ex.org/good", "text": "good"}, *(row for row, _ in rows)]
        (folder / "links.jsonl").write_bytes(b"".join(map(_line, written)))
        documents = read_documents([folder / "links.jsonl"])
        assert [p.text for p in documents.passages.values()] == ["good"]
        for line, ((row, complaint), refused) in enumerate(zip(rows, documents.refused, strict=True), 2):
            assert refused.source.endswith(f"links.jsonl, line {line}"), row
            assert re.search(complaint, refused.reason), row


def _line(row: Any) -> bytes:
    return json.dumps(row).encode() + b"\n"
