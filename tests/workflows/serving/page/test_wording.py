"""Messages to visitors name no command."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from graph.errors import BadInput
from tests.workflows.serving.page.site import KeyRack, site_of
from workflows.access.identity import Keyring
from workflows.serving.page.wording import without_commands


def test_clauses_that_name_a_command_are_left_out() -> None:
    for text, told in [
        ("1 file could not be read: `mara show --skipped` names them", "1 file could not be read"),
        (
            "It was interrupted: documents may be missing; run `mara index` again",
            "It was interrupted: documents may be missing",
        ),
        (
            "This page keeps no history. Whoever runs it can: `mara serve --history`",
            "This page keeps no history. Whoever runs it can",
        ),
        ("Nothing meets `where`. Widen it", "Nothing meets `where`. Widen it"),
    ]:
        assert without_commands(text) == told


def test_whoever_runs_the_server_is_told_them_where_there_are_no_keys(tmp_path: Path) -> None:
    fault = BadInput("There is nothing here", "Run `mara index` first")
    more: dict[str, Any] = {"keyring": lambda: cast(Keyring, KeyRack())}
    assert site_of(tmp_path, None).told(fault) == "There is nothing here. Run `mara index` first"
    assert site_of(tmp_path, None, **more).told(fault) == "There is nothing here"
