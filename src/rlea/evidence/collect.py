"""The channels of one pair of graphs, each made once for the links that it is made with."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from rlea.evidence import ATTRIBUTES, CHANNELS, DICTIONARY, NAMES, PARIS, STRUCTURE, VECTORS, WORDS
from rlea.evidence.attributes.channel import attribute_channels
from rlea.evidence.channel import Channel
from rlea.evidence.dictionary.channel import dictionary_channels, is_useful
from rlea.evidence.names import PROPOSALS, NameSearches, name_channels
from rlea.evidence.paris.channel import paris_channels
from rlea.evidence.vectors import vector_channels
from rlea.evidence.words import PROPOSALS_IN_LARGE, word_channels
from rlea.graph import GraphPair, Links
from rlea.graph.size import is_large
from rlea.progress import Progress, silent, tick
from rlea.search.embeddings import Embeddings
from rlea.tasks import begin, is_divided, shared

IN_LARGE = (PROPOSALS, PROPOSALS_IN_LARGE)
UNTAUGHT = (WORDS, VECTORS)  # channels that learn from no links


class Evidence:
    """Channels of a pair. Gold links are not read.

    `vectors` are embeddings that were not fitted to the seeds; each is a channel of its own. `proposed` says how many
    partners names, and each kind of words, propose for an entity of a large graph.
    """

    def __init__(
        self,
        pair: GraphPair,
        *,
        encoder: str = "",
        vectors: Sequence[Embeddings] = (),
        progress: Progress = silent,
        proposed: tuple[int, int] = IN_LARGE,
    ) -> None:
        self.pair, self.vectors, self.encoder = pair.without_gold, list(vectors), encoder
        self.proposed = proposed
        self.taught = Links.empty()  # that the dictionary learns from
        self.seconds: dict[tuple[str, bytes], float] = {}  # that making each took
        self.asked: set[tuple[str, bytes]] = set()  # which were used; whoever counts costs may clear it
        self._kept: dict[tuple[str, bytes], list[Channel]] = {}
        self._begun: dict[tuple[str, bytes], Callable[[], list[Channel]]] = {}  # those that are made elsewhere
        self._searches = NameSearches(proposed[0])
        # How each is made, from links that it may learn from.
        self._makers: dict[str, Callable[[Links], list[Channel]]] = {
            NAMES: lambda links: name_channels(self.pair, links, encoder, progress, self._searches),
            WORDS: lambda links: word_channels(self.pair, progress, proposed[1]),
            ATTRIBUTES: lambda links: attribute_channels(self.pair, links, progress),
            PARIS: lambda links: paris_channels(self.pair, links, progress),
            DICTIONARY: lambda links: dictionary_channels(self.pair, links, progress),
            VECTORS: lambda links: vector_channels(self.vectors, *self.pair.entity_ids, progress),
        }

    @cached_property
    def has_two_scripts(self) -> bool:
        """Whether a dictionary would have something to learn."""
        return is_useful(self.pair)

    def teach(self, links: Links) -> None:
        """Let the dictionary learn from these links, seeds among them, in place of those that it had.

        They may be held out: no link counts for a pair of its own entities.
        """
        self.taught = links

    def collect(self, certain: Links, learned_from: Links, wanted: Sequence[str] = CHANNELS) -> list[Channel]:
        """The wanted channels that have something to say, always in the same order; vectors whenever there are some.

        `certain` are seeds, without those held out: PARIS reasons from these only. `learned_from` has pseudo-seeds and
        held-out links as well: they teach names and attributes no more than which attributes correspond, where a single
        link hardly shows.
        """
        self.prepare(certain, learned_from, wanted)
        made: list[Channel] = []
        for name, links in self._needed(certain, learned_from, wanted):
            made += self._made(name, links)
        return [channel for channel in made if len(channel.proposals) or not channel.info.get("searched", True)]

    def prepare(self, certain: Links, learned_from: Links, wanted: Sequence[str] = CHANNELS) -> None:
        """Begin to make channels that will be collected, where that can be done elsewhere."""
        if not is_divided():
            return
        for name, links in self._needed(certain, learned_from, wanted):
            key = _key(name, links)
            if key not in self._kept and key not in self._begun and (name != VECTORS or self.vectors):
                own = shared(self.pair), self.encoder, shared(self.vectors), self.proposed
                self._begun[key] = begin("evidence", make_apart, name, links, *own)

    def _needed(self, certain: Links, learned_from: Links, wanted: Sequence[str]) -> list[tuple[str, Links]]:
        """Channels in their order, each with the links that it may learn from."""
        names = [name for name in CHANNELS if name in wanted and name != STRUCTURE]
        taught = {PARIS: certain, DICTIONARY: self.taught, **dict.fromkeys(UNTAUGHT, Links.empty())}
        return [(name, taught.get(name, learned_from)) for name in (*names, VECTORS)]

    def make(self, name: str, links: Links) -> list[Channel]:
        """A channel as it is made from links."""
        return self._makers[name](links)

    def __reduce__(self) -> Any:  # what is kept and reported stays behind
        return _evidence, (self.pair, self.encoder, self.vectors, self.proposed)

    def _made(self, name: str, links: Links) -> list[Channel]:
        key = _key(name, links)
        self.asked.add(key)
        if key not in self._kept:
            start = time.perf_counter()
            tick(name)
            if is_large(self.pair.source.num_entities, self.pair.target.num_entities):
                # A channel of a million entities takes a gigabyte: that of other links goes before this one is made.
                self._kept = {other: made for other, made in self._kept.items() if other[0] != name}
            begun = self._begun.pop(key, None)
            self._kept[key] = self.make(name, links) if begun is None else begun()
            self.seconds[key] = time.perf_counter() - start
        return self._kept[key]


def make_apart(
    name: str, links: Links, pair: GraphPair, encoder: str, vectors: Sequence[Embeddings], proposed: tuple[int, int]
) -> list[Channel]:
    """A channel in another process."""
    return _evidence(pair, encoder, vectors, proposed).make(name, links)


def _evidence(pair: GraphPair, encoder: str, vectors: Sequence[Embeddings], proposed: tuple[int, int]) -> Evidence:
    return Evidence(pair, encoder=encoder, vectors=vectors, proposed=proposed)


def _key(name: str, links: Links) -> tuple[str, bytes]:
    return name, links.source_ids.tobytes() + b"|" + links.target_ids.tobytes()
