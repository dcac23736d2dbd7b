"""The nodes of a conversation: complete a question that leans on earlier turns, or ask back."""

from __future__ import annotations

from agents.answers.unlinked import addresses_in, unlinked
from agents.leaning import ASK_SOMETHING, asks_nothing, chosen_reading, question_back, readings_in
from agents.rewriter import REWRITER, Rewriting
from agents.roles import Turn
from workflows.runtime.agents import ask, fell_back
from workflows.runtime.node import node
from workflows.runtime.resources import OpenRun, models_of
from workflows.runtime.visibility import sees
from workflows.settings.enums import ResultKind
from workflows.states.records import OUTSIDE_FILTER, ErrorRecord, TurnRecord, Understood, Update
from workflows.states.shared import State, searched_words

TURNS_READ = 4
"""The last turns that a question may lean on."""

LONGEST_QUESTION = 1_000
"""Characters of an earlier question that are read."""

LONGEST_ANSWER = 10_000
"""Characters of an earlier answer that are read."""

ASKS_NOTHING = "it asks nothing"
"""Why a greeting, thanks or signs alone are not searched."""

CHOSEN = "choice"
"""Who completed a question where the asker chose one of the readings."""


def visible_turns(turns: list[Turn], run: OpenRun) -> tuple[list[TurnRecord], list[ErrorRecord]]:
    """Return the last turns as the run's filter lets them count, and an error for what is hidden.

    An answer that cites a passage that the run does not see is left out whole, since it may repeat any of it.
    """
    last = [turn for turn in turns if not asks_nothing(turn.question)][-TURNS_READ:]
    seen = [all(sees(passage, run) for passage in turn.passages) for turn in last]
    earlier = [
        TurnRecord(
            question=_readable(turn.question, LONGEST_QUESTION),
            answer=_readable(turn.answer, LONGEST_ANSWER) if shown else "",
            passages=list(turn.passages) if shown else [],
        )
        for turn, shown in zip(last, seen, strict=True)
    ]
    hidden = seen.count(False)
    message = f"{hidden} earlier answers cite passages that this run does not see, and do not count"
    return earlier, [run.error(OUTSIDE_FILTER, message)] if hidden else []


def _readable(text: str, longest: int) -> str:
    """The beginning of a text, without halves of surrogate pairs."""
    return text[:longest].encode("utf-8", "replace").decode()


def spoken(earlier: list[TurnRecord]) -> str:
    """Return all that the last two turns said."""
    return " ".join(text for turn in earlier[-2:] for text in (turn["question"], turn["answer"]))


@node("earlier", "leaning", "rewriter_attempts", "rewriter_refusal")
def rewrite_question(state: State, run: OpenRun) -> Update:
    """Ask the rewriter for the whole question."""
    question, turns = state["question"], _turns(state)
    if asks_nothing(question):
        return {}
    if chosen := chosen_reading(question, readings_in(turns[-1].answer) if turns else ()):
        return _understood(state, run, Rewriting(chosen), CHOSEN)
    reply = ask(
        REWRITER,
        state,
        run,
        lambda: {"question": question, "turns": [turn.question for turn in turns]},
        lambda rewriter, feedback: rewriter.rewrite(question, turns, feedback),
    )
    if reply.said is None:
        return reply.update
    return {**reply.update, **_understood(state, run, reply.said, models_of(run.context, run.index)["chat"])}


@node("earlier", "leaning", "rewriter_attempts", "rewriter_refusal")
def complete_question(state: State, run: OpenRun) -> Update:
    """Fallback of the rewriter: its offline twin completes the question."""
    rewriting = REWRITER.offline(run).rewrite(state["question"], _turns(state))
    return {**_understood(state, run, rewriting, "offline"), **fell_back(REWRITER, state, run)}


@node("understood")
def ask_back(state: State, run: OpenRun) -> Update:
    """Ask which of several things a question means, or for a question at all."""
    understood = state.get("understood")
    back = question_back(understood["choices"]) if understood and understood["choices"] else ASK_SOMETHING
    return {
        "answer": back,
        "plain_answer": back,
        "answer_kind": ResultKind.CLARIFICATION.value,
        "citations": [],
        "refused": False,
    }


def _understood(state: State, run: OpenRun, rewriting: Rewriting, by: str) -> Update:
    """The update that tells the state of a completed question, `unlinked`; empty where it stands alone after all."""
    if rewriting == Rewriting(state["question"]):
        return {"understood": None}
    rewriting = _unlinked(rewriting, state)
    understood = Understood(
        asked=state["question"],
        because=state.get("leaning", ""),
        names=list(rewriting.names),
        choices=list(rewriting.choices),
        by=by,
    )
    update: Update = {"question": rewriting.question, "understood": understood}
    if not rewriting.choices:
        run.index.encode(searched_words({"question": rewriting.question, "understood": understood}))
    return update


def _unlinked(rewriting: Rewriting, state: State) -> Rewriting:
    """A rewriting without images and links, since it is shown; addresses that were said before stay."""
    said = (text for turn in _turns(state) for text in (turn.question, turn.answer))
    known = addresses_in([state["question"], *said])
    question, *others = (unlinked(text, known) for text in (rewriting.question, *rewriting.names, *rewriting.choices))
    n_names = len(rewriting.names)
    return Rewriting(question or state["question"], tuple(others[:n_names]), tuple(others[n_names:]))


def _turns(state: State) -> list[Turn]:
    return [Turn(turn["question"], turn["answer"], tuple(turn["passages"])) for turn in state.get("earlier", [])]
