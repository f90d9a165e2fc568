"""SIGTERM at every step of `falcon-rm run` under the load of the demonstration (proof.md R13)."""

import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import demonstration
import history_check
from processes import Process, Site, begin_demonstration, people, site, told, until

from falcon_rm.cloud.database import Database, parse_url

MOST_SECONDS = 10
HELD_SECONDS = 1.0

LOAD = {
    **demonstration.SETTINGS,
    "FALCON_INTERVAL": "0.3s",
    "FALCON_POOL_ATTEMPTS": "50",
    "FALCON_CALL_TIMEOUT": "60s",
    "FALCON_CREATE_TIMEOUT": "60s",
}
"""Calls may keep a process far longer than it may take to end."""

READS = {
    "gke.get_cluster", "gke.list_node_pools", "gke.list_operations",
    "compute.get_reservation", "compute.aggregated_reservations", "compute.get_resource_policy",
    "kube.list.jobs", "kube.list.pods", "kube.list.nodes", "kube.list.events",
    "kube.get.jobs", "kube.get.services", "kube.get.serviceaccounts",
}  # fmt: skip
WRITES = {
    "gke.create_node_pool", "gke.delete_node_pool", "compute.insert_resource_policy",
    "kube.create.namespaces", "kube.create.serviceaccounts", "kube.create.jobs", "kube.create.services",
    "kube.patch.jobs", "kube.delete.jobs",
}  # fmt: skip
"""Every call to the clouds that the load makes."""


def test_terminated_in_every_call(
    database: str, controller_url: str, tmp_path: Path, proof: Callable[[int, int], None]
) -> None:
    """
    SIGTERM at each kind of statement, and in each kind of call to the clouds while nobody answers it.

    The process ends with 0 within ten seconds. What it began goes on with the next one: every job ends as it should,
    nothing leaks and nothing was made twice. A call without an answer took effect, or did not.
    """
    rows = Database(parse_url(database))
    hangs = [
        (call, effect) for call in sorted(READS | WRITES) for effect in (False, True) if call in WRITES or not effect
    ]
    with site(tmp_path, demonstration.SCENARIO) as there:
        for call, effect in hangs:
            there.cloud.act("set_fault", call=call, when="hang", effect=effect)
        ended = list(carry(there, controller_url, rows))
        made = there.cloud.state()
    assert READS | WRITES == made["calls"].keys()
    assert [] == [process.struck() for process in ended if seconds_to_end(process) > MOST_SECONDS]
    assert [] == demonstration.wrongs(demonstration.states(rows))
    assert [] == history_check.faults(rows, made)
    rows.close()
    proof(len(hangs), sum(min(told(made, "calls", call), 1 + (call in WRITES)) for call in READS | WRITES))


def carry(there: Site, url: str, rows: Database) -> Iterator[Process]:
    """Let one process follow another until the load is carried; yield each that ended because of a signal."""
    begin_demonstration(url)
    aborts, known, leaving = dict(demonstration.ABORTS), set[str](), list[Process]()
    while True:
        strike = {"terminate": True, "known": sorted(known), "held": HELD_SECONDS}
        process = there.begin_struck(strike, url, "run", **LOAD)
        until(partial(is_done, there, rows, process), 60)
        states = demonstration.states(rows)
        for job in [job for job, state in aborts.items() if states[job] == state]:
            people(url, "abort", job)
            del aborts[job]
        leaving.append(process)
        if (call := process.struck()) is None:
            process.kill(signal.SIGTERM)
            break
        known.add(call)
    for process in leaving:
        assert 0 == process.wait(15).code
        yield process


def is_done(there: Site, rows: Database, process: Process) -> bool:
    """Return whether a process got its signal, or found every job ended and nothing of ours left in the cloud."""
    if process.struck():
        return True
    over = demonstration.is_over(demonstration.states(rows)) and not there.cloud.leftovers()
    return over and process.made_a_pass()


def seconds_to_end(process: Process) -> float:
    """Return how long a process took from its signal to its end."""
    struck, code = (process.base.with_suffix(f".{end}") for end in ("struck", "code"))
    return code.stat().st_mtime - struck.stat().st_mtime if struck.exists() else 0
