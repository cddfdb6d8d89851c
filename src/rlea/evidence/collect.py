"""The channels of one pair of graphs, each made once for the links that it is made with."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property

from rlea.evidence import ATTRIBUTES, CHANNELS, DICTIONARY, NAMES, PARIS, STRUCTURE, VECTORS, WORDS
from rlea.evidence.attributes.channel import attribute_channels
from rlea.evidence.channel import Channel
from rlea.evidence.dictionary.channel import dictionary_channels, is_useful
from rlea.evidence.names import name_channels
from rlea.evidence.paris.channel import paris_channels
from rlea.evidence.vectors import vector_channels
from rlea.evidence.words import can_search, word_channels
from rlea.graph import GraphPair, Links
from rlea.progress import Progress, silent, tick
from rlea.search.embeddings import Embeddings

UNTAUGHT = (WORDS, VECTORS)  # channels that learn from no links


class Evidence:
    """Channels of a pair. Gold links are not read.

    `vectors` are embeddings that were not fitted to the seeds; each is a channel of its own.
    """

    def __init__(
        self,
        pair: GraphPair,
        *,
        encoder: str = "",
        vectors: Sequence[Embeddings] = (),
        progress: Progress = silent,
        searches_words: bool | None = None,
    ) -> None:
        self.pair, self.vectors, self.encoder = pair.without_gold, list(vectors), encoder
        # Whether words propose pairs: that of a part of the graphs does as that of the whole.
        self.searches_words = can_search(pair) if searches_words is None else searches_words
        self.taught = Links.empty()  # that the dictionary learns from
        self.seconds: dict[tuple[str, bytes], float] = {}  # that making each took
        self.asked: set[tuple[str, bytes]] = set()  # which were used; whoever counts costs may clear it
        self._kept: dict[tuple[str, bytes], list[Channel]] = {}
        # How each is made, from links that it may learn from.
        self._makers: dict[str, Callable[[Links], list[Channel]]] = {
            NAMES: lambda links: name_channels(self.pair, links, encoder, progress),
            WORDS: lambda links: word_channels(self.pair, progress, self.searches_words),
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
        made: list[Channel] = []
        for name in (*CHANNELS, VECTORS):
            if name == VECTORS or (name in wanted and name != STRUCTURE):
                links = Links.empty() if name in UNTAUGHT else learned_from
                links = {PARIS: certain, DICTIONARY: self.taught}.get(name, links)
                made += self._made(name, links)
        # Words of large graphs propose nothing, but score the pairs of others.
        return [channel for channel in made if len(channel.proposals) or not channel.info.get("searched", True)]

    def _made(self, name: str, links: Links) -> list[Channel]:
        key = name, links.source_ids.tobytes() + b"|" + links.target_ids.tobytes()
        self.asked.add(key)
        if key not in self._kept:
            start = time.perf_counter()
            tick(name)
            self._kept[key] = self._makers[name](links)
            self.seconds[key] = time.perf_counter() - start
        return self._kept[key]
