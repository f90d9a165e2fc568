"""
Panels of the board as one SVG: what Prometheus answered over a time, drawn as Grafana would.

1. Values in, text out: nothing here reads or asks.
2. What was not measured is a gap, never a line across it and never 0.
3. Series have their colours in the order of their names, so that the same run gives the same picture.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from math import floor, isfinite, log10

from attrs import frozen

COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8833", "#44aa99", "#882255", "#7788dd",
    "#999933", "#777777",
)  # fmt: skip
COLUMNS, WIDTH, HEIGHT, GAP = 3, 400, 262, 12
HEAD, LEFT, RIGHT, TOP, PLOT = 34, 44, 12, 36, 142
LINES, LINE, SMALL, CAPITAL = 4, 14, 5.6, 6.9
"""Lines of a legend, their height, and the widths of characters in it."""

TICKS, MOST_TICKS = 4, 8
SECONDS = (5, 10, 20, 60, 120, 300, 600, 3600)
UNITS = {"s": " s"}

Points = Mapping[int, float]
"""Second -> value; a second that is missing was not measured."""


@frozen
class Chart:
    """A panel with what its series were."""

    title: str
    about: str
    unit: str
    stacked: bool
    series: Mapping[str, Points]


def named(legend: str, labels: Mapping[str, str]) -> str:
    """Return what a series is called."""
    return " ".join(re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), legend).split())


def points(values: Sequence[tuple[float, str]], began: float) -> Points:
    """Return what Prometheus answered, without what is no number."""
    return {round(moment - began): float(value) for moment, value in values if isfinite(float(value))}


def picture(title: str, charts: Sequence[Chart], seconds: int) -> str:
    """Return the SVG of charts that all last so long."""
    rows = -(-len(charts) // COLUMNS)
    width, height = COLUMNS * (WIDTH + GAP) + GAP, HEAD + rows * (HEIGHT + GAP) + GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="sans-serif" font-size="10.5" fill="#333">',
        f'<rect width="{width}" height="{height}" fill="#f4f5f6"/>',
        f'<text x="{GAP}" y="22" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for number, chart in enumerate(charts):
        row, column = divmod(number, COLUMNS)
        left, top = GAP + column * (WIDTH + GAP), HEAD + row * (HEIGHT + GAP)
        lines += [f'<g transform="translate({left} {top})">', *_chart(chart, seconds), "</g>"]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _chart(chart: Chart, seconds: int) -> Iterator[str]:
    """Yield one chart in its own coordinates."""
    shown = {name: chart.series[name] for name in sorted(chart.series) if any(chart.series[name].values())}
    layers = list(_layers(shown, stacked=chart.stacked))
    most = max((high for layer in layers for _, high in layer.values()), default=0)
    step = _step(most)
    top = step * max(1, -(-most // step))
    across, up = (WIDTH - LEFT - RIGHT) / seconds, PLOT / top
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" rx="4" fill="#fff" stroke="#ddd"/>'
    yield (
        f'<text x="10" y="20"><tspan font-size="12" font-weight="bold">{escape(chart.title)}</tspan>'
        f'<tspan dx="8" fill="#777">{escape(chart.about)}</tspan></text>'
    )
    yield from _axes(top, step, seconds, UNITS.get(chart.unit, ""))
    for layer, colour in zip(layers, _colours(len(layers)), strict=True):
        for run in _runs(layer):
            xs = [f"{LEFT + second * across:.1f}" for second in run]
            lows, highs = zip(*(layer[second] for second in run), strict=True)
            line = [f"{x},{TOP + PLOT - high * up:.1f}" for x, high in zip(xs, highs, strict=True)]
            if chart.stacked:
                back = [f"{x},{TOP + PLOT - low * up:.1f}" for x, low in zip(xs, lows, strict=True)][::-1]
                yield f'<polygon points="{" ".join(line + back)}" fill="{colour}" fill-opacity=".75"/>'
            else:
                yield f'<polyline points="{" ".join(line)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    yield from _legend(list(shown))


def _layers(series: Mapping[str, Points], *, stacked: bool) -> Iterator[Mapping[int, tuple[float, float]]]:
    """Yield second -> (low, high) of each series; stacked ones stand on those before them and add 0 where they lack."""
    if not stacked:
        yield from ({second: (0.0, value) for second, value in found.items()} for found in series.values())
        return
    ground = dict.fromkeys(sorted({second for found in series.values() for second in found}), 0.0)
    for found in series.values():
        layer = {second: (low, low + found.get(second, 0.0)) for second, low in ground.items()}
        ground = {second: high for second, (_, high) in layer.items()}
        yield layer


def _runs(layer: Mapping[int, object]) -> Iterator[list[int]]:
    """Yield the seconds that follow each other without a gap."""
    seconds = sorted(layer)
    starts = [0, *(index + 1 for index, (one, other) in enumerate(pairwise(seconds)) if other > one + 1)]
    yield from (seconds[start:end] for start, end in zip(starts, [*starts[1:], len(seconds)], strict=True) if seconds)


def _axes(top: float, step: float, seconds: int, unit: str) -> Iterator[str]:
    right = WIDTH - RIGHT
    value = 0.0
    while value <= top + step / 2:
        y = TOP + PLOT - value * PLOT / top
        yield f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e6e6e6"/>'
        yield f'<text x="{LEFT - 5}" y="{y + 3.5:.1f}" text-anchor="end" fill="#777">{value:g}{unit}</text>'
        value = round(value + step, 9)
    tick = next(each for each in SECONDS if seconds / each <= MOST_TICKS)
    for second in range(0, seconds + 1, tick):
        x = LEFT + second * (right - LEFT) / seconds
        yield f'<text x="{x:.1f}" y="{TOP + PLOT + 14}" text-anchor="middle" fill="#777">{second} s</text>'


def _step(most: float) -> float:
    """Return a round distance of ticks, of which about four reach *most*."""
    if most <= 0:
        return 1
    rough = most / TICKS
    power = 10.0 ** floor(log10(rough))
    return float(next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999))


def _colours(count: int) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(count)]


def _legend(names: Sequence[str]) -> Iterator[str]:
    """Yield the names of the series, as many as find a place."""
    x, y = 10.0, TOP + PLOT + 34
    for name, colour in zip(names, _colours(len(names)), strict=True):
        width = 18 + sum(CAPITAL if character.isupper() else SMALL for character in name)
        if x + width > WIDTH - 10 and x > 10:
            x, y = 10.0, y + LINE
        if y > TOP + PLOT + 34 + (LINES - 1) * LINE:
            return
        yield f'<rect x="{x:.1f}" y="{y - 8}" width="9" height="9" fill="{colour}"/>'
        yield f'<text x="{x + 13:.1f}" y="{y}">{escape(name)}</text>'
        x += width + 8
