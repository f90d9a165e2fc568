"""The commands explain and events: on a database server, with the simulated cloud."""

import json
from collections.abc import Iterator
from contextlib import closing, nullcontext

import pytest
from click.testing import CliRunner, Result
from cloudsim.direct import DirectClouds
from cloudsim.errors import KubeError
from cloudsim.faults import Fault
from cloudsim.workload import NEVER_ENDS, Workload
from database_roles import Roles
from mysql_store import SteeredStore
from world import Falcon, cluster, spec

from falcon_rm import cli_story
from falcon_rm.cli import commands
from falcon_rm.cli_base import App
from falcon_rm.cloud import people
from falcon_rm.cloud.rows import JOB, job_of, named, pools_where
from falcon_rm.config import Settings
from falcon_rm.core.model import Job, Pool
from falcon_rm.core.words import ClusterStatus

pytestmark = pytest.mark.usefixtures("kept_log")


class Served(Falcon):
    """A world whose rows are on a server."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        super().__init__(cluster("c1", gcs_bucket="b"))

    def new_store(self) -> SteeredStore:
        """Return the store over the server."""
        return SteeredStore.under(self.roles)

    def rows(self) -> list[Job]:
        """Return every row of `job`."""
        return [job_of(row, {}) for row in named(self.store.others, JOB, "FROM job t")]

    def pool_rows(self) -> list[Pool]:
        """Return the whole ledger."""
        return list(pools_where(self.store.others, "TRUE"))

    def ask(self, *arguments: str) -> Result:
        """Run a command."""
        app = App(
            settings=Settings,
            store=lambda: nullcontext(self.store),
            database=lambda: closing(self.store.database),
            clouds=lambda: DirectClouds(self.sim),
            inspection=lambda: pytest.fail("only cluster check inspects"),
        )
        return CliRunner().invoke(commands, arguments, obj=app)

    def answer(self, *arguments: str) -> str:
        """Return what a command that succeeds says."""
        result = self.ask(*arguments)
        assert 0 == result.exit_code, result.output
        return result.stdout

    def told(self, *arguments: str) -> list[str]:
        """Return the kinds of entries that events tells."""
        entries = [json.loads(line) for line in self.answer("events", *arguments, "-o", "json").splitlines()]
        return [
            entry.get("kind") or "/".join(filter(None, (entry["to_status"], entry["to_reason"]))) for entry in entries
        ]


@pytest.fixture
def falcon(roles: Roles) -> Iterator[Served]:
    """A world on a fresh database."""
    served = Served(roles)
    yield served
    served.store.close_all()


def test_explain_a_running_job(falcon: Served) -> None:
    """Pods, nodes and logs of a running job are asked for, and nothing is written."""
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("2x2"))
    falcon.until_state("j1", "Running")
    before = (falcon.job("j1"), falcon.store.event_rows(), falcon.store.audit_rows())
    shown = json.loads(falcon.answer("explain", "j1", "-o", "json"))
    (pod,) = shown["pods"]
    assert ("Running", f"gs://b/logs/j1/{pod['name']}.log") == (pod["phase"], pod["log"])
    assert pod["node"] in falcon.names("nodes")
    assert pod["name"] in falcon.answer("explain", "j1")
    assert before == (falcon.job("j1"), falcon.store.event_rows(), falcon.store.audit_rows())


def test_explain_when_pods_cannot_be_read(falcon: Served) -> None:
    """Pods that cannot be read are said to be so, and the rest is told."""
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("2x2"))
    falcon.until_state("j1", "Running")
    falcon.sim.faults.add(Fault("kube.list.pods", error=KubeError(403, "Forbidden", "no pods for you"), times=None))
    shown = falcon.answer("explain", "j1")
    assert "Pods:       could not be read: " in shown
    assert "no pods for you" in shown


def test_explain_on_a_cluster_that_is_offline(falcon: Served) -> None:
    """Of a cluster that is offline nothing is read, not even the pods of the job that is asked about."""
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("2x2"))
    falcon.until_state("j1", "Running")
    falcon.register(cluster("c1", gcs_bucket="b", status=ClusterStatus.OFFLINE))
    falcon.sim.calls.clear()
    assert "Pods:       could not be read: cluster c1 is offline" in falcon.answer("explain", "j1").splitlines()
    assert [] == list(falcon.sim.calls)


@pytest.mark.every_server
def test_explain_an_ended_job(falcon: Served) -> None:
    """Of a job that is over the story is told, also when its row is gone; no cloud is asked."""
    falcon.submit("j1", spec("2x2"))
    falcon.settle()
    falcon.sim.calls.clear()
    told = falcon.answer("explain", "j1")
    assert ("-> Succeeded" in told, "pool created" in told, "pool deleted" in told) == (True, True, True)
    assert "Logs:       gs://b/logs/j1/*.log" in told.splitlines()
    known = json.loads(falcon.answer("explain", "j1", "-o", "json"))
    assert ("Succeeded", "c1") == (known["status"], known["cluster"])
    assert {"Succeeded", "pool deleted"} < {each.get("to_status") or each["kind"] for each in known["story"]}
    falcon.store.delete_row("j1")
    assert "the row of this job was deleted" in falcon.answer("explain", "j1")
    assert [] == list(falcon.sim.calls)


@pytest.mark.parametrize("command", ["explain", "events"])
def test_no_such_job(falcon: Served, command: str) -> None:
    """A job that never was is refused in one line."""
    result = falcon.ask(command, "nope")
    assert (1, "error: there is no job 'nope'\n") == (result.exit_code, result.stderr)


@pytest.mark.every_server
def test_events_of_a_job(falcon: Served) -> None:
    """What happened to a job and its pool is one story in its order, without that of others."""
    falcon.submit("j1", spec("2x2"))
    falcon.submit("j2", spec("4x4"))
    falcon.settle()
    expected = [
        "Pending/Waiting",
        "Pending/Provisioning",
        "pool created",
        "Pending/WaitingForNode",
        "Pending/Dispatching",
        "Running",
        "Succeeded",
        "pool deleted",
    ]
    assert sorted(expected) == sorted(falcon.told("j1"))
    assert expected[:3] == falcon.told("j1")[:3]
    first = falcon.answer("events", "j1").splitlines()[0]
    assert first.split()[1:5] == ["job/j1", "Pending", "->", "Pending/Waiting"]
    assert "pool/c1/falcon-j1" in falcon.answer("events", "j1")


@pytest.mark.every_server
def test_events_by_pool_and_cluster(falcon: Served) -> None:
    """Events are told by pool and by cluster, with what operators did."""
    people.set_cluster(falcon.store.others, "c1", {"zone": "us-central1-a"})
    falcon.submit("j1", spec("2x2"))
    falcon.submit("bad", "{}")
    falcon.settle()
    assert {"pool created", "pool deleted"} < set(falcon.told("--pool", "falcon-j1"))
    told = falcon.told("--cluster", "c1")
    assert {"cluster changed", "pool created", "Running"} < set(told)
    assert "Failed/InvalidSpec" not in told
    for name in ("nope", ""):
        result = falcon.ask("events", "--cluster", name)
        assert (1, f"error: there is no cluster {name!r}\n") == (result.exit_code, result.stderr)


def test_events_since(falcon: Served) -> None:
    """Only what is young enough is told."""
    falcon.submit("bad", "{}")
    falcon.step()
    falcon.advance(1800)
    falcon.submit("worse", "{}")
    falcon.step()
    assert ["Failed/InvalidSpec"] * 2 == falcon.told("--since", "1h")
    assert ["Failed/InvalidSpec"] == falcon.told("--since", "10m")


def test_events_follow(falcon: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job is followed to its end, every entry told once."""
    falcon.sim.default_workload = Workload(seconds=5)
    falcon.submit("j1", spec("2x2"))
    monkeypatch.setattr(cli_story, "_pause", lambda: falcon.passes(1))
    lines = falcon.answer("events", "j1", "-f").splitlines()
    assert len(lines) == len(set(lines))
    assert "-> Succeeded" in lines[-1]


def test_follow_everything(falcon: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a bound only what comes is told, until somebody interrupts."""
    falcon.submit("old", "{}")
    falcon.step()
    turns = iter((lambda: falcon.submit("new", "{}"), falcon.step, interrupt))

    def pause() -> None:
        next(turns)()

    monkeypatch.setattr(cli_story, "_pause", pause)
    result = falcon.ask("events", "-f")
    assert (130, ["job/new"]) == (result.exit_code, [line.split()[1] for line in result.stdout.splitlines()])


def interrupt() -> None:
    """Press Control-C."""
    raise KeyboardInterrupt


def test_events_of_nothing(falcon: Served) -> None:
    """Without a job and without a bound nothing is told but how to ask."""
    result = falcon.ask("events")
    assert 64 == result.exit_code
    assert "error: Missing argument 'JOB', or one of --since" in result.stderr
    assert 64 == falcon.ask("events", "--since", "soon").exit_code
