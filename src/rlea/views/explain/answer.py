"""An explanation as data: the pair, the evidence for and against it, and its rivals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """An entity, a relation or an attribute."""

    identifier: str
    name: str


@dataclass(frozen=True)
class Relation(Term):
    """A relation as seen from the entity in question."""

    is_outward: bool  # whether it leads to the neighbour or comes from it


@dataclass(frozen=True)
class Link:
    """A link of the run, or a seed."""

    source: Term
    target: Term
    confidence: float
    is_seed: bool
    step: int | None  # of the decision, from 1; None if the run has no order of decisions


@dataclass(frozen=True)
class Support:
    """A matched neighbour that the two entities have in common, through one relation on either side."""

    source: Term  # the neighbour
    target: Term  # its counterpart
    is_seed: bool
    source_relation: Relation
    target_relation: Relation
    correspondence: float  # of the two relations, in [0, 1]
    identifying: float  # how well the less identifying of the two picks out one entity, in [0, 1]
    trust: float  # in the neighbour's link; 1 for seeds
    evidence: float  # the product of the three


@dataclass(frozen=True)
class Contradiction:
    """A neighbour whose counterpart should be a neighbour of the other entity, and is not."""

    neighbour: Term
    counterpart: Term  # in the other graph
    is_seed: bool
    relation: Relation
    expected: float  # how strongly such an edge is expected in the other graph, times the trust in the link
    seen: float  # how far there is one; above 0 if a relation that corresponds less leads there
    missing: float  # the difference


@dataclass(frozen=True)
class Feature:
    """A feature of a pair, as a channel computed it."""

    channel: str
    meaning: str  # of the value: a similarity or a probability in [0, 1], or a part of the log-odds
    value: float


@dataclass(frozen=True)
class Values:
    """Two literals of corresponding attributes."""

    source_attribute: Term
    target_attribute: Term
    source_value: str
    target_value: str
    agreement: float  # of the values, in [0, 1]
    strength: float  # of the correspondence of the attributes, in [0, 1]


@dataclass(frozen=True)
class PairEvidence:
    """The evidence for a pair and against it; all rows are sorted, the strongest first."""

    total: float  # sum of the evidence of `supports`
    source_missing: float  # sums of what is missing by `source_contradictions` and `target_contradictions`
    target_missing: float
    logit: float | None  # the agent's score of the pair, if the run keeps it
    features: tuple[Feature, ...]  # by channel, if the run keeps them
    supports: tuple[Support, ...]
    source_contradictions: tuple[Contradiction, ...]
    target_contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True)
class Rival:
    """Another target for the same source, and why it was not chosen."""

    target: Term
    evidence: PairEvidence
    link: Link | None  # the link that the target has
    reason: str


@dataclass(frozen=True)
class Explanation:
    """The explanation of a source or a pair.

    `outcome` is "matched", "seed", "not matched" (of a pair) or "no link" (of a source). `target` is None if a source
    without a link was asked for; `evidence` and `values` are then those of its dropped link, if there is one.
    """

    matcher: str
    embedding: str
    channels: tuple[str, ...]  # that the run used
    pool: str
    outcome: str
    source: Term
    target: Term | None
    link: Link | None  # of the source, with any target
    target_link: Link | None  # of the target, if it is with another source
    dropped: Link | None  # decided for the source, but not confident enough to be kept
    target_dropped: Link | None  # likewise, for the target
    in_pool: bool  # whether both were among the entities to be matched
    num_steps: int | None
    evidence: PairEvidence | None
    values: tuple[Values, ...]  # of the two entities, strongest agreement first
    rivals: tuple[Rival, ...]  # without the pair itself
    notes: tuple[str, ...]
    is_table: bool = False  # whether both graphs are tables: entities are rows, attributes are columns
    has_relations: bool = True  # whether any entity has neighbours


def other_evidence(matcher: str, embedding: str, channels: tuple[str, ...]) -> str:
    """What a run used besides matched neighbours, for a sentence; empty if nothing."""
    if embedding:
        return "the vectors"
    if matcher == "paris":
        return "literals that PARIS compared"
    return " or ".join([", ".join(channels[:-1]), channels[-1]] if len(channels) > 1 else channels)
