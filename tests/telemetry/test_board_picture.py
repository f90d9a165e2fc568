"""The picture of the board: values in, an SVG out."""

import re
from collections.abc import Mapping
from xml.etree import ElementTree

import pytest
from board import BOARD
from board_picture import PLOT, TOP, Chart, named, picture, points

SVG = "{http://www.w3.org/2000/svg}"
SMALL = 200_000


def drawn(series: Mapping[str, Mapping[int, float]], *, stacked: bool, form: str) -> list[list[float]]:
    """Return, of each line or area, the heights of its corners."""
    root = ElementTree.fromstring(picture("title", [Chart("a", "b", "short", stacked, series)], 10))
    return [
        [round(TOP + PLOT - float(corner.split(",")[1]), 1) for corner in shape.attrib["points"].split()]
        for shape in root.iter(f"{SVG}{form}")
    ]


def test_what_was_not_measured_is_a_gap() -> None:
    """A second that is missing ends the line, and the next one begins another (P107)."""
    lines = drawn({"a": {0: 4, 1: 4, 5: 2, 6: 2}}, stacked=False, form="polyline")
    assert [[PLOT, PLOT], [PLOT / 2, PLOT / 2]] == lines


def test_stacked_series_stand_on_each_other() -> None:
    """The second of two begins where the first one ends; where it lacks it adds nothing."""
    areas = drawn({"a": {0: 2, 1: 2}, "b": {1: 2}}, stacked=True, form="polygon")
    assert [[PLOT / 2, PLOT / 2, 0, 0], [PLOT / 2, PLOT, PLOT / 2, PLOT / 2]] == areas


def test_series_of_zeros_are_left_out() -> None:
    """What never happened has neither a line nor a place in the legend."""
    text = picture("title", [Chart("a", "b", "s", False, {"never": {0: 0, 1: 0}, "ever": {0: 1}})], 10)
    assert "never" not in text
    assert "ever" in text


def test_names_are_text() -> None:
    """Whatever a series is called stands there as text."""
    root = ElementTree.fromstring(picture("<t>", [Chart("a&b", "", "s", False, {"<x>": {0: 1}})], 10))
    assert {"<t>", "<x>"} <= {text.text for text in root.iter(f"{SVG}text")}


@pytest.mark.parametrize(
    ("legend", "labels", "expected"),
    [
        ("{{cluster}} {{topology}}", {"cluster": "c1"}, "c1"),
        ("fixed", {}, "fixed"),
        ("{{a}}-{{b}}", {"a": "1", "b": "2"}, "1-2"),
    ],
)
def test_named(legend: str, labels: Mapping[str, str], expected: str) -> None:
    """A legend is filled from labels, as Grafana does."""
    assert expected == named(legend, labels)


def test_points_are_numbers() -> None:
    """What is no number was not measured."""
    assert {0: 1.5, 2: 0.0} == points([(10.0, "1.5"), (11.0, "NaN"), (12.2, "0"), (13.0, "+Inf")], 10.0)


def test_picture_of_the_readme() -> None:
    """It is a small, well-formed SVG that loads nothing."""
    text = BOARD.with_name("board.svg").read_text(encoding="utf-8")
    assert len(text) < SMALL
    assert f"{SVG}svg" == ElementTree.fromstring(text).tag
    assert [] == re.findall(r"<(?:image|script|style|a)\b|href", text)
