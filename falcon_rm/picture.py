"""
Who held which pool when, as an SVG: one lane a pool, time from left to right.

1. Colour says who, form says what: full is busy, hatched is waiting, a thin line is idle, grey is releasing.
2. The actors who used most have a colour each; all others share the last one.
3. A lane has the height that lets two hundred be read; long names are cut, and whole in the tip of each bar.
4. Values in, text out: nothing here reads or asks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from math import ceil

from attrs import frozen

from falcon_rm.core.messages import moment
from falcon_rm.core.usage import Life, Stretch, Use, Window, account, all_stretches

COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8833", "#44aa99", "#882255", "#7788dd",
)  # fmt: skip
"""Told apart by the colour-blind too, as far as ten can be."""

OTHERS = "#777777"
NOBODY = "#b0b0b0"

WIDTH, LEFT, RIGHT = 1200, 200, 24
HEAD, LEGEND, AXIS, HEADING, FOOT = 34, 20, 26, 22, 30
TALL, LOW, MANY = 16, 10, 60
"""A lane's height, its height when there are many, and how many that is."""
NAME_CHARACTERS, ACTOR_CHARACTERS = 30, 24

STEPS = (60, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000)
TICKS = 12

FORMS: Mapping[Use, tuple[float, str]] = {
    Use.BUSY: (0.80, "all pods run"),
    Use.WAITING: (0.80, "waits for nodes and pods"),
    Use.IDLE: (0.18, "idle between jobs"),
    Use.RELEASING: (0.40, "released, not gone yet"),
}
"""How much of its lane's height each use takes, and what the legend says."""


@frozen
class Frame:
    """Where times and lanes are."""

    begin: float
    end: float
    lane: int

    def x(self, at: float) -> float:
        """Return where a time is."""
        return LEFT + (at - self.begin) / (self.end - self.begin) * (WIDTH - LEFT - RIGHT)


def draw(lives: Sequence[Life], now: float, window: Window) -> str:
    """
    Return the picture of pools in a window.

    Args:
        lives: the pools, in the order of their lanes; those of one cluster stand together.
        now: until when pools that are still there are drawn.
        window: what is drawn; without bounds, from the first pool on until now.
    """
    until = now if window.until is None else window.until
    drawn = list(all_stretches(lives, now, Window(window.since, until)))
    lanes: dict[tuple[str, str], list[Stretch]] = {}
    for stretch in drawn:
        lanes.setdefault((stretch.life.cluster, stretch.life.pool), []).append(stretch)
    begin = window.since if window.since is not None else min((each.begin for each in drawn), default=now - 60)
    frame = Frame(begin, max(until, begin + 1), LOW if len(lanes) > MANY else TALL)
    colours = colours_of(lives, now, window)
    legend = list(_legend(colours))
    top = HEAD + LEGEND * len(legend) + AXIS
    body, height = _body(lanes, frame, colours, top)
    parts = [*_title(frame, len(lanes)), *legend, *_axis(frame, top, height), *body]
    return "\n".join([*_opening(height + FOOT, colours), *parts, "</svg>\n"])


def colours_of(lives: Iterable[Life], now: float, window: Window) -> dict[str, str]:
    """Return actor -> colour, those who used most first."""
    rows = [row for row in account(lives, now, ("actor",), window) if row.key[0] is not None]
    ordered = sorted(rows, key=lambda row: (-row.total, row.key[0] or ""))
    own = len(COLOURS) if len(ordered) <= len(COLOURS) else len(COLOURS) - 1
    return {row.key[0] or "": COLOURS[place] if place < own else OTHERS for place, row in enumerate(ordered)}


def ticks(begin: float, end: float) -> list[float]:
    """Return the times that get a line: round ones, at most a dozen or so."""
    step = next((step for step in STEPS if (end - begin) / step <= TICKS), STEPS[-1])
    return [place * step for place in range(ceil(begin / step), int(end // step) + 1)]


def _opening(height: float, colours: Mapping[str, str]) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}"'
        f' height="{height:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="11" fill="#333333">'
    )
    yield "<defs>"
    for colour in sorted({*colours.values(), OTHERS}):
        yield (
            f'<pattern id="{_hatch(colour)}" width="5" height="5" patternUnits="userSpaceOnUse"'
            f' patternTransform="rotate(45)"><rect width="5" height="5" fill="{colour}" fill-opacity="0.15"/>'
            f'<rect width="1.8" height="5" fill="{colour}"/></pattern>'
        )
    yield "</defs>"
    yield f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>'


def _title(frame: Frame, pools: int) -> Iterator[str]:
    yield f'<text x="16" y="22" font-size="15" font-weight="bold">Who held which node pool: {pools} pools</text>'
    text = f"{moment(frame.begin)} to {moment(frame.end)}"
    yield f'<text x="{WIDTH - RIGHT}" y="22" text-anchor="end">{text}</text>'


def _legend(colours: Mapping[str, str]) -> Iterator[str]:
    """Yield one line of the legend a string: what forms mean, then whose colours these are."""
    forms = [(_bar(use, OTHERS, 0, 0, 22, 12), says) for use, (_, says) in FORMS.items()]
    yield _legend_line(HEAD, forms)
    own = [(actor, colour) for actor, colour in colours.items() if colour != OTHERS]
    entries = [(_bar(Use.BUSY, colour, 0, 0, 22, 12), _cut(actor, ACTOR_CHARACTERS)) for actor, colour in own]
    if len(own) < len(colours):
        entries.append((_bar(Use.BUSY, OTHERS, 0, 0, 22, 12), f"{len(colours) - len(own)} others"))
    for row in range(0, len(entries), 5):
        yield _legend_line(HEAD + LEGEND * (1 + row // 5), entries[row : row + 5])


def _legend_line(y: float, entries: Sequence[tuple[str, str]]) -> str:
    step = (WIDTH - 16 - RIGHT) / 5
    return "".join(
        f'<g transform="translate({16 + place * step:.1f} {y})">{bar}<text x="28" y="10">{escape(text)}</text></g>'
        for place, (bar, text) in enumerate(entries)
    )


def _axis(frame: Frame, top: float, bottom: float) -> Iterator[str]:
    """Yield a line for each tick, with its time above and below."""
    shown = ""
    for at in ticks(frame.begin, frame.end):
        x, time = frame.x(at), datetime.fromtimestamp(at, UTC)
        date, text = f"{time:%m-%d}", f"{time:%H:%M}"
        text = date if text == "00:00" else text if date == shown else f"{date} {text}"
        shown = date
        yield f'<line x1="{x:.1f}" y1="{top - 6}" x2="{x:.1f}" y2="{bottom + 6}" stroke="#dddddd"/>'
        for y in (top - 10, bottom + 18):
            yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle" font-size="10" fill="#666666">{text}</text>'


def _body(
    lanes: Mapping[tuple[str, str], Sequence[Stretch]], frame: Frame, colours: Mapping[str, str], top: float
) -> tuple[list[str], float]:
    """Return the lanes under the headings of their clusters, and where they end."""
    parts, y, heading = list[str](), top, None
    for number, ((cluster, pool), held) in enumerate(lanes.items()):
        if cluster != heading:
            heading = cluster
            name = escape(_cut(cluster, NAME_CHARACTERS))
            parts.append(f'<text x="16" y="{y + 15}" font-weight="bold">{name}</text>')
            y += HEADING
        if number % 2:
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{frame.lane}" fill="#000000"'
                ' fill-opacity="0.03"/>'
            )
        name = escape(_cut(pool, NAME_CHARACTERS))
        size = min(11, frame.lane - 1)
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + frame.lane * 0.78:.1f}" text-anchor="end" font-size="{size}">{name}</text>'
        )
        parts += [_stretch(each, frame, colours, y) for each in held]
        y += frame.lane
    return parts, y


def _stretch(stretch: Stretch, frame: Frame, colours: Mapping[str, str], y: float) -> str:
    colour = colours.get(stretch.actor or "", NOBODY)
    left = frame.x(stretch.begin)
    whose = f"{stretch.lease.job} ({stretch.lease.actor})" if stretch.lease else "nobody"
    tip = f"{stretch.life.pool}: {stretch.use}, {whose}, {moment(stretch.begin)} to {moment(stretch.end)}"
    return _bar(stretch.use, colour, left, y, frame.x(stretch.end) - left, frame.lane, tip)


def _bar(use: Use, colour: str, x: float, y: float, width: float, lane: float, tip: str = "") -> str:
    """Return one bar in the middle of its lane."""
    height = max(2.0, lane * FORMS[use][0])
    fill = {Use.WAITING: f"url(#{_hatch(colour)})", Use.RELEASING: NOBODY, Use.IDLE: NOBODY}.get(use, colour)
    title = f"<title>{escape(tip)}</title>" if tip else ""
    return (
        f'<rect x="{x:.1f}" y="{y + (lane - height) / 2:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}"'
        f' fill="{fill}">{title}</rect>'
    )


def _hatch(colour: str) -> str:
    return f"hatch-{colour[1:]}"


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "\u2026"
