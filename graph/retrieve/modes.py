"""The retrieval modes, and for those that walk, the settings that tell them apart."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from graph.walk.settings import DIRECTED, UNDIRECTED, Directions, FactorPolicy


class Mode(StrEnum):
    """How passages are found."""

    MARA = "mara"
    HIPPORAG2 = "hipporag2"
    MARA_MATRIX = "mara-matrix"
    DENSE = "dense"
    SPARSE = "sparse"
    HYBRID = "hybrid"

    @property
    def walks(self) -> bool:
        """Whether the mode walks the graph, rather than ranking by similarity alone."""
        return self in WALKING_MODES

    @property
    def as_published(self) -> bool:
        """Whether HippoRAG 2's published pipeline runs around the walk.

        Without a kept fact it ranks densely, and without a chat model every candidate fact is kept.
        """
        return self in (Mode.HIPPORAG2, Mode.MARA_MATRIX)


class MatrixWeights(StrEnum):
    """The weights of the entries of exported matrices."""

    COUNTS = "counts"
    """Those of mode ``mara-matrix``: HippoRAG 2's."""
    EVIDENCE = "evidence"
    """Those of mode ``mara``."""


class Preset(StrEnum):
    """Named settings of the walk in mode ``mara``."""

    MARA = "mara"
    SEED = "seed"


class EntityRarity(StrEnum):
    """The rule by which an entity of a kept fact weighs less the more passages it is in."""

    INVERSE = "inverse"
    """1 / n, as in the source documents."""
    LOG_IDF = "log-idf"
    """ln((1 + N) / n) / ln(1 + N): 1 for the rarest, falling slowly."""

    def share(self, n_passages: int, total: int) -> float:
        """Return the multiplier in (0, 1] of an entity in ``n_passages`` of ``total`` passages; 0 counts as 1."""
        n_passages = max(1, n_passages)
        if self is EntityRarity.INVERSE:
            return 1 / n_passages
        return math.log((1 + total) / n_passages) / math.log(1 + total)


THREAD_SHARE = 0.2
"""The share of a thread's concepts in a ranking by similarity, where no other is asked for.

Measured (`python -m benchmarks.conversations --shares`): more costs recall on long threads. A walk, which starts from
the names of the completed question, gains nothing from them.
"""


@dataclass(frozen=True, slots=True)
class WalkSettings:
    """The settings of one walk.

    Attributes:
        damping: probability of following an edge; with `least_damping`, of a walk that is well anchored.
        least_damping: that of a walk whose entity seeds weigh nothing; see `trusting`.
        passage_weight: weight of the best passage seed; entity seeds weigh about 1.
        passage_seeds: how many of the best passages are seeds; 0 for all.
        seed_sharpness: power on the min-max normalised passage scores.
        hybrid_seeds: passage seeds by hybrid score rather than by dense similarity.
        alpha: share of the dense score in the hybrid one.
        fact_candidates: how many facts are looked up.
        fact_bar: the least score of a fact that holds no name of the question, as a share of the best passage's cosine.
        entity_seeds: how many entities of the kept facts are seeds.
        entity_rarity: how an entity of a kept fact weighs less the more passages it is in.
        name_weight: weight of a name in the question as a seed; 0 for none.
        name_shares: weigh an entity seed by how often the corpus writes it as a name rather than in small letters.
        beta: whether the manager's factors steer the walk.
        policy: how β becomes a factor.
        synonym_edges: whether the walk follows synonyms.
        directed: whether the weight of an edge depends on the side it is left from.
        title_edges: a passage's title is a name of it, though no fact says so, and its edge weighs more than others.
        mention_edges: a known name in a passage's text links the two, though no fact of the passage holds it.
        counts: walk on HippoRAG 2's edge weights, over the entities of triples alone.
        adaptive_passage_weight: scale the passage weight by the manager's, relative to the default of 0.05.
        coverage: how much it counts for the second passage that it holds words of the question that the first lacks.
        convergence: how much it counts that every anchor of the question reaches a passage, in [0, 1]; 0 for nothing.
    """

    damping: float
    least_damping: float
    passage_weight: float
    passage_seeds: int
    seed_sharpness: float
    hybrid_seeds: bool
    alpha: float
    fact_candidates: int
    fact_bar: float
    entity_seeds: int
    entity_rarity: EntityRarity
    name_weight: float
    name_shares: bool
    beta: bool
    policy: FactorPolicy
    synonym_edges: bool
    directed: bool
    title_edges: bool
    mention_edges: bool
    counts: bool
    adaptive_passage_weight: bool
    convergence: float
    coverage: float

    @property
    def directions(self) -> Directions:
        """The multipliers by the side an edge is left from."""
        directions = DIRECTED if self.directed else UNDIRECTED
        directions = directions if self.title_edges else directions.without_titles()
        return directions if self.synonym_edges else replace(directions, synonym=0.0)


DEFAULT_ALPHA = 0.65
"""Share of the dense score in the hybrid one."""

DEFAULT_PASSAGE_WEIGHT = 0.05
"""The passage weight of the source documents, around which the manager's adaptive weight moves."""

MARA = WalkSettings(
    damping=0.75,
    least_damping=0.3,
    passage_weight=1.25,
    passage_seeds=200,
    seed_sharpness=8.0,
    hybrid_seeds=True,
    alpha=DEFAULT_ALPHA,
    fact_candidates=10,
    fact_bar=1.0,
    entity_seeds=5,
    entity_rarity=EntityRarity.LOG_IDF,
    name_weight=3.0,
    name_shares=True,
    beta=True,
    policy=FactorPolicy.NEUTRAL,
    synonym_edges=True,
    directed=True,
    title_edges=True,
    mention_edges=True,
    counts=False,
    adaptive_passage_weight=False,
    convergence=0.25,
    coverage=1.5,
)
"""The default: directed factors, sharpened hybrid seeds, names in the question."""

HIPPORAG2 = WalkSettings(
    damping=0.5,
    least_damping=0.5,
    passage_weight=DEFAULT_PASSAGE_WEIGHT,
    passage_seeds=0,
    seed_sharpness=1.0,
    hybrid_seeds=False,
    alpha=1.0,
    fact_candidates=5,
    fact_bar=0.0,
    entity_seeds=5,
    entity_rarity=EntityRarity.INVERSE,
    name_weight=0.0,
    name_shares=False,
    beta=False,
    policy=FactorPolicy.NEUTRAL,
    synonym_edges=True,
    directed=False,
    title_edges=False,
    mention_edges=False,
    counts=True,
    adaptive_passage_weight=False,
    convergence=0.0,
    coverage=0.0,
)
"""The baseline as published: no β, no title or mention edge, every passage a seed."""

SEED = replace(
    HIPPORAG2,
    fact_candidates=10,
    beta=True,
    policy=FactorPolicy.CATEGORY,
    title_edges=True,
    mention_edges=True,
    counts=False,
)
"""MARA-RAG as its documents have it: the baseline's walk with β on every edge, on weighted edges."""

MARA_MATRIX = replace(HIPPORAG2, beta=True, policy=FactorPolicy.FACTS, adaptive_passage_weight=True)
"""The baseline with β itself on its fact edges and with the manager's passage weight: MARA-RAG on relation matrices.

It walks on A = Σ w_r M_r + M_syn + M_passage, w_r = β of the five types between entities, each column scaled to sum 1.
"""


WALKING_MODES = {Mode.MARA: MARA, Mode.HIPPORAG2: HIPPORAG2, Mode.MARA_MATRIX: MARA_MATRIX}
"""The modes that walk, with the settings they start from; all others rank by similarity."""


def settings_of(mode: Mode, preset: Preset) -> WalkSettings:
    """Return the settings that a mode starts from; the preset matters to mode ``mara`` alone."""
    if mode is Mode.MARA and preset is Preset.SEED:
        return SEED
    return WALKING_MODES.get(mode, MARA)
