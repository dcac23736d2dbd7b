"""``mara serve key``: a fresh key, and lines by which a server knows it."""

from __future__ import annotations

from pathlib import Path

from tests.workflows.command_line import Mara
from workflows.access.identity import Identity, Keyring
from workflows.access.key_file import read_key_file


def test_the_lines_make_the_key_known_with_these_rights(mara: Mara, tmp_path: Path) -> None:
    cases: list[tuple[list[str], Identity]] = [
        (["--everything"], Identity("anna")),
        (["--where", "tenant=a"], Identity("anna", {"tenant": "a"})),
        (["--where", "tenant=7"], Identity("anna", {"tenant": {"$in": ["7", 7]}})),
        (
            ["--where", 'a "b" é\\=x\ty', "--where", "year>=2020", "--where", "n<1.5"],
            Identity("anna", {'a "b" é\\': "x\ty", "year": {"$gte": "2020"}, "n": {"$lt": 1.5}}),
        ),
        (
            ["--everything", "--open-workspace", "one", "--open-workspace", "two", "--may-index"],
            Identity("anna", {}, ("one", "two"), may_index=True),
        ),
    ]
    for arguments, identity in cases:
        made = mara("serve", "key", "anna", *arguments, "--json").json
        (tmp_path / "keys.toml").write_text(made["lines"], encoding="utf-8")
        assert Keyring(read_key_file(tmp_path / "keys.toml")).identity_of(f"Bearer {made['key']}") == identity
        assert made["key"] not in made["lines"], arguments


def test_what_cannot_be_is_refused(mara: Mara) -> None:
    cases: list[tuple[list[str], str]] = [
        (["anna"], "It is not clear what anna may see"),
        (["anna", "--everything", "--where", "a=b"], "Give either --where CONDITION or --everything"),
        (
            ["anna", "--where", "tenant=a", "--where", "tenant=b"],
            "'tenant' is to be = two values. Give one; Python and a file of keys take several, with $in",
        ),
    ]
    for arguments, says in cases:
        refused = mara("serve", "key", *arguments)
        assert refused.code == 2, arguments
        assert says in " ".join(refused.err.split())
