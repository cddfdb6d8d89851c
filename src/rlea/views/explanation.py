"""An explanation for the terminal: a few sentences and tables."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

from rlea.views.explain.answer import Explanation, Link, PairEvidence, Relation, other_evidence
from rlea.views.terminal import as_text, make_table

MOST_LETTERS = 60  # of a value that are shown
SEED = " [dim](seed)[/dim]"


def explanation_view(answer: Explanation, rows: int = 8) -> Group:
    """The outcome, the evidence and the rivals; tables show at most `rows` rows.

    Of two tables it speaks of rows and columns, and of neighbours only where columns refer to other rows.
    """
    parts: list[Any] = [*_outcome(answer), *(f"[yellow]Note:[/yellow] {as_text(note)}" for note in answer.notes)]
    if answer.evidence is not None:
        parts += [_features(answer, answer.evidence), _values(answer, rows)]
        if answer.has_relations or answer.evidence.supports:
            parts += [_supports(answer, answer.evidence, rows), _contradictions(answer, answer.evidence, rows)]
    parts.append(_rivals(answer))
    return Group(*(part for part in parts if part is not None))


def _outcome(answer: Explanation) -> list[str]:
    """What the run decided about the pair, or about the source."""
    source, target, link = answer.source, answer.target, answer.link
    title, identifiers = (
        as_text(" - ".join(getattr(end, name) for end in (source, target) if end is not None))
        for name in ("name", "identifier")
    )
    by = as_text(f"by {answer.matcher}" + (f" on {answer.embedding}" if answer.embedding else ""))
    lines = []
    if answer.outcome == "seed":
        lines.append("A seed: it was given, not decided.")
    elif answer.outcome == "matched":
        assert link is not None
        lines.append(f"Matched {by}: {_decision(link, answer)}.")
    elif answer.outcome == "not matched":
        assert target is not None
        lines.append(f"Not matched {by}.")
        for name, other in ((source.name, link), (target.name, answer.target_link)):
            if other is not None:
                partner = as_text((other.target if other is link else other.source).name)
                lines.append(f"{as_text(name)} is matched with {partner}: {_decision(other, answer)}.")
    else:
        lines.append(f"No link was found {by}.")
    for lost in dict.fromkeys(link for link in (answer.dropped, answer.target_dropped) if link is not None):
        who = "It" if target is None else as_text(lost.source.name)
        decided = f"{who} was matched with {as_text(lost.target.name)} ({_decision(lost, answer)})"
        lines.append(f"{decided}, but the link was dropped: its confidence was too low.")
    if not answer.in_pool and answer.outcome != "seed":
        lines.append(f"It was not to be matched: it is not in the pool ({as_text(answer.pool)}).")
    return [f"[bold]{title}[/bold]", f"[dim]{identifiers}[/dim]", *lines]


def _decision(link: Link, answer: Explanation) -> str:
    """The step and the confidence of a link."""
    if link.is_seed:
        return "a seed"
    step = "" if link.step is None else f"step {link.step:,} of {answer.num_steps:,}, "
    return f"{step}confidence {link.confidence:.2f}"


def _features(answer: Explanation, evidence: PairEvidence) -> Table | str | None:
    """The features of the pair, beside those of its best rival."""
    if not evidence.features:
        if not answer.channels or answer.num_steps is None or answer.outcome == "seed":
            return None
        return "Features are kept for the best pairs of every source only; this pair is not one of them."
    rival = next((rival for rival in answer.rivals if rival.evidence.features), None)
    others = {} if rival is None else {row.meaning: f"{row.value:.2f}" for row in rival.evidence.features}
    names = ["this pair"] if rival is None else ["this pair", rival.target.name]
    table = make_table("Features by channel", ("channel", "feature"), names)
    for row in evidence.features:
        other = [] if rival is None else [others.get(row.meaning, "-")]
        table.add_row(row.channel, row.meaning, f"{row.value:.2f}", *other)
    return table


def _values(answer: Explanation, rows: int) -> Table | None:
    """Literals side by side."""
    if not answer.values:
        return None
    what = "columns" if answer.is_table else "attributes"
    texts = (what, "values")
    table = make_table(f"Values of corresponding {what}", texts, ("agreement", "correspondence"), texts)
    for row in answer.values[:rows]:
        table.add_row(
            as_text(f"{row.source_attribute.name}\n{row.target_attribute.name}"),
            as_text(f"{_short(row.source_value)}\n{_short(row.target_value)}"),
            f"{row.agreement:.2f}",
            f"{row.strength:.2f}",
        )
    table.caption = _more(len(answer.values) - rows)
    return table


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}…"


def _supports(answer: Explanation, evidence: PairEvidence, rows: int) -> Table | str:
    """Matched neighbours that support the pair."""
    if not evidence.supports:
        nonzero = {row.channel for row in evidence.features if row.value > 0}
        channels = tuple(name for name in answer.channels if name in nonzero)
        other = other_evidence(answer.matcher, answer.embedding, channels) if answer.outcome != "not matched" else ""
        what = "row" if answer.is_table else "neighbour"
        return f"No matched {what} supports it{f': its evidence is from {other}' if other else ''}."
    numbers = ("corresp.", "identify", "trust", "evidence")
    what = "rows" if answer.is_table else "neighbours"
    title = f"Matched {what} that support it (evidence {evidence.total:.3f})"
    table = make_table(title, (what, "through"), numbers, ("through",))
    shown = [row for row in evidence.supports[:rows] if row.evidence >= 0.0005 or row is evidence.supports[0]]
    for row in shown:
        table.add_row(
            as_text(f"{row.source.name}\n{row.target.name}") + (SEED if row.is_seed else ""),
            as_text(f"{_arrow(row.source_relation)}\n{_arrow(row.target_relation)}"),
            *(f"{value:.2f}" for value in (row.correspondence, row.identifying, row.trust)),
            f"{row.evidence:.3f}",
        )
    table.caption = _more(len(evidence.supports) - len(shown))
    return table


def _contradictions(answer: Explanation, evidence: PairEvidence, rows: int) -> Table | None:
    """Neighbours that are matched elsewhere, where no edge at all leads to the expected neighbour."""
    sides = (("source", evidence.source_contradictions), ("target", evidence.target_contradictions))
    against = [(side, row) for side, found in sides for row in found if not row.seen and row.missing >= 0.005]
    if not against:
        return None
    against.sort(key=lambda found: -found[1].missing)
    what = "row" if answer.is_table else "neighbour"
    missing = f"{evidence.source_missing:.2f} / {evidence.target_missing:.2f}"
    title = f"{what.capitalize()}s matched elsewhere (missing {missing})"
    table = make_table(title, ("side", what, "through", "matched with"), ("missing",))
    for side, row in against[:rows]:
        table.add_row(
            side,
            as_text(row.neighbour.name),
            as_text(_arrow(row.relation)),
            as_text(row.counterpart.name) + (SEED if row.is_seed else ""),
            f"{row.missing:.2f}",
        )
    table.caption = _more(len(against) - rows)
    return table


def _rivals(answer: Explanation) -> Table | None:
    """Other targets of the same source."""
    if not answer.rivals:
        return None
    has_logits = any(rival.evidence.logit is not None for rival in answer.rivals)
    title = "Best candidates" if answer.outcome == "no link" else "Rivals"
    numbers = ("evidence", "missing") if answer.has_relations else ()
    table = make_table(title, ("target",), ("logit",) * has_logits + numbers)
    table.add_column("why not")
    for rival in answer.rivals:
        evidence = rival.evidence
        logit = ["-" if evidence.logit is None else f"{evidence.logit:.2f}"] if has_logits else []
        missing = f"{evidence.source_missing + evidence.target_missing:.2f}"
        around = (f"{evidence.total:.3f}", missing) if answer.has_relations else ()
        table.add_row(as_text(rival.target.name), *logit, *around, as_text(rival.reason))
    return table


def _arrow(relation: Relation) -> str:
    """A relation with its direction, as seen from the entity in question."""
    return f"{relation.name} →" if relation.is_outward else f"← {relation.name}"


def _more(count: int) -> str | None:
    return f"and {count:,} more (--json has them all)" if count > 0 else None
