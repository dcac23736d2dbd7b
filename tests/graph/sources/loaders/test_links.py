from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.sources.documents import Documents, read_documents
from graph.sources.loaders import is_link_list
from tests.graph.sources.loaders.files import docx, lines, paragraph, pdf, write

URL = "https://ex.org/a"


def read(folder: Path, *rows: Any) -> Documents:
    return read_documents([write(folder / "links.jsonl", lines(*rows))])


def test_a_list_is_known_by_its_name() -> None:
    for name, is_list in [
        ("links.jsonl", True),
        ("Links.CSV", True),
        ("news.links.tsv", True),
        ("links.txt", False),
        ("hyperlinks.jsonl", False),
        ("links.json", False),
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

    def test_a_page_may_be_any_document(self, tmp_path: Path) -> None:
        pages: list[tuple[str, str | bytes]] = [
            ("a.txt", "In 1933."),
            ("a.md", "In 1933."),
            ("a.pdf", pdf(["In 1933."])),
            ("a.docx", docx(paragraph("In 1933."))),
        ]
        for name, content in pages:
            write(tmp_path / name, content)
            (passage,) = read(tmp_path, {"url": URL, "path": name, "title": "Nissan"}).passages.values()
            assert (passage.title, passage.text, passage.source) == ("Nissan", "In 1933.", URL), name
            assert passage.metadata["file"] == name, name

    def test_links_of_a_page_are_resolved_by_its_address(self, tmp_path: Path) -> None:
        (passage,) = read(tmp_path, {"url": URL, "html": "<p>see <a href='b'>b</a>"}).passages.values()
        assert passage.metadata["references"] == "https://ex.org/b"

    def test_a_long_text_is_split_as_a_document(self, tmp_path: Path) -> None:
        passages = read(tmp_path, {"url": URL, "text": " ".join(f"word{n}" for n in range(600))}).passages.values()
        assert [p.metadata["chunk"] for p in passages] == list(range(len(passages)))
        assert len(passages) > 2

    def test_a_table_serves_as_well(self, tmp_path: Path) -> None:
        write(tmp_path / "a.txt", "In 1933.")
        content = "url,title,path,text\nhttps://ex.org/a,Nissan,a.txt,\nhttps://ex.org/b,Leaf,,A car.\n"
        documents = read_documents([write(tmp_path / "my.links.csv", content)])
        found = [(p.source, p.title, p.text) for p in documents.passages.values()]
        assert found == [("https://ex.org/a", "Nissan", "In 1933."), ("https://ex.org/b", "Leaf", "A car.")]

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
        write(folder / "bad.pdf", "no pdf")
        os.mkfifo(folder / "pipe.txt")
        (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
        (folder / "loop.txt").symlink_to("loop.txt")
        rows: list[tuple[Any, str]] = [
            (
                {"url": URL},
                "https://ex.org/a comes without its page. Fetching is yours: save the page and give its path",
            ),
            ({"url": URL, "title": "x", "text": ""}, "comes without its page"),
            ({"url": URL, "path": "../secret.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "sub/../../secret.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "sub/../in.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "..\\secret.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "/etc/hostname"}, "leads out of the list's folder"),
            ({"url": URL, "path": "C:\\secret.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "out.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "a\u0000.txt"}, "leads out of the list's folder"),
            ({"url": URL, "path": "loop.txt"}, "cannot be read"),
            ({"url": URL, "path": "gone.txt"}, r"'gone.txt' cannot be read \(No such file"),
            ({"url": URL, "path": "pipe.txt"}, "is not a plain file"),
            ({"url": URL, "path": "sub"}, "of a kind that is not read"),
            ({"url": URL, "path": "a.png"}, "cannot be read"),
            ({"url": URL, "path": "links.jsonl"}, "of a kind that is not read"),
            ({"url": URL, "path": "bad.pdf"}, "cannot be read as PDF"),
            ({"url": URL, "text": "x", "html": "y"}, "is malformed"),
            ({"url": URL, "text": 5}, "is malformed"),
            ({"url": URL, "title": 5, "text": "x"}, "is malformed"),
            ({"url": URL, "text": " "}, "holds no text"),
            ({"url": URL, "text": "\ud800"}, "broken Unicode"),
            ({"url": "ftp://ex.org/a", "text": "x"}, "'ftp://ex.org/a' is no web address"),
            ({"text": "x"}, "no address"),
            (["x"], "no address"),
        ]
        written = [{"url": "https://ex.org/good", "text": "good"}, *(row for row, _ in rows)]
        (folder / "links.jsonl").write_bytes(b"".join(map(_line, written)))
        documents = read_documents([folder / "links.jsonl"])
        assert [p.text for p in documents.passages.values()] == ["good"]
        for line, ((row, complaint), refused) in enumerate(zip(rows, documents.refused, strict=True), 2):
            assert refused.source.endswith(f"links.jsonl, line {line}"), row
            assert re.search(complaint, refused.reason), row

    def test_a_list_that_cannot_be_read_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"links\.jsonl, line 1: not valid JSON"):
            read_documents([write(tmp_path / "links.jsonl", "https://ex.org/a\n")])


def _line(row: Any) -> bytes:
    return json.dumps(row).encode() + b"\n"
