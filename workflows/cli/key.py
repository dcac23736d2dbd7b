"""The command ``mara key``: a fresh key for somebody who asks a server, and the lines that make it known there."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph.errors import BadInput
from graph.metadata_filter import parse_where
from workflows.cli.command import reports_errors, write
from workflows.cli.options import JsonOption

if TYPE_CHECKING:
    from rich.console import Console

_PREFIX = "mara_"
_RANDOM_BYTES = 32
_SEVERAL = 'write them into the line of the file: where = { tenant = { "$in" = ["a", "b"] } }'
_BARE = re.compile("[A-Za-z0-9_-]+")


@reports_errors
def key(
    name: Annotated[str, typer.Argument(help="Name of the person or program that will use the key.")],
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Let them see only passages with this metadata, as in `mara ask`. Repeatable.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--everything", help="Let them see every passage.")] = False,
    open_workspace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Workspace that they may open, in place of the server's own. Repeatable; the first is the default.",
            show_default=False,
        ),
    ] = None,
    may_index: Annotated[bool, typer.Option("--may-index", help="Let them index and sync documents.")] = False,
    may_watch: Annotated[
        bool, typer.Option("--may-watch", help="Let them read the figures of the server (/metrics).")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a key for somebody who asks a server, and print the lines for its file of keys."""
    if bool(where) == everything:
        raise BadInput(f"It is not clear what {name} may see", "Give either --where CONDITION or --everything")
    conditions, workspaces = parse_where(where or [], _SEVERAL), tuple(open_workspace or ())
    made = new_key(name, conditions, workspaces, may_index=may_index, may_watch=may_watch)
    write(made, lambda console: _show(console, made), as_json=as_json)


def new_key(
    name: str,
    where: Mapping[str, Any],
    workspaces: tuple[str, ...] = (),
    *,
    may_index: bool = False,
    may_watch: bool = False,
) -> dict[str, str]:
    """Return a fresh random key, and the lines of the file of keys for it. Raises BadInput for a name of none."""
    from workflows.access.key_file import check_lines

    secret = f"{_PREFIX}{secrets.token_urlsafe(_RANDOM_BYTES)}"
    lines = [
        f"[keys.{_toml_key(name)}]",
        f'sha256 = ["{sha256(secret.encode()).hexdigest()}"]',
        f"where = {_toml({key: _plain(wanted) for key, wanted in where.items()})}",
        *([f"workspaces = {_toml(list(workspaces))}"] if workspaces else []),
        *(["may_index = true"] if may_index else []),
        *(["may_watch = true"] if may_watch else []),
    ]
    text = "\n".join(lines)
    check_lines(text)
    return {"name": name, "key": secret, "lines": text}


def _show(console: Console, made: Mapping[str, str]) -> None:
    print(  # noqa: T201
        f"The key of {made['name']}. It is stored nowhere: give it to them now.\n\n  {made['key']}\n\n"
        f"Lines for the file that MARA_AUTH names:\n\n{made['lines']}"
    )


def _plain(wanted: Mapping[str, Any]) -> Any:
    """Return one value in place of a list of one."""
    values = wanted.get("$in")
    return values[0] if len(wanted) == 1 and values and len(values) == 1 else wanted


def _toml(value: Any) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{_toml_key(key)} = {_toml(each)}" for key, each in value.items()) + " }"
            if value
            else "{}"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
