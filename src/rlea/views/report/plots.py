"""Small plots as inline SVG: no script, no network, sharp at any size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

import numpy as np

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 12, 36
# Colours for any colour vision, and dashes for prints in grey.
LINES = (("#0072b2", "none"), ("#d55e00", "6 3"), ("#009e73", "2 3"), ("#cc79a7", "8 3 2 3"), ("#e69f00", "12 4"))
MARKED_POINTS = 12  # a line of at most this many points shows them as dots

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """The range of an axis and its labelled ticks."""

    low: float = 0.0
    high: float = 1.0
    ticks: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)

    @classmethod
    def around(cls, values: Sequence[float]) -> Axis:
        """From the lowest to the highest value, with ticks at the ends and halfway; a single value is in the middle."""
        finite = [value for value in values if np.isfinite(value)]
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        if low == high:
            return cls(low - 0.5, high + 0.5, (low,))
        return cls(low, high, (low, (low + high) / 2, high))

    def share(self, value: float) -> float:
        """The position of a value: 0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)


UNIT = Axis()


def line_plot(
    points: Points, x_label: str, y_label: str, *, x_axis: Axis = UNIT, y_axis: Axis = UNIT, diagonal: bool = False
) -> str:
    """One line through the points (x, y), over the unit square unless axes are given."""
    parts = [_frame(x_label, y_label, x_axis, y_axis)]
    if diagonal:
        parts.append(f'<line class="guide" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>')
    places = _places(points, x_axis, y_axis)
    parts.append(_polyline(places))
    if len(places) <= MARKED_POINTS:
        parts += [f'<circle cx="{x}" cy="{y}" r="3.5"/>' for x, y in places]
    return _svg(parts, f"{y_label} against {x_label}")


def lines_plot(
    lines: Mapping[str, Points], x_label: str, y_label: str, *, x_axis: Axis | None = None, y_axis: Axis | None = None
) -> str:
    """Several lines through points (x, y), in different colours and dashes, with a legend above the frame."""
    every = [point for line in lines.values() for point in line]
    x_axis = x_axis or Axis.around([x for x, _ in every])
    y_axis = y_axis or Axis.around([y for _, y in every])
    parts = [_frame(x_label, y_label, x_axis, y_axis)]
    left = float(LEFT)
    for number, (name, line) in enumerate(lines.items()):
        _, style = _style(number)
        parts.append(_polyline(_places(line, x_axis, y_axis), style))
        parts.append(f'<line {style} x1="{left:.1f}" y1="6" x2="{left + 18:.1f}" y2="6"/>')
        parts.append(f'<text class="tick" x="{left + 22:.1f}" y="10">{escape(name)}</text>')
        left += 34 + 5.6 * len(name)  # about the width of a letter of this size
    return _svg(parts, f"{y_label} against {x_label}")


def growth_plot(lines: Mapping[str, Points], x_label: str, y_label: str) -> str:
    """Lines through points (x, y) above zero over logarithmic axes, with a legend on the right; a standalone file."""
    width, height, left, right, top, bottom = 760, 400, 70, 240, 16, 44
    every = [(x, y) for line in lines.values() for x, y in line if x > 0 and y > 0] or [(1.0, 1.0)]
    powers = [[math.log10(point[axis]) for point in every] for axis in (0, 1)]
    x_low, y_low = (math.floor(min(each)) for each in powers)
    x_high, y_high = (max(math.ceil(max(each)), math.floor(min(each)) + 1) for each in powers)

    def x_of(value: float) -> float:
        return round(left + (math.log10(value) - x_low) / (x_high - x_low) * (width - left - right), 1)

    def y_of(value: float) -> float:
        return round(height - bottom - (math.log10(value) - y_low) / (y_high - y_low) * (height - top - bottom), 1)

    parts = []
    for power in range(x_low, x_high + 1):
        x = x_of(10.0**power)
        parts.append(f'<line class="grid" x1="{x}" y1="{top}" x2="{x}" y2="{height - bottom}"/>')
        parts.append(_tick("middle", x, height - bottom + 16, 10.0**power))
    for power in range(y_low, y_high + 1):
        y = y_of(10.0**power)
        parts.append(f'<line class="grid" x1="{left}" y1="{y}" x2="{width - right}" y2="{y}"/>')
        parts.append(_tick("end", left - 6, y + 4, 10.0**power))
    for number, (name, line) in enumerate(lines.items()):
        colour, style = _style(number)
        places = [(x_of(x), y_of(y)) for x, y in line if x > 0 and y > 0]
        parts.append(_polyline(places, style))
        key = top + 14 + 20 * number
        parts.append(f'<line {style} x1="{width - right + 16}" y1="{key}" x2="{width - right + 44}" y2="{key}"/>')
        fill = "#fff" if number >= len(LINES) else colour  # colours repeat, with hollow dots
        for x, y in [*places, (width - right + 30, key)]:
            parts.append(f'<circle cx="{x}" cy="{y}" r="4" style="fill:{fill};stroke:{colour};stroke-width:2"/>')
        parts.append(f'<text x="{width - right + 50}" y="{key + 4}">{escape(name)}</text>')
    parts.append(_label((left + width - right) / 2, height - 6, x_label))
    parts.append(_label(16, height / 2, y_label, turned=True))
    return _standalone(parts, width, height)


def dots_plot(rows: Mapping[str, Mapping[str, float]], x_label: str, least: float = -np.inf) -> str:
    """A line per row with its name on the left, and on it a dot per value.

    `rows` is {name of the row: {name of the colour: value}}; a standalone file, as high as it has rows. Values below
    `least` are written as numbers at the left edge, so that one of them does not squeeze all the others.
    """
    rows = {title: {k: v for k, v in values.items() if np.isfinite(v)} for title, values in rows.items()}
    names = list(dict.fromkeys(name for values in rows.values() for name in values))
    axis = Axis.around([value for values in rows.values() for value in values.values() if value >= least])
    step, width = 22, 720
    margin = round(min(330, 30 + 6.6 * max((len(title) for title in rows), default=0)))
    height = step * len(rows) + 60

    def x_of(value: float) -> float:
        return round(margin + axis.share(value) * (width - margin - 20), 1)

    parts = []
    left = width - 20 - sum(30 + 6.2 * len(name) for name in names)
    for number, name in enumerate(names):
        parts.append(f'<circle cx="{left:.0f}" cy="10" r="5" fill="{_style(number)[0]}"/>')
        parts.append(f'<text x="{left + 9:.0f}" y="14">{escape(name)}</text>')
        left += 30 + 6.2 * len(name)  # about the width of a letter of this size
    for tick in axis.ticks:
        x = x_of(tick)
        parts.append(f'<line class="grid" x1="{x}" y1="22" x2="{x}" y2="{height - 34}"/>')
        parts.append(_tick("middle", x, height - 20, tick))
    for place, (title, values) in enumerate(rows.items()):
        y = 36 + step * place
        parts.append(f'<text text-anchor="end" x="{margin - 10}" y="{y + 4}">{escape(title)}</text>')
        parts.append(f'<line class="grid" x1="{margin}" y1="{y}" x2="{width - 20}" y2="{y}"/>')
        for number, name in enumerate(names):
            colour, _ = _style(number)
            if name in values and values[name] < least:
                parts.append(f'<text style="fill:{colour}" x="{margin + 4}" y="{y + 4}">◂ {values[name]:.3f}</text>')
            elif name in values:
                parts.append(
                    f'<circle cx="{x_of(values[name])}" cy="{y}" r="5" fill="{colour}">'
                    f"<title>{escape(title)}, {escape(name)}: {values[name]:.4f}</title></circle>"
                )
    parts.append(_label((margin + width) / 2, height - 4, x_label))
    return _standalone(parts, width, height)


def stack_plots(plots: Sequence[str], columns: int) -> str:
    """Plots side by side in rows, as one standalone file."""
    rows = -(-len(plots) // columns)
    parts = []
    for number, plot in enumerate(plots):
        x, y = number % columns * WIDTH, number // columns * HEIGHT
        parts.append(plot.replace("<svg ", f'<svg x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" ', 1))
    return _standalone(parts, columns * WIDTH, rows * HEIGHT)


def bar_plot(counts: Sequence[int], x_label: str, y_label: str) -> str:
    """Bars of equal width over [0, 1]; the tallest fills the height."""
    tallest = max(counts, default=0) or 1
    y_axis = Axis(0, tallest, tuple(sorted({0, tallest // 2, tallest})))
    parts = [_frame(x_label, y_label, UNIT, y_axis)]
    for number, count in enumerate(counts):
        low, high = number / len(counts), (number + 1) / len(counts)
        top = _y(y_axis.share(count))
        parts.append(
            f'<rect class="bar" x="{_x(low) + 1:.1f}" y="{top}" width="{_x(high) - _x(low) - 2:.1f}" '
            f'height="{_y(0) - top:.1f}"><title>{low:.2f} to {high:.2f}: {count:,}</title></rect>'
        )
    return _svg(parts, f"{y_label} against {x_label}")


def stacked_bar(parts: Sequence[tuple[str, int]], label: str) -> str:
    """A bar of any size, divided into parts (name, count) by their shares; the n-th part has the class `part-n`."""
    total = sum(count for _, count in parts) or 1
    pieces, left = [], 0.0
    for number, (name, count) in enumerate(parts):
        width = 100 * count / total
        pieces.append(
            f'<rect class="part-{number}" x="{left:.3f}" y="0" width="{width:.3f}" height="10">'
            f"<title>{escape(name)}: {count:,}</title></rect>"
        )
        left += width
    return (
        f'<svg class="stack" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">'
        f"{''.join(pieces)}</svg>"
    )


# ---- two neighbourhoods ---------------------------------------------------------------------------------------------

PAIR_WIDTH, ROW, HEAD = 340, 36, 30  # about the width of a phone, so that letters keep their size there
TEXT_EDGE, DOT_EDGE = 15, 157  # from the outer edge to the text, and to the dot
HEAD_LETTERS, RELATION_LETTERS, NAME_LETTERS = 16, 22, 18  # that fit between the two


@dataclass(frozen=True)
class Neighbour:
    """A neighbour in a picture."""

    name: str
    relations: str  # that lead to it
    is_linked: bool  # by a seed or a link


def pair_plot(
    names: tuple[str, str],
    sides: tuple[Sequence[Neighbour], Sequence[Neighbour]],
    joins: Sequence[tuple[int, int, str]],
    more: tuple[int, int] = (0, 0),
) -> str:
    """Two entities with their neighbours below them, source on the left; lines join neighbours that are linked.

    `joins` are (row on the left, row on the right, class of the line); `more` counts the neighbours that are not drawn.
    """
    rows = max(len(side) + (hidden > 0) for side, hidden in zip(sides, more, strict=True))
    height = HEAD + ROW * max(rows, 1)
    parts = [f'<line class="pair" x1="{DOT_EDGE}" y1="14" x2="{PAIR_WIDTH - DOT_EDGE}" y2="14"/>']
    for left, right, kind in joins:
        ends = f'x1="{DOT_EDGE}" y1="{_row(left)}" x2="{PAIR_WIDTH - DOT_EDGE}" y2="{_row(right)}"'
        parts.append(f'<line class="join {escape(kind)}" {ends}/>')
    for is_target, (name, side, hidden) in enumerate(zip(names, sides, more, strict=True)):
        parts += _half(bool(is_target), name, side, hidden)
    label = f"Neighbours of {names[0]} and of {names[1]}"
    size = f'viewBox="0 0 {PAIR_WIDTH} {height}"'
    return f'<svg class="pairs" {size} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _half(is_target: bool, name: str, side: Sequence[Neighbour], hidden: int) -> list[str]:
    """One entity and its neighbours."""

    def x_of(edge: float) -> float:
        return PAIR_WIDTH - edge if is_target else edge

    anchor = "end" if is_target else "start"

    def text(kind: str, whole: str, y: float, width: int, edge: float = TEXT_EDGE) -> str:
        short = shorten(whole, width)
        title = f"<title>{escape(whole)}</title>" if short != whole else ""
        return f'<text class="{kind}" text-anchor="{anchor}" x="{x_of(edge)}" y="{y}">{escape(short)}{title}</text>'

    def branch(y: float) -> str:
        return f'<path class="tree" d="M{x_of(5)} {y}H{x_of(12)}"/>'

    parts = [
        text("entity", name, 18, HEAD_LETTERS, edge=2),
        f'<circle class="linked" cx="{x_of(DOT_EDGE)}" cy="14" r="4.5"/>',
    ]
    if side or hidden:
        last = _row(len(side) - 1 + (hidden > 0))
        parts.append(f'<path class="tree" d="M{x_of(5)} 25V{last}"/>')
    for number, one in enumerate(side):
        y = _row(number)
        parts += [branch(y), text("tick", one.relations, y - 3, RELATION_LETTERS)]
        parts.append(text("name", one.name, y + 10, NAME_LETTERS))
        dot = "linked" if one.is_linked else "open"
        parts.append(f'<circle class="{dot}" cx="{x_of(DOT_EDGE)}" cy="{y}" r="4"/>')
    y = _row(len(side))
    if hidden:
        parts += [branch(y), text("tick", f"and {hidden:,} more", y + 4, RELATION_LETTERS)]
    elif not side:
        parts.append(text("tick", "no neighbours", y + 4, RELATION_LETTERS))
    return parts


def _row(number: int) -> int:
    return HEAD + ROW * number + ROW // 2


def shorten(text: str, width: int) -> str:
    """A text of at most `width` letters; wide ones, such as Chinese, count twice."""
    taken = 0
    for place, letter in enumerate(text):
        taken += 2 if east_asian_width(letter) in "WF" else 1
        if taken > width:
            return text[: max(place - 1, 1)].rstrip() + "…"
    return text


# ---- parts ----------------------------------------------------------------------------------------------------------


def _x(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _places(points: Points, x_axis: Axis, y_axis: Axis) -> list[tuple[float, float]]:
    """Finite points in pixels."""
    return [(_x(x_axis.share(x)), _y(y_axis.share(y))) for x, y in points if np.isfinite(x) and np.isfinite(y)]


def _polyline(places: Iterable[tuple[float, float]], style: str = "") -> str:
    return f'<polyline {style}{" " * bool(style)}points="{" ".join(f"{x},{y}" for x, y in places)}"/>'


def _style(number: int) -> tuple[str, str]:
    """Colour of the n-th line, and its attributes."""
    colour, dash = LINES[number % len(LINES)]
    return colour, f'style="fill:none;stroke:{colour};stroke-width:2" stroke-dasharray="{dash}"'


def _tick(anchor: str, x: float, y: float | str, value: float) -> str:
    """A number beside an axis, short enough for the margin: 0.25, 12.5, 1,200, 1.25M."""
    if abs(value) >= 1_000_000:
        shown = f"{value / 1_000_000:.3g}M"
    else:
        shown = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return f'<text class="tick" text-anchor="{anchor}" x="{x}" y="{y}">{shown}</text>'


def _label(x: float, y: float, text: str, *, turned: bool = False) -> str:
    """The label of an axis; `turned` for a vertical one."""
    turn = f'transform="rotate(-90 {x} {y})" ' if turned else ""
    return f'<text text-anchor="middle" {turn}x="{x}" y="{y}">{escape(text)}</text>'


def _frame(x_label: str, y_label: str, x_axis: Axis, y_axis: Axis) -> str:
    """Ticks, grid and labels of a plot."""
    parts = [_tick("middle", _x(x_axis.share(tick)), _y(0) + 15, tick) for tick in x_axis.ticks]
    for tick in y_axis.ticks:
        y = _y(y_axis.share(tick))
        parts.append(f'<line class="grid" x1="{_x(0)}" y1="{y}" x2="{_x(1)}" y2="{y}"/>')
        parts.append(_tick("end", LEFT - 6, f"{y + 4:.1f}", tick))
    return "".join([*parts, _label(_x(0.5), HEIGHT - 4, x_label), _label(12, _y(0.5), y_label, turned=True)])


def _standalone(parts: Sequence[str], width: int, height: int) -> str:
    """A picture as a file of its own, on a white ground."""
    style = "text{font:12px sans-serif;fill:#444}.tick{font-size:11px}.grid{stroke:#ddd}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _svg(parts: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
