"""Tables and prose of a folder, asked of both workflows without a model: rows are found, compared and told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.offline.extractor import OfflineExtractor
from workflows.answering import ask
from workflows.context import make_context
from workflows.indexing import index_sources
from workflows.runtime.resources import OFFLINE
from workflows.settings.enums import Workflow

FILES = {
    "clients.csv": "client,account_manager,city,looms_installed,since\n"
    "Harrow Silk,Mara Quist,Harrow,14,2017\nBrodick Wool,Tom Ferris,Brodick,6,1998\n"
    "Selby Lace,Mara Quist,Selby,9,2011\nOban Tweed,Ada Bell,Oban,31,2004\n"
    "Leith Canvas,Tom Ferris,Leith,3,2020\nDerwent Felt,Mara Quist,Derby,7,2015\n",
    "sites.csv": "site,employees,opened,led_by\n"
    "Halifax,41,1999,Ruth Amery\nKelso,12,2004,Jon Brae\nPerth,90,1968,Kit Muir\n",
    "faults.md": "# Faults of the LM-40\n\n| code | meaning | remedy | cost |\n|---|---|---|---|\n"
    "| F11 | motor too hot | let it cool | free |\n| F12 | belt torn | replace the belt | 210 EUR |\n"
    "| F14 | belt loose | tighten the belt | 40 EUR |\n",
    "board.md": "# Board\n\nRuth Amery was born in 1964.\n\nJon Brae was born in 1971.\n\n"
    "All wages rise by 3 % on 1 January 2026. Apprentices are excepted.\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder, indexed once with the embedded model."""
    documents, workspace = tmp_path_factory.mktemp("documents"), tmp_path_factory.mktemp("workspace")
    for name, text in FILES.items():
        (documents / name).write_text(text, encoding="utf-8")
    index_sources([documents], workspace, extractor=OfflineExtractor())
    return workspace


def answers(question: str, folder: Path) -> list[str]:
    """Return the answers of both workflows to a question; empty for a refusal."""
    results = [ask(question, make_context(each, workspace=str(folder), model=OFFLINE)) for each in Workflow]
    return ["" if result["refused"] else result["plain_answer"] for result in results]


def test_the_rows_that_tell_are_quoted_or_compared(folder: Path) -> None:
    quoted = {
        "Which clients does Mara Quist manage?": ["Harrow Silk", "Selby Lace", "Derwent Felt"],
        "What does Tom Ferris manage?": ["Brodick Wool", "Leith Canvas"],
        "How many employees does the company have?": ["employees: 41", "employees: 12", "employees: 90"],
        "Which sites does the company have?": ["Halifax", "Kelso", "Perth"],
        "Who has more looms, Harrow Silk or Brodick Wool?": ["Harrow Silk (looms_installed: 14; Brodick Wool: 6)"],
        "Which costs more, F12 or F14?": ["F12 (cost: 210 EUR; F14: 40 EUR)"],
        "What does F12 cost?": ["belt torn"],
        "Which faults are there?": ["motor too hot", "belt torn", "belt loose"],
        "Who was born first, Ruth Amery or Jon Brae?": ["Ruth Amery (1964; Jon Brae: 1971)"],
        "Who has been a client longer, Harrow Silk or Brodick Wool?": ["Brodick Wool (since: 1998; Harrow Silk: 2017)"],
    }
    for question, words in quoted.items():
        for answer in answers(question, folder):
            assert [each for each in words if each not in answer] == [], question


def test_rows_that_a_filter_hides_are_neither_listed_nor_counted(folder: Path) -> None:
    context = make_context(Workflow.MARA, workspace=str(folder), model=OFFLINE, where={"since": {"$lt": 2016}})
    answer = ask("How many clients does Mara Quist manage?", context)["answer"]
    assert answer.startswith("2 of the 4 rows of clients.csv have account_manager: Mara Quist:\n1. Derwent Felt")
    assert "Harrow Silk" not in answer
