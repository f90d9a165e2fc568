"""
The Grafana board as the JSON that Grafana imports.

1. board_panels.py is all there is to say; where a panel stands comes from its order and width.
2. Every query goes to the board's own data source variable.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from board_panels import ROWS, Panel

BOARD = Path(__file__).resolve().parent / "deploy" / "grafana" / "falcon.json"
COLUMNS, HEIGHT, LOW = 24, 8, 4
SOURCE = {"type": "prometheus", "uid": "${datasource}"}

Json = dict[str, Any]


def written() -> str:
    """Return the file that Grafana imports."""
    return json.dumps(board(), indent=1, ensure_ascii=False) + "\n"


def board() -> Json:
    """Return the board."""
    return {
        "title": "Falcon",
        "uid": "falcon-rm",
        "tags": ["falcon"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "panels": list(_placed()),
    }


def _variables() -> list[Json]:
    clusters = "label_values(falcon_cluster_up, cluster)"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1},
        {
            "name": "cluster",
            "label": "Cluster",
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": clusters, "refId": "clusters"},
            "definition": clusters,
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        },
    ]


def _placed() -> Iterator[Json]:
    """Yield rows and panels, left to right and downwards."""
    number = top = 0
    for title, row in ROWS:
        number += 1
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": _at(0, top)}
        left, top = 0, top + 1
        height = LOW if row[0].kind == "stat" else HEIGHT
        for panel in row:
            if left + panel.width > COLUMNS:
                left, top = 0, top + height
            number += 1
            yield _panel(number, panel, _at(left, top, panel.width, height))
            left += panel.width
        top += height


def _at(left: int, top: int, width: int = COLUMNS, height: int = 1) -> Json:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(number: int, panel: Panel, place: Json) -> Json:
    stat = panel.kind == "stat"
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": SOURCE,
            "expr": query.expression,
            "legendFormat": query.legend or panel.title,
            "instant": stat,
            "range": not stat,
        }
        for index, query in enumerate(panel.queries)
    ]
    steps: list[Json] = [{"color": "green", "value": None}]
    if panel.limit is not None:
        steps.append({"color": "red", "value": panel.limit})
    fields: Json = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if not stat:
        fields["min"] = 0
        fields["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 40 if panel.stacked else 0,
            "showPoints": "never",
            "spanNulls": False,  # what was not measured is a gap
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        }
    graph: Json = {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    figure: Json = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "none"}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": fields, "overrides": []},
        "options": figure if stat else graph,
    }
