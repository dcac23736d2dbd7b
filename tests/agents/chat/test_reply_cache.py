from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agents.chat.reply_cache import KeptReply, ReplyCache
from agents.chat.usage import Usage

ROOT = Path(__file__).parents[3]
REPLY = KeptReply('{"entities": ["日産 «Ø»"]}', Usage(2, 700, 80, 1, 1.25))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "replies.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[ReplyCache]:
    with ReplyCache(path) as cache:
        yield cache


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def put_many(path: Path) -> list[bytes]:
    """Keep replies of some hundred kB in all, and damage the file behind its first pages."""
    keys = [number.to_bytes(4, "big") for number in range(400)]
    with ReplyCache(path) as cache:
        for key in keys:
            cache.put(key, "model#1", KeptReply("x" * 500, Usage()))
    whole = path.read_bytes()
    path.write_bytes(whole[:8_192] + b"\xff" * (len(whole) - 8_192))
    return keys


def assert_set_aside(path: Path, keys: Sequence[bytes] = ()) -> Path:
    """Check that a file is set aside for a new one; return the old one."""
    with ReplyCache(path) as cache:
        assert [key for key in keys if cache.get(key)] == []
        cache.put(b"key", "model#1", REPLY)
        assert cache.get(b"key") == REPLY
    return path.with_name("replies.sqlite.damaged")


def test_a_reply_comes_back_with_what_it_took_and_a_later_one_replaces_it(path: Path) -> None:
    with ReplyCache(path) as cache:
        assert cache.get(b"key") is None
        cache.put(b"key", "model#1", REPLY)
        assert cache.get(b"key") == REPLY
        assert cache.get(b"other") is None
    with ReplyCache(path) as cache:
        assert cache.get(b"key") == REPLY, "it outlives the process"
        cache.put(b"key", "model#1", KeptReply("{}", Usage()))
        assert cache.get(b"key") == KeptReply("{}", Usage())


def test_it_tells_which_of_many_keys_and_which_extractors_it_knows(cache: ReplyCache) -> None:
    keys = [number.to_bytes(4, "big") for number in range(1_200)]
    for key in keys[::400]:
        cache.put(key, "model#1", REPLY)
    assert cache.known(keys) == set(keys[::400])
    assert cache.knows("model#1")
    assert not cache.knows("model#2")


def test_an_edited_row_is_dropped_and_one_under_another_key_is_no_reply(cache: ReplyCache, path: Path) -> None:
    edits: dict[str, list[object]] = {"reply": [b'{"entities": []}', b"\xff\xfe", "text"], "digest": [b"", 7]}
    for column, values in edits.items():
        for value in values:
            change(path, f"UPDATE replies SET {column} = ?", value)
            assert cache.get(b"key") is None, (column, value)
            assert cache.known([b"key"]) == set()
    cache.put(b"key", "model#1", REPLY)
    change(path, "UPDATE replies SET key = ?", b"other")
    assert cache.get(b"other") is None


def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path: Path) -> None:
    for content in (b"no database at all, but some words " * 200, b"SQLite format 3\x00" + b"\xff" * 4_000):
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(content)
        assert assert_set_aside(path).read_bytes() == content


def test_a_file_damaged_deep_inside_is_set_aside_when_that_shows(path: Path) -> None:
    assert assert_set_aside(path, put_many(path)).exists()


def test_a_file_of_another_format_is_set_aside(path: Path) -> None:
    change(path, "PRAGMA user_version = 99")
    assert assert_set_aside(path).exists()


def test_a_disk_that_refuses_is_never_fatal_and_a_closed_cache_keeps_nothing(tmp_path: Path, path: Path) -> None:
    closed = ReplyCache(path)
    closed.close()
    closed.close()
    for cache in (ReplyCache(tmp_path / "no such folder" / "replies.sqlite"), closed):
        cache.put(b"key", "model#1", REPLY)
        assert cache.get(b"key") is None
        assert cache.known([b"key"]) == set()


def test_processes_share_one_file(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from agents.chat.reply_cache import *\n"
        "with ReplyCache(Path(sys.argv[1])) as cache:\n"
        "    for number in range(50):\n"
        "        cache.put(bytes([int(sys.argv[2]), number]), 'model#1', KeptReply('{}', Usage(1)))\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", script, path, str(n)], cwd=ROOT) for n in range(3)]
    for worker in workers:
        assert worker.wait(timeout=30) == 0
    with ReplyCache(path) as cache:
        assert len(cache.known(bytes([worker, number]) for worker in range(3) for number in range(50))) == 150
