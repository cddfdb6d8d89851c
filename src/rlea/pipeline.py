"""The whole program on one page: read -> evidence -> decide -> evaluate -> write.

`align` is that flow once, `compare` a loop over deciders. Each stage is one call into the module that does the work:
a decider of `deciders.py` is a function of what it may see, the agent among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlea import peak_memory
from rlea.budget import choose_frugality
from rlea.deciders import DECIDERS, Decision, Inputs, checkpoint_of, is_paper, uses_candidates
from rlea.errors import InputError
from rlea.evaluation.string_baseline import probe_strings
from rlea.graph import GraphPair, choose_pool
from rlea.graph.masking import hide
from rlea.io.apart import keep_apart
from rlea.io.read import read
from rlea.models import MODELS
from rlea.progress import Progress, counted, silent, ticking
from rlea.result import Overlap, Result, check_identifiers, check_output, write
from rlea.settings import AlignSettings, check_settings, settle

if TYPE_CHECKING:
    from rlea.agent.merging import MergedPair
    from rlea.evaluation.metrics import LinkMetrics
    from rlea.evaluation.ranks import RankMetrics
    from rlea.matching import Matching

FEWEST_PROMISED = 50  # links from which on a precision can be promised

__all__ = [
    "AlignSettings",
    "Result",
    "align",
    "check_identifiers",
    "check_output",
    "compare",
    "evaluate",
    "read",
    "write",
]


def align(
    pair: GraphPair,
    settings: AlignSettings | None = None,
    *,
    progress: Progress = silent,
    device: str = "auto",
    checkpoint: str | Path | None = None,
    different: Any = None,
    disjoint: Any = None,
    cluster: str = "",
    work: str | Path | None = None,
    **options: Any,
) -> Result:
    """Find the links of a pair. `options` are the fields of `AlignSettings`; an unknown one is an error.

    `device` is for training vectors, `checkpoint` a file beside which their training is kept, so that a run that was
    stopped goes on. `different` are pairs that are known to be two things (as links are given to `read`), `disjoint`
    pairs of classes that have no entity in common, given in the same ways: such pairs take no part, so that their
    entities can get other partners. With `cluster`, such as "local:4" or the address of a Ray cluster, the agent's work
    is done by several processes (docs/scale.md); `work` is a folder that all of them see, and from which a run that was
    stopped goes on.

    >>> import rlea
    >>> result = rlea.align(rlea.read_demo(), channels=("names",), precision=0.95)
    >>> result.matching.is_one_to_one
    True
    """
    asked = AlignSettings.with_options(settings, **options)
    settings = settle(asked)
    check_settings(settings, device=device)
    check_cluster(settings, cluster, work)
    _, note = choose_frugality(pair, settings.memory)
    pair = keep_apart(replace(pair, notes=(*pair.notes, note)) if note else pair, different, disjoint)
    merged = None
    if settings.cardinality != "1:1":
        from rlea.agent.merging import MergedPair

        merged = MergedPair.of(pair, settings.cardinality, progress)
    own = pair if merged is None else merged.merge(pair)
    inputs = make_inputs(own, settings, progress, device, checkpoint).begin(settings)
    if cluster:
        from rlea.scale.cluster import digest_of, on_cluster

        files = [name for name in (settings.agent, settings.encoder, *settings.embedding) if name]
        about = {"fingerprint": own.fingerprint, "settings": asdict(settings)}
        about |= {"never linked, files": digest_of(own.cannot_link, files)}
        with on_cluster(cluster, None if work is None else Path(work), about) as told:
            decision = decide(inputs)
        decision = replace(decision, info={**decision.info, "cluster": told.as_dict()})
    else:
        decision = decide(inputs)
    result = conclude(own, inputs, decision)
    return result if merged is None else spread(result, pair, merged)


def check_cluster(settings: AlignSettings, cluster: str, work: str | Path | None) -> None:
    """Refuse to divide what is done by one process, before any work is done."""
    if not cluster:
        if work is not None:
            raise InputError("a work folder is of a run on a cluster", remedy="add --cluster, or leave --work out")
        return
    from rlea.scale.cluster import check_address

    check_address(cluster)
    if settings.matcher != "fused" or settings.joint:
        what = "joint rounds are" if settings.joint else f"{settings.matcher} is"
        raise InputError(f"{what} done by one process", remedy="use --matcher fused, or leave --cluster out")


def compare(
    pair: GraphPair,
    deciders: str | Sequence[str],
    settings: AlignSettings | None = None,
    *,
    progress: Progress = silent,
    device: str = "auto",
    **options: Any,
) -> Iterator[Result]:
    """The same vectors and candidates for every decider that takes some, one result after the other.

    >>> import rlea
    >>> [result.settings.matcher for result in rlea.compare(rlea.read_demo(), ["nearest", "mutual"])]
    ['nearest', 'mutual']
    """
    given = deciders.split(",") if isinstance(deciders, str) else deciders
    names = [name.strip() for name in given if name.strip()]
    if not names:
        raise InputError("no matcher is named", remedy="use names such as nearest,hungarian,fused")
    settings = replace(AlignSettings.with_options(settings, **options), matcher=names[0])
    check_settings(settings, names, device=device)
    if settings.cardinality != "1:1":
        raise InputError("deciders are compared by one-to-one links", remedy="leave the cardinality out")
    inputs = replace(make_inputs(pair, settings, progress, device), deciders=tuple(names))
    ranks = None
    for number, name in enumerate(names):
        progress("matchers", number, len(names), name)
        own = inputs.begin(settle(replace(settings, matcher=name)))
        result = conclude(pair, own, decide(own), ranks)
        ranks = ranks or result.ranks
        yield result
    progress("matchers", len(names), len(names))


def make_inputs(
    pair: GraphPair,
    settings: AlignSettings,
    progress: Progress = silent,
    device: str = "auto",
    checkpoint: str | Path | None = None,
) -> Inputs:
    """All that a decider may see. This is the one place where gold links, and what is hidden, are taken away."""
    if not pair.source.num_entities or not pair.target.num_entities:
        raise InputError("a graph has no entities", remedy="give two graphs with something in them")
    if settings.gold_complete and not len(pair.test):
        raise InputError(
            "--gold-complete is about gold links, and there are none", remedy="add --gold, or test.tsv to the folder"
        )
    _, source_ids, target_ids = choose_pool(pair, settings.pool)
    named = pair.without_gold
    more: dict[str, Any] = {"device": device, "checkpoint": None if checkpoint is None else Path(checkpoint)}
    return Inputs(hide(named, settings.hide), named, source_ids, target_ids, settings, progress=progress, **more)


def decide(inputs: Inputs) -> Decision:
    """Let the decider of the settings decide; long steps of its stages tick."""
    with ticking(inputs.progress) as report:
        return DECIDERS[inputs.settings.matcher].decide(replace(inputs, progress=report))


def conclude(pair: GraphPair, inputs: Inputs, decision: Decision, ranks: RankMetrics | None = None) -> Result:
    """Cut and evaluate what was decided; `ranks` are those of the same vectors, if they are known already."""
    settings, clock = inputs.settings, inputs.clock
    most = min(len(inputs.source_ids), len(inputs.target_ids))
    overlap = None if decision.right is None else Overlap.of(decision.right, decision.recall, most, len(pair.train))
    matching = cut_links(decision.matching, settings, most, overlap)
    inputs.progress("match", 1, 1, counted(len(matching), "link"))
    peak = peak_memory.peak_mb()
    info = decision.info
    if decision.contributions is not None:
        info = {**info, "channels": decision.contributions(matching)}
    if settings.hide:
        info = {**info, "hidden": list(settings.hide), "fingerprint_seen": inputs.pair.fingerprint}
    inputs.progress("evaluate", 0, 1)
    with clock("evaluate"):
        scores = evaluate(pair, matching, decision, inputs, ranks)
    return Result(
        pair,
        settings,
        choose_pool(pair, settings.pool)[0],
        matching,
        seconds=dict(clock.seconds),
        peak_memory_mb=peak,
        info=info,
        trace=decision.trace,
        search=inputs.search if uses_candidates(settings) else {"kind": "evidence"},
        schema=decision.schema,
        dictionary=decision.dictionary,
        doubtful=decision.matching.without(matching),
        overlap=overlap,
        kept=decision.kept,
        **scores,
    )


def spread(result: Result, pair: GraphPair, merged: MergedPair) -> Result:
    """The result of a merged pair as that of the whole one. What was decided step by step is about merged entities."""
    matching, doubtful = merged.spread(result.matching, pair.train), merged.spread(result.doubtful)
    # A spread link is less sure than the one that it comes from.
    is_sure = matching.confidences >= result.settings.threshold
    matching, doubtful = matching.some(is_sure), doubtful.joined(matching.some(~is_sure))
    counts = {"source": merged.source.num_merged, "target": merged.target.num_merged}
    more: dict[str, Any] = {"info": {**result.info, "merged": counts}, "matching": matching, "doubtful": doubtful}
    return replace(
        result,
        pair=pair,
        trace=None,
        kept=None,
        gold_ranks=None,
        coverage=None,
        links=judge(pair, matching, result),
        **more,
    )


def judge(pair: GraphPair, matching: Matching, result: Result) -> LinkMetrics | None:
    """Scores of links that were changed after the run; None without gold links."""
    from rlea.evaluation import metrics

    if not len(pair.test):
        return None
    scored = metrics.without_validation(matching, pair.test, pair.valid)
    return metrics.link_metrics(scored, pair.test, pool=result.pool, complete=result.settings.gold_complete)


def cut_links(matching: Matching, settings: AlignSettings, most: int, overlap: Overlap | None = None) -> Matching:
    """Leave out what the settings would not have; `most` is how many links there could be, `overlap` how many are."""
    from rlea.matching import keep_sure, keep_worthwhile

    if settings.precision:
        if len(matching) and (overlap is None or len(matching) < FEWEST_PROMISED):
            reason = "there is too little to learn from" if overlap is None else f"there are only {len(matching)} links"
            remedy = "use --threshold" + (", or give seeds, 100 or more, and all evidence" if overlap is None else "")
            raise InputError(f"--precision {settings.precision:g} cannot be promised: {reason}", remedy=remedy)
        return keep_sure(matching, settings.precision)
    if settings.threshold:
        return matching.at_least(settings.threshold)
    if settings.keep == "all" or (settings.keep == "auto" and overlap is None):
        return matching
    if overlap is None:
        return keep_worthwhile(matching, most)
    return keep_worthwhile(matching, overlap.shared, overlap.least_confidence)


def evaluate(
    pair: GraphPair, matching: Matching, decision: Decision, inputs: Inputs, ranks: RankMetrics | None = None
) -> dict[str, Any]:
    """Scores of the links, as fields of `Result`. No stage before this one knows a test link."""
    from rlea.evaluation import metrics
    from rlea.evaluation.gold_ranks import GoldRanks
    from rlea.evaluation.ranks import rank_metrics

    pool = choose_pool(pair, inputs.settings.pool)[0]
    if not len(pair.test):
        return {"links": None, "ranks": None, "coverage": None}
    if ranks is None and len(inputs.settings.embedding) == 1 and not inputs.settings.joint:
        ranks = rank_metrics(inputs.vectors[0], pair.test, inputs.target_ids, pool=pool, progress=inputs.progress)
    scored = metrics.without_validation(matching, pair.test, pair.valid)
    return {
        "links": metrics.link_metrics(scored, pair.test, pool=pool, complete=inputs.settings.gold_complete),
        "ranks": ranks if inputs.settings.embedding else None,
        "coverage": metrics.coverage(decision.candidates, pair.test),
        "gold_ranks": GoldRanks.of(decision.candidates, pair.test),
        "strings": probe_strings(pair, pool),
    }


def remove_checkpoints(checkpoint: Path, settings: AlignSettings) -> None:
    """Remove what a run with these settings kept of its trainings, once all is done and written."""
    from rlea.models.checkpoint import remove_checkpoint

    trained = [name for name in settings.embedding if name in MODELS and MODELS[name].trained]
    paths = [checkpoint_of(checkpoint, name, number) for name in trained for number in range(settings.joint + 1)]
    for path in [*paths, checkpoint] if is_paper(settings) else paths:
        if path is not None:
            remove_checkpoint(path)
