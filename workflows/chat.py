"""Graph chat: a conversation. Messages in, the same messages with an answer out, by any workflow.

answer ─┬─ choose_reading (interrupt) ─ answer
        └─ END
"""

from __future__ import annotations

from typing import Any, Final, Literal

from langgraph.graph import END, START, StateGraph

from workflows.conversation.messages import choices_of
from workflows.conversation.nodes import Answer, Conversation, choose_reading
from workflows.conversation.settings import ANSWER, ChatContext

WORKFLOW = "chat"

RECURSION_LIMIT = 50
"""Steps a run may take: two for each time that a question is asked back."""

ANSWERED: Final = "answered"
SEVERAL_READINGS: Final = "several readings"


def after_answer(state: Conversation) -> Literal["answered", "several readings"]:
    """Ask the user where the question could mean several things."""
    return SEVERAL_READINGS if choices_of(state["messages"]) else ANSWERED


def build() -> StateGraph[Conversation, Any, Conversation, Conversation]:
    """Return the builder of the conversation, to compile with a checkpointer of one's own."""
    builder = StateGraph(Conversation, context_schema=ChatContext)
    builder.add_node(ANSWER, Answer(), input_schema=Conversation)
    builder.add_node("choose_reading", choose_reading)
    builder.add_edge(START, ANSWER)
    builder.add_conditional_edges(ANSWER, after_answer, {SEVERAL_READINGS: "choose_reading", ANSWERED: END})
    builder.add_edge("choose_reading", ANSWER)
    return builder


graph = build().compile(name=WORKFLOW).with_config(recursion_limit=RECURSION_LIMIT)
