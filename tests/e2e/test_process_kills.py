"""`falcon-rm run` under the load of the demonstration, killed after what it changes outside (proof.md R9)."""

import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import demonstration
import history_check
import pytest
from processes import Process, Site, begin_demonstration, people, site, until

from falcon_rm.cloud.database import Database, parse_url

pytestmark = pytest.mark.every_server

LEAST_KILLS = 100
"""On each server."""

MOST_CHANGES = 4
"""That a process may make before it is killed, if none is of a new kind."""

LOAD = {**demonstration.SETTINGS, "FALCON_INTERVAL": "0.3s", "FALCON_POOL_ATTEMPTS": "50"}
"""As many pools as it takes: many are asked for by a process that is killed before it can."""


def test_killed_after_each_effect(
    database: str, controller_url: str, tmp_path: Path, proof: Callable[[int, int], None]
) -> None:
    """
    Killed after each kind of change, and every few changes all along: the books agree all the same (P84, P99).

    Every job ends as it should, nothing leaks, no pool and no Job was made twice, and the next plan is empty.
    """
    rows = Database(parse_url(database))
    with site(tmp_path, demonstration.SCENARIO) as there:
        kills = carry(there, controller_url, rows)
        made = there.cloud.state()
        at_rest = there.falcon(controller_url, "plan", "--detailed-exitcode", **LOAD)
    assert [] == demonstration.wrongs(demonstration.states(rows))
    assert [] == history_check.faults(rows, made)
    assert 0 == at_rest.code, at_rest.out
    rows.close()
    in_cloud = [call for call in kills if not call.startswith("COMMIT")]
    assert {"CreateNodePool", "DeleteNodePool", "POST jobs", "POST services", "DELETE jobs"} <= {*in_cloud}
    proof(max(LEAST_KILLS, kills.total()), kills.total())


def carry(there: Site, url: str, rows: Database) -> Counter[str]:
    """Let processes that are killed carry the load to its end; return after which calls how many were."""
    begin_demonstration(url)
    aborts, kills, chance = dict(demonstration.ABORTS), Counter[str](), Random(1)
    while True:
        strike = {"kill_after": chance.randint(1, MOST_CHANGES), "known": list(kills)}
        process = there.begin_struck(strike, url, "run", **LOAD)
        until(partial(is_done, there, rows, process), 60)
        states = demonstration.states(rows)
        for job in [job for job, state in aborts.items() if states[job] == state]:
            people(url, "abort", job)
            del aborts[job]
        if (call := process.struck()) is None:
            process.kill(signal.SIGTERM)
            assert 0 == process.wait(10).code
            return kills
        assert -signal.SIGKILL == process.wait(10).code
        kills[call] += 1


def is_done(there: Site, rows: Database, process: Process) -> bool:
    """Return whether a process was killed, or found every job ended and nothing of ours left in the cloud."""
    if process.struck():
        return True
    over = demonstration.is_over(demonstration.states(rows)) and not there.cloud.leftovers()
    return over and process.made_a_pass()
