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
    "looms.md": "# Looms\n\nThe Calder 40 weighs 410 kg.\n\nThe Calder 60 weighs 680 kg.\n\n"
    "The Calder 40 costs over 9,000 EUR.\n\nThe Calder 60 costs 8,000 EUR.\n",
    "board.md": "# Board\n\nRuth Amery was born in 1964.\n\nJon Brae was born in 1971.\n\n"
    "All wages rise by 3 % on 1 January 2026. Apprentices are excepted.\n",
    "inns.md": "# Inns for fitters\n\nThe Ram Inn in Oban has Wi-Fi and a garage. A night costs 95 EUR.\n",
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


def test_what_no_column_tells_is_quoted_and_not_compared(folder: Path) -> None:
    clients = ("Harrow Silk: account_manager: ", "Brodick Wool: account_manager: ")
    looms = ("looms_installed: 14", "looms_installed: 6")
    cases: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
        ("Which is larger, Harrow Silk or Brodick Wool?", clients, looms),
        ("Which was founded first, Harrow Silk or Brodick Wool?", clients, looms),
        ("Which client is older, Harrow Silk or Brodick Wool?", clients, looms),
        ("Which is heavier, Calder 40 or Calder 60?", ("Looms",), ("410 kg", "680 kg")),
        ("Which is cheaper, Calder 40 or Calder 60?", ("Looms",), ("over 9,000 EUR", "8,000 EUR")),
        ("Who has more looms, Mara Quist or Ada Bell?", ("",), ("Mara Quist", "looms_installed: 31")),
    ]
    for question, starts, words in cases:
        for answer in answers(question, folder):
            assert answer.startswith(starts), question
            assert [each for each in words if each not in answer] == [], question


def test_what_no_row_tells_is_refused(folder: Path) -> None:
    for question in (
        "Which clients did Mara Quist sue?",
        "Which clients does Ingrid Dahl manage?",
        "How many lorries does the company have?",
        "What is the turnover of the company?",
        "How old is Mara Quist?",
    ):
        assert answers(question, folder) == ["", ""], question


def test_parts_are_questions_and_those_with_evidence_are_not_called_missing(folder: Path) -> None:
    rise, excepted = "What rises on 1 January 2026", "hat is excepted?"
    heavy, inn = "How heavy is Calder 40", "Which inn has Wi-Fi, and in which city?"
    cases = {
        "What does F12 mean and what does it cost?": ["What does F12 mean?", "What does F12 cost?"],
        f"{rise}, and w{excepted}": [f"{rise}?", f"W{excepted}"],
        f"{heavy}, and what does it cost?": [f"{heavy}?", "What does Calder 40 cost?"],
        inn: [inn],
    }
    for question, parts in cases.items():
        result = ask(question, make_context(Workflow.RAGENTA, workspace=str(folder), model=OFFLINE))
        assert [part["text"] for part in result["components"]] == parts
        assert {part["coverage"] for part in result["components"]} == {"EVIDENCE, NOT JUDGED"}, question
        assert (result["follow_ups"], result["errors"]) == ([], [])


def test_rows_that_were_not_found_are_listed_too_and_cited_behind_those_that_were(folder: Path) -> None:
    context = make_context(Workflow.MARA, workspace=str(folder), model=OFFLINE, top_k=2)
    result = ask("Which clients does Mara Quist manage?", context)
    told, *rows = result["answer"].splitlines()
    assert told == "3 of the 6 rows of clients.csv have account_manager: Mara Quist:"
    assert [row.partition(":")[0] for row in rows] == ["1. Derwent Felt", "2. Harrow Silk", "3. Selby Lace"]
    cited = {mark["passage_id"] for mark in result["citations"]}
    assert {hit["title"] for hit in result["passages"] if hit["id"] in cited} == {
        "Derwent Felt",
        "Harrow Silk",
        "Selby Lace",
    }
    assert [hit["number"] for hit in result["passages"]] == [*range(1, len(result["passages"]) + 1)]


def test_rows_that_a_filter_hides_are_neither_listed_nor_counted(folder: Path) -> None:
    context = make_context(Workflow.MARA, workspace=str(folder), model=OFFLINE, where={"since": {"$lt": 2016}})
    answer = ask("How many clients does Mara Quist manage?", context)["answer"]
    assert answer.startswith("2 of the 4 rows of clients.csv have account_manager: Mara Quist:\n1. Derwent Felt")
    assert "Harrow Silk" not in answer
