"""The Grafana board: the file is what the script makes, Grafana can place it, and it asks for what there is."""

import json
import re
from itertools import combinations
from typing import Any

import board
from board_panels import ROWS

from falcon_rm.metrics import API_REQUESTS, COUNTERS, GAUGES, HISTOGRAMS

SUFFIXES = {"falcon_last_success_timestamp_seconds", "falcon_build_info"}
OURS = {each.name for each in (*GAUGES, *COUNTERS, API_REQUESTS)} | {f"{each.name}_bucket" for each in HISTOGRAMS}
KINDS = {"row", "stat", "timeseries"}


def made() -> dict[str, Any]:
    """Return the board as Grafana reads it."""
    read: dict[str, Any] = json.loads(board.BOARD.read_text(encoding="utf-8"))
    return read


def test_file_is_what_the_script_makes() -> None:
    """What is imported is what board_panels.py says."""
    assert board.written() == board.BOARD.read_text(encoding="utf-8"), "hack/telemetry write"


def test_rows() -> None:
    """There is a row for each thing that an operator looks for."""
    titles = ["Now", "Queues", "Acquisition", "Chips", "Failures", "Clusters", "Controller"]
    assert titles == [panel["title"] for panel in made()["panels"] if panel["type"] == "row"]


def test_panels_have_their_places() -> None:
    """Ids are unique, no two panels overlap, and none leaves the grid."""
    panels = made()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) == len(ROWS) + sum(len(row) for _, row in ROWS)
    places = [(panel["title"], *(panel["gridPos"][key] for key in "xywh")) for panel in panels]
    assert [] == [place for place in places if place[1] + place[3] > board.COLUMNS]
    overlapping = [
        (one, other)
        for (one, x, y, w, h), (other, x2, y2, w2, h2) in combinations(places, 2)
        if x < x2 + w2 and x2 < x + w and y < y2 + h2 and y2 < y + h
    ]
    assert [] == overlapping


def test_panels_say_what_they_show() -> None:
    """Each panel is of a kind that every Grafana has, with a title, a description and queries named A, B and so on."""
    for panel in made()["panels"]:
        assert panel["type"] in KINDS
        if panel["type"] == "row":
            continue
        assert panel["title"]
        assert panel["description"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters
        assert list("ABCDEF"[: len(letters)]) == letters


def test_queries_ask_for_what_there_is() -> None:
    """Each query goes to the board's data source, for metrics that Falcon has, by variables that the board has."""
    variables = {each["name"] for each in made()["templating"]["list"]} | {"__rate_interval"}
    for target in (target for panel in made()["panels"] for target in panel.get("targets", ())):
        assert {"type": "prometheus", "uid": "${datasource}"} == target["datasource"]
        assert set(re.findall(r"falcon_\w+", target["expr"])) <= OURS | SUFFIXES, target["expr"]
        assert set(re.findall(r"\$(\w+)", target["expr"])) <= variables


def test_every_metric_is_shown() -> None:
    """Whatever Falcon measures stands on the board."""
    shown = set(re.findall(r"falcon_\w+", board.BOARD.read_text(encoding="utf-8")))
    assert set() == (OURS | {"falcon_last_success_timestamp_seconds"}) - shown
