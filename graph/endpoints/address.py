"""Addresses of servers, with their credentials apart: the address may be shown and traced, the credentials never."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from graph.environment import environment
from graph.errors import BadInput

_KEYS = ("OPENAI_API_KEY", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "CHROMA_CLIENT_AUTH_CREDENTIALS")
_ADDRESSES = (
    *("OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_PROXY", "MARA_EMBEDDING_BASE_URL", "MARA_GRAPH_URL"),
    *("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"),
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is.

    Attributes:
        url: without name, password and a slash at its end; may be shown.
        port: the port, also where the address leaves it to the scheme.
        credentials: name and password for Basic authentication, where the address has them.
    """

    url: str
    port: int
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    @staticmethod
    def parse(text: str, variable: str, example: str) -> Address:
        """Return the address in a text such as ``https://name:password@host:8000/path/``.

        Raises:
            BadInput: it is none, or has more than a path; the message names the variable and shows nothing of it.
        """
        parts = address_parts(text)
        is_one = parts is not None and parts.hostname and parts.scheme in ("http", "https")
        if parts is None or not is_one or parts.query or parts.fragment or "," in parts.netloc.rpartition("@")[2]:
            raise unreadable(variable, f"{example} or {example.partition('http')[0]}https://name:password@host/path")
        place = parts.netloc.rpartition("@")[2].rstrip(":")
        named = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
        default_port = 443 if parts.scheme == "https" else 80
        return Address(f"{parts.scheme}://{place}{parts.path.rstrip('/')}", parts.port or default_port, named)

    @property
    def authorization(self) -> str:
        """The value of the header ``Authorization``; empty without credentials."""
        if self.credentials is None:
            return ""
        return f"Basic {base64.b64encode(':'.join(self.credentials).encode()).decode()}"


def unreadable(variable: str, example: str) -> BadInput:
    """Return the error of a setting that holds no address, or one that can be read in several ways; shows none of it.

    Args:
        variable: the setting.
        example: what it may hold.
    """
    return BadInput(
        f"{variable} is no address that can be read; it is not shown, as it may hold a password",
        f"Set it to {example}; percent-encode the password (`@` as %40, `/` as %2F, `#` as %23, `?` as %3F)",
    )


def censored(text: str) -> str:
    """Return what a server or a library says with stars in place of every key and password that is configured."""
    secrets = {secret for secret in _configured_secrets() if secret}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _configured_secrets() -> Iterator[str]:
    yield from map(environment().value, _KEYS)
    several = f"{environment().mara_extraction_urls},{environment().mara_vectors}".split(",")
    for address in (*map(environment().value, _ADDRESSES), *map(str.strip, several)):
        named = re.match(r"[\w+]+://(.*)@", address, re.DOTALL)
        if named:
            name, _, password = named[1].partition(":")
            sent = f"{unquote(name)}:{unquote(password)}"
            yield from (named[1], sent, base64.b64encode(sent.encode()).decode())
            yield from (password, unquote(password)) if password else (name, unquote(name))
        query = re.search(r"[?#](.*)", address, re.DOTALL)
        if query:
            yield from (query[1], *re.findall(r"[=#]([^&=#]+)", query[1]))


def address_parts(text: str) -> SplitResult | None:
    """Return the parts of an address; None where it can be read in several ways, or in none.

    Clients disagree about where a password with a raw ``@``, ``/``, ``?`` or ``#`` ends: one of them would take its
    rest for a host, send that to a name server, and tell it in its errors. Several hosts have commas between.
    """
    text = text.strip()
    try:
        parts = urlsplit(text)
        ports = [urlsplit(f"//{place}").port for place in parts.netloc.rpartition("@")[2].split(",")]
    except ValueError:
        return None
    is_plain = text.isprintable() and not set(" \\") & set(text)
    is_clear = text.count("@") == parts.netloc.count("@") <= 1
    return parts if is_plain and is_clear and 0 not in ports else None
