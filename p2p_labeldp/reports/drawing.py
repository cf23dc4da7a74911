"""Charts as inline SVG: no library, no script, colours from the page's style sheet, so that they follow dark mode and
print. Each says in a title and a description what it shows, for who can't see it.

Everything is drawn on a canvas of ``WIDTH`` units; names of series are names of classes in the style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 46
ROOM = 1.06
"""Of the largest value, so that a mark there is not cut."""
_ROW = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve or one set of points.

    Args:
        name: As the legend says it.
        style: Class of the style sheet: ``learner``, ``local``, ``other`` or ``measured``.
        points: (x, y); those that are not finite, or not positive on a logarithmic axis, are left out.
        line: Whether the points are joined; otherwise each is marked.
    """

    name: str
    style: str
    points: Sequence[tuple[float, float]]
    line: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a chart of rows: a bar from 0 or from ``start``, or a dot with its interval.

    Args:
        name: On the left.
        value: Where the bar ends or the dot is.
        text: Beside it.
        start: Where a bar begins.
        interval: Ends of the interval around a dot; None draws none.
    """

    name: str
    value: float
    text: str
    start: float = 0.0
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What is drawn, without its frame.

    Args:
        parts: Elements of SVG.
        height: Of the canvas.
    """

    parts: Sequence[str]
    height: float


def framed(drawn: Drawing, *, key: str, title: str, description: str) -> str:
    """One ``svg`` element.

    Args:
        drawn: What is in it.
        key: Names the figure; unique on its page.
        title: What it is.
        description: What a reader sees in it, in words.
    """
    head = f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(description)}</desc>'
    about = f'role="img" aria-labelledby="{key}-title {key}-desc"'
    return f'<svg id="{key}" {about} viewBox="0 0 {WIDTH} {drawn.height}">{head}{"".join(drawn.parts)}</svg>'


def curves(
    series: Sequence[Series], *, x_label: str, y_label: str, x_log: bool = False, y_log: bool = False
) -> Drawing:
    """Series over two axes.

    Args:
        series: What is drawn.
        x_label: Quantity and unit.
        y_label: Quantity and unit.
        x_log: Whether x is on a logarithmic scale.
        y_log: The same for y.
    """

    def seen(x: float, y: float) -> bool:
        return math.isfinite(x) and math.isfinite(y) and (x > 0 or not x_log) and (y > 0 or not y_log)

    drawn = [(one, [(x, y) for x, y in one.points if seen(x, y)]) for one in series]
    xs = [x for _, points in drawn for x, _ in points] or [1.0]
    ys = [y for _, points in drawn for _, y in points] or [1.0]
    x_axis = _Axis(min(xs) if x_log else 0.0, max(xs), LEFT, WIDTH - RIGHT, x_log)
    y_axis = _Axis(min(ys) if y_log else 0.0, max(ys) if y_log else ROOM * max(ys), HEIGHT - BOTTOM, TOP, y_log)
    parts = [*_rules(y_axis)]
    for value, text in x_axis.ticks():
        x = x_axis.place(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{text}</text>')
    parts += _names(x_label, y_label, below=8)
    at = float(LEFT)
    for one, points in drawn:
        placed = [(x_axis.place(x), y_axis.place(y)) for x, y in points]
        parts.append(_line(one.style, placed) if one.line else "".join(_mark(one.style, x, y) for x, y in placed))
        sample = [(at, 14.0), (at + 22, 14.0)]
        parts.append(_line(one.style, sample) if one.line else _mark(one.style, at + 11, 14.0))
        parts.append(f'<text x="{at + 28:.0f}" y="18">{escape(one.name)}</text>')
        at += 46 + 6.6 * len(one.name)
    return Drawing(parts=parts, height=HEIGHT)


def rows(lines: Sequence[Row], *, most: float, dots: bool = False, label: str = "") -> Drawing:
    """Bars from left to right, or dots with intervals, each with its name and its number.

    Args:
        lines: From the top.
        most: Where the axis ends.
        dots: Whether dots are drawn instead of bars.
        label: Of the axis.
    """
    left, right = 190, 130
    height = _ROW * len(lines) + 44
    axis = _Axis(0.0, most, left, WIDTH - right, False)
    parts = []
    for value, text in axis.ticks():
        x = axis.place(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{height - 40}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 26}" text-anchor="middle">{text}</text>')
    parts.append(f'<text x="{(left + WIDTH - right) / 2:.0f}" y="{height - 8}" text-anchor="middle">{label}</text>')
    for number, row in enumerate(lines):
        y = 4 + _ROW * number + _ROW / 2
        begin, end = axis.place(row.start), axis.place(row.value)
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(row.name)}</text>')
        if dots:
            if row.interval is not None:
                low, high = (axis.place(value) for value in row.interval)
                parts.append(f'<line class="learner" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(_mark("learner", end, y))
        else:
            width = max(end - begin, 1.0)
            parts.append(f'<rect class="bar" x="{begin:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16"/>')
        parts.append(f'<text x="{WIDTH - right + 10}" y="{y + 4:.1f}">{escape(row.text)}</text>')
    return Drawing(parts=parts, height=height)


def columns(values: Sequence[int], *, x_label: str, y_label: str) -> Drawing:
    """Upright bars side by side, in the order given; the axis starts at 0."""
    y_axis = _Axis(0.0, max(values), HEIGHT - BOTTOM, TOP, False)
    step = (WIDTH - LEFT - RIGHT) / len(values)
    gap = min(step * 0.2, 6.0)
    parts = [*_rules(y_axis)]
    for number, size in enumerate(values):
        x, y = LEFT + number * step + gap / 2, y_axis.place(size)
        width, tall = step - gap, HEIGHT - BOTTOM - y
        parts.append(f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{width:.2f}" height="{tall:.1f}"/>')
        if step >= 22:
            parts.append(f'<text x="{x + width / 2:.1f}" y="{y - 4:.1f}" text-anchor="middle">{size}</text>')
    parts += _names(x_label, y_label, below=16)
    return Drawing(parts=parts, height=HEIGHT)


class _Axis:
    """Values to places on the canvas."""

    def __init__(self, low: float, high: float, begin: float, end: float, log: bool) -> None:
        self._scale: Callable[[float], float] = math.log10 if log else float
        self._log = log
        if log and low >= high:
            low, high = low / 2, high * 2
        self._low, self._high = low, high if high > low else low + 1.0
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        low, high = self._scale(self._low), self._scale(self._high)
        return self._begin + (self._scale(value) - low) / (high - low) * (self._end - self._begin)

    def ticks(self) -> list[tuple[float, str]]:
        """Where the axis is labelled, and how: powers of ten, with 2 and 5 between where they are few; or 1, 2, 5."""
        if self._log:
            first, last = math.floor(math.log10(self._low)), math.ceil(math.log10(self._high))
            every = max(1, round((last - first) / 6))
            digits = (1, 2, 5) if last - first <= 3 else (1,)
            values = [digit * 10.0**power for power in range(first, last + 1, every) for digit in digits]
            return [(value, _power(value)) for value in values if self._low <= value <= self._high]
        span = self._high - self._low
        unit = 10.0 ** math.floor(math.log10(span / 4))
        step = next(unit * factor for factor in (1, 2, 5, 10) if span / (unit * factor) <= 6)
        return [(value, f"{value:.10g}") for value in (step * n for n in range(int(self._high / step + 1e-9) + 1))]


def _power(value: float) -> str:
    return f"{value:g}" if 1e-3 <= value < 1e6 else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")


def _line(style: str, placed: Sequence[tuple[float, float]]) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    return f'<polyline class="{style}" points="{points}"/>'


def _mark(style: str, x: float, y: float) -> str:
    """A disc, or a square where the colour alone would have to tell it apart."""
    if style == "local":
        return f'<rect class="mark {style}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    return f'<circle class="mark {style}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


def _rules(axis: _Axis) -> Iterator[str]:
    """Lines across the canvas at the ticks of an upright axis, and their values."""
    for value, text in axis.ticks():
        y = axis.place(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'


def _names(x_label: str, y_label: str, *, below: int) -> Iterator[str]:
    """Of both axes; that of x stands ``below`` above the canvas's end."""
    yield f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - below}" text-anchor="middle">{escape(x_label)}</text>'
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 14 {middle:.0f})" text-anchor="middle"'
    yield f'<text x="14" y="{middle:.0f}" {turned}>{escape(y_label)}</text>'
