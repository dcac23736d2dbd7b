from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from graph.corrections.apply import Stated
from graph.errors import BadInput, WorkspaceDamaged
from graph.schema import Extraction, Passage, RelationType, Triple, entity_id
from graph.storage.entry import MAX_METADATA, Entry, facts_of, fingerprint, names_of
from graph.storage.record import Record
from graph.storage.record_tables import Additions, NewVectors
from tests.builders import DIMENSION, HashEmbedder, extraction_of, facts_in, names_in, passage_of, write_passages
from tests.damages import rename_passage
from tests.records import dump

pytestmark = pytest.mark.usefixtures("database")

FOUNDED = ("Nissan", "founded", "1933", RelationType.TEMPORAL, 0.9)
BASED = ("Nissan", "headquartered in", "Yokohama", RelationType.SPATIAL, 0.8)
NISSAN = passage_of("nissan", "Nissan (company)", "Nissan was founded in 1933.")
YOKOHAMA = passage_of("yokohama", "Yokohama", "Nissan has its seat in Yokohama.")
NO_VECTORS = NewVectors({}, np.zeros((0, DIMENSION), dtype=np.float32))
NOTHING = Additions(NO_VECTORS, NO_VECTORS)


def with_facts(texts: Mapping[str, str]) -> Additions:
    return replace(NOTHING, facts=replace(NO_VECTORS, texts=texts))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "record.sqlite"


@pytest.fixture
def record(path: Path, hash_embedder: HashEmbedder) -> Iterator[Record]:
    with Record(path, create=True) as record:
        write_passages(record, [NISSAN, YOKOHAMA], {"nissan": [FOUNDED], "yokohama": [BASED]}, hash_embedder)
        yield record


class TestKeeping:
    def test_an_entry_comes_back_as_it_was_given(self, path: Path) -> None:
        passage = Passage("日産", "Título ☃", "text\n\u2028 ", "a/b.txt", {"s": "é", "i": 3, "f": 0.5, "b": True})
        extraction = Extraction(("Nissan", "日産"), (Triple(*FOUNDED),), "import", {"malformed triples": 2})
        vector = np.linspace(-1, 1, DIMENSION, dtype=np.float32)
        with Record(path, create=True) as record:
            record.commit([Entry(passage, extraction, 3, vector)], NOTHING, "hash")
        with Record(path) as record:
            (entry,) = record.entries()
        assert (entry.passage, entry.extraction, entry.windows) == (passage, extraction, 3)
        assert np.array_equal(entry.vector, vector)

    def test_reopening_keeps_counts_typed_facts_and_vectors(self, record: Record, path: Path) -> None:
        motors = passage_of("motors", "Nissan Motors", "Another spelling.")
        write_passages(record, [motors], {}, HashEmbedder())
        ids, texts, vectors = names_in(record)
        with Record(path) as again:
            assert again.count_passages() == 3
            assert again.generation == record.generation == 2
            assert (again.workspace_id, again.embedding_model) == (record.workspace_id, "hash")
            assert again.dimension == DIMENSION
            assert names_in(again)[:2] == (ids, texts)
            assert np.array_equal(names_in(again)[2], vectors)
            triples = [triple for entry in again.entries() for triple in entry.extraction.triples]
            assert triples == [Triple(*FOUNDED), Triple(*BASED)]

    def test_every_commit_counts_the_generation_up(self, record: Record) -> None:
        before = record.generation
        record.commit([], NOTHING, "hash", removed=["yokohama"])
        record.advance_generation()
        assert record.generation == before + 2

    def test_a_new_record_is_empty_and_has_an_id_of_its_own(self, tmp_path: Path) -> None:
        paths = [tmp_path / name / "record.sqlite" for name in "ab"]
        for path in paths:
            path.parent.mkdir()
        with Record(paths[0], create=True) as one, Record(paths[1], create=True) as other:
            assert one.workspace_id != other.workspace_id
            assert (one.count_passages(), one.generation, one.embedding_model, one.dimension) == (0, 0, "", 0)
            assert not any((names_in(one)[0], facts_in(one)[0]))

    def test_creating_where_there_is_a_record_opens_it(self, record: Record, path: Path) -> None:
        with Record(path, create=True) as again:
            assert again.count_passages() == 2


CONTROLS = ["\x00", "\t", "\n", "\x1b", "\x7f", "\x85", "\x9f"]


class TestControlCharacters:
    @pytest.mark.parametrize("control", CONTROLS)
    def test_an_id_that_holds_one_is_refused_and_nothing_written(
        self, record: Record, path: Path, hash_embedder: HashEmbedder, control: str
    ) -> None:
        before = dump(path)
        with pytest.raises(BadInput, match="is no id of a passage"):
            write_passages(
                record, [passage_of("velm", "Velm", "A."), passage_of(f"a{control}b", "T", "B.")], {}, hash_embedder
            )
        with pytest.raises(BadInput, match="'velm' has metadata under"):
            write_passages(record, [passage_of("velm", "Velm", "A.", **{f"k{control}": 1})], {}, hash_embedder)
        assert dump(path) == before

    def test_an_id_of_thousands_of_characters_is_refused(self, record: Record, hash_embedder: HashEmbedder) -> None:
        with pytest.raises(BadInput, match=r"'k+'\.\.\. has 1,001 characters.*1,000 at most"):
            write_passages(record, [passage_of("k" * 1_001, "T", "B.")], {}, hash_embedder)

    def test_a_passage_of_thousands_of_metadata_is_refused(self, record: Record, hash_embedder: HashEmbedder) -> None:
        metadata = {f"k{i}": "2020-01-01" for i in range(MAX_METADATA + 1)}
        with pytest.raises(BadInput, match="'velm' has 2,001 metadata"):
            write_passages(record, [passage_of("velm", "Velm", "A.", **metadata)], {}, hash_embedder)

    def test_text_titles_and_metadata_may_hold_any(self, record: Record, hash_embedder: HashEmbedder) -> None:
        given = passage_of("velm", "Ve\x00lm", "A\x00 lake\x1f.", about="a\x00b")
        write_passages(record, [given], {}, hash_embedder)
        (entry,) = record.entries(["velm"])
        assert entry.passage == given

    def test_a_document_is_known_by_its_whole_id(self, record: Record, hash_embedder: HashEmbedder) -> None:
        parts = [passage_of("velm", "Velm", "A.", document="a\x00b"), passage_of("karv", "Karv", "B.", document="a")]
        write_passages(record, parts, {}, hash_embedder)
        assert record.documents() == {"velm": "a\x00b", "karv": "a"}

    @pytest.mark.sqlite_file
    @pytest.mark.parametrize("control", CONTROLS[1:])
    def test_an_id_of_an_older_version_is_found_whole_and_goes_when_it_is_removed(
        self, record: Record, path: Path, control: str
    ) -> None:
        old = f"nissan{control}b"
        rename_passage(path, "nissan", old)
        assert [entry.passage.id for entry in record.entries(["yokohama", old])] == [old, "yokohama"]
        assert record.states([old, "nissan"]).keys() == {old}
        record.commit([], NOTHING, "hash", removed=[old])
        assert record.fingerprints().keys() == {"yokohama"}
        assert set(names_in(record)[1]) == {"nissan", "yokohama"}

    def test_many_ids_are_asked_for_at_once(self, record: Record) -> None:
        ids = ["yokohama", *(f"n{i}" for i in range(40_000)), "nissan"]
        assert [entry.passage.id for entry in record.entries(ids)] == ["nissan", "yokohama"]
        record.commit([], NOTHING, "hash", removed=ids)
        assert record.count_passages() == 0


class TestGoing:
    def test_names_and_facts_go_with_their_last_passage(self, record: Record) -> None:
        assert set(names_in(record)[1]) == {"nissan", "1933", "yokohama"}
        record.commit([], NOTHING, "hash", removed=["nissan"])
        assert set(names_in(record)[1]) == {"nissan", "yokohama"}
        assert facts_in(record)[1] == ["nissan headquartered in yokohama"]
        record.commit([], NOTHING, "hash", removed=["yokohama"])
        assert names_in(record)[1] == []
        assert facts_in(record)[0] == []

    @pytest.mark.sqlite_file
    def test_pairs_of_names_that_an_earlier_release_kept_go_with_the_next_commit(
        self, record: Record, path: Path
    ) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("CREATE TABLE synonyms (a TEXT REFERENCES names(id) ON DELETE CASCADE, b TEXT, cosine REAL)")
            db.execute("INSERT INTO synonyms SELECT min(id), max(id), 0.9 FROM names")
        record.commit([], NOTHING, "hash", removed=["nissan"])
        with closing(sqlite3.connect(path)) as db:
            assert "synonyms" not in {name for (name,) in db.execute("SELECT name FROM sqlite_master")}

    def test_removing_what_is_not_there_changes_no_passage(self, record: Record) -> None:
        record.commit([], NOTHING, "hash", removed=["nobody"])
        assert record.count_passages() == 2


class TestTransaction:
    def test_an_error_in_the_middle_leaves_everything_as_it_was(self, record: Record, path: Path) -> None:
        class Broken(dict[str, str]):
            def items(self) -> NoReturn:
                raise KeyboardInterrupt

        before = dump(path)
        entry = Entry(replace(NISSAN, text="Changed."), extraction_of([BASED]), 1, np.ones(DIMENSION, dtype=np.float32))
        with pytest.raises(KeyboardInterrupt):
            record.commit([entry], with_facts(Broken()), "hash", removed=["yokohama"])
        assert dump(path) == before
        record.commit([], NOTHING, "hash", removed=["yokohama"])
        assert dump(path) != before

    def test_a_reader_sees_the_last_commit_while_the_next_is_under_way(self, record: Record, path: Path) -> None:
        seen: list[tuple[int, int]] = []

        class Look(dict[str, str]):
            def items(self) -> Any:
                with Record(path) as reader:
                    seen.append((reader.count_passages(), reader.generation))
                return super().items()

        record.commit([], with_facts(Look()), "hash", removed=["yokohama"])
        assert seen == [(2, 1)]
        assert (record.count_passages(), record.generation) == (1, 2)


@pytest.mark.sqlite_file
class TestDamage:
    def test_no_file_is_named_with_what_to_do(self, path: Path) -> None:
        with pytest.raises(WorkspaceDamaged, match=r"record.sqlite is not there.*mara index"):
            Record(path)

    @pytest.mark.parametrize(
        ("content", "told"),
        [(b"", "is not there"), (b"not a database at all, but long enough to look like one" * 99, "cannot be read")],
    )
    def test_a_file_that_is_no_record(self, path: Path, content: bytes, told: str) -> None:
        path.write_bytes(content)
        with pytest.raises(WorkspaceDamaged, match=rf"record.sqlite {told}.*backup"):
            Record(path)

    @pytest.mark.parametrize(
        ("version", "age"), [("1", "an older version"), ("3", "a newer version"), ("next", "a newer version")]
    )
    def test_another_format_is_refused_with_the_way_out(
        self, record: Record, path: Path, version: str, age: str
    ) -> None:
        with sqlite3.connect(path) as database:
            database.execute("UPDATE meta SET value = ? WHERE key = 'format_version'", (version,))
        before = path.read_bytes()
        with pytest.raises(WorkspaceDamaged, match=rf"of format {version}, written by {age}.*--workspace NEW"):
            Record(path)
        assert path.read_bytes() == before

    @pytest.mark.parametrize("key", ["format_version", "workspace_id", "generation", "embedding_model", "dimension"])
    def test_a_missing_entry_of_the_header_is_named(self, record: Record, path: Path, key: str) -> None:
        with sqlite3.connect(path) as database:
            database.execute("DELETE FROM meta WHERE key = ?", (key,))
        with pytest.raises(WorkspaceDamaged, match=rf"lacks '{key}'.*backup"), Record(path) as again:
            getattr(again, key)

    def test_a_damaged_page_is_found_when_it_is_read(self, path: Path, hash_embedder: HashEmbedder) -> None:
        with Record(path, create=True) as record:
            passages = [passage_of(f"p{i}", f"Title {i}", "Some text. " * 50) for i in range(50)]
            write_passages(record, passages, {}, hash_embedder)
        content = path.read_bytes()
        path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
        with pytest.raises(WorkspaceDamaged, match=r"cannot be read .*backup"), Record(path) as record:
            list(record.entries())

    def test_it_ends_a_command_with_exit_code_4(self) -> None:
        assert WorkspaceDamaged.exit_code == 4


class TestFingerprint:
    passage = passage_of("nissan", "Nissan", "A carmaker.", year=1933)
    extraction = extraction_of([FOUNDED], entities=["Nissan"])

    @pytest.mark.parametrize(
        "changed",
        [
            replace(passage, title="Datsun"),
            replace(passage, text="No."),
            replace(passage, source="elsewhere"),
            replace(passage, metadata={"year": 1934}),
        ],
    )
    def test_it_changes_with_what_is_given(self, changed: Passage) -> None:
        assert fingerprint(changed, self.extraction) != fingerprint(self.passage, self.extraction)

    @pytest.mark.parametrize(
        "extraction",
        [
            extraction_of([FOUNDED]),
            extraction_of([BASED], entities=["Nissan"]),
            extraction_of([(*FOUNDED[:3], RelationType.ATTRIBUTION, 0.9)], entities=["Nissan"]),
            extraction_of([(*FOUNDED[:4], 0.5)], entities=["Nissan"]),
        ],
    )
    def test_it_changes_with_what_is_extracted(self, extraction: Extraction) -> None:
        assert fingerprint(self.passage, extraction) != fingerprint(self.passage, self.extraction)

    def test_who_extracted_and_what_was_dropped_does_not_matter(self) -> None:
        other = replace(self.extraction, extractor="somebody else", notes={"malformed triples": 3})
        assert fingerprint(self.passage, other) == fingerprint(self.passage, self.extraction)


class TestTextsToEmbed:
    def test_the_names_of_a_passage_are_its_titles_its_entities_and_its_triples_ends(self) -> None:
        names = names_of(Stated.of(NISSAN, extraction_of([FOUNDED], entities=["NISSAN", "Datsun", "  "])))
        assert sorted(names.values()) == ["1933", "datsun", "nissan"]
        assert names == {entity_id(name): name for name in names.values()}

    def test_spellings_of_one_fact_have_one_id_and_one_text(self) -> None:
        spellings = [("Nissan.", "Founded", "1933"), ("NISSAN", " founded ", "(1933)"), ("nissan", "founded", "1933")]
        (text,) = {tuple(facts_of(Stated.of(NISSAN, extraction_of([parts]))).items()) for parts in spellings}
        assert text[0][1] == "nissan founded 1933"

    def test_neither_type_nor_confidence_is_in_the_text(self) -> None:
        assert list(facts_of(Stated.of(NISSAN, extraction_of([FOUNDED]))).values()) == ["nissan founded 1933"]

    def test_one_statement_under_two_types_is_two_facts(self) -> None:
        both = extraction_of([FOUNDED, (*FOUNDED[:3], RelationType.CAUSALITY)])
        assert len(facts_of(Stated.of(NISSAN, both))) == 2
