from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.documents import (
    CHUNK_OVERLAP,
    CHUNK_TOKENS,
    Documents,
    estimate_tokens,
    read_documents,
    split_document,
)
from graph.errors import BadInput
from graph.schema import Passage


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def passages_of(*paths: Path) -> list[Passage]:
    return list(read_documents(paths).passages.values())


def passage_of_file(path: Path) -> Passage:
    (passage,) = passages_of(path)
    return passage


class TestText:
    @pytest.mark.parametrize(
        ("content", "title", "text"),
        [
            ("Nissan\n\nIt was founded in 1933.\n", "Nissan", "It was founded in 1933."),
            ("Nissan was founded.\n\nIn 1933.", "", "Nissan was founded.\n\nIn 1933."),
            ("日産の歴史。\n\n1933年。", "", "日産の歴史。\n\n1933年。"),
            ("Nissan\nIt was founded in 1933.", "", "Nissan\nIt was founded in 1933."),
            (f"{'x' * 101}\n\ntext", "", f"{'x' * 101}\n\ntext"),
            ("\ufeffNissan\r\n\r\nIn 1933.", "Nissan", "In 1933."),
            ("Nissan", "", "Nissan"),
        ],
    )
    def test_a_first_line_that_stands_alone_is_the_title(
        self, tmp_path: Path, content: str, title: str, text: str
    ) -> None:
        passage = passage_of_file(write(tmp_path / "notes about cars.txt", content))
        assert (passage.title, passage.text) == (title, text)

    def test_a_files_name_is_its_source_and_no_title(self, tmp_path: Path) -> None:
        passage = passage_of_file(write(tmp_path / "cars.TXT", "In 1933."))
        assert (passage.source, passage.title) == ("cars.TXT", "")

    @pytest.mark.parametrize("content", ["", " \n\t\n"])
    def test_an_empty_file_holds_no_passage(self, tmp_path: Path, content: str) -> None:
        assert passages_of(write(tmp_path / "a.txt", content)) == []


class TestMarkdown:
    @pytest.mark.parametrize(
        ("content", "title"),
        [
            ("---\ntitle: Nissan\ndate: 1\n---\n# Other\ntext", "Nissan"),
            ('---\ntitle: "Nissan: a history"\n---\ntext', "Nissan: a history"),
            ('---\ntitle: Nissan\'s "Leaf"\n---\ntext', 'Nissan\'s "Leaf"'),
            ("---\ntitle:\nauthor: Somebody\n---\n# Nissan\ntext", "Nissan"),
            ("---\ndate: 1\n---\n## Nissan ##\ntext", "Nissan"),
            ("text\n\n# Nissan\n\n# Other", "Nissan"),
            ("# C#\ntext", "C#"),
            ("#\n\ntext", ""),
            ("#hashtag\ntext", ""),
            ("plain text", ""),
        ],
    )
    def test_the_title_is_front_matter_else_the_first_heading(self, tmp_path: Path, content: str, title: str) -> None:
        assert passage_of_file(write(tmp_path / "a.md", content)).title == title

    def test_front_matter_is_no_text(self, tmp_path: Path) -> None:
        passage = passage_of_file(write(tmp_path / "a.markdown", "---\r\ntitle: Nissan\r\n---\r\nIn 1933.\r\n"))
        assert passage.text == "In 1933."

    def test_a_rule_that_opens_a_file_is_no_front_matter(self, tmp_path: Path) -> None:
        assert passage_of_file(write(tmp_path / "a.md", "---\nIn 1933.")).text == "---\nIn 1933."

    def test_a_heading_full_of_spaces_is_read_at_once(self, tmp_path: Path) -> None:
        content = "# a" + " " * 50_000 + "b #" + "#" * 50_000 + " c\n"
        assert passage_of_file(write(tmp_path / "a.md", content)).title.startswith("a ")


class TestCorpusFiles:
    @pytest.mark.parametrize("key", ["text", "passage", "contents", "content", "paragraph_text"])
    def test_json_lines_give_passages_whole_with_scalars_as_metadata(self, tmp_path: Path, key: str) -> None:
        row = {"id": 7, "title": " Nissan ", key: "In 1933.\n", "year": 1933, "old": True, "tags": ["x"], "none": None}
        passage = passage_of_file(write(tmp_path / "c.jsonl", lines(row)))
        assert passage == Passage("7", "Nissan", "In 1933.\n", "c.jsonl", {"year": 1933, "old": True})

    @pytest.mark.parametrize("key", ["id", "_id", "idx"])
    def test_given_ids_are_kept(self, tmp_path: Path, key: str) -> None:
        assert passage_of_file(write(tmp_path / "c.jsonl", lines({key: "p1", "text": "x"}))).id == "p1"

    def test_an_id_of_zero_is_an_id(self, tmp_path: Path) -> None:
        assert passage_of_file(write(tmp_path / "c.jsonl", lines({"id": 0, "text": "x"}))).id == "0"

    def test_long_given_passages_are_not_split(self, tmp_path: Path) -> None:
        assert len(passages_of(write(tmp_path / "c.jsonl", lines({"id": "a", "text": "word " * 2000})))) == 1

    @pytest.mark.parametrize(
        "value",
        [
            [{"title": "Nissan", "text": "In 1933. It grew."}, {"idx": 1, "title": "Leaf", "text": "A car."}],
            {"Nissan": "In 1933. It grew.", "Leaf": "A car."},
            {"Nissan": ["In 1933.", " It grew."], "Leaf": ["A car."]},
        ],
    )
    def test_json_is_a_list_of_objects_or_titles_with_texts(self, tmp_path: Path, value: Any) -> None:
        found = passages_of(write(tmp_path / "c.json", json.dumps(value)))
        assert [(p.title, p.text) for p in found] == [("Nissan", "In 1933. It grew."), ("Leaf", "A car.")]

    def test_blank_lines_are_no_rows_and_no_line_end_but_the_newline_ends_one(self, tmp_path: Path) -> None:
        content = "\n" + lines({"id": "a", "text": "x\u2028y\x85z"}) + "  \n" + lines({"id": "b", "text": "y"})
        assert [p.id for p in passages_of(write(tmp_path / "c.jsonl", content))] == ["a", "b"]

    @pytest.mark.parametrize(
        ("line", "complaint"),
        [
            ('{"id": "b", "text": "x"', "not valid JSON"),
            ("prose", "not valid JSON"),
            ('["b", "x"]', "not an object"),
            ('{"id": "b"}', "no text"),
            ('{"id": "b", "text": 5}', "no text"),
            ('{"id": "b", "title": ["x"], "text": "x"}', "title is no text"),
            ('{"id": "b", "title": " ", "text": " "}', "empty"),
            ('{"id": " ", "text": "x"}', "id is empty"),
            ('{"id": "b", "text": "\\ud800"}', "broken Unicode"),
            ('{"id": "b", "text": "x", "note": "\\udc00"}', "broken Unicode"),
            ("[" * 100_000, "not valid JSON"),
        ],
    )
    def test_a_malformed_line_is_named_by_file_and_line(self, tmp_path: Path, line: str, complaint: str) -> None:
        path = write(tmp_path / "c.jsonl", '{"id": "a", "text": "x"}\n\n' + line + "\n")
        with pytest.raises(BadInput, match=rf"c\.jsonl, line 3: .*{complaint}"):
            read_documents([path])

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            ("{", "not valid JSON"),
            ("3", "is no corpus"),
            ('{"Nissan": 3}', "is no corpus"),
            ('[{"text": "x"}, 4]', "item 2: not an object"),
            ('{"Nissan": ["x", 4]}', "'Nissan': no text"),
        ],
    )
    def test_a_malformed_corpus_is_named(self, tmp_path: Path, content: str, complaint: str) -> None:
        with pytest.raises(BadInput, match=rf"c\.json.*{complaint}"):
            read_documents([write(tmp_path / "c.json", content)])


class TestSeveral:
    def test_one_id_for_two_texts_is_an_error_that_names_both_places(self, tmp_path: Path) -> None:
        one = write(tmp_path / "one.jsonl", lines({"id": "a", "text": "x"}))
        other = write(tmp_path / "other.jsonl", lines({"id": "a", "text": "y"}))
        with pytest.raises(BadInput, match=r"'a' stands for two texts \(in one.jsonl and other.jsonl\)"):
            read_documents([one, other])

    def test_one_passage_given_twice_stands_once_and_is_counted(self, tmp_path: Path) -> None:
        path = write(tmp_path / "c.jsonl", lines(*[{"id": "a", "text": "x"}] * 3))
        documents = read_documents([path, path])
        assert len(documents.passages) == 1
        assert documents.identical == 5

    def test_a_folder_is_read_with_its_folders_in_the_order_of_the_paths(self, tmp_path: Path) -> None:
        for name in ("b.txt", "sub/a.md", "a.txt", "sub/deep/c.txt"):
            write(tmp_path / name, name)
        assert [p.source for p in passages_of(tmp_path)] == ["a.txt", "b.txt", "sub/a.md", "sub/deep/c.txt"]

    def test_other_kinds_are_counted_by_suffix_and_hidden_files_left_out(self, tmp_path: Path) -> None:
        for name in ("a.txt", "b.pdf", "c.PDF", "Makefile", ".hidden.txt", ".git/d.txt"):
            write(tmp_path / name, name)
        documents = read_documents([tmp_path])
        assert [p.source for p in documents.passages.values()] == ["a.txt"]
        assert documents.skipped == {".pdf": 2, "": 1}

    def test_links_to_folders_are_not_entered_so_that_loops_end(self, tmp_path: Path) -> None:
        write(tmp_path / "sub/a.txt", "x")
        (tmp_path / "sub/loop").symlink_to(tmp_path, target_is_directory=True)
        (tmp_path / "sub/self").symlink_to("self")
        assert [p.source for p in passages_of(tmp_path)] == ["sub/a.txt"]

    def test_a_folder_named_like_a_file_is_a_folder(self, tmp_path: Path) -> None:
        write(tmp_path / "x.txt/a.txt", "x")
        assert [p.source for p in passages_of(tmp_path / "x.txt")] == ["a.txt"]


class TestUnreadable:
    def bad_files(self, folder: Path) -> Iterator[Path]:
        yield write(folder / "latin.txt", "Malmö".encode("latin-1"))
        yield write(folder / "broken.jsonl", "{")
        (folder / "gone.md").symlink_to(folder / "nowhere")
        yield folder / "gone.md"

    def test_in_a_folder_they_are_refused_by_name_and_the_rest_is_read(self, tmp_path: Path) -> None:
        bad = list(self.bad_files(tmp_path))
        write(tmp_path / "good.txt", "x")
        documents = read_documents([tmp_path])
        assert [p.source for p in documents.passages.values()] == ["good.txt"]
        assert {refused.source for refused in documents.refused} == set(map(str, bad))
        reasons = {Path(refused.source).name: refused.reason for refused in documents.refused}
        assert "not UTF-8 text (byte 4)" in reasons["latin.txt"]
        assert "iconv" in reasons["latin.txt"]
        assert "line 1: not valid JSON" in reasons["broken.jsonl"]
        assert "not a plain file" in reasons["gone.md"]

    @pytest.mark.parametrize(
        ("name", "complaint"),
        [("latin.txt", "not UTF-8"), ("broken.jsonl", "not valid JSON"), ("gone.md", "does not exist")],
    )
    def test_named_they_are_an_error(self, tmp_path: Path, name: str, complaint: str) -> None:
        list(self.bad_files(tmp_path))
        with pytest.raises(BadInput, match=rf"{name}.*{complaint}"):
            read_documents([tmp_path / name])

    def test_a_pipe_is_refused_and_never_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.txt")
        write(tmp_path / "good.txt", "x")
        documents = read_documents([tmp_path])
        assert [Path(refused.source).name for refused in documents.refused] == ["pipe.txt"]
        with pytest.raises(BadInput, match="no plain file"):
            read_documents([tmp_path / "pipe.txt"])

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
        documents = read_documents([tmp_path])
        assert ([p.source for p in documents.passages.values()], documents.refused) == (["good.txt"], [])

    def test_a_file_that_may_not_be_read_is_named_with_what_to_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(tmp_path / "secret.txt", "x")

        def forbidden(self: Path, *args: Any, **options: Any) -> str:
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr(Path, "read_text", forbidden)
        with pytest.raises(BadInput, match=r"secret.txt cannot be read \(Permission denied\).*permissions"):
            read_documents([path])

    def test_a_folder_that_may_not_be_listed_is_refused_by_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path / "a.txt", "x")
        write(tmp_path / "secret/b.txt", "x")
        listing = os.scandir

        def guarded(path: str) -> Any:
            if Path(path).name == "secret":
                raise PermissionError(13, "Permission denied", path)
            return listing(path)

        monkeypatch.setattr(os, "scandir", guarded)
        documents = read_documents([tmp_path])
        assert [p.source for p in documents.passages.values()] == ["a.txt"]
        (refused,) = documents.refused
        assert refused.source == str(tmp_path / "secret")
        assert "secret cannot be read (Permission denied)" in refused.reason

    def test_a_name_that_is_no_unicode_is_kept_in_a_form_that_can_be_stored(self, tmp_path: Path) -> None:
        try:
            write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")), "x")
            write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xe9.txt")), b"\xff")
        except (OSError, UnicodeError):
            pytest.skip("this file system takes no such name")
        documents = read_documents([tmp_path])
        (passage,) = documents.passages.values()
        assert passage.source == "caf\ufffd.txt"
        assert documents.refused[0].reason.encode()
        assert documents.refused[0].source.endswith("bad\ufffd.txt")

    def test_what_does_not_exist_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"nowhere does not exist.*file or a folder"):
            read_documents([tmp_path / "nowhere"])

    def test_a_kind_that_is_not_read_is_an_error_that_names_those_that_are(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"a.pdf is of a kind that is not read.*\.jsonl"):
            read_documents([write(tmp_path / "a.pdf", "x")])


class TestIds:
    def test_they_do_not_depend_on_where_the_command_is_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path / "docs/sub/a.txt", "Nissan\n\nIn 1933.")
        write(tmp_path / "docs/b.jsonl", lines({"text": "x"}))
        absolute = list(read_documents([tmp_path / "docs"]).passages)
        monkeypatch.chdir(tmp_path)
        assert list(read_documents([Path("docs")]).passages) == absolute
        monkeypatch.chdir(tmp_path / "docs")
        assert list(read_documents([Path(".")]).passages) == absolute

    def test_they_depend_on_source_and_content(self, tmp_path: Path) -> None:
        for name, content in (("a.txt", "x"), ("b.txt", "x"), ("c.txt", "y")):
            write(tmp_path / name, content)
        assert len(read_documents([tmp_path]).passages) == 3


def document(sentences: int, seed: int = 1) -> str:
    """Prose without repetition, in paragraphs of several lengths."""
    pick = random.Random(seed)
    words = ["alpha", "beta", "gamma", "delta", "river", "city", "harbour", "bridge", "tower", "lake"]
    said = [" ".join(pick.choices(words, k=12)).capitalize() + f" {i}." for i in range(sentences)]
    return "".join(sentence + pick.choice([" ", " ", "\n\n", "\n"]) for sentence in said)


class TestChunks:
    def test_a_document_that_fits_is_one_passage_without_a_place(self) -> None:
        (passage,) = split_document("Nissan", " In 1933.\n", "a.txt")
        assert (passage.text, passage.metadata) == ("In 1933.", {})

    @pytest.mark.parametrize(
        "text",
        [
            document(80),
            " ".join(f"name{i}" for i in range(1500)),
            "日産自動車は横浜にある会社です。" * 60,
            "word " * 1000,
        ],
        ids=["prose", "no sentences", "Japanese", "one word"],
    )
    def test_each_chunk_fits_the_model_and_is_the_text_between_its_places(self, text: str) -> None:
        chunks = split_document("Nissan", text, "a.txt")
        assert len(chunks) > 2
        for number, chunk in enumerate(chunks):
            start, end = chunk.metadata["start"], chunk.metadata["end"]
            assert isinstance(start, int)
            assert isinstance(end, int)
            assert text[start:end] == chunk.text
            assert estimate_tokens(chunk.title) + estimate_tokens(chunk.text) <= CHUNK_TOKENS
            assert (chunk.metadata["chunk"], chunk.metadata["chunks"]) == (number, len(chunks))
        assert len({chunk.metadata["document"] for chunk in chunks}) == 1

    def test_chunks_cover_the_text_and_share_what_is_between_them(self) -> None:
        text = document(80).replace("\n", " ")
        spans = [(int(c.metadata["start"]), int(c.metadata["end"])) for c in split_document("", text, "a.txt")]
        assert spans[0][0] == 0
        assert text[spans[-1][1] :].strip() == ""
        for (_, end), (start, _) in pairwise(spans):
            assert start < end
            assert 0 < estimate_tokens(text[start:end]) <= CHUNK_OVERLAP

    def test_a_long_title_leaves_less_room_for_the_text(self) -> None:
        text = document(40)
        assert len(split_document("long title " * 50, text, "a")) > len(split_document("", text, "a"))

    def test_the_same_text_gives_the_same_ids_and_another_source_others(self) -> None:
        one, again = (split_document("T", document(60), "a.txt") for _ in range(2))
        other = split_document("T", document(60), "b.txt")
        assert one == again
        assert not {p.id for p in one} & {p.id for p in other}
        assert one[0].metadata["document"] != other[0].metadata["document"]

    def test_a_change_at_the_end_keeps_the_ids_before_it(self) -> None:
        before, after = (split_document("T", document(60) + end, "a.txt") for end in ("", "One more sentence."))
        assert [p.id for p in before[:-1]] == [p.id for p in after[: len(before) - 1]]

    @settings(max_examples=30, deadline=None)
    @given(
        st.lists(
            st.sampled_from(["word", "日本", "a.b", ". ", "\n\n", "\n", " ", "。", "\t\u3000"]),
            min_size=300,
            max_size=900,
        )
    )
    def test_places_hold_for_any_text(self, pieces: list[str]) -> None:
        text = "".join(pieces)
        for chunk in split_document("", text, "a"):
            if "start" in chunk.metadata:
                assert text[int(chunk.metadata["start"]) : int(chunk.metadata["end"])] == chunk.text


def test_tokens_are_estimated_by_words_and_by_characters_of_unspaced_scripts() -> None:
    assert estimate_tokens("ten words " * 5) == 13
    assert estimate_tokens("日産自動車") == 5
    assert estimate_tokens("") == 0


def test_passages_can_be_added_from_elsewhere() -> None:
    documents = Documents()
    documents.add([Passage("a", "A", "x"), Passage("a", "A", "x", "other source")])
    assert documents.identical == 1
    with pytest.raises(BadInput, match="stands for two texts"):
        documents.add([Passage("a", "B", "x")])
