"""Questions in a terminal: the same pairs, keys and store as on the page."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rlea.progress import counted
from rlea.review.live import READY
from rlea.review.session import Filters, Review
from rlea.views.terminal import as_text

HELP = "y same, n not the same, 1-5 another one, s skip, u undo, q quit, ? help"
KEYS = {"y": "accept", "n": "reject", "s": "skip"}
MOST_ROWS = 12  # values, and neighbours, of a pair that are shown
MOST_CHANGES = 3  # by the last answer that are shown
MOST_WAIT = 5.0  # seconds until the next question comes, whatever the last answer changes


@dataclass
class Asked:
    """How a session went."""

    answers: int = 0
    undone: int = 0
    left: int = 0


def ask_questions(
    review: Review,
    number: int,
    *,
    filters: Filters,
    reviewer: str,
    is_blind: bool,
    read: Callable[[], str],
    show: Callable[[Any], None],
) -> Asked:
    """Ask until so many questions are answered, none is left, or nobody answers.

    `read` gives an answer ("" at the end of input, and for a key that says nothing), `show` prints.
    """
    asked, holder = Asked(), secrets.token_hex(8)
    again: tuple[int, int] | None = None
    status = ""
    while asked.answers < number:
        live = live_lines(review, filters, reviewer, is_blind)
        for line in live[1] if live[0] != status or live[0] == READY else ():
            show(as_text(line))
        status = live[0]
        found = again or review.next(filters, reviewer=reviewer, holder=holder)
        again = None
        if found is None:
            show("No question is left.")
            break
        card = review.card(*found, reviewer=reviewer, is_blind=is_blind)
        show(card_view(card, f"{asked.answers + 1} of {number}"))
        key = _key(card, read, show)
        if key == "q":
            break
        if key == "u":
            entry = review.undo(reviewer=reviewer, key=secrets.token_hex(16))
            if entry is None:
                show("There is nothing to undo.")
                again = found
            else:
                asked.undone += 1
                asked.answers = max(0, asked.answers - 1)
                again = review.find(entry.source, entry.target)
            continue
        instead = card["rivals"][int(key) - 1]["identifier"] if key.isdigit() else ""
        ends = card["source"]["identifier"], card["target"]["identifier"]
        more = {"reviewer": reviewer, "key": secrets.token_hex(16), "instead": instead}
        review.answer(*ends, KEYS.get(key, "other"), blind=is_blind, **more)
        asked.answers += 1
    asked.left = review.state(filters, reviewer)["left"]
    return asked


def live_lines(review: Review, filters: Filters, reviewer: str, is_blind: bool) -> tuple[str, list[str]]:
    """Whether answers count at once, and what the last one changed beside its own pair; it is waited for."""
    if review.live is None:
        return "", []
    review.live.wait(MOST_WAIT)
    told = review.state(filters, reviewer, is_blind=is_blind)["live"]
    if told["status"] != READY:
        return told["status"], [told["text"]]
    number = told.get("num_changes", 0)
    lines = [f"The last answer changed {counted(number, 'other link')}."] if number else []
    for one in told["changes"][:MOST_CHANGES]:
        ends = [f"{end['name']} ({end['confidence']:.2f})" if end["name"] else "no link" for end in _ends(one)]
        lines.append(f"  {one['source']}: {ends[0]} -> {ends[1]}")
    return READY, lines


def _ends(change: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return change["before"], change["after"]


def _key(card: dict[str, Any], read: Callable[[], str], show: Callable[[Any], None]) -> str:
    """What a person has typed, asked for until it is an answer; the end of input is `q`."""
    known = {*KEYS, "u", "q", *(str(place + 1) for place in range(len(card["rivals"])))}
    while True:
        typed = read()
        if not typed:
            return "q"
        if (key := typed.strip().lower()[:1]) in known:
            return key
        show(HELP)


def card_view(card: dict[str, Any], title: str) -> Group:
    """A pair for the terminal."""
    parts: list[Any] = [Text(f"\nQuestion {title}: are these the same?", style="bold")]
    ends = Table(show_header=True, box=None, pad_edge=False, expand=False)
    for side in ("source", "target"):
        ends.add_column(side, overflow="fold")
    sides = card["source"], card["target"]
    ends.add_row(*(_marked(one["pieces"], "bold") for one in sides))
    ends.add_row(*(Text(one["identifier"], style="dim") for one in sides))
    parts.append(ends)
    if card.get("decision"):
        parts.append(as_text(card["decision"]))
    if card["said"]:
        parts.append(as_text("Answered before: " + "; ".join(f"{o['reviewer']}: {o['answer']}" for o in card["said"])))
    if card["values"]:
        values = Table("value of", "source", "target", "", title="Values", title_justify="left")
        for row in card["values"][:MOST_ROWS]:
            names = dict.fromkeys(name for name in (row["source_attribute"], row["target_attribute"]) if name)
            cells = (_marked(row[side]) for side in ("source", "target"))
            values.add_row(as_text(" / ".join(names)), *cells, row["mark"])
        parts.append(values)
    if card["neighbours"]:
        around = Table("of the source", "of the target", "link", title="Neighbours", title_justify="left")
        for row in card["neighbours"][:MOST_ROWS]:
            around.add_row(as_text(row["source"]), as_text(row["target"]), row["kind"])
        parts.append(around)
    if card.get("channels"):
        channels = Table("channel", "this pair", "rival", title="Channels", title_justify="left")
        for row in card["channels"]:
            other = "-" if row["rival"] is None else f"{row['rival']:.2f}"
            channels.add_row(as_text(f"{row['channel']}: {row['meaning']}"), f"{row['value']:.2f}", other)
        parts.append(channels)
    for place, rival in enumerate(card["rivals"], start=1):
        more = "; ".join(rival["facts"])
        parts.append(as_text(f"  {place}  {rival['name']}" + (f" ({more})" if more else "")))
    parts.append(Text(HELP, style="dim"))
    return Group(*parts)


def _marked(pieces: Any, style: str = "") -> Text:
    """A text with what differs underlined."""
    text = Text(style=style)
    for piece, is_marked in pieces:
        text.append(
            "".join(letter if letter.isprintable() else " " for letter in piece), "underline" if is_marked else ""
        )
    return text
