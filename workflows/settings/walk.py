"""The settings of a walk and its seeds that only an experiment changes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from graph.retrieve.modes import EntityRarity
from graph.walk.settings import Engine
from workflows.settings.forms import Damping, FoundCount, SeedWeight, Share

SHOWN_SEEDS = 200
"""Passage seeds that the state holds at most; where every passage is a seed, the walk computes the rest itself."""


class Walk(BaseModel):
    """How passages are ranked, in detail. Where a field is empty, the mode's own value holds."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, json_schema_extra={"maxProperties": 22}
    )

    engine: Engine = Engine.AUTO
    """Engine that computes the walk: forward push (push), power iteration (matrix), PRPACK (igraph), or the fastest of
    these for the graph (auto).
    """
    damping: Damping | None = None
    """Probability of following an edge (mara 0.75)."""
    tuned: bool = True
    """Walk with the strengths of relation types that `mara tune` learned (mode mara)."""
    least_damping: Damping | None = None
    """Damping where no fact or name anchors the question; it rises to the damping with their weight (mara 0.3)."""
    synonym_edges: bool | None = None
    """Let the walk follow synonyms (yes)."""
    directed: bool | None = None
    """Let an edge's weight depend on the side it is left from (mara: yes)."""
    title_edges: bool | None = None
    """Link each passage with its title, and closer than with the names in its text (mara: yes)."""
    mention_edges: bool | None = None
    """Link each passage with known names in its text that are in none of its facts (mara: yes)."""
    convergence: Share | None = None
    """How much it counts that every anchor of a question reaches a passage; 0 for nothing (mara 0.25)."""
    coverage: float | None = Field(default=None, ge=0, le=10)
    """How much it counts for the second passage that it holds words of the question which the first lacks; 0 for
    nothing (mara 1.5).
    """
    fact_candidates: FoundCount | None = None
    """Number of facts to look up (mara 10)."""
    fact_bar: Share | None = None
    """Least score, as a share of the best passage's cosine, of a fact whose entities are seeds though it holds no name
    of the question (mara 1).
    """
    entity_seeds: int | None = Field(default=None, ge=0, le=200)
    """Entities of the kept facts used as seeds, at most (mara 5)."""
    entity_rarity: EntityRarity | None = None
    """How an entity's weight falls with the n passages that hold it: 1/n (inverse), log-idf (mara)."""
    name_weight: SeedWeight | None = None
    """Weight of a name in the question as a seed; 0 for none (mara 3)."""
    name_shares: bool | None = None
    """Weigh entity seeds by how often the documents write them as names rather than in small letters (mara: yes)."""
    passage_seeds: int | None = Field(default=None, ge=0, le=SHOWN_SEEDS)
    """Best passages used as seeds; 0 means all (mara 200)."""
    passage_weight: SeedWeight | None = None
    """Weight of the best passage seed, beside entity seeds of about 1 (mara 1.25)."""
    adaptive_passage_weight: bool | None = None
    """Scale the passage weight by the manager's passage weight (mara: no, mara-matrix: yes)."""
    seed_sharpness: float | None = Field(default=None, ge=1, le=20)
    """Exponent applied to the scores of passage seeds; 1 is linear (mara 8)."""
    alpha: Share | None = None
    """Weight of the dense score in the hybrid score (0.65)."""
    conversation_share: Share | None = None
    """Share of the conversation's concepts: of the weight of entity seeds in a mode that walks, where they get none
    unless it is given; of the score in one that ranks by similarity, where they get a fifth.
    """
