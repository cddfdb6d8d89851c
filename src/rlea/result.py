"""What came out of one run: the links, the scores where gold links are known, and what there is to tell about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlea.agent.overlap import FEWEST_KNOWN
from rlea.deciders import DECIDERS
from rlea.evidence import VECTORS
from rlea.graph.iri import is_blank
from rlea.graph.schema import Schema
from rlea.matching import Matching
from rlea.models import MODELS
from rlea.models.embed import shown_uses
from rlea.progress import counted
from rlea.settings import AlignSettings, evidence_uses

if TYPE_CHECKING:
    import polars as pl

    from rlea.agent.kept import Kept
    from rlea.agent.overlap import RightLinks
    from rlea.agent.trace import Trace
    from rlea.evaluation.gold_ranks import GoldRanks
    from rlea.evaluation.metrics import LinkMetrics
    from rlea.evaluation.ranks import RankMetrics
    from rlea.evaluation.string_baseline import StringProbe
    from rlea.evidence.dictionary.channel import Entry
    from rlea.graph import GraphPair

SHOWN = 10  # rows of the HTML form
LEAST_RECALL = 0.2  # by which an estimate is raised: less was hardly measured
# Least confidence of a link that the agent writes by default; where it is not sure that graphs share anything; and
# where the shared part would be small as well.
LEAST, LEAST_IF_UNSURE, LEAST_IF_NOTHING, LITTLE = 0.2, 0.6, 0.9, 0.1
SURE = 0.02  # share of entities with a counterpart, at the lowest, from which on graphs surely share something
NOTHING = 0.01  # share of entities with a counterpart below which graphs may share nothing
WORTH_A_LOOK = 0.05  # confidence from which on a link that was left out is listed
MANY_JUDGED = 0.9  # share of links that gold should judge; below, a run says so


@dataclass(frozen=True)
class Overlap:
    """How many entities have a counterpart, of those of the smaller side that were to be linked: an estimate."""

    shared: float
    low: float
    high: float
    entities: int
    seeds: int = 0  # links that are known beside them

    @staticmethod
    def of(right: RightLinks, recall: float, entities: int, seeds: int = 0) -> Overlap:
        """From how many links are right, and what share of all right ones was found.

        That share is an estimate, too: at the least, no more is shared than was found.
        """
        shared, high = (min(part / max(recall, LEAST_RECALL), entities) for part in (right.value, right.high))
        return Overlap(shared, min(right.low, entities), high, entities, seeds)

    @property
    def is_nothing(self) -> bool:
        """Whether so little seems to be shared that it may be nothing."""
        few = max(min(1.0, 0.1 * self.entities), NOTHING * self.entities)
        return not self.entities or (self.low < 1 and self.shared < few)

    @property
    def least_confidence(self) -> float:
        """Below it a link is a guess that nobody wants by default, whatever the expected F1.

        It is higher where the graphs may share nothing. Seeds show that they share something.
        """
        if self.low >= max(1.0, SURE * self.entities) or self.seeds >= FEWEST_KNOWN:
            return LEAST
        return LEAST_IF_UNSURE if self.shared >= LITTLE * self.entities else LEAST_IF_NOTHING

    def tell(self) -> str:
        """One sentence for people."""
        if self.is_nothing:
            return f"These graphs appear to share no {'other ' if self.seeds else ''}entities"
        share, low, high = (f"{100 * part / max(1, self.entities):.0f}" for part in (self.shared, self.low, self.high))
        about = f"about {self.shared:,.0f} of {counted(self.entities, 'entity')} seem to have a counterpart"
        return f"{about} ({share} %, between {low} and {high} %)".capitalize()

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        counts = {name: round(getattr(self, name), 1) for name in ("shared", "low", "high")}
        return {**counts, "entities": self.entities, "told": self.tell()}


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The links of a run, and the scores where gold links are known.

    >>> import rlea
    >>> result = rlea.align(rlea.read_demo(), matcher="mutual")
    >>> result.to_polars().columns
    ['source', 'target', 'confidence', 'source_label', 'target_label']
    """

    pair: GraphPair
    settings: AlignSettings
    pool: str
    matching: Matching
    links: LinkMetrics | None
    ranks: RankMetrics | None
    coverage: float | None  # share of the gold pairs that are among the candidates
    seconds: dict[str, float]
    peak_memory_mb: float
    info: dict[str, Any] = field(default_factory=dict)
    trace: Trace | None = None  # what the agent decided, step by step
    gold_ranks: GoldRanks | None = None  # of the gold links among the candidates
    search: dict[str, Any] = field(default_factory=lambda: {"kind": "exact"})  # how candidates were found, its recall
    strings: StringProbe | None = None  # what equal strings would solve of the gold links, nothing hidden
    schema: Schema = field(default_factory=Schema)  # relations, attributes and classes that correspond
    dictionary: tuple[Entry, ...] = ()  # that was learned from the links
    doubtful: Matching = field(default_factory=lambda: Matching.of([], [], []))  # links found and left out
    overlap: Overlap | None = None  # how much the graphs share; None where confidences are not calibrated
    kept: Kept | None = None  # the trained agent, and what else it takes to go on with this run

    def __len__(self) -> int:
        return len(self.matching)

    def __repr__(self) -> str:
        scores = "" if self.links is None else f", F1 {self.links.f1:.3f}"
        return f"Result({self.pair.name}: {len(self.matching):,} links by {self.settings.matcher}{scores})"

    def to_polars(self) -> pl.DataFrame:
        """The links as a frame, the surest first: identifiers, confidence, labels."""
        import polars as pl

        source, target, links = self.pair.source, self.pair.target, self.matching
        frame = pl.DataFrame(
            {
                "source": [source.entities[k] for k in links.source_ids],
                "target": [target.entities[k] for k in links.target_ids],
                "confidence": links.confidences,
                "source_label": [source.names[k] for k in links.source_ids],
                "target_label": [target.names[k] for k in links.target_ids],
            }
        )
        return frame.sort("confidence", "source", "target", descending=[True, False, False])

    def to_pandas(self) -> Any:
        """The same as a pandas frame; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dict(as_series=False))

    def merged(self) -> pl.DataFrame:
        """Both graphs as one table: a row per entity, linked ones joined (docs/outputs.md)."""
        from rlea.merging import merge

        return merge(self.pair, self.matching, self.schema).frame

    def _repr_html_(self) -> str:
        """The first links as a table, for notebooks."""
        from markupsafe import escape

        rows = self.to_polars().head(SHOWN).rows()
        cells = "".join(
            f"<tr><td>{escape(s)}</td><td>{escape(t)}</td><td>{c:.3f}</td><td>{escape(a)}</td><td>{escape(b)}</td></tr>"
            for s, t, c, a, b in rows
        )
        head = "".join(f"<th>{name}</th>" for name in ("source", "target", "confidence", "", ""))
        return f"<p>{escape(repr(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table>"

    def explain(self, entity: str, target: str | None = None) -> Any:
        """Why an entity has its link, or why a pair was not matched: an `Explanation`, as `rlea explain` prints it."""
        import tempfile

        from rlea.views.explain import Run

        with tempfile.TemporaryDirectory() as folder:
            write(folder, self)
            return Run.open(Path(folder), pair=self.pair).explain(entity, target)

    def report(self, path: str | Path) -> Path:
        """Write the HTML report to a file."""
        from rlea.io.writers.atomic import atomic

        page = render(self)[1]
        with atomic(Path(path)) as temporary:
            temporary.write_text(page, encoding="utf-8", newline="\n")
        return Path(path)

    @property
    def cut(self) -> str:
        """What links were left out by, in the words of the command line; empty where nothing asked for that."""
        settings = self.settings
        given = {"--precision": settings.precision, "--threshold": settings.threshold}
        numbers = [f"{option} {value:g}" for option, value in given.items() if value]
        is_cut = settings.keep == "worthwhile" or (settings.keep == "auto" and len(self.doubtful) > 0)
        return " ".join(numbers) or ("--keep worthwhile" if is_cut else "")

    @property
    def expected_right(self) -> float | None:
        """How many of the links are expected to be right; None where confidences are not calibrated."""
        return None if self.overlap is None else float(self.matching.confidences.sum())

    @property
    def worth_a_look(self) -> Matching:
        """The links that were left out and yet are not hopeless."""
        return self.doubtful.at_least(WORTH_A_LOOK)

    def summary(self) -> dict[str, Any]:
        """One flat object for machines; scores are null where no gold links are known."""
        links = self.links
        return {
            "pair": self.pair.name,
            "fold": self.pair.fold,
            "embedding": ", ".join(self.settings.embedding),
            "matcher": self.settings.matcher,
            "candidates": self.settings.candidates,
            "search": self.search,
            "started": self.info.get("bootstrap", {}).get("told", ""),
            "channels": self.info.get("channels", []),
            "pool": self.pool,
            "cut": self.cut,
            "doubtful": len(self.doubtful),
            "expected_right": None if self.expected_right is None else round(self.expected_right, 1),
            "overlap": None if self.overlap is None else self.overlap.as_dict(),
            "hidden": list(self.settings.hide),
            "hits@1": None if links is None else links.hits_at_1,
            "precision": None if links is None else links.precision,
            "recall": None if links is None else links.recall,
            "f1": None if links is None else links.f1,
            "matched": len(self.matching),
            "judged": None if links is None else links.judged,
            "correct": None if links is None else links.correct,
            "precision_of_all": None if links is None else links.precision_of_all,
            "gold_complete": self.settings.gold_complete,
            "coverage": self.coverage,
            "ranks": None if self.ranks is None else self.ranks.as_dict(),
            "strings": None if self.strings is None else self.strings.as_dict(),
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
            "peak_memory_mb": round(self.peak_memory_mb, 1),
            "seed": self.settings.seed,
            "notes": [*self.pair.notes, *self.cautions],
        }

    @property
    def _num_blank(self) -> int:
        """The number of links with a blank node at either end."""
        source, target = self.pair.source.entities, self.pair.target.entities
        ends = zip(self.matching.source_ids, self.matching.target_ids, strict=True)
        return sum(is_blank(source[s]) or is_blank(target[t]) for s, t in ends)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What is to be known before links or scores are trusted."""
        told, links = [], self.links
        if links is not None and links.judged < MANY_JUDGED * links.matched:
            told.append(
                f"gold judges {links.judged:,} of {links.matched:,} links, and precision is of these alone; if "
                "entities without a gold link have no counterpart, add --gold-complete"
            )
        if "bootstrap" in self.info and self.overlap is None and len(self.matching):
            told.append("confidences are not calibrated: there are too few seeds, and no evidence without them")
        if num_blank := self._num_blank:
            from rlea.io.writers.rows import blank_note

            told.append(blank_note(num_blank))
        return tuple(told)


def render(result: Result) -> tuple[dict[str, Any], str]:
    """The record of a run, and its report as HTML."""
    from rlea.record import describe_run
    from rlea.views.report.run import render_run

    pair = result.pair
    record = describe_run(
        result=result.summary(),
        settings=asdict(result.settings),
        inputs=dict(pair.inputs),
        fingerprint=pair.fingerprint,
        embedding_info=result.info,
        notes=list(pair.notes),
    )
    told: dict[str, Any] = {"trace": result.trace, "gold_ranks": result.gold_ranks, "schema": result.schema}
    return record, render_run(pair, result.matching, record, **told)


def write(folder: str | Path, result: Result, *, formats: Sequence[str] = ()) -> list[Path]:
    """Links in several formats, the record of the run and the report: all of them or none. Seeds are not repeated.

    `formats` adds links as csv, parquet or jsonl. Links that were left out and are worth a look are in doubtful.tsv.
    docs/outputs.md lists all files.

    >>> import rlea, tempfile
    >>> result = rlea.align(rlea.read_demo(), matcher="mutual")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     "links.tsv" in [path.name for path in rlea.write(folder, result)]
    True
    """
    from rlea.agent.kept import KEPT
    from rlea.agent.trace import DECISIONS
    from rlea.config import config_text, input_paths
    from rlea.evaluation.gold_ranks import GOLD_RANKS
    from rlea.io.writers import ALWAYS, LinkRows, MappingSet, justification_of, write_links
    from rlea.io.writers.dictionary import DICTIONARY_FILE, put_dictionary
    from rlea.io.writers.run_folder import RUN_CONFIG
    from rlea.io.writers.schema import schema_files, schema_sssom
    from rlea.io.writers.tsv import put_links_tsv
    from rlea.record import DOUBTFUL

    pair, settings = result.pair, result.settings
    record, page = render(result)
    decider = DECIDERS[settings.matcher]
    if decider.channels or settings.matcher == "paris":
        # A trained agent has channels of its own, not those of the settings. That it looks around is among its uses.
        used = tuple(row["channel"] for row in result.info.get("channels", []) if row["channel"] != VECTORS)
        uses, looks_around = evidence_uses(replace(settings, channels=used)), False
    else:
        name = settings.embedding[0]
        uses, looks_around = shown_uses(name, settings.hide) if name in MODELS else "", decider.uses_structure
    about = MappingSet(
        mapping_tool_version=record["versions"]["rlea"],
        mapping_date=record["time"][:10],
        justification=justification_of(uses, looks_around),
    )
    extra: dict[str, Any] = {"report.html": page}
    extra[RUN_CONFIG] = config_text(settings, pair.inputs, formats)
    kept = {DECISIONS: result.trace, GOLD_RANKS: result.gold_ranks, KEPT: result.kept}
    extra |= {name: part.put for name, part in kept.items() if part is not None}
    doubtful = result.worth_a_look
    if len(doubtful):
        extra[DOUBTFUL] = lambda path: put_links_tsv(path, LinkRows.of(doubtful, pair.source, pair.target))
    if result.dictionary:
        extra[DICTIONARY_FILE] = lambda path: put_dictionary(path, result.dictionary)
    extra |= schema_files(result.schema)
    extra |= schema_sssom(result.schema, {*pair.source.attributes, *pair.target.attributes}, about)
    rows = LinkRows.of(result.matching, pair.source, pair.target)
    wanted = tuple(dict.fromkeys([*ALWAYS, *formats]))
    made_from = input_paths(pair.inputs, settings)
    return write_links(folder, rows, formats=wanted, about=about, extra=extra, record=record, inputs=made_from)


def check_output(folder: str | Path, inputs: Iterable[str | Path | None] = (), formats: Sequence[str] = ()) -> None:
    """Refuse a folder where `write` would destroy an input or a file of somebody else's: asked before the work."""
    from rlea.agent.kept import KEPT
    from rlea.agent.trace import DECISIONS
    from rlea.evaluation.gold_ranks import GOLD_RANKS
    from rlea.io.writers import ALWAYS, LINK_FILES
    from rlea.io.writers.dictionary import DICTIONARY_FILE
    from rlea.io.writers.run_folder import RUN_CONFIG, check_free
    from rlea.io.writers.schema import SCHEMA_FILES, SCHEMA_SSSOM
    from rlea.record import DOUBTFUL

    links = [LINK_FILES[name] for name in (*ALWAYS, *formats)]
    others: tuple[str, ...] = ("report.html", RUN_CONFIG, DECISIONS, GOLD_RANKS, KEPT, DOUBTFUL, DICTIONARY_FILE)
    others += (*SCHEMA_FILES, SCHEMA_SSSOM)
    check_free(folder, (*links, *others), [one for one in inputs if one])


def check_identifiers(pair: GraphPair) -> None:
    """Refuse identifiers that the files of a run cannot hold: asked before the work."""
    from rlea.io.writers.tsv import refuse_unwritable

    for side, graph in (("source", pair.source), ("target", pair.target)):
        refuse_unwritable((*graph.entities, *graph.relations, *graph.attributes), f"the {side} graph")
