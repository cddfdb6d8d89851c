"""What a user can choose about a run, and what is refused before any work is done."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlea.errors import InputError
from rlea.evidence import CHANNELS, NAMES
from rlea.masking import parse_hidden
from rlea.matchers import MATCHERS
from rlea.models import MODELS
from rlea.models.embed import check_hidden

if TYPE_CHECKING:
    from rlea.graph import GraphPair

MOST_FUSED = 100_000  # entities of the larger graph up to which `auto` takes all evidence
SEARCHES = ("auto", "exact", "approximate")
# Pairs up to which `auto` searches exactly: 20 s of one core for names (from 10,000 a side on the index is no slower),
# about two minutes on two cores for dense vectors of 64 to 100 dimensions.
MOST_EXACT_NAMES, MOST_EXACT_VECTORS = 40_000**2, 200_000**2


@dataclass(frozen=True)
class AlignSettings:
    """What a user can choose about a run."""

    embedding: str = ""  # for matchers that take vectors; names if not given, which need no training and no seeds
    matcher: str = "auto"  # all evidence; best-first where an embedding is given or the graphs are very large
    candidates: int = 50  # per entity and direction
    pool: str = "auto"  # the pair's own: "test" for benchmark folders, "all" for two graphs of one's own
    seed: int = 0
    preset: str = "context"  # of the agent, where it is the matcher
    agent: str = ""  # a file with a trained agent, in place of training one
    precision: float = 0.0  # keep only the surest links, so many that this share should be right; 0 keeps all
    joint: int = 0  # rounds in which the agent's sure links train the vectors anew
    abstain: bool = False  # leave out links that are more likely to cost F1 than to earn it
    search: str = "auto"  # of candidates; exact as long as that takes a minute or two, approximate beyond
    hide: tuple[str, ...] = ()  # names, attributes: what no model and no matcher may see
    channels: tuple[str, ...] = ()  # of evidence that `fused` listens to; all if none is named
    encoder: str = ""  # folder of a sentence encoder, by which `fused` compares names as well

    def __post_init__(self) -> None:
        object.__setattr__(self, "hide", parse_hidden(self.hide))  # a misspelt word would hide nothing


# ---- what is left open -----------------------------------------------------------------------------------------------


def settle(settings: AlignSettings, pair: GraphPair) -> AlignSettings:
    """The same settings with the matcher and the embedding that `auto` and none stand for on this pair."""
    if settings.matcher == "auto":
        size = max(pair.source.num_entities, pair.target.num_entities)
        is_open = not settings.embedding and size <= MOST_FUSED
        settings = replace(settings, matcher="fused" if is_open else "best-first")
    if settings.matcher in MATCHERS and MATCHERS[settings.matcher].takes_vectors and not settings.embedding:
        settings = replace(settings, embedding="names")
    return settings


def choose_search(settings: AlignSettings, num_rows: int, num_columns: int) -> str:
    """How candidates are found in pools of these sizes: exact or approximate."""
    if settings.search != "auto":
        return settings.search
    most = MOST_EXACT_NAMES if settings.embedding == "names" else MOST_EXACT_VECTORS
    return "approximate" if num_rows * num_columns > most else "exact"


def evidence_uses(settings: AlignSettings) -> str:
    """What a matcher without vectors looks at, in the words of `MODELS`, without what is hidden."""
    heard = ("structure", "attributes") if settings.matcher == "paris" else settings.channels or CHANNELS
    # To PARIS as a channel names are facts; the words of an entity are those of its name and its literals.
    parts = {"paris": ("structure", "names", "attributes"), "words": ("names", "attributes")}
    used = dict.fromkeys(part for name in heard for part in parts.get(name, (name,)))
    return " and ".join(part for part in used if part not in settings.hide)


# ---- what is refused -------------------------------------------------------------------------------------------------


def check_settings(
    settings: AlignSettings, matchers: Sequence[str] = (), output: Path | None = None, device: str = "auto"
) -> None:
    """Refuse what cannot work before any work is done; `output` is a file that will be written in the end."""
    if output is not None:
        from rlea.io.writers import check_writable

        check_writable(output)
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {device!r}", remedy="use auto, cpu or cuda")
    names = [name for name in (settings.matcher, *matchers) if name != "auto"]
    if settings.matcher == "auto" and settings.embedding:
        names.append("best-first")
    for name in names:
        if name not in MATCHERS:
            raise InputError(f"unknown matcher {name!r}", remedy=suggest(name, MATCHERS))
    has_agent = any(MATCHERS[name].trained and MATCHERS[name].takes_vectors for name in names)
    check_evidence(settings, names, is_bench=len(matchers) > 0)
    settings = replace(settings, embedding=settings.embedding or "names")
    if device == "cuda" and names and not any(MATCHERS[name].takes_vectors for name in names):
        raise InputError(f"{names[0]} works on the CPU", remedy="leave --device out")
    if device != "auto" and has_agent:
        from rlea.paper.agent import choose_device

        choose_device(device)
    if settings.embedding not in MODELS and not Path(settings.embedding).exists():
        raise InputError(
            f"{settings.embedding!r} is neither an embedding nor a file",
            remedy=suggest(settings.embedding, MODELS, "a path to a .safetensors, .npy or word2vec file"),
        )
    if any(MATCHERS[name].takes_vectors for name in names):
        check_hidden(settings.hide, settings.embedding)
    check_agent(settings, has_agent)
    if settings.candidates < 1:
        raise InputError(f"--candidates is {settings.candidates}", remedy="give a number of at least 1")
    if not 0 <= settings.seed < 2**63:
        raise InputError(f"--seed is {settings.seed}", remedy="give a number from 0 to 2^63 - 1")
    if not 0 <= settings.precision <= 1:
        raise InputError(f"--precision is {settings.precision}", remedy="give a number from 0 to 1, such as 0.95")
    if settings.abstain and settings.precision:
        remedy = "give one of them: --precision keeps the surest links, --abstain as many as F1 gains from"
        raise InputError("--abstain and --precision both say which links to leave out", remedy=remedy)
    if settings.joint:
        check_joint(settings)
    if settings.pool not in ("auto", "test", "all"):
        raise InputError(f"unknown pool {settings.pool!r}", remedy="use test or all")
    check_search(settings)


def check_evidence(settings: AlignSettings, names: Sequence[str], *, is_bench: bool) -> None:
    """Refuse vectors for a matcher that takes none, and channels for one that has none."""
    blind = [name for name in names if not MATCHERS[name].takes_vectors]
    if blind and settings.embedding and not is_bench:
        remedy = "leave --embedding out, or use --matcher rlea or best-first"
        raise InputError(f"{blind[0]} looks at the graphs themselves and takes no vectors", remedy=remedy)
    for option, is_given in (
        ("--search", settings.search in SEARCHES[1:]),
        ("--candidates", settings.candidates != AlignSettings.candidates),
    ):
        if blind and is_given and not is_bench:
            remedy = "leave it out, or add --matcher best-first"
            raise InputError(f"{option} is for matchers that take vectors, and {blind[0]} takes none", remedy=remedy)
    unknown = [name for name in settings.channels if name not in CHANNELS]
    if unknown:
        raise InputError(f"unknown channel {unknown[0]!r}", remedy=suggest(unknown[0], CHANNELS))
    given = "--channels" if settings.channels else "--encoder" if settings.encoder else ""
    listens = "fused" in names or (settings.matcher == "auto" and not settings.embedding)
    if given and not listens:
        raise InputError(f"{given} is for the matcher fused, which is not asked for", remedy="add --matcher fused")
    if settings.encoder:
        check_encoder(settings)


def check_encoder(settings: AlignSettings) -> None:
    """Refuse a sentence encoder that is not there, or that nobody would listen to."""
    from rlea.models.name_vectors import encoder_package

    if NAMES in settings.hide or (settings.channels and NAMES not in settings.channels):
        reason = "--hide hides" if NAMES in settings.hide else "--channels leaves out"
        raise InputError(f"--encoder compares names, which {reason}", remedy="leave one of the two out")
    encoder_package(settings.encoder)


def check_search(settings: AlignSettings) -> None:
    """Refuse a search that there is not."""
    if settings.search not in SEARCHES:
        raise InputError(
            f"unknown search {settings.search!r}", remedy=f"use {', '.join(SEARCHES[:-1])} or {SEARCHES[-1]}"
        )


def check_agent(settings: AlignSettings, is_used: bool) -> None:
    """Refuse a preset or a trained agent that is not there or would not be used."""
    if settings.agent and not Path(settings.agent).is_file():
        raise InputError("there is no such file", path=settings.agent, remedy="give a file that `rlea train` wrote")
    if not is_used:
        if settings.agent or settings.preset != AlignSettings.preset:
            given = "--agent" if settings.agent else "--preset"
            raise InputError(f"{given} is for the agent, which is not asked for", remedy="add --matcher rlea")
        return
    from rlea.agent.context import ContextAgent
    from rlea.paper.agents import PRESET_NAMES, load_agent

    if settings.preset not in PRESET_NAMES:
        raise InputError(f"unknown preset {settings.preset!r}", remedy=suggest(settings.preset, PRESET_NAMES))
    if settings.agent:
        agent = load_agent(settings.agent, device="cpu")
        if isinstance(agent, ContextAgent):
            return  # what it learned does not hang on the vectors
        if settings.embedding in MODELS and MODELS[settings.embedding].trained:
            raise InputError(
                f"{settings.embedding} would be trained anew, and the agent knows only the vectors it was trained on",
                remedy="give their file: --embedding FILE.safetensors (`rlea embed` writes one)",
            )


def check_seeds(pair: GraphPair, settings: AlignSettings, matchers: Sequence[str]) -> None:
    """Refuse too few seeds for an agent before vectors are trained for it."""
    if (
        settings.preset == "context"
        and not settings.agent
        and any(MATCHERS[name].trained and MATCHERS[name].takes_vectors for name in matchers)
    ):
        from rlea.agent.context import ContextAgent

        ContextAgent().check_seeds(pair.train)


def check_joint(settings: AlignSettings) -> None:
    """Refuse joint rounds that have nothing to train, or nobody to say which links are sure."""
    if settings.joint < 0:
        raise InputError(f"--joint is {settings.joint}", remedy="give a number of rounds from 0")
    if settings.embedding not in MODELS or not MODELS[settings.embedding].trained:
        remedy = "name a model that learns from seeds, such as --embedding aligne"
        raise InputError(f"--joint trains the vectors anew, and {settings.embedding} is not trained", remedy=remedy)
    if settings.matcher != "rlea" or settings.preset != "context" or settings.agent:
        remedy = "add --matcher rlea, without --preset and --agent"
        raise InputError("--joint is for the context agent, trained in the same run", remedy=remedy)


def suggest(name: str, known: Sequence[str] | dict[str, Any], otherwise: str = "") -> str:
    """The likeliest meaning of a mistyped name, or all there is."""
    close = difflib.get_close_matches(name, list(known), n=1)
    if close:
        return f"did you mean {close[0]}"
    return "use one of " + ", ".join(known) + (f", or {otherwise}" if otherwise else "")
