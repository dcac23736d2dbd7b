"""A workflow on the small world, whose models say what a test scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.scripted_server import RecordedRequest, Script, ScriptedServer
from tests.workflows.small_world import QUESTION, Run, run
from workflows.context import Context

MakeContext = Callable[..., Context]
"""Makes the settings of a question on the small workspace."""


@dataclass(frozen=True)
class Scripted:
    """A workflow, the server of its models, and what its settings are made with.

    Attributes:
        well_behaved: makes the scripts of models that never go wrong.
    """

    server: ScriptedServer
    settings: Callable[..., Any]
    graph: Any
    well_behaved: Callable[[], Mapping[str, Script]]

    def ask(self, question: str = QUESTION, scripts: Mapping[str, Script] | None = None, **settings: Any) -> Run:
        """Script the models, which behave unless scripts are given, and run the workflow once."""
        self.server.script(scripts or self.well_behaved())
        return run(self.settings(**settings), question, self.graph)

    def requests_of(self, role: str) -> list[RecordedRequest]:
        """Return the requests of a role since the models were scripted."""
        return self.server.requests_of(role)
