"""What a server's clients are told of its machine: names, no paths."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from graph.errors import MalformedReply, MaraError, NoAccess, TransportFault, WorkspaceMissing
from graph.server_clients import serve_clients, serves_clients, told_to_clients, without_folders


def test_names_stand_in_place_of_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_WORKSPACE", "/data/spaces/mara")
    monkeypatch.setenv("MARA_SOURCES", "/files/in")
    for text, shown in [
        ("There is no workspace at /data/spaces/mara", "There is no workspace at mara"),
        ("/data/spaces/mara/record.sqlite: locked", "mara/record.sqlite: locked"),
        ("'/files/in/notes.txt' cannot be read", "'notes.txt' cannot be read"),
        ("Nothing at /files/in could be read", "Nothing at in could be read"),
    ]:
        assert without_folders(text) == shown
    for text in ("http://host/data/spaces/x, /data/spaces-2/x, sub/data/spaces/x", "and/or, 1/2"):
        assert without_folders(text) == text
    for place in (Path(__file__), Path(pytest.__file__), Path.home() / "x.py"):
        assert str(place.parent) not in without_folders(f"see {place}")
    assert without_folders("/srv/mara/CURRENT", Path("/srv"), Path("/")) == "mara/CURRENT"


def test_a_server_is_told_or_known_by_the_graphs_of_its_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph_api", ModuleType("langgraph_api"))
    assert not serves_clients(), "an imported server says nothing"
    with monkeypatch.context() as patch:
        patch.setenv("LANGSERVE_GRAPHS", "{}")
        assert serves_clients()
    assert not serves_clients()
    serve_clients()
    assert serves_clients()


def test_an_error_leaves_a_server_without_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_WORKSPACE", "/data/spaces/mara")
    errors: list[Callable[[str], MaraError]] = [WorkspaceMissing, TransportFault, NoAccess, MalformedReply]
    for error in errors:
        with pytest.raises(MaraError, match=r"^/data/spaces/a$"), told_to_clients():
            raise error("/data/spaces/a")
    serve_clients()
    for error in errors:
        assert str(error("/data/spaces/a")) == "/data/spaces/a"
        with pytest.raises(MaraError, match=r"^a$") as left, told_to_clients():
            raise error("/data/spaces/a")
        assert (left.value.message, left.value.kind) == ("a", left.type.__name__)
    with pytest.raises(NoAccess) as refused, told_to_clients():
        raise NoAccess("/data/spaces/a", "See /data/spaces/b", status=401)
    assert (str(refused.value), refused.value.hint, refused.value.status) == ("a. See b", "See b", 401)
