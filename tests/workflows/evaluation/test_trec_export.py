"""The files of ``mara eval export``, as trec_eval itself and plain JSON readers read them."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workflows.command_line import Mara
from tests.workflows.evaluation.compared_rows import row, write_run
from workflows.evaluation.trec_export import ranking_of
from workflows.runs.run_folder import Run

pytrec_eval = pytest.importorskip("pytrec_eval", reason="no wheel for this machine", exc_type=ModuleNotFoundError)

STRANGE = ("Lake Sund", "a\tb", "100%", "100%25", "نيل\u200f \u00a0x", "Karv 'harbour'", "c\nd", "#1", "a|b")
"""Ids that users' question files and passages may have."""


def ranked(id_: str, retrieved: tuple[str, ...], gold: tuple[str, ...], scores: list[float]) -> dict[str, Any]:
    return {**row(id_, ""), "retrieved_ids": list(retrieved), "gold_ids": list(gold), "retrieved_scores": scores}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Ties that trec_eval breaks by id, scores alike in single precision, ids with white space; one failed question."""
    mara = [
        ranked("tied from the start", ("b", "c", "a", "d"), ("b", "a"), [0.5, 0.5, 0.5, 0.0]),
        ranked("tied\tat 0", ("a", "b", "c", "d", "e", "f"), ("a", "e", "gone"), [0.1, *[0.0] * 5]),
        ranked("alike", ("b", "z", "a"), ("b",), [0.100000001, 0.1, 0.099999999]),
        ranked("rising", ("a", "z", "y"), ("a",), [-1.0, 2.0, 3.0]),
        ranked("strange ids", STRANGE, (STRANGE[1], STRANGE[6]), [0.3] * len(STRANGE)),
        ranked("no gold", ("a",), (), [1.0]),
        {**ranked("failed", (), ("a",), []), "failed": {"kind": "ModelUnavailable", "message": "gone"}},
    ]
    reversed_ids = [{**each, "retrieved_ids": each["retrieved_ids"][::-1]} for each in mara]
    systems = {"mara": mara, "mara+model=org/name x": reversed_ids}
    return write_run(tmp_path / "run", systems, questions={"asked": 7, "without_gold": 1})


def scored_by_trec_eval(folder: Path, name: str) -> dict[str, dict[str, float]]:
    """Score a system's files with trec_eval; a question that is not in its run counts as 0, as with ``-c``."""
    with (folder / "qrels.trec").open(encoding="utf-8") as file:
        qrels = pytrec_eval.parse_qrel(file)
    with (folder / f"{name}.trec").open(encoding="utf-8") as file:
        scores = pytrec_eval.RelevanceEvaluator(qrels, {"recall.2,5,10", "P.1", "recip_rank"}).evaluate(
            pytrec_eval.parse_run(file)
        )
    return {unquote(question): scores.get(question, {}) for question in qrels}


def test_trec_eval_finds_the_recall_of_the_run(mara: Mara, run: Run, tmp_path: Path) -> None:
    assert mara("eval", "export", run.folder, "--out", tmp_path / "trec").code == 0
    for system, file in (("mara", "mara"), ("mara+model=org/name x", "mara+model=org%2Fname%20x")):
        by_question, figures = scored_by_trec_eval(tmp_path / "trec", file), run.metrics["systems"][system]
        for measure, figure in (
            *((f"recall_{depth}", figures["recall"][str(depth)]) for depth in (2, 5, 10)),
            ("P_1", figures["precision"]["1"]),
            ("recip_rank", figures["mrr"]),
        ):
            mean = sum(scores.get(measure, 0.0) for scores in by_question.values()) / len(by_question)
            assert mean == pytest.approx(figure, abs=1e-6), (system, measure)
        assert len(by_question) == figures["with_gold"] == 6


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), max_size=20))
def test_scores_fall_strictly_in_single_precision(scores: list[float]) -> None:
    written = [
        repr(score) for score in ranking_of(ranked("q", tuple(map(str, range(len(scores)))), (), scores)).values()
    ]
    single = [struct.unpack("f", struct.pack("f", float(text)))[0] for text in written]
    assert all(above > below for above, below in pairwise(single))
    falling = all(above > below for above, below in pairwise(scores))
    assert not falling or single == scores, "what falls already is as it was"
