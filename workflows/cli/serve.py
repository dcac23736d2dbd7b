"""The commands ``mara serve``, ``mcp`` and ``key``: a workspace served to browsers and agents, and the keys to it."""

from __future__ import annotations

import io
import json
import secrets
import socket
import sys
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.errors import BadInput, ServiceUnavailable, WorkspaceMissing, needs
from graph.metadata_filter import parse_where
from workflows.cli.command import Shown, command, default_group, publish_interrupted, say
from workflows.cli.options import WhereOption, asking_settings, path_option, text_option

_PREFIX = "mara_"
_RANDOM_BYTES = 32


serve = default_group("page", "Serve a workspace as a page in the browser, with an API, or over MCP; make keys.")


@serve.command("page")
@command
def serve_page(
    workspace: Path,
    host: Annotated[str, typer.Option(help="Address; others than this machine's need keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any that is free.")] = 8700,
    uploads: Annotated[Path | None, path_option("FOLDER", "Let visitors add documents, into this folder.")] = None,
    conversations: Annotated[Path | None, path_option("FOLDER", "Keep the conversations in this folder.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Keep a history under each visitor's name.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer.")] = 1,
    at_once: Annotated[
        int | None,
        typer.Option(min=1, max=1000, metavar="N", help="Questions at once in a process (by default by cores)."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve a page in the browser to talk to a workspace."""
    with needs("serve", "The page"):
        import nh3  # noqa: F401 - what an answer needs is missed at once

        import workflows.serving.page.app  # noqa: F401
        from workflows.serving.guard import is_local
        from workflows.serving.page.workers import Served
        from workflows.serving.page.workers import serve as serve_site
    from graph.storage.workspace import Workspace

    publish_interrupted(workspace)
    if conversations and conversations.is_file():
        raise BadInput(f"{conversations} is a file", "Name a folder, and move the file into it as conversations.sqlite")
    if uploads is None:  # There has to be something to ask.
        with Workspace(workspace).open_record() as record:
            Workspace(workspace).check_passages(record)
    served = Served(workspace, conversations, uploads, history, at_once, workers)
    if served.site.keyring().is_open and not is_local(host):
        raise BadInput(
            f"{host} can be reached from other machines without a key",
            "Name a file of keys in MARA_AUTH (docs/deploy.md), or serve 127.0.0.1 and reach it through ssh -L",
        )
    listening = _listening(host, port)
    address = f"http://{_shown(host)}:{listening.getsockname()[1]}/"

    def tell() -> None:
        say(f"Serving {workspace} at {address} (API of OpenAI: {address}v1; Ctrl-C to stop)")
        if open_page:
            webbrowser.open(address)

    serve_site(served, listening, say, tell)
    say("Stopped.")


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises BadInput where it cannot."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as fault:
        message = f"The page cannot listen at {_shown(host)}:{port}: {fault.strerror or fault}"
        raise BadInput(message, "Choose another with --host or --port") from fault


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@serve.command()
@command
def key(
    name: Annotated[str, typer.Argument(help="Name of the person or program that will use the key.")],
    where: WhereOption = None,
    everything: Annotated[bool, typer.Option("--everything", help="Let them see every passage.")] = False,
    open_workspace: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Workspace that they may open, in place of the server's own. Repeatable."),
    ] = None,
    may_index: Annotated[bool, typer.Option("--may-index", help="Let them index and sync documents.")] = False,
    may_watch: Annotated[bool, typer.Option("--may-watch", help="Let them read the server's figures.")] = False,
) -> Shown:
    """Make a key for a user of a server, and print the lines for its file of keys."""
    if bool(where) == everything:
        raise BadInput(f"It is not clear what {name} may see", "Give either --where CONDITION or --everything")
    conditions, workspaces = parse_where(where or []), tuple(open_workspace or ())
    return Shown(new_key(name, conditions, workspaces, may_index=may_index, may_watch=may_watch), _show_key)


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
        f"[keys.{_toml(name)}]",
        f'sha256 = ["{sha256(secret.encode()).hexdigest()}"]',
        f"where = {_toml({key: _plain(wanted) for key, wanted in where.items()})}",
        *([f"workspaces = {_toml(list(workspaces))}"] if workspaces else []),
        *(["may_index = true"] if may_index else []),
        *(["may_watch = true"] if may_watch else []),
    ]
    text = "\n".join(lines)
    check_lines(text)
    return {"name": name, "key": secret, "lines": text}


def _show_key(console: Console, made: Mapping[str, str]) -> None:
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
        return f"{{ {', '.join(f'{_toml(key)} = {_toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


@serve.command()
@command
def mcp(
    workspace: Path,
    where: WhereOption = None,
    user: Annotated[str | None, text_option("NAME", "The user: conversations go to the history.")] = None,
) -> None:
    """Serve a workspace to MCP clients over stdio, with the tools ask and retrieve."""
    import anyio

    from workflows.serving.mcp_server import make_server

    filter_of_all = parse_where(where or [])
    publish_interrupted(workspace)
    if where or user:
        # Documents may still come, and a server may be about to start: calls report that.
        with suppress(WorkspaceMissing, ServiceUnavailable):
            asking_settings(workspace, where, user=user)
    # Output of a library is held back no longer than a line: at the end it would follow the protocol.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    anyio.run(make_server(workspace.absolute(), filter_of_all, user or "").run_stdio_async)
