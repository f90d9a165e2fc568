"""A real Prometheus scrapes `falcon-rm run` under the load of the demonstration: legal metrics, rules and board."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import demonstration
import pytest
import yaml
from alert_forms import RULES
from attrs import frozen
from board_panels import Panel, Query, panels
from private_prometheus import Server, free_address, promtool, scraping
from processes import begin_demonstration, people, site, until
from test_process_probes import get

from falcon_rm.cloud.database import Database, parse_url

pytestmark = pytest.mark.prometheus

SETTINGS = {**demonstration.SETTINGS, "FALCON_INTERVAL": "0.3s"}


@frozen
class Seen:
    """A Prometheus that saw the demonstration from its beginning to its end, the last page it scraped, and the log."""

    server: Server
    page: str
    log: list[dict[str, Any]]
    began: float
    ended: float

    def values(self, expression: str) -> list[float]:
        """Return every number that a query of the board had meanwhile."""
        asked = expression.replace("$__rate_interval", "5s").replace("$cluster", ".*")
        series: list[Any] = self.server.range(asked, start=self.began, end=self.ended, step=1)
        numbers = [float(value) for each in series for _, value in each["values"]]
        return [number for number in numbers if math.isfinite(number)]


@pytest.fixture
def seen(database: str, controller_url: str, tmp_path: Path) -> Iterator[Seen]:
    """The demonstration, carried to its end by one process that is scraped."""
    rows, address, aborts, began = (
        Database(parse_url(database)),
        free_address(),
        dict(demonstration.ABORTS),
        time.time(),
    )
    with site(tmp_path, demonstration.SCENARIO) as there, scraping(address, tmp_path, rules=RULES) as server:
        begin_demonstration(controller_url)
        process = there.begin(controller_url, "run", **SETTINGS, FALCON_METRICS_ADDRESS=address)

        def is_quiet() -> bool:
            states = demonstration.states(rows)
            for job in [job for job, state in aborts.items() if states[job] == state]:
                people(controller_url, "abort", job)
                del aborts[job]
            return demonstration.is_over(states) and not there.cloud.leftovers()

        until(is_quiet, 100)
        until(lambda: server.query("sum(falcon_queue_depth) + sum(falcon_running_jobs) == 0"), 10)
        until(lambda: server.query(f"sum(falcon_jobs_ended_total) >= {len(expected())}"), 10)
        yield Seen(server, get(address, "/metrics")[1], process.lines(), began, time.time())
    rows.close()


def test_prometheus_understands_all_of_it(seen: Seen) -> None:
    """
    Promtool finds nothing wrong with the page, every rule is judged, each panel has data where there is some.
    The log has each change of a job as a line with its ids.
    """
    linted = promtool("check", "metrics", text=seen.page)
    assert (0, "") == (linted.returncode, linted.stdout + linted.stderr)
    rules = [rule for group in seen.server.ask("rules")["groups"] for rule in group["rules"]]
    assert rules
    assert [] == [rule["name"] for rule in rules if rule["health"] != "ok" or rule["state"] == "firing"]
    assert [] == [(panel.title, query.expression) for panel, query in loud() if not seen.values(query.expression)]
    jobs = expected()
    assert len(jobs) == sum(float(each["value"][1]) for each in seen.server.query("sum(falcon_jobs_ended_total)"))
    assert {("severity", "time", "message")} == {tuple(line)[:3] for line in seen.log}
    changed = [line for line in seen.log if line["message"] == "Changed job"]
    assert set(jobs) == {line["job"] for line in changed}
    assert [] == [line for line in changed if not {"pass", "actor", "action", "durationSeconds"} <= line.keys()]


def expected() -> dict[str, str]:
    """Return the jobs of the demonstration, with how each must end."""
    found: dict[str, str] = yaml.safe_load((demonstration.SUBMISSIONS / "expected.yaml").read_text(encoding="utf-8"))
    return found


def loud() -> Iterator[tuple[Panel, Query]]:
    """Yield the queries that have data while all is well."""
    yield from ((panel, query) for panel in panels() for query in panel.queries if not query.quiet)
