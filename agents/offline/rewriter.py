"""The rewriter without a model."""

from __future__ import annotations

from collections.abc import Sequence

from agents.roles import Feedback, Rewriting, Turn


class OfflineRewriter:
    """Completes a question from the last turn; deterministic."""

    def rewrite(self, question: str, turns: Sequence[Turn], feedback: Feedback | None = None) -> Rewriting:
        """Return the question after the last turn's."""
        return Rewriting(f"{turns[-1].question} {question}" if turns else question)
