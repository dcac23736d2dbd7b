"""The file of own types: read whole, or refused with what is wrong and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.relations import RelationType
from graph.sources.triples import MAX_TYPES_BYTES, read_own_types

GOOD = """[relations.SUPPLIES]
meaning = "one delivers to the other"
cues = ["suppl*"]
[entities.Vessel]
shapes = ["MV *"]
"""


def file_of(folder: Path, content: str | bytes) -> Path:
    path = folder / "types.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_file_is_read_whatever_its_line_ends(tmp_path: Path) -> None:
    for content in (GOOD.encode(), GOOD.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + GOOD.encode()):
        own = read_own_types(file_of(tmp_path, content))
        assert (own.relation_types, own.entity_types) == ((RelationType("SUPPLIES"),), ("Vessel",)), content


def test_another_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    cases: list[tuple[str | bytes, str]] = [
        ("", "declares no type"),
        ("[relations.SUPPLIES\n", "no TOML"),
        ("a = " + "[" * 50_000, "no TOML"),
        ("[relations.TEMPORAL]\n", r"types\.toml: \[relations\.TEMPORAL\] is the name of a built-in"),
        ('[relations."a b"]\n', "no name"),
        ('[relations.A]\ncues = ["(a+)+$*x"]\n', "cannot be used"),
        ("x = 1\n", "known are entities, relations"),
        ("# " + "x" * MAX_TYPES_BYTES, "larger than"),
    ]
    for content, complaint in cases:
        with pytest.raises(BadInput, match=complaint) as refused:
            read_own_types(file_of(tmp_path, content))
        assert refused.value.hint, content
