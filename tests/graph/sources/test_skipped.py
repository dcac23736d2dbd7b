from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.sources.loaders.document import Refused
from graph.sources.skipped import NAMED_FILES, REFUSED, keep_skipped, skipped_by_source
from graph.storage.record import Record


def files(folder: Path, n_files: int, suffix: str) -> list[Refused]:
    paths = [f"{folder}/{number:06}{suffix}" for number in range(n_files)]
    return [Refused(path, f"{path} is of a kind that is not read ({suffix})") for path in paths]


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with Record(tmp_path / "record.sqlite", create=True) as opened:
        yield opened


def test_of_very_many_files_all_are_counted_and_the_first_named(record: Record, tmp_path: Path) -> None:
    images, mails = files(tmp_path, 100_000, ".png"), files(tmp_path, 3, ".eml")
    refused = [Refused(f"{tmp_path}/a.pdf", f"{tmp_path}/a.pdf is encrypted")]
    keep_skipped(record, [tmp_path], refused, [*images, *mails], alone=True)
    (noted,) = skipped_by_source(record).values()
    kind = "is of a kind that is not read"
    assert noted["reasons"] == {REFUSED: 1, f"{kind} (.png)": 100_000, f"{kind} (.eml)": 3}
    assert len(noted["files"]) == 1 + NAMED_FILES
    assert noted["files"][0] == ["a.pdf", " is encrypted"]


def test_names_are_those_within_the_source_wherever_the_command_is_run(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for source, given in ((Path("."), "sub/a.png"), (tmp_path, f"{tmp_path}/sub/a.png")):
        keep_skipped(record, [source], [], [Refused(given, f"{given} is hidden")], alone=False)
        (noted,) = skipped_by_source(record).items()
        assert (noted[0], noted[1]["files"]) == (str(tmp_path), [["sub/a.png", " is hidden"]])
