"""What an explanation says: a pair, what speaks for it and against it, and who lost to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entity:
    """One entity, for people and for machines."""

    identifier: str
    name: str


@dataclass(frozen=True)
class Relation:
    """A relation as seen from the entity in question: it leads to the neighbour, or comes from it."""

    identifier: str
    name: str
    is_outward: bool


@dataclass(frozen=True)
class Link:
    """A link of the run, or a seed. Steps count from 1; None where the run keeps no order."""

    source: Entity
    target: Entity
    confidence: float
    is_seed: bool
    step: int | None


@dataclass(frozen=True)
class Support:
    """A matched neighbour that the two entities have in common, through one relation on either side."""

    source: Entity  # the neighbour
    target: Entity  # its counterpart
    is_seed: bool
    source_relation: Relation
    target_relation: Relation
    correspondence: float  # how far the two relations say the same, in [0, 1]
    identifying: float  # how well the less identifying of the two picks one entity, in [0, 1]
    trust: float  # in the neighbour's link; 1 for seeds
    evidence: float  # the product of the three


@dataclass(frozen=True)
class Contradiction:
    """A neighbour matched elsewhere: its counterpart should be a neighbour of the other entity, and is not."""

    neighbour: Entity
    counterpart: Entity  # in the other graph
    is_seed: bool
    relation: Relation
    expected: float  # how far such an edge would be expected in the other graph, times the trust in the link
    seen: float  # how far there is one; above 0 where a less fitting relation leads there
    missing: float  # the difference


@dataclass(frozen=True)
class Saying:
    """What a channel says of a pair."""

    channel: str
    what: str  # the number is: a likeness or a probability in [0, 1], or a part of the log-odds
    value: float


@dataclass(frozen=True)
class Attribute:
    """An attribute, for people and for machines."""

    identifier: str
    name: str


@dataclass(frozen=True)
class Values:
    """Two literals under attributes that correspond."""

    source_attribute: Attribute
    target_attribute: Attribute
    source_value: str
    target_value: str
    agreement: float  # of the values, in [0, 1]
    strength: float  # how far the attributes agree where both speak of one entity, in [0, 1]


@dataclass(frozen=True)
class Case:
    """All that speaks for a pair and against it. `evidence` is the sum of the supports', `missing` of either side's."""

    evidence: float
    source_missing: float
    target_missing: float
    worth: float | None  # what the pair was worth to the agent, where the run keeps it
    says: tuple[Saying, ...]  # by channel, where the run keeps it
    supports: tuple[Support, ...]  # the strongest first
    source_contradictions: tuple[Contradiction, ...]  # the heaviest first
    target_contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True)
class Rival:
    """Another target for the same source, and why it was not taken."""

    target: Entity
    case: Case
    taken: Link | None  # the link that its target got
    why: str


@dataclass(frozen=True)
class Explanation:
    """The answer for a source, or for a pair.

    `outcome` is "matched", "seed", "not matched" (of a pair) or "no link" (of a source). `target` is None where a
    source without a link was asked for; `case` and `values` are then of the link that was left out, if there is one.
    """

    matcher: str
    embedding: str
    heard: tuple[str, ...]  # the channels that had their say
    pool: str
    outcome: str
    source: Entity
    target: Entity | None
    link: Link | None  # that of the source, whoever it leads to
    taken: Link | None  # that of the target, where it is with another source
    left_out: Link | None  # decided for the source, but not among the links that were kept
    left_out_back: Link | None  # likewise, for the target
    in_pool: bool  # whether both were among the entities to be matched
    num_steps: int | None
    case: Case | None
    values: tuple[Values, ...]  # of the two entities, the most telling first
    rivals: tuple[Rival, ...]  # without the pair in question
    notes: tuple[str, ...]


def name_others(matcher: str, embedding: str, heard: tuple[str, ...]) -> str:
    """Who besides matched neighbours had a say in a run; empty where nobody did."""
    if embedding:
        return "the vectors"
    if matcher == "paris":
        return "literals that PARIS compared"
    return " or ".join([", ".join(heard[:-1]), heard[-1]] if len(heard) > 1 else heard)
