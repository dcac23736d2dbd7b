"""Callers known by a key or a token, and the settings that they get."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from graph.errors import BadInput, NoAccess
from tests.builders import HashEmbedder, passage_of, publish_workspace
from tests.workflows.tenants import KEYS, SECRET, SECRET_VARIABLE, keys_file, token
from tests.workflows.workspaces import use_embedder
from workflows.access.identity import LOCAL, Identity, Keyring
from workflows.answering import ask
from workflows.runtime.resources import close_indexes
from workflows.settings.indexing import IndexingContext

Write = Callable[[str], Keyring]


@pytest.fixture
def keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file of keys, and read it as the environment names it."""
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)
    monkeypatch.setenv("MARA_AUTH", str(tmp_path / "keys.toml"))

    def write(text: str) -> Keyring:
        (tmp_path / "keys.toml").write_text(text, encoding="utf-8")
        return Keyring.of_environment()

    return write


@pytest.fixture
def known(keyring: Write) -> Keyring:
    return keyring(keys_file())


class TestSettings:
    anna = Identity("anna", {"tenant": "a"}, ("", "board"))

    def test_a_filter_is_added_to_that_of_the_client(self) -> None:
        assert self.anna.context().where == {"tenant": {"$eq": "a"}}
        both = self.anna.context(where={"year": {"$gte": 2000}, "tenant": {"$ne": "b"}})
        assert both.where == {"tenant": {"$eq": "a", "$ne": "b"}, "year": {"$gte": 2000}}
        assert both.fixed_where == {"tenant": {"$eq": "a"}}
        with pytest.raises(BadInput, match="'tenant' itself"):
            self.anna.context(where={"tenant": "b"})

    def test_no_client_can_say_that_its_settings_are_confined(self) -> None:
        for name in ("_beside", "_fixed_where", "fixed_where", "is_confined"):
            client: dict[str, Any] = {name: {}}
            with pytest.raises(BadInput, match="is not known"):
                LOCAL.context(**client)

    def test_who_names_no_workspace_gets_the_first_of_theirs(self) -> None:
        assert self.anna.context().workspace == ""
        assert Identity("cleo", workspaces=("board", "")).context().workspace == "board"
        assert Identity("olga", workspaces=None).context().workspace == ""

    def test_a_workspace_of_others_is_refused(self) -> None:
        for name in ["other", "Board", "workspace"]:
            with pytest.raises(
                NoAccess, match=f"anna may not open the workspace '{name}'. Name one of board"
            ) as refused:
                self.anna.context(workspace=name)
            assert refused.value.status == 403, name

    def test_no_path_is_the_name_of_a_workspace(self) -> None:
        for name in ["..", "../board", "/etc", "a/b", "a\\b", ".", ".hidden", "x" * 65, "a\n"]:
            for workspaces in [None, ("", "board")]:
                with pytest.raises(BadInput, match="is not the name of a workspace"):
                    Identity("x", workspaces=workspaces).context(workspace=name)

    def test_only_who_may_index_gets_settings_of_indexing(self) -> None:
        with pytest.raises(NoAccess, match="anna may not index documents"):
            self.anna.indexing(IndexingContext())
        writer = Identity("w", workspaces=("board",), may_index=True)
        assert writer.indexing(IndexingContext(chunk_tokens=64)) == IndexingContext(chunk_tokens=64, workspace="board")
        with pytest.raises(NoAccess, match="may not open"):
            writer.indexing(IndexingContext(workspace="other"))

    def test_an_identity_travels_as_text(self) -> None:
        for identity in [LOCAL, self.anna, Identity("x", {"a": {"$in": [1, "b"]}}, (), may_index=True)]:
            assert Identity.from_json(identity.to_json()) == identity

    def test_an_owner_is_a_name_and_its_filter(self) -> None:
        same = Identity("anna", {"tenant": {"$eq": "a"}}, may_index=True)
        assert self.anna.owner == same.owner
        others = (Identity("anna", {"tenant": "b"}), Identity("anna"), Identity("ben", {"tenant": "a"}))
        assert self.anna.owner not in {other.owner for other in others}


def test_an_answer_is_written_from_what_an_identity_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_embedder(monkeypatch, HashEmbedder())
    passages = [
        passage_of("a", "Sund", "Lake Sund lies near Marn.", tenant="a"),
        passage_of("b", "Sund", "Lake Sund was drained by Ember.", tenant="b", budget=1),
    ]
    monkeypatch.setenv("MARA_WORKSPACE", str(publish_workspace(tmp_path / "w", passages, {}).root))
    seen = {name: ask("Who drained Lake Sund?", Identity(name, {"tenant": name}).context()) for name in ("a", "b")}
    assert {name: [hit["id"] for hit in result["passages"]] for name, result in seen.items()} == {
        "a": ["a"],
        "b": ["b"],
    }
    result = ask("Who drained Lake Sund?", Identity("a", {"tenant": "a"}).context(where={"budget": 1}))
    assert [record["kind"] for record in result["errors"]][:2] == ["UnknownKeys", "NothingSelected"]
    assert "budget" not in str(result["errors"])
    close_indexes()


class TestKeys:
    def test_without_a_file_everybody_is_the_machines_own_user(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MARA_AUTH", raising=False)
        for header in (None, "", "Bearer anything"):
            assert Keyring.of_environment().identity_of(header) is LOCAL

    def test_a_key_names_its_holder_with_their_rights(self, known: Keyring) -> None:
        assert known.identity_of(f"Bearer {KEYS['anna']}") == Identity("anna", {"tenant": "a"}, ("",), may_index=False)
        assert known.identity_of(f"bearer  {KEYS['olga']} ") == Identity("olga", {}, None, may_index=True)
        assert known.identity_of(f"Bearer {KEYS['cleo']}") == Identity("cleo", {}, ("board",))

    def test_what_is_no_key_names_nobody(self, known: Keyring) -> None:
        cases: list[tuple[str | None, str]] = [
            (None, "No key was sent"),
            ("  ", "No key was sent"),
            (KEYS["anna"], "holds no key"),
            (f"Basic {KEYS['anna']}", "holds no key"),
            (f"Bearer {KEYS['anna'][:-1]}", "not known"),
            (f"Bearer {KEYS['anna']}x", "not known"),
            (f"Bearer {sha256(KEYS['anna'].encode()).hexdigest()}", "not known"),
            ("Bearer \u2603\udc80", "holds no key"),
        ]
        for header, says in cases:
            with pytest.raises(NoAccess, match=says) as refused:
                known.identity_of(header)
            assert refused.value.status == 401, header
            assert KEYS["anna"][:-1] not in str(refused.value), header

    def test_every_key_is_compared_in_constant_time(self, known: Keyring, monkeypatch: pytest.MonkeyPatch) -> None:
        compared: list[str] = []

        def compare(digest: str, known_digest: str) -> bool:
            compared.append(known_digest)
            return digest == known_digest

        monkeypatch.setattr(hmac, "compare_digest", compare)
        known.identity_of(f"Bearer {KEYS['anna']}")
        assert len(compared) == len(KEYS)

    def test_two_keys_serve_while_one_replaces_the_other_and_a_changed_file_is_read_again(self, keyring: Write) -> None:
        digests = ", ".join(f'"{sha256(key).hexdigest()}"' for key in (b"old", b"new"))
        both = keyring(f"[keys.anna]\nsha256 = [{digests}]\nwhere = {{}}\n")
        assert both.identity_of("Bearer old") == both.identity_of("Bearer new")
        assert keyring(keys_file()).identity_named("gone")
        with pytest.raises(NoAccess, match="No user called 'gone'"):
            keyring(keys_file("gone")).identity_named("gone")


DIGEST = sha256(b"key").hexdigest()
ANNA = f'[keys.anna]\nsha256 = ["{DIGEST}"]\n'
TOKENS = '[tokens]\nissuer = "i"\naudience = "mara"\nwhere = {}\n'
SHARED = f'algorithms = ["HS256"]\nsecret_variable = "{SECRET_VARIABLE}"\n'


def test_a_file_that_cannot_be_used_is_refused_by_what_is_wrong(keyring: Write) -> None:
    for text, says in [
        ("", r"keys.toml cannot be used \(it names no user: give a table"),
        ("[keys", "is no TOML"),
        (ANNA, "keys.anna.where is missing"),
        ('[keys.anna]\nsha256 = ["my key"]\nwhere = {}', "keys.anna.sha256.0"),
        (f'[keys."token:x"]\nsha256 = ["{DIGEST}"]\nwhere = {{}}', "keys.token:x"),
        (ANNA + "where = { tenant = {} }", "keys.anna: The condition of `where` on 'tenant' cannot be used"),
        (ANNA + 'where = { tenant = "$claims.tenant" }', "stands for a claim of a token, and a key has none"),
        (ANNA + 'where = { tenant = { "$in" = "$claims.all" } }', "a key has none"),
        (ANNA + 'where = {}\nworkspaces = ["../x"]', "'../x' is not the name of a workspace"),
        (ANNA + "where = {}\nworkspaces = []", "keys.anna.workspaces"),
        (ANNA + f'where = {{}}\n[keys.ben]\nsha256 = ["{DIGEST}"]\nwhere = {{}}', "one key has two holders"),
        (TOKENS + 'algorithms = ["none"]\nkey_file = "x"', "tokens.algorithms.0: Input should be 'HS256'"),
        (TOKENS + 'algorithms = ["RS256"]', "tokens: give one of key_file and secret_variable"),
        (TOKENS + 'algorithms = ["HS256"]\nkey_file = "x"', "take a secret_variable, and all others a key_file"),
        (TOKENS + 'algorithms = ["RS256", "HS256"]\nkey_file = "x"', "and all others a key_file"),
        (TOKENS + 'algorithms = ["RS256"]\nkey_file = "none.pem"', "none.pem, which tokens.key_file names, cannot be"),
        (TOKENS + 'algorithms = ["RS256"]\nkey_file = "keys.toml"', "The key of tokens, keys.toml, cannot be used"),
        (
            TOKENS + 'algorithms = ["HS256"]\nsecret_variable = "UNSET"',
            "UNSET, cannot be used .a secret has 32",
        ),
        (TOKENS.replace("{}", '{ tenant = { "$in" = "x" } }') + SHARED, "'tenant' cannot be used"),
    ]:
        with pytest.raises(BadInput, match=says) as refused:
            keyring(text)
        assert "docs/deploy.md" in str(refused.value), text
        assert "my key" not in str(refused.value), text


class TestTokens:
    def identity(self, known: Keyring, **claims: Any) -> Identity:
        return known.identity_of(f"Bearer {token(**claims)}")

    def test_the_name_of_a_token_is_nobodys_who_holds_a_key(self, known: Keyring) -> None:
        assert self.identity(known, sub="anna").name == "token:anna"
        assert self.identity(known, sub="anna", tenant="a").owner != known.identity_named("anna").owner

    def test_what_cannot_be_trusted_names_nobody(self, known: Keyring) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"exp": 1}, "has expired"),
            ({"iss": "https://evil.example.org/"}, "Invalid issuer"),
            ({"aud": None}, "missing the .aud. claim"),
            ({"aud": "other"}, "Audience doesn't match"),
            ({"nbf": 4_000_000_000}, "not yet valid"),
            ({"algorithm": "none"}, "no token to trust"),
            ({"algorithm": "HS512", "secret": SECRET * 2}, "no token to trust"),
            ({"secret": "another secret, also of forty characters"}, "no token to trust"),
        ]
        for claims, says in cases:
            with pytest.raises(NoAccess, match=says) as refused:
                self.identity(known, **claims)
            assert refused.value.status == 401, claims

    def test_without_the_claims_that_its_rights_depend_on_a_token_opens_nothing(self, known: Keyring) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"tenant": None}, "The token has no claim tenant, on which it depends"),
            ({"tenant": {"$ne": "a"}}, "claim tenant cannot stand in a filter"),
            ({"sub": " "}, "claim sub is no name"),
            ({"sub": "x" * 201}, "claim sub is no name"),
        ]
        for claims, says in cases:
            with pytest.raises(NoAccess, match=says) as refused:
                self.identity(known, **claims)
            assert refused.value.status == 403, claims

    def test_claims_may_be_lists_lie_within_others_and_have_dots_in_their_names(self, keyring: Write) -> None:
        text = (
            TOKENS.replace("{}", '{ tenant = { "$in" = "$claims.org.tenants" }, level = { "$lte" = "$claims.x.y/z" } }')
            + SHARED
            + 'workspaces = ["$claims.rooms", "board"]\nmay_index = "$claims.org.writes"\nname = "email"\n'
        )
        claims = {
            "iss": "i",
            "email": "bea@example.org",
            "org": {"tenants": ["a", "b"], "writes": True},
            "x.y/z": 3,
            "rooms": ["one", "two"],
        }
        known = keyring(text)
        identity = self.identity(known, **claims)
        assert identity == Identity(
            "token:bea@example.org",
            {"tenant": {"$in": ["a", "b"]}, "level": {"$lte": 3}},
            ("one", "two", "board"),
            may_index=True,
        )
        assert not self.identity(known, **{**claims, "org": {"tenants": ["a"], "writes": "true"}}).may_index
        refused: list[dict[str, Any]] = [
            {"rooms": ["../x"]},
            {"rooms": [7]},
            {"rooms": {}},
            {"org": {"tenants": []}},
            {"x.y/z": []},
        ]
        for wrong in refused:
            with pytest.raises(NoAccess, match="The token's claim"):
                self.identity(known, **{**claims, **wrong})

    def test_a_public_key_in_a_file_checks_tokens_and_is_no_secret_to_sign_with(
        self, keyring: Write, tmp_path: Path
    ) -> None:
        private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        whole = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (tmp_path / "issuer.pem").write_bytes(public)
        text = TOKENS + 'algorithms = ["RS256"]\nkey_file = "issuer.pem"\n'
        known = keyring(text)
        assert self.identity(known, secret=whole.decode(), algorithm="RS256", iss="i").name == "token:bea"
        with pytest.raises(NoAccess, match="no token to trust"):
            self.identity(known, secret=SECRET, algorithm="HS256", iss="i")
        (tmp_path / "issuer.pem").write_bytes(whole)
        with pytest.raises(BadInput, match="is a private key"):
            keyring(text + "leeway_s = 1\n")
