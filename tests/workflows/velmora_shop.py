"""Three states of the papers of a small invented shop, and questions whose answers changed from one to the next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from workflows.indexing import index_sources
from workflows.settings.indexing import IndexingContext


class State(NamedTuple):
    """The files of the folder from a date on."""

    date: str
    files: Mapping[str, str]


_PRICES_HEAD = "id,title,text\n"

STATES = (
    State(
        "2023-01-01",
        {
            "prices.csv": _PRICES_HEAD
            + 'lamp,Torvik lamp,"The Torvik lamp costs 40 euros."\n'
            + 'desk,Sandby desk,"The Sandby desk costs 210 euros."\n'
            + 'stool,Karv stool,"The Karv stool costs 35 euros."\n',
            "returns.md": "# Returns\n\nGoods may be returned within 14 days. The customer pays the postage of a"
            " return.\n",
            "staff.txt": "Ida Holm leads the workshop. Nils Aker runs the shop in Sandby. Velmora was founded in"
            " 1998.\n",
            "opening.txt": "The shop in Sandby opens at 9 in the morning.\n",
        },
    ),
    State(
        "2024-02-01",
        {
            "prices.csv": _PRICES_HEAD
            + 'lamp,Torvik lamp,"The Torvik lamp costs 45 euros."\n'
            + 'desk,Sandby desk,"The Sandby desk costs 210 euros."\n'
            + 'shelf,Mora shelf,"The Mora shelf costs 80 euros."\n',
            "returns.md": "# Returns\n\nGoods may be returned within 30 days. The customer pays the postage of a"
            " return.\n",
            "staff.txt": "Ida Holm leads the workshop. Greta Mohn runs the shop in Sandby. Velmora was founded in"
            " 1998.\n",
            "opening.txt": "The shop in Sandby opens at 9 in the morning.\n",
        },
    ),
    State(
        "2025-03-01",
        {
            "prices.csv": _PRICES_HEAD
            + 'lamp,Torvik lamp,"The Torvik lamp costs 52 euros."\n'
            + 'desk,Sandby desk,"The Sandby desk costs 190 euros."\n'
            + 'shelf,Mora shelf,"The Mora shelf costs 80 euros."\n',
            "returns.md": "# Returns\n\nGoods may be returned within 30 days. Velmora pays the postage of a return.\n",
            "staff.txt": "Olaf Brenn leads the workshop. Greta Mohn runs the shop in Sandby.\n",
            "opening.txt": "The shop in Sandby opens at 10 in the morning.\n",
        },
    ),
)


class Asked(NamedTuple):
    """A question as of a date: the number of the state that stood, what an answer holds, and what it must not hold."""

    question: str
    as_of: str
    state: int
    holds: str
    lacks: tuple[str, ...] = ()


QUESTIONS = (
    Asked("What does the Torvik lamp cost?", "2023-06-15", 0, "40 euros", ("45 euros", "52 euros")),
    Asked("What does the Torvik lamp cost?", "2024-02-01", 1, "45 euros", ("40 euros", "52 euros")),
    Asked("What does the Sandby desk cost?", "2025-03-01T08:00Z", 2, "190 euros", ("210 euros",)),
    Asked("What does the Karv stool cost?", "2023", 0, "35 euros"),
    Asked("Within how many days may goods be returned?", "2024-01-31", 0, "14 days", ("30 days",)),
    Asked("Who pays the postage of a return?", "2024-06-01", 1, "customer pays", ("Velmora pays",)),
    Asked("Who pays the postage of a return?", "2025-06-01", 2, "Velmora pays", ("customer pays",)),
    Asked("Who runs the shop in Sandby?", "2023-12-31", 0, "Nils Aker", ("Greta Mohn",)),
    Asked("Who leads the workshop?", "2025-02-28T23:59:59Z", 1, "Ida Holm", ("Olaf Brenn",)),
)


def write_state(folder: Path, state: State) -> None:
    """Make a folder hold a state's files and no others."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, text in state.files.items():
        (folder / name).write_text(text, encoding="utf-8")


def load_history(folder: Path, root: Path) -> None:
    """Sync a workspace with each state, in their order, dated."""
    for state in STATES:
        write_state(folder, state)
        index_sources([folder], root, sync=True, settings=IndexingContext(dated=state.date))
