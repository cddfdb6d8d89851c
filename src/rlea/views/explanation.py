"""An explanation for the terminal: a few sentences and tables."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

from rlea.views.explain.answer import Contradiction, Explanation, Link, Relation, name_others
from rlea.views.terminal import as_text

MOST_LETTERS = 60  # of a value that are shown


def explanation_view(answer: Explanation, rows: int = 8) -> Group:
    """Why a link is as it is, in a few sentences and tables; `rows` bounds each table."""
    parts: list[Any] = [*_verdict(answer), *(f"[yellow]Note:[/yellow] {as_text(note)}" for note in answer.notes)]
    if answer.case is not None:
        parts += _saying_parts(answer)
        parts += _value_parts(answer, rows)
        parts += _case_parts(answer, rows)
    if answer.rivals:
        parts.append(_rival_table(answer))
    return Group(*parts)


def _verdict(answer: Explanation) -> list[str]:
    """What became of the pair, or of the source."""
    source, target, link = answer.source, answer.target, answer.link
    ends = as_text(source.name) if target is None else f"{as_text(source.name)} - {as_text(target.name)}"
    shown = as_text(source.identifier) if target is None else as_text(f"{source.identifier} - {target.identifier}")
    by = f"by {answer.matcher}" + (f" on {answer.embedding}" if answer.embedding else "")
    lines = []
    if answer.outcome == "seed":
        lines.append("A seed: it was given, not decided.")
    elif answer.outcome == "matched":
        assert link is not None
        lines.append(f"Matched {as_text(by)}: {_decision(link, answer)}.")
    elif answer.outcome == "not matched":
        lines.append(f"Not matched {as_text(by)}.")
        for name, other in ((source.name, link), ("" if target is None else target.name, answer.taken)):
            if other is not None:
                partner = other.target if other is link else other.source
                lines.append(f"{as_text(name)} is matched with {as_text(partner.name)}: {_decision(other, answer)}.")
    else:
        lines.append(f"No link was found for it {as_text(by)}.")
    for lost in dict.fromkeys(link for link in (answer.left_out, answer.left_out_back) if link is not None):
        who = "It" if target is None else as_text(lost.source.name)
        decided = f"{who} was given {as_text(lost.target.name)} ({_decision(lost, answer)})"
        lines.append(f"{decided}, but the link was not sure enough to be kept.")
    if not answer.in_pool and answer.outcome != "seed":
        lines.append(f"It was not to be matched: not among the entities of the pool ({as_text(answer.pool)}).")
    return [f"[bold]{ends}[/bold]", f"[dim]{shown}[/dim]", *lines]


def _decision(link: Link, answer: Explanation) -> str:
    """When a link was decided and how surely."""
    if link.is_seed:
        return "a seed"
    step = "" if link.step is None else f"step {link.step:,} of {answer.num_steps:,}, "
    return f"{step}confidence {link.confidence:.2f}"


def _saying_parts(answer: Explanation) -> list[Any]:
    """What the channels say, beside the best of the rivals."""
    assert answer.case is not None
    if not answer.case.says:
        if not answer.heard or answer.num_steps is None or answer.outcome == "seed":
            return []
        return ["What channels say is kept of the best pairs of every source; this is none of them."]
    rival = next((rival for rival in answer.rivals if rival.case.says), None)
    table = Table("channel", "says", title="What the channels say", title_justify="left")
    table.add_column("of it", justify="right")
    if rival is not None:
        table.add_column(f"of {as_text(rival.target.name)}", justify="right")
    there = {} if rival is None else {row.what: row.value for row in rival.case.says}
    for row in answer.case.says:
        other = [] if rival is None else [f"{there[row.what]:.2f}" if row.what in there else "-"]
        table.add_row(row.channel, row.what, f"{row.value:.2f}", *other)
    return [table]


def _value_parts(answer: Explanation, rows: int) -> list[Any]:
    """Literals side by side."""
    if not answer.values:
        return []
    table = Table(title="Values of attributes that correspond", title_justify="left")
    for name in ("attributes", "values"):
        table.add_column(name, overflow="fold")
    for name in ("agree", "correspond"):
        table.add_column(name, justify="right")
    for row in answer.values[:rows]:
        table.add_row(
            as_text(f"{row.source_attribute.name}\n{row.target_attribute.name}"),
            as_text(f"{_short(row.source_value)}\n{_short(row.target_value)}"),
            f"{row.agreement:.2f}",
            f"{row.strength:.2f}",
        )
    table.caption = _more(len(answer.values) - rows)
    return [table]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}…"


def _case_parts(answer: Explanation, rows: int) -> list[Any]:
    """Which neighbours speak for a pair, and which against it."""
    case = answer.case
    assert case is not None
    parts: list[Any] = []
    if case.supports:
        table = Table(title=f"Neighbours that speak for it (evidence {case.evidence:.3f})", title_justify="left")
        table.add_column("neighbours")
        table.add_column("through", overflow="fold")
        for name in ("correspond", "identify", "trust", "evidence"):
            table.add_column(name, justify="right")
        shown = [row for row in case.supports[:rows] if row.evidence >= 0.0005 or row is case.supports[0]]
        for row in shown:
            table.add_row(
                as_text(f"{row.source.name}\n{row.target.name}") + (" [dim](seed)[/dim]" if row.is_seed else ""),
                as_text(f"{_arrow(row.source_relation)}\n{_arrow(row.target_relation)}"),
                *(f"{value:.2f}" for value in (row.correspondence, row.identifying, row.trust)),
                f"{row.evidence:.3f}",
            )
        table.caption = _more(len(case.supports) - len(shown))
        parts.append(table)
    else:
        said = {row.channel for row in case.says if row.value > 0}
        speaking = tuple(name for name in answer.heard if name in said)
        beside = name_others(answer.matcher, answer.embedding, speaking) if answer.outcome != "not matched" else ""
        more = f": what there is comes from {beside}" if beside else ""
        parts.append(f"No matched neighbour speaks for it{more}.")
    against = [("source", row) for row in case.source_contradictions if _is_against(row)]
    against += [("target", row) for row in case.target_contradictions if _is_against(row)]
    against.sort(key=lambda found: -found[1].missing)
    if against:
        title = f"Neighbours matched elsewhere (missing {case.source_missing:.2f} / {case.target_missing:.2f})"
        table = Table("side", "neighbour", "through", "matched with", title=title, title_justify="left")
        table.add_column("weight", justify="right")
        for side, contradiction in against[:rows]:
            seed = " [dim](seed)[/dim]" if contradiction.is_seed else ""
            table.add_row(
                side,
                as_text(contradiction.neighbour.name),
                as_text(_arrow(contradiction.relation)),
                as_text(contradiction.counterpart.name) + seed,
                f"{contradiction.missing:.2f}",
            )
        table.caption = _more(len(against) - rows)
        parts.append(table)
    return parts


def _is_against(row: Contradiction) -> bool:
    """Whether a contradiction is worth a row: no edge at all leads there, and one would be expected."""
    return not row.seen and row.missing >= 0.005


def _rival_table(answer: Explanation) -> Table:
    """Other targets of the same source."""
    title = "Its best candidates" if answer.outcome == "no link" else "Rivals"
    table = Table("target", title=title, title_justify="left")
    has_worth = any(rival.case.worth is not None for rival in answer.rivals)
    for name in ("worth", "evidence", "missing") if has_worth else ("evidence", "missing"):
        table.add_column(name, justify="right")
    table.add_column("what became of it")
    for rival in answer.rivals:
        case = rival.case
        worth = ["-" if case.worth is None else f"{case.worth:.2f}"] if has_worth else []
        missing = f"{case.source_missing + case.target_missing:.2f}"
        table.add_row(as_text(rival.target.name), *worth, f"{case.evidence:.3f}", missing, as_text(rival.why))
    return table


def _arrow(relation: Relation) -> str:
    """A relation with its direction, as seen from the entity in question."""
    return f"{relation.name} →" if relation.is_outward else f"← {relation.name}"


def _more(count: int) -> str | None:
    return f"and {count:,} more (--json has them all)" if count > 0 else None
