"""The picture of who held which pool: well-formed, true to the times, readable for two hundred pools."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from attrs import evolve

from falcon_rm.core.usage import EVER, Lease, Life, Window
from falcon_rm.picture import COLOURS, LEFT, OTHERS, RIGHT, WIDTH, colours_of, draw, ticks

NOW = 1_700_000_000.0
LIFE = Life(
    "tpu-1", "falcon-j1", "2x2", 4, "on-demand", None, NOW - 1000, NOW - 990, NOW - 100, NOW,
    (Lease("j1", "ann <&>", "", NOW - 1000, NOW - 500, NOW - 200),),
)  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


def parsed(lives: list[Life], window: Window = EVER) -> ElementTree.Element:
    """Return the picture as XML."""
    return ElementTree.fromstring(draw(lives, NOW, window))


def bars(picture: ElementTree.Element) -> list[ElementTree.Element]:
    """Return the bars of lanes: those with a tip."""
    return [rect for rect in picture.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]


def texts(picture: ElementTree.Element) -> list[str]:
    """Return all words."""
    return [each.text or "" for each in picture.iter(f"{SVG}text")]


def test_bars_are_true_to_the_times() -> None:
    """Each stretch is a bar as long as its time, busy in full colour, waiting hatched in the same one."""
    found = bars(parsed([LIFE]))
    whole = WIDTH - LEFT - RIGHT
    assert [0.5, 0.3, 0.1, 0.1] == [round(float(bar.attrib["width"]) / whole, 2) for bar in found]
    assert [f"url(#hatch-{COLOURS[0][1:]})", COLOURS[0]] == [bar.attrib["fill"] for bar in found[:2]]
    tip = found[1].find(f"{SVG}title")
    assert tip is not None
    assert "falcon-j1: busy, j1 (ann <&>), 2023-11-14T22:05:00Z to 2023-11-14T22:10:00Z" == tip.text


def test_every_hatch_is_there() -> None:
    """Whatever is filled with a pattern finds it in the picture."""
    picture = parsed([LIFE])
    patterns = {f"url(#{each.attrib['id']})" for each in picture.iter(f"{SVG}pattern")}
    assert {bar.attrib["fill"] for bar in picture.iter(f"{SVG}rect") if "url" in bar.attrib["fill"]} <= patterns


def test_legend_and_headings() -> None:
    """It says what forms and colours mean, which clusters and pools there are, and from when to when."""
    said = texts(parsed([LIFE, evolve(LIFE, cluster="tpu-2", pool="falcon-j2")]))
    for word in ("all pods run", "waits for nodes and pods", "idle between jobs", "released, not gone yet", "ann <&>"):
        assert word in said
    for word in ("tpu-1", "tpu-2", "falcon-j1", "falcon-j2", "Who held which node pool: 2 pools"):
        assert word in said
    assert "2023-11-14T21:56:40Z to 2023-11-14T22:13:20Z" in said


@pytest.mark.parametrize("lives", [[], [LIFE]], ids=["no pool", "a pool"])
def test_window(lives: list[Life]) -> None:
    """A window is drawn from end to end, whatever is in it."""
    picture = parsed(lives, Window(NOW - 2000, NOW - 250))
    assert "2023-11-14T21:40:00Z to 2023-11-14T22:09:10Z" in texts(picture)
    ends = [float(bar.attrib["x"]) + float(bar.attrib["width"]) for bar in bars(picture)]
    assert [WIDTH - RIGHT] * bool(lives) == [round(end) for end in ends[-1:]]


def test_two_hundred_pools() -> None:
    """Two hundred lanes fit a page or two: none overlaps another, names keep a size that can be read."""
    lives = [evolve(LIFE, pool=f"falcon-j{number}") for number in range(200)]
    picture = parsed(lives)
    lanes = sorted({float(bar.attrib["y"]) + float(bar.attrib["height"]) / 2 for bar in bars(picture)})
    gaps = {round(low - high, 1) for high, low in pairwise(lanes)}
    assert (200, {10.0}) == (len(lanes), gaps)
    assert float(picture.attrib["height"]) < 2500
    names = [each for each in picture.iter(f"{SVG}text") if (each.text or "").startswith("falcon-j")]
    assert {"9"} == {each.attrib["font-size"] for each in names}


def test_colours() -> None:
    """Those who used most have a colour each; with more actors than colours the rest share the last."""

    def held(actor: str, seconds: float) -> Life:
        return evolve(LIFE, leases=(Lease("j", actor, "", NOW - 1000, NOW - 500, NOW - 500 + seconds),))

    few = colours_of([held("ann", 10), evolve(held("bob", 10), chips=8)], NOW, EVER)
    assert {"bob": COLOURS[0], "ann": COLOURS[1]} == few
    many = colours_of([evolve(held(f"a{n:02}", 0), chips=100 - n) for n in range(14)], NOW, EVER)
    assert [*COLOURS[:9], *[OTHERS] * 5] == list(many.values())
    assert "5 others" in texts(parsed([evolve(held(f"a{n:02}", 0), chips=100 - n) for n in range(14)]))


@pytest.mark.parametrize(
    ("seconds", "expected"), [(600, 11), (3600, 13), (86400, 13), (14 * 86400, 7), (365 * 86400, 4)]
)
def test_ticks(seconds: float, expected: int) -> None:
    """There is a round time for every so often, a dozen or so in all."""
    begin = 1_699_920_000.0
    found = ticks(begin, begin + seconds)
    assert expected == len(found)
    assert all(at % 60 == 0 for at in found)
