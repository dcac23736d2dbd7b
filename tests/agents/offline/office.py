"""Documents of an invented boat yard, as `mara index` cuts them into passages."""

from __future__ import annotations

from agents.offline.evidence import Evidence, find_evidence
from agents.roles import NumberedPassage


def passage(number: int, source: str, text: str, title: str = "") -> NumberedPassage:
    """Return a passage of a file; without a title it is called as the file."""
    return NumberedPassage(number, f"{source}:{number}", title or source, text, source=source)


LEASE = passage(
    1,
    "slipway-lease.md",
    "# Slipway lease\n\n## Parties\n\nThe slipway at Quay 4 is let by Orrin Estates to the Kestrel Boatyard. "
    "The lease was signed on 14 March 2024.\n\n## Rent\n\nThe monthly rent of the slipway is EUR 2,150. "
    "It is due on the third working day. A deposit of EUR 6,450 was paid.\n\n## Notice\n\n"
    "The lease may be ended with six months' notice.",
)
TEAM = passage(
    2,
    "team.md",
    "# Team\n\nHedda Lunt runs the paint shop. Marek Sobol is the rigger of the yard. "
    "Ines Caro keeps the books and answers for the insurance.",
)
PHONES = passage(
    3,
    "phones.csv",
    "name: Hedda Lunt; extension: 217; phone: +49 431 555 217\n"
    "name: Marek Sobol; extension: 230; phone: +49 431 555 230\n"
    "name: Ines Caro; extension: 244; phone: +49 431 555 244",
)
FAQ = passage(
    4,
    "faq.md",
    "# Questions of new staff\n\nWhere do I get gloves and a respirator?\n\n"
    "Gloves and respirators lie in the red cabinet beside the paint shop.\n\n"
    "Who pays for the training on the crane?\n\nThe yard pays for it, once the trial period is over.",
)
ENGINES = passage(
    5,
    "engines.md",
    "# Engines\n\nengine: DV-210; power: 29 hp; weight: 184 kg; price: EUR 7,900\n"
    "engine: DV-340; power: 54 hp; weight: 251 kg; price: EUR 11,450",
)
PRICES_2023 = passage(
    6,
    "prices_2023-01.md",
    "# Prices\n\nThe hourly rate of a rigger is EUR 58. Storage in winter costs EUR 14 per square metre.",
)
PRICES_2025 = passage(
    7,
    "prices_2025-02.md",
    "# Prices\n\nThe hourly rate of a rigger is EUR 66. Storage in winter costs EUR 17 per square metre.",
)
TOOLS = passage(
    8,
    "launch-checklist.md",
    "# Before a launch\n\nThese things have to be checked before a launch:\n\n- seacocks are closed\n"
    "- the bilge pump runs\n- the cradle is free\n- the crane strap is not worn",
)
DEUTSCH = passage(
    9,
    "protokoll.md",
    "# Protokoll\n\nDie Werft Lindholm hat am 3. Februar 2023 den Kran gekauft. Der Kran kostet 41.800 Euro. "
    "Frau Petersen leitet die Lackiererei.",
)
BOATS = passage(
    11,
    "boats.md",
    "# Boats\n\n## Kestrel\n\nThe Kestrel was launched on 3 May 2019. Her mast is 12 m high.\n\n"
    "## Alcyon\n\nThe Alcyon was launched on 2021-08-20. Her mast is 9.5 m high, her boom 4 m long.",
)
HULLS = passage(
    12,
    "hulls.md",
    "# Hulls\n\nproperty: weight; oak: 910 kg; larch: 740 kg\nproperty: price; oak: EUR 31; larch: EUR 19",
)
YARD = (LEASE, TEAM, PHONES, FAQ, ENGINES, PRICES_2023, PRICES_2025, TOOLS, DEUTSCH, BOATS, HULLS)


def read(question: str, *passages: NumberedPassage) -> Evidence:
    """Return the evidence for a question, found by words alone: in some passages, or in all of the yard's."""
    return find_evidence(question, passages or YARD, None)


def quoted(evidence: Evidence) -> str:
    """Return all that evidence quotes."""
    return "\n".join(excerpt.quote() for excerpt in evidence.excerpts)
