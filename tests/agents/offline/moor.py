"""A small invented world for the agents that judge passages and check claims."""

from __future__ import annotations

from agents.roles import NumberedPassage


def passage(number: int, title: str, text: str) -> NumberedPassage:
    """Return a passage whose id says its number."""
    return NumberedPassage(number, f"p{number}", title, text)


BRIDGE = passage(
    3, "Moor Bridge (Hale)", "The Moor Bridge crosses the Ister at Hale. It was built by Tavin & Loom in 1863."
)
FIRM = passage(
    7, "Tavin & Loom", "Tavin & Loom was a firm of bridge builders, set up in 1852 by Orsa Tavin. It had 90 men."
)
ORSA = passage(12, "Orsa Tavin", "Orsa Tavin was an engineer from Corl. In 1857 she wed the painter Emil Brand.")
WORLD = (BRIDGE, FIRM, ORSA)

WITHOUT_EVIDENCE = (
    "When was the Lowen Bridge built?",
    "In which year did the painter whom Orsa Tavin married die?",
    "Who was the husband of Orsa Berg?",
    "What is the phone number of Tavin & Loom?",
    "How heavy is the Moor Bridge?",
    "Why do glaciers calve?",
    "Who?",
    "",
)
WITH_EVIDENCE = (
    ("Who constructed the Moor Bridge?", {3}),
    ("When was Tavin & Loom set up?", {7}),
    ("Whom did Orsa Tavin wed?", {12}),
    ("When was the firm that built the Moor Bridge founded?", {3, 7}),
    ("Whom did the founder of Tavin & Loom marry?", {7, 12}),
    ("who built the moor bridge", {3}),
)
"""Questions, and the passages that evidence for them has to be quoted from; others may stand beside them."""
