from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.sources.documents import ReadOptions, read_documents
from graph.sources.loaders import kinds
from tests.graph.sources.loaders.files import docx, epub, lines, paragraph, passages_of, pdf, pptx, write, xlsx


class TestSeveral:
    def test_one_id_for_two_texts_is_an_error_that_names_both_places(self, tmp_path: Path) -> None:
        one = write(tmp_path / "one.jsonl", lines({"id": "a", "text": "x"}))
        other = write(tmp_path / "other.jsonl", lines({"id": "a", "text": "y"}))
        with pytest.raises(BadInput, match=r"'a' stands for two texts \(in one.jsonl and other.jsonl\)"):
            read_documents([one, other])

    def test_a_folder_is_read_with_its_folders_in_the_order_of_the_paths_and_links_to_folders_are_not_entered(
        self, tmp_path: Path
    ) -> None:
        for name in ("b.txt", "sub/a.md", "a.txt", "sub/deep/c.txt", "x.txt/a.txt"):
            write(tmp_path / name, name)
        (tmp_path / "sub/loop").symlink_to(tmp_path, target_is_directory=True)
        (tmp_path / "sub/self").symlink_to("self")
        sources = ["a.txt", "b.txt", "sub/a.md", "sub/deep/c.txt", "x.txt/a.txt"]
        assert [p.source for p in passages_of(tmp_path)] == sources
        documents = read_documents([tmp_path / "sub/../a.txt", tmp_path / "sub/.."])
        assert {p.source for p in documents.passages.values()} == set(sources)

    def test_files_that_are_no_documents_are_named_once_with_the_reason(self, tmp_path: Path) -> None:
        content = {".hidden.txt": "x", ".git/d.txt": "x", "Makefile": "x", "sub/b.PNG": "x", "sub/song.mp3": "x"}
        without_text = {"a.txt": "", "b.md": " \n\t\n", "c.jsonl": "", "d.json": "[]", "e.csv": "name,role\n"}
        for name, text in {**content, **without_text, "good.txt": "Karv"}.items():
            write(tmp_path / name, text)
        documents = read_documents([tmp_path])
        assert [passage.source for passage in documents.passages.values()] == ["good.txt"]
        reasons = {
            ".git": "is hidden",
            ".hidden.txt": "is hidden",
            "Makefile": "is of a kind that is not read (no suffix)",
            "sub/b.PNG": "is of a kind that is not read (.png)",
            "sub/song.mp3": "is of a kind that is not read (.mp3)",
            **dict.fromkeys(without_text, "holds no text"),
        }
        named = [(str(tmp_path / name), f"{tmp_path / name} {reason}") for name, reason in reasons.items()]
        assert [(each.source, each.reason) for each in documents.skipped] == named
        assert documents.refused == []


class TestUnreadable:
    def test_in_a_folder_they_are_refused_by_name_and_the_rest_is_read(self, tmp_path: Path) -> None:
        write(tmp_path / "latin.txt", "Malmö".encode("latin-1"))
        write(tmp_path / "broken.jsonl", "{")
        (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere")
        write(tmp_path / "good.txt", "x")
        documents = read_documents([tmp_path])
        assert [p.source for p in documents.passages.values()] == ["good.txt"]
        reasons = {Path(refused.source).name: refused.reason for refused in documents.refused}
        assert "not UTF-8 text (byte 4)" in reasons["latin.txt"]
        assert "iconv" in reasons["latin.txt"]
        assert "line 1: not valid JSON" in reasons["broken.jsonl"]
        assert "a link to nothing" in reasons["gone.md"]
        assert len(reasons) == 3
        with pytest.raises(BadInput, match=r"gone\.md.*does not exist"):
            read_documents([tmp_path / "gone.md"])

    def test_a_link_out_of_the_folder_is_refused_and_one_within_is_read(self, tmp_path: Path) -> None:
        secret = write(tmp_path / "secret.txt", "secret")
        folder = tmp_path / "folder"
        folder.mkdir()
        inside = write(folder / "inside.txt", "inside")
        (folder / "out.txt").symlink_to(secret)
        (folder / "in.txt").symlink_to(inside)
        documents = read_documents([folder])
        assert {passage.source for passage in documents.passages.values()} == {"in.txt", "inside.txt"}
        assert "link out of the folder" in documents.refused[0].reason

    def test_a_workspace_within_the_folder_is_no_document(self, tmp_path: Path) -> None:
        write(tmp_path / "good.txt", "x")
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        (workspace / "record.sqlite").write_bytes(b"")
        write(workspace / "manifest.json", "{}")
        for _ in range(2):
            documents = read_documents([tmp_path])
            assert [p.source for p in documents.passages.values()] == ["good.txt"]
            assert (documents.refused, documents.skipped) == ([], [])
            (tmp_path / "record.sqlite").write_bytes(b"")
            for name in ("manifest.json", "tuning.json", "build/near/kept.json", "index/1/s.json", "as-of/1/a.json"):
                write(tmp_path / name, "{}")

    def test_a_name_that_is_no_unicode_is_kept_in_a_form_that_can_be_stored(self, tmp_path: Path) -> None:
        try:
            write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")), "x")
            write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xe9.txt")), b"\xff")
            write(tmp_path / "a\nAnswer: b\x1b.txt", "y")
        except (OSError, UnicodeError):
            pytest.skip("this file system takes no such name")
        documents = read_documents([tmp_path])
        sources = [passage.source for passage in documents.passages.values()]
        assert sources == ["a\ufffdAnswer: b\ufffd.txt", "caf\ufffd.txt"]
        assert documents.refused[0].reason.encode()
        assert documents.refused[0].source.endswith("bad\ufffd.txt")

    def test_a_file_that_becomes_a_pipe_after_it_was_listed_is_not_waited_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(tmp_path / "a.txt", "x")
        opening = os.open

        def swapping(name: Path, *args: Any) -> int:
            path.unlink()
            os.mkfifo(path)
            return opening(name, *args)

        monkeypatch.setattr(os, "open", swapping)
        assert "is not a plain file" in read_documents([tmp_path]).refused[0].reason

    def test_a_folder_of_everything_gives_what_can_be_read_and_names_the_rest(self, tmp_path: Path) -> None:
        good: dict[str, str | bytes] = {
            "a.txt": "good",
            "a.md": "good",
            "a.markdown": "good",
            "a.html": "<p>good",
            "a.htm": "<p>good",
            "a.pdf": pdf(["good"]),
            "a.docx": docx(paragraph("good")),
            "a.pptx": pptx("good"),
            "a.xlsx": xlsx(Sheet=[["text"], ["good"]]),
            "a.epub": epub("<p>good"),
            "a.eml": "Subject: Untitled\n\ngood\n",
            "a.ipynb": '{"cells": [{"cell_type": "markdown", "source": "good"}]}',
            "a.csv": "text\ngood\n",
            "a.tsv": "text\ngood\n",
            "a.json": '[{"text": "good"}]',
            "a.jsonl": '{"text": "good"}\n',
        }
        assert {Path(name).suffix for name in good} == kinds().keys()
        bad = [f"b{suffix}" for suffix in sorted(kinds())]
        for name, content in good.items():
            write(tmp_path / name, content)
        for name in bad:
            write(tmp_path / name, b"\x00\xff\x00\xff")
        documents = read_documents([tmp_path])
        assert sorted(p.source for p in documents.passages.values()) == sorted(good)
        assert {p.text for p in documents.passages.values()} == {"good"}
        assert sorted(Path(refused.source).name for refused in documents.refused) == sorted(bad)
        assert all(Path(refused.source).name in refused.reason for refused in documents.refused)


class TestOptions:
    def test_lengths_that_do_not_fit_together_are_an_error(self) -> None:
        for tokens, overlap in [(15, 0), (100, 50), (100, -1), (-5, 0)]:
            with pytest.raises(BadInput, match=f"{tokens} tokens cannot share {overlap}"):
                ReadOptions(chunk_tokens=tokens, chunk_overlap=overlap)
