"""Two `falcon-rm run` processes at once carry the whole load of the demonstration, on either server."""

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path

import demonstration
import history_check
import pytest
from processes import COMMAND, environment, people, until

from falcon_rm.cloud.database import Database, parse_url

pytestmark = pytest.mark.every_server


def test_two_controllers_carry_the_demonstration(database: str, controller_url: str, tmp_path: Path) -> None:
    """Every job ends as it should, and nothing was made twice, leased twice or told wrongly (P84)."""
    rows = Database(parse_url(database))
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    with demonstration.served() as cloud, ExitStack() as opened:
        there = environment(cloud, controller_url) | demonstration.SETTINGS
        for words in demonstration.CLUSTERS:
            people(controller_url, "cluster", "add", *words)
        people(controller_url, "submit", *(word for path in demonstration.submissions() for word in ("-f", str(path))))
        controllers = [
            opened.enter_context(
                subprocess.Popen([*COMMAND, "run"], env=there, stderr=opened.enter_context(log.open("wb")))
            )
            for log in logs
        ]
        for controller in controllers:
            opened.callback(controller.kill)
        aborts = dict(demonstration.ABORTS)

        def quiet() -> bool:
            states = demonstration.states(rows)
            for job in [job for job, state in aborts.items() if states[job] == state]:
                people(controller_url, "abort", job)
                del aborts[job]
            return demonstration.is_over(states) and not cloud.leftovers()

        until(quiet, 100)
        for controller in controllers:
            controller.terminate()

        assert [0, 0] == [controller.wait(10) for controller in controllers]
        assert [] == demonstration.wrongs(demonstration.states(rows))
        assert [] == history_check.faults(rows, cloud.state())
    rows.close()
    for log in logs:
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        assert "Changed job" in {line["message"] for line in lines}
        assert [] == [line for line in lines if line["severity"] == "ERROR"]
