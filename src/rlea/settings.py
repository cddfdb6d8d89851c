"""What a user can choose about a run, and what is refused before any work is done."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from rlea.budget import parse_memory
from rlea.deciders import DECIDERS, is_aligner, is_paper, uses_candidates
from rlea.errors import InputError
from rlea.evidence import CHANNELS, NAMES
from rlea.graph.masking import parse_hidden
from rlea.io.readers.links import check_cardinality
from rlea.models import MODELS
from rlea.models.embed import check_hidden

SEARCHES = ("auto", "exact", "approximate")
KEPT = ("auto", "worthwhile", "all")


@dataclass(frozen=True, kw_only=True)
class AlignSettings:
    """What a user can choose about a run.

    >>> import rlea
    >>> settings = rlea.AlignSettings(matcher="fused", embedding="names", precision=0.95)
    >>> settings.embedding
    ('names',)
    """

    matcher: str = "auto"  # all evidence
    # Models or files of vectors: channels of the agent, one of them for the candidates of other matchers.
    embedding: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()  # of evidence that the agent uses; the matcher's own if none is named
    encoder: str = ""  # folder of a sentence encoder, by which the agent compares names as well
    hide: tuple[str, ...] = ()  # names, attributes: what no model and no decider may see
    candidates: int = 50  # per entity and direction, for matchers over candidates
    search: str = "auto"  # of candidates; exact as long as that takes a minute or two, approximate beyond
    pool: str = "auto"  # the pair's own: "test" for benchmark folders, "all" for two graphs of one's own
    precision: float = 0.0  # keep only the surest links, so many that this share should be right; 0 keeps all
    threshold: float = 0.0  # keep only links with at least this confidence; 0 keeps all
    # worthwhile: links that the expected F1 gains from; all: as doubtful as they may be. By default worthwhile where
    # the agent decides, whose confidences are calibrated, and all for other matchers.
    keep: str = "auto"
    cardinality: str = "1:1"  # links of a source and of a target: 1:n lets a source have several targets
    joint: int = 0  # rounds in which the agent's sure links train the vectors anew
    agent: str = ""  # a file with a trained agent, in place of training one
    preset: str = ""  # of the paper's agent, in place of the agent
    memory: str = ""  # such as 8GB: what a run of the agent on large graphs may take; no bound if empty
    gold_complete: bool = False  # of scoring: whether entities without a gold link have no counterpart
    seed: int = 0

    def __post_init__(self) -> None:
        """One embedding may be given by itself, channels as text; a misspelt word of `hide` would hide nothing."""
        one = isinstance(self.embedding, str | PathLike)
        given = [self.embedding] if one else self.embedding
        object.__setattr__(self, "embedding", tuple(str(name) for name in given if str(name)))
        channels = self.channels.split(",") if isinstance(self.channels, str) else self.channels
        object.__setattr__(self, "channels", tuple(name.strip() for name in channels if name.strip()))
        object.__setattr__(self, "hide", parse_hidden(self.hide))

    @staticmethod
    def with_options(settings: AlignSettings | None = None, **options: Any) -> AlignSettings:
        """The settings with some options changed; an unknown one is refused."""
        if settings is not None and not isinstance(settings, AlignSettings):
            raise InputError(f"{settings!r} are no settings", remedy="name options: align(pair, matcher='fused')")
        known = [field.name for field in fields(AlignSettings)]
        for name in options:
            if name not in known:
                raise InputError(f"unknown option {name!r}", remedy=suggest(name, known))
        return replace(settings or AlignSettings(), **options)

    @property
    def used_channels(self) -> tuple[str, ...]:
        """The channels of the agent."""
        return self.channels or DECIDERS[self.matcher].channels


# ---- what is left open -----------------------------------------------------------------------------------------------


def settle(settings: AlignSettings) -> AlignSettings:
    """The same settings with the matcher and the embedding that `auto` and none stand for."""
    if settings.matcher == "auto":
        settings = replace(settings, matcher="fused")
    decider = DECIDERS.get(settings.matcher)
    is_taught = settings.agent and not is_paper(settings)  # its file says what it learned from
    if decider is not None and decider.needs_vectors and not settings.embedding and not is_taught:
        settings = replace(settings, embedding=("names",))
    return settings


def evidence_uses(settings: AlignSettings) -> str:
    """What the agent or PARIS looks at, in the words of `MODELS`, without what is hidden."""
    used = ("structure", "attributes") if settings.matcher == "paris" else settings.used_channels
    # To PARIS as a channel names are facts; the words of an entity are those of its name and its literals.
    parts = {"paris": ("structure", "names", "attributes"), "words": ("names", "attributes"), "dictionary": ("names",)}
    every = [part for name in used for part in parts.get(name, (name,))]
    every += [part for name in settings.embedding if name in MODELS for part in MODELS[name].uses.split(" and ")]
    return " and ".join(part for part in dict.fromkeys(every) if part not in settings.hide)


# ---- what is refused -------------------------------------------------------------------------------------------------


def check_settings(
    settings: AlignSettings, deciders: Sequence[str] = (), output: Path | None = None, device: str = "auto"
) -> None:
    """Refuse what cannot work before any work is done; `output` is a file that will be written in the end."""
    if output is not None:
        from rlea.io.writers import check_writable

        check_writable(output)
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {device!r}", remedy="use auto, cpu or cuda")
    names = [name for name in dict.fromkeys((settings.matcher, *deciders)) if name != "auto"]
    for name in names:
        if name not in DECIDERS:
            raise InputError(f"unknown matcher {name!r}", remedy=suggest(name, DECIDERS))
    has_agent = any(DECIDERS[name].channels for name in names) or settings.matcher == "auto"
    check_numbers(settings)
    parse_memory(settings.memory)
    if settings.memory and not has_agent:
        raise InputError("--memory is for the agent, which is not asked for", remedy="leave it out")
    if settings.memory and (settings.agent or settings.joint):
        what = (
            "a trained agent keeps as much as it was trained with" if settings.agent else "joint rounds have no bound"
        )
        raise InputError(f"--memory means nothing here: {what}", remedy="leave it out")
    check_agent(settings, names)
    uncalibrated = [name for name in names if not DECIDERS[name].channels or is_paper(replace(settings, matcher=name))]
    if settings.precision and uncalibrated:
        who = "the paper's agent" if is_paper(settings) else uncalibrated[0]
        remedy = "use --threshold, or --matcher fused"
        raise InputError(f"{who} has no calibrated confidences, so --precision cannot be promised", remedy=remedy)
    check_several_links(settings, names)
    check_channels(settings, names, has_agent, is_comparison=len(deciders) > 0)
    check_embeddings(settings, names, device)
    if settings.joint:
        check_joint(settings)


def check_numbers(settings: AlignSettings) -> None:
    """Refuse numbers and words out of range."""
    if settings.candidates < 1:
        raise InputError(f"--candidates is {settings.candidates}", remedy="give a number of at least 1")
    if not 0 <= settings.seed < 2**63:
        raise InputError(f"--seed is {settings.seed}", remedy="give a number from 0 to 2^63 - 1")
    for option, value in (("--precision", settings.precision), ("--threshold", settings.threshold)):
        if not 0 <= value <= 1:
            raise InputError(f"{option} is {value}", remedy="give a number from 0 to 1, such as 0.95")
    if settings.keep not in KEPT:
        raise InputError(f"unknown word {settings.keep!r} of --keep", remedy=f"use one of {', '.join(KEPT)}")
    given = {"--precision": settings.precision, "--threshold": settings.threshold, "--keep": settings.keep != "auto"}
    cuts = [option for option, value in given.items() if value]
    if len(cuts) > 1:
        remedy = "give one: a precision, a lowest confidence, or what to keep"
        raise InputError(f"{cuts[0]} and {cuts[1]} both say which links to leave out", remedy=remedy)
    if settings.pool not in ("auto", "test", "all"):
        raise InputError(f"unknown pool {settings.pool!r}", remedy="use test or all")
    if settings.search not in SEARCHES:
        raise InputError(f"unknown search {settings.search!r}", remedy=f"use one of {', '.join(SEARCHES)}")


def check_several_links(settings: AlignSettings, names: Sequence[str]) -> None:
    """Refuse several links of an entity where nobody would find them."""
    check_cardinality(settings.cardinality)
    if settings.cardinality == "1:1":
        return
    others = [name for name in names if name != "fused"]
    if others:
        remedy = "use --matcher fused, or leave --cardinality out"
        raise InputError(f"{others[0]} links one-to-one, and --cardinality is {settings.cardinality}", remedy=remedy)
    if settings.hide:
        remedy = "leave one of the two out"
        raise InputError(
            f"--cardinality {settings.cardinality} looks at names and values, which --hide hides", remedy=remedy
        )


def check_channels(settings: AlignSettings, names: Sequence[str], has_agent: bool, *, is_comparison: bool) -> None:
    """Refuse options that nobody would use: channels without the agent, candidates without a matcher over them."""
    unknown = [name for name in settings.channels if name not in CHANNELS]
    if unknown:
        raise InputError(f"unknown channel {unknown[0]!r}", remedy=suggest(unknown[0], CHANNELS))
    given = "--channels" if settings.channels else "--encoder" if settings.encoder else ""
    if given and not has_agent:
        raise InputError(f"{given} is for the agent, which is not asked for", remedy="add --matcher fused")
    if given and (settings.agent or settings.preset):
        which = "trained agent keeps to its own" if settings.agent else "paper's agent has none"
        raise InputError(f"{given} chooses evidence, and the {which}", remedy="leave one of the two out")
    asked = names or ["fused"]
    without = [name for name in asked if not uses_candidates(replace(settings, matcher=name))]
    changed = {"--search": settings.search != "auto", "--candidates": settings.candidates != AlignSettings.candidates}
    for option, is_given in changed.items():
        if is_given and without and not is_comparison:
            remedy = "leave it out, or add --matcher best-first"
            raise InputError(f"{option} is for matchers over candidates, and {without[0]} has none", remedy=remedy)
    if settings.encoder:
        from rlea.models.name_vectors import encoder_package

        used = [replace(settings, matcher=name).used_channels for name in asked if DECIDERS[name].channels]
        if NAMES in settings.hide or not any(NAMES in channels for channels in used):
            left_out = "--channels leaves out" if settings.channels else f"{asked[0]} does not use"
            reason = "--hide hides" if NAMES in settings.hide else left_out
            raise InputError(f"--encoder compares names, which {reason}", remedy="leave one of the two out")
        encoder_package(settings.encoder)


def check_embeddings(settings: AlignSettings, names: Sequence[str], device: str) -> None:
    """Refuse embeddings that are not there, that would not be used, or that look at what is hidden."""
    takers = [name for name in names if DECIDERS[name].takes_vectors] or (["fused"] if not names else [])
    if settings.embedding and not takers:
        raise InputError(f"{names[0]} takes no vectors", remedy="leave --embedding out, or use another matcher")
    single = [name for name in takers if uses_candidates(replace(settings, matcher=name))]
    if len(settings.embedding) > 1 and single:
        remedy = "give one, or use --matcher fused or rlea"
        raise InputError(f"{single[0]} takes one embedding, and there are several", remedy=remedy)
    for name in settings.embedding:
        if name not in MODELS and not Path(name).exists():
            raise InputError(
                f"{name!r} is neither an embedding nor a file",
                remedy=suggest(name, MODELS, "a path to a .safetensors, .npy or word2vec file"),
            )
        check_hidden(settings.hide, name)
    if not settings.embedding and not settings.agent and any(DECIDERS[name].needs_vectors for name in takers):
        check_hidden(settings.hide, "names")  # their default
    if device != "auto":
        from rlea.paper.agent import choose_device

        if device == "cuda" and not (settings.embedding or settings.agent or settings.preset):
            raise InputError("there is nothing to train on a GPU", remedy="leave --device out")
        choose_device(device)


def check_agent(settings: AlignSettings, names: Sequence[str]) -> None:
    """Refuse a preset or a trained agent that is not there or would not be used."""
    if settings.agent and not Path(settings.agent).is_file():
        raise InputError("there is no such file", path=settings.agent, remedy="give a file that `rlea train` wrote")
    has_preset = bool(settings.preset)
    takers = [name for name in names if DECIDERS[name].channels] or (["fused"] if not names else [])
    if not takers or (has_preset and "rlea" not in names):
        if settings.agent or has_preset:
            given = "--agent" if settings.agent else "--preset"
            raise InputError(f"{given} is for the agent, which is not asked for", remedy="add --matcher rlea")
        return
    if has_preset:
        from rlea.paper.presets import PRESETS

        if settings.preset not in PRESETS:
            raise InputError(f"unknown preset {settings.preset!r}", remedy=suggest(settings.preset, PRESETS))
    if settings.agent and not is_aligner(settings.agent):
        if "rlea" not in names:
            raise InputError("is an agent of the paper's", path=settings.agent, remedy="add --matcher rlea")
        trained = [name for name in settings.embedding if name in MODELS and MODELS[name].trained]
        if trained:
            raise InputError(
                f"{trained[0]} would be trained anew, and the agent knows only the vectors it was trained on",
                remedy="give their file: --embedding FILE.safetensors (`rlea embed` writes one)",
            )


def check_joint(settings: AlignSettings) -> None:
    """Refuse joint rounds that have nothing to train, or nobody to say which links are sure."""
    if settings.joint < 0:
        raise InputError(f"--joint is {settings.joint}", remedy="give a number of rounds from 0")
    models = [name for name in settings.embedding if name in MODELS and MODELS[name].trained]
    if len(models) != 1 or len(settings.embedding) != 1:
        remedy = "name one model that learns from seeds, such as --embedding aligne"
        given = ", ".join(settings.embedding)
        what = f"{given} is not one trained model" if given else "no embedding is named"
        raise InputError(f"--joint trains vectors anew, and {what}", remedy=remedy)
    if settings.matcher not in ("auto", "rlea", "fused") or settings.preset or settings.agent:
        remedy = "use --matcher rlea or fused, without --preset and --agent"
        raise InputError("--joint is for the agent, trained in the same run", remedy=remedy)


def suggest(name: str, known: Sequence[str] | dict[str, Any], otherwise: str = "") -> str:
    """The likeliest meaning of a mistyped name, or all there is."""
    close = difflib.get_close_matches(name, list(known), n=1)
    if close:
        return f"did you mean {close[0]}"
    return "use one of " + ", ".join(known) + (f", or {otherwise}" if otherwise else "")
