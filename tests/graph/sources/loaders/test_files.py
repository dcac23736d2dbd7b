from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.sources.documents import read_documents
from graph.sources.loaders import files as loader
from tests.graph.sources.loaders.files import passage_of_file, passages_of, write


class TestText:
    def test_a_first_line_that_stands_alone_is_the_title(self, tmp_path: Path) -> None:
        for content, title, text in [
            ("Nissan\n\nIt was founded in 1933.\n", "Nissan", "It was founded in 1933."),
            ("Nissan was founded.\n\nIn 1933.", "", "Nissan was founded.\n\nIn 1933."),
            ("日産の歴史。\n\n1933年。", "", "日産の歴史。\n\n1933年。"),
            ("Nissan\nIt was founded in 1933.", "", "Nissan\nIt was founded in 1933."),
            (f"{'x' * 101}\n\ntext", "", f"{'x' * 101}\n\ntext"),
            ("\ufeffNissan\r\n\r\nIn 1933.", "Nissan", "In 1933."),
            ("Nissan", "", "Nissan"),
        ]:
            passage = passage_of_file(write(tmp_path / "a.txt", content))
            assert (passage.title, passage.text) == (title, text), content

    def test_a_file_without_a_title_has_its_name_if_that_tells_what_is_in_it(self, tmp_path: Path) -> None:
        for name, title in [
            ("cars.TXT", "cars"),
            ("Install_proxy-server v2.txt", "Install proxy server v2"),
            ("2024-05-13 board minutes.txt", "2024-05-13 board minutes"),
            ("README.txt", ""),
            ("scan 0012.txt", ""),
            ("2024-05-13.txt", ""),
            ("abc.txt", ""),
        ]:
            passage = passage_of_file(write(tmp_path / name, "In 1933."))
            assert (passage.source, passage.title) == (name, title), name


class TestEncoding:
    def test_utf8_and_what_a_byte_order_mark_says_is_read(self, tmp_path: Path) -> None:
        for encoding in ["utf-8", "utf-8-sig", "utf-16"]:
            assert (
                passage_of_file(write(tmp_path / "a.txt", "Malmö 日産 😀".encode(encoding))).text == "Malmö 日産 😀"
            ), encoding

    def test_anything_else_is_refused(self, tmp_path: Path) -> None:
        for content, complaint in [
            ("Malmö".encode("latin-1"), r"not UTF-8 text \(byte 4\).*iconv"),
            ("Malmö".encode("utf-16-le"), "NUL bytes"),
            (b"\xff\xfea", r"not UTF-16 text \(byte"),
            (b"MZ\x00\x00\x90 program", "NUL bytes: it is no text"),
            (b"\x89PNG\r\n\x1a\n", r"not UTF-8 text \(byte 0\)"),
        ]:
            with pytest.raises(BadInput, match=rf"a\.txt .*({complaint})"):
                read_documents([write(tmp_path / "a.txt", content)])


class TestSize:
    def test_a_file_over_the_limit_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path / "a.txt", "x" * 1024)
        monkeypatch.setattr(loader, "MAX_TEXT_BYTES", 1024)
        assert len(passages_of(path)) == 1
        monkeypatch.setattr(loader, "MAX_TEXT_BYTES", 1023)
        with pytest.raises(BadInput, match=r"a\.txt is larger than .* MiB.*\.jsonl, which is read line by line"):
            read_documents([path])

    def test_a_long_line_is_refused_without_holding_it(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        with path.open("wb") as file:
            file.write(b'{"id": "a", "text": "x"}\n')
            file.truncate(200 * 2**20)
        tracemalloc.start()
        with pytest.raises(BadInput, match=r"a\.jsonl, line 2 is longer than 8 MiB"):
            read_documents([path])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40 * 2**20
