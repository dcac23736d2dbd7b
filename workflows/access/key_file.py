"""The file of keys and tokens, as its operator writes it.

[keys.anna]                          # made by `mara serve key anna --where tenant=a`
sha256 = ["9f86..."]                 # of her key; two while one replaces the other
where = { tenant = "a" }             # the filter of all that she asks; {} for every passage
workspaces = ["handbook"]            # that she may open, the first by default; absent: the server's own
may_index = true                     # absent: false
may_watch = true                     # absent: false

[tokens]                             # JSON Web Tokens
algorithms = ["RS256"]
key_file = "issuer.pem"              # or secret_variable = "..." for HS256
issuer = "https://login.example.org/"
audience = "mara"
where = { tenant = "$claims.tenant" }
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from graph.environment import environment
from graph.errors import BadInput, NoAccess, needs
from graph.metadata_filter import read_conditions
from graph.storage.workspace import is_workspace_name
from workflows.access.tokens import ASK, CLAIMS, is_claim, names_claims, with_samples
from workflows.settings.problems import problems_of

ANY_WORKSPACE = "all"
OWN_WORKSPACE = ""
"""Stands for the server's own workspace, that of ``MARA_WORKSPACE``."""

LEAST_SECRET = 32
"""Characters of a shared secret: a shorter one can be found from one token."""

_NAME_LENGTH = 200
_SHARED = ("HS256", "HS384", "HS512")
_HINT = "docs/deploy.md shows the file"

Algorithm = Literal[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


def _workspace(name: str) -> str:
    if name and not is_claim(name) and not is_workspace_name(name):
        raise ValueError(f"{name[:64]!a} is not the name of a workspace")
    return name


Workspaces = Annotated[tuple[Annotated[str, AfterValidator(_workspace)], ...], Field(min_length=1)] | Literal["all"]
Digests = Annotated[tuple[Annotated[str, Field(pattern="^[0-9a-f]{64}$")], ...], Field(min_length=1)]
Name = Annotated[str, Field(pattern="^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}$")]


class Rights(BaseModel):
    """The rights of a caller."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    where: dict[str, Any]
    workspaces: Workspaces = (OWN_WORKSPACE,)


class Holder(Rights):
    """Somebody who holds a key."""

    sha256: Digests
    may_index: bool = False
    may_watch: bool = False

    @model_validator(mode="after")
    def _check_rights(self) -> Holder:
        if names_claims(self.where) or any(map(is_claim, self.workspaces)):
            raise ValueError(f"{CLAIMS}... stands for a claim of a token, and a key has none")
        read_conditions(self.where)
        return self


class Tokens(Rights):
    """Whose tokens are taken, and what their holders may see and do."""

    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)]
    key_file: str = ""
    secret_variable: str = ""
    issuer: Annotated[str, Field(min_length=1)]
    audience: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)] = "sub"
    leeway_s: Annotated[float, Field(ge=0, le=300)] = 30
    may_index: bool | Annotated[str, Field(pattern=r"^\$claims\..+$")] = False
    _key: str = PrivateAttr("")

    @model_validator(mode="after")
    def _check_rights(self) -> Tokens:
        read_conditions(with_samples(self.where))
        if bool(self.key_file) == bool(self.secret_variable):
            raise ValueError("give one of key_file and secret_variable")
        shared = {name for name in self.algorithms if name in _SHARED}
        # With both kinds, a caller who knows the public key could sign with it as a secret.
        if shared != set(self.algorithms if self.secret_variable else ()):
            raise ValueError("HS256, HS384 and HS512 take a secret_variable, and all others a key_file")
        return self

    def read_key(self, folder: Path) -> None:
        """Read the key by which tokens are checked; a relative ``key_file`` lies in the folder.

        Raises:
            BadInput: it cannot be read, or does not fit the algorithms.
            DependencyMissing: PyJWT is not installed.
        """
        jwt = _pyjwt()
        if self.secret_variable:
            key = environment().value(self.secret_variable)
        else:
            key = _text_of(folder / self.key_file, "tokens.key_file names")
        try:
            if self.secret_variable and len(key) < LEAST_SECRET:
                raise ValueError(f"a secret has {LEAST_SECRET} characters or more")
            if "PRIVATE KEY" in key:
                raise ValueError("it is a private key: give the public one alone")
            for algorithm in self.algorithms:
                jwt.get_algorithm_by_name(algorithm).prepare_key(key)
        except (jwt.PyJWTError, NotImplementedError, TypeError, ValueError) as fault:
            named = self.secret_variable or self.key_file
            raise BadInput(f"The key of tokens, {named}, cannot be used ({fault})", _HINT) from fault
        self._key = key

    def claims_of(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token. Raises NoAccess where it cannot be trusted, or names no user."""
        jwt = _pyjwt()
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=list(self.algorithms),
                issuer=self.issuer,
                audience=self.audience,
                leeway=self.leeway_s,
                options={"require": ["exp", "iss", "aud", self.name]},
            )
        except jwt.PyJWTError as fault:
            raise NoAccess(f"The key is not known, and is no token to trust ({fault})", ASK, status=401) from fault
        name = claims[self.name]
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _NAME_LENGTH:
            raise NoAccess(f"The token's claim {self.name} is no name", ASK)
        return claims


class KeyFile(BaseModel):
    """The holders of keys and tokens.

    Attributes:
        keys: the holders of keys, by name.
        tokens: the rights of a caller with a token; None where none is taken.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: dict[Name, Holder] = {}
    tokens: Tokens | None = None

    @model_validator(mode="after")
    def _check_that_somebody_is_known(self) -> KeyFile:
        if not self.keys and self.tokens is None:
            raise ValueError("it names no user: give a table [keys.NAME], or [tokens]")
        if len({digest for _, digest in self.digests}) != len(self.digests):
            raise ValueError("one key has two holders")
        return self

    @property
    def digests(self) -> list[tuple[str, str]]:
        """The digest of each key, with its holder's name before it."""
        return [(name, digest) for name, holder in self.keys.items() for digest in holder.sha256]


def read_key_file(path: Path) -> KeyFile:
    """Return what a file of keys and tokens says.

    Raises:
        BadInput: it cannot be read, or a setting in it cannot be used, named in the message.
        DependencyMissing: it takes tokens, and PyJWT is not installed.
    """
    read = _read(_text_of(path, "MARA_AUTH names"), str(path))
    if read.tokens:
        read.tokens.read_key(path.parent)
    return read


def check_lines(text: str) -> None:
    """Raise BadInput where lines cannot stand in a file of keys."""
    _read(text, "The table")


def _read(text: str, where: str) -> KeyFile:
    try:
        return KeyFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as fault:
        raise BadInput(f"{where} is no TOML ({fault})", _HINT) from fault
    except ValidationError as fault:
        raise BadInput(f"{where} cannot be used ({problems_of(fault)})", _HINT) from fault


def _text_of(path: Path, which: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        raise BadInput(f"{path}, which {which}, cannot be read ({fault.strerror})", _HINT) from fault
    except UnicodeDecodeError as fault:
        raise BadInput(f"{path}, which {which}, is no UTF-8", _HINT) from fault


def _pyjwt() -> Any:
    with needs("auth", "A server that takes tokens"):
        import jwt
    return jwt
