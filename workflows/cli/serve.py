"""The command ``mara serve``: a page in the browser to talk to a workspace."""

from __future__ import annotations

import errno
import socket
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from graph.errors import BadInput, DependencyMissing
from graph.storage.workspace import Workspace, default_workspace
from workflows.cli.command import publish_interrupted, reports_errors
from workflows.cli.options import WorkspaceOption, named_path


@reports_errors
def serve(
    workspace: WorkspaceOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; others than this machine's need keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any that is free.")] = 8700,
    uploads: Annotated[
        Path | None,
        typer.Option(
            parser=named_path,
            metavar="FOLDER",
            help="Let visitors add documents: files go to this folder, and are indexed (default: they may not).",
        ),
    ] = None,
    conversations: Annotated[
        Path | None,
        typer.Option(
            parser=named_path,
            metavar="FILE",
            help="File that keeps the conversations (default: conversations.sqlite in the workspace).",
        ),
    ] = None,
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Write conversations and views to the history, each under the visitor's name (default: no).",
        ),
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that answer; they share the address and the open files.")
    ] = 1,
    at_once: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            metavar="N",
            help="Questions at work in a process; four times as many wait, others are refused (default: by cores, "
            "32 with a chat model).",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve a page in the browser to talk to a workspace."""
    try:
        from workflows.serving.page.markdown import check_installed
        from workflows.serving.supervisor import Supervisor
        from workflows.serving.workers import Served, serve_alone
    except ImportError as fault:
        raise DependencyMissing(
            f"The page needs packages that are not installed ({fault})",
            "Install them with: pip install 'mara-rag[serve]'",
        ) from fault
    check_installed()
    root = workspace or default_workspace()
    publish_interrupted(root)
    if uploads is None:
        _check_workspace(root)
    served = Served(root, conversations, uploads, history, at_once, workers)
    _check_host(host, is_open=served.site.keyring().is_open)
    listening = _listening(host, port)
    address = f"http://{_shown(host)}:{listening.getsockname()[1]}/"

    def tell() -> None:
        _say(f"Serving {root} at {address} (Ctrl-C to stop)")
        if open_page:
            webbrowser.open(address)

    if workers == 1:
        serve_alone(served, listening, tell)
    else:
        Supervisor(served, listening, _say, tell).run()
    _say("Stopped.")


def _check_workspace(root: Path) -> None:
    """Raise WorkspaceMissing where there is nothing to ask, and nobody may add documents."""
    workspace = Workspace(root)
    with workspace.open_record() as record:
        workspace.check_passages(record)


def _check_host(host: str, *, is_open: bool) -> None:
    """Raise BadInput where other machines could come in, and nobody has to show a key."""
    from workflows.serving.page.guard import is_local

    if is_open and not is_local(host):
        raise BadInput(
            f"{host} can be reached from other machines, and nobody would have to show a key",
            "Name a file of keys in MARA_AUTH (docs/access.md), or serve 127.0.0.1 and reach it through ssh -L",
        )


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises BadInput where it cannot."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as fault:
        if fault.errno == errno.EADDRINUSE:
            raise BadInput(f"Port {port} is in use", "Take another with --port") from fault
        reason, _, _ = (fault.strerror or str(fault)).partition(" (while attempting")
        raise BadInput(
            f"The page cannot listen at {_shown(host)}:{port}: {reason}", "Choose another with --host or --port"
        ) from fault


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
