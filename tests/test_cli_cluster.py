"""`cluster drain`, `cluster remove` and `cluster abandon` on a real database."""

import json
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result
from database_roles import url_for

from falcon_rm import cli_cluster
from falcon_rm.cli import build, commands
from falcon_rm.cloud import people
from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.core.actions import NOW, Change, EnsureSlot, GiveUp, RecordHealth, RetirePool
from falcon_rm.core.model import Pool
from falcon_rm.core.words import Mode, PoolState

Cli = Callable[..., Result]

JOB = {"id": "j1", "actor": "ann", "spec": {"image": "i", "device_type": "v7x", "device_topo": "2x2x1"}}
ADD = ("cluster", "add", "tpu-1", "--project", "my-project", "--location", "us-central1", "--tpu-type", "v7x")
WORDS = "cluster tpu-1 was given up for good by an operator"


class Site:
    """A registered cluster; `run` lets a job run there on a pool of its own."""

    def __init__(self, url: str, administrators_url: str) -> None:
        self.url = url
        self.administrator = Database(parse_url(administrators_url))
        self.store = MySqlStore.at(url)
        assert 0 == self.falcon(*ADD).exit_code
        (self.cluster,) = self.store.read().clusters

    def falcon(self, *arguments: str, text: str | None = None) -> Result:
        """Run a command."""
        app = build({"FALCON_DATABASE_URL": url_for(self.url, arguments), "FALCON_LANG": "en"})
        return CliRunner().invoke(commands, arguments, obj=app, input=text)

    def by_hand(self, sql: str) -> None:
        """Carry out a statement as an administrator."""
        self.administrator.rows(sql)
        self.administrator.close()

    def change(self, before: str, after: str, version: int, **fields: object) -> None:
        """Write j1 from Status/Reason to Status/Reason."""
        (was, _, why), (then, _, reason) = before.partition("/"), after.partition("/")
        place = (self.cluster.id, "2x2x1")
        assert self.store.commit(Change("j1", version, was, why or None, then, reason or None, "w", *place, **fields))  # type: ignore[arg-type]

    def run(self) -> None:
        """Submit j1 and bring it to Running, with slot, pool and lease as passes would."""
        self.falcon("submit", "-f", "-", text=json.dumps(JOB))
        self.store.ensure_slot(EnsureSlot(self.cluster.id, "2x2x1"))
        pool = Pool(
            self.cluster.id, "falcon-j1", "j1", 1, "v7x", "2x2x1", "tpu7x-standard-4t", 1, 4, Mode.ON_DEMAND
        )  # fmt: skip
        columns = {"cluster_id": self.cluster.id, "topology": "2x2x1", "attempt": 1, "node_pool_name": pool.name}
        self.change("Pending", "Pending/Provisioning", 0, takes_slot="ann", makes=pool, attempt=1, columns=columns)
        self.change("Pending/Provisioning", "Running", 1, frees_slot=True, columns={"started_at": NOW})

    def end(self) -> None:
        """Let j1 end, and its pool go."""
        self.change("Running", "Succeeded", 2, gives_up=GiveUp("falcon-j1", keep=False, ended="released"))
        deleted = RetirePool(self.cluster.id, "falcon-j1", PoolState.DELETING, PoolState.DELETED, "gone")
        assert self.store.retire_pool(deleted)

    def row(self) -> tuple[str, str | None, str | None]:
        """Return j1's status, reason and message."""
        ((status, reason, message),) = self.store.database.rows("SELECT status, reason, message FROM job")
        return str(status), reason and str(reason), message and str(message)  # type: ignore[return-value]

    def status(self) -> str:
        """Return the cluster's status."""
        return self.store.read().clusters[0].status

    def audit(self, kind: str) -> list[str]:
        """Return the subjects of audit rows of a kind."""
        rows = self.store.database.rows("SELECT subject FROM audit_events WHERE kind = %s", (kind,))
        return [str(subject) for (subject,) in rows]


@pytest.fixture
def site(controller_url: str, database: str) -> Iterator[Site]:
    """A cluster in a new database."""
    made = Site(controller_url, database)
    yield made
    made.store.close()


def test_drain_waits(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drain says what is there, waits until it has gone, and leaves the cluster in maintenance."""
    site.run()
    monkeypatch.setattr(cli_cluster, "_pause", site.end)
    result = site.falcon("cluster", "drain", "tpu-1")
    assert 0 == result.exit_code, result.output
    assert [
        "cluster/tpu-1 takes no new jobs",
        "cluster/tpu-1 still has job/j1 (Running), pool/falcon-j1 (Active)",
        "cluster/tpu-1 drained",
    ] == result.stdout.splitlines()
    assert ("maintenance", ["cluster/tpu-1"]) == (site.status(), site.audit("cluster drained"))


def test_drain_has_a_bound(site: Site) -> None:
    """When the time is over drain names what is still there, and ends with 1."""
    site.run()
    result = site.falcon("cluster", "drain", "tpu-1", "--timeout", "0s")
    assert (1, "error: cluster 'tpu-1' still has job/j1 (Running), pool/falcon-j1 (Active)\n") == (
        result.exit_code,
        result.stderr,
    )


def test_drain_of_an_empty_cluster(site: Site) -> None:
    """Where nothing runs drain is done at once, also when jobs wait."""
    site.falcon("submit", "-f", "-", text=json.dumps(JOB))
    assert "cluster/tpu-1 drained" == site.falcon("cluster", "drain", "tpu-1").stdout.splitlines()[-1]


def test_remove(site: Site) -> None:
    """A drained cluster is removed with its queues; the audit and the history of its pools stay."""
    site.run()
    site.end()
    site.falcon("cluster", "drain", "tpu-1")
    assert "cluster/tpu-1 removed\n" == site.falcon("cluster", "remove", "tpu-1").stdout
    assert ((), ["cluster/tpu-1"]) == (site.store.read().clusters, site.audit("cluster removed"))
    assert () == site.store.database.rows("SELECT * FROM queue_slots")
    assert ((1,), (1,)) == site.store.database.rows(
        "SELECT COUNT(*) FROM node_pools UNION ALL SELECT COUNT(*) FROM pool_leases"
    )


def test_what_a_removed_cluster_was_called(site: Site) -> None:
    """Chip-hours, the story and a job's attempts name a cluster that was removed; a name given again is its own."""
    site.run()
    site.end()
    site.falcon("cluster", "drain", "tpu-1")
    site.falcon("cluster", "remove", "tpu-1")
    hour_ago = "TIMESTAMPADD(HOUR, -1, deleted_at)"
    site.store.database.rows(f"UPDATE node_pools SET requested_at = {hour_ago}, seen_at = {hour_ago}")
    looks = (("usage", "--by", "cluster"), ("events", "--pool", "falcon-j1"), ("explain", "j1"))
    assert [True] * 3 == ["tpu-1" in site.falcon(*words).stdout for words in looks]
    (cluster_id,) = {str(row[0]) for row in site.store.database.rows("SELECT cluster_id FROM node_pools")}
    assert [False] * 3 == [cluster_id in site.falcon(*words).stdout for words in looks]
    site.falcon(*ADD)
    assert "cluster added" in site.falcon("events", "--cluster", "tpu-1").stdout


def test_remove_is_refused_while_active(site: Site) -> None:
    """A cluster that takes jobs is not removed: the command to run first is named."""
    result = site.falcon("cluster", "remove", "tpu-1")
    assert (1, "error: cluster 'tpu-1' is active; first: falcon-rm cluster drain tpu-1\n") == (
        result.exit_code,
        result.stderr,
    )
    assert "active" == site.status()


def test_remove_is_refused_while_anything_lives(site: Site) -> None:
    """Whatever lives there is named, and nothing is removed; a job that came since it was looked at counts too."""
    site.run()
    site.falcon("cluster", "set", "tpu-1", "--status", "offline")
    result = site.falcon("cluster", "remove", "tpu-1")
    assert (1, True) == (result.exit_code, "job/j1 (Running), pool/falcon-j1 (Active)" in result.stderr)
    assert 1 == len(site.store.read().clusters)


STRAY = (
    "INSERT INTO workloads (cluster_id, name, job_id, attempt, uid, stop_at) VALUES (%s, 'falcon-j1', 'j1', 1, %s, %s)"
)


def left_behind(site: Site, uid: str | None = "u1", stop_at: str | None = None) -> None:
    """Leave a Kubernetes Job of j1, a job without a pool."""
    site.store.database.unit(lambda run: run.must(STRAY, (site.cluster.id, uid, stop_at)))
    site.falcon("cluster", "set", "tpu-1", "--status", "offline")


@pytest.mark.every_server
@pytest.mark.parametrize("command", [("remove", "tpu-1"), ("set", "tpu-1", "--gke-name", "other")])
def test_a_job_whose_row_is_gone_counts(site: Site, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """A CPU job whose row upstream deleted may run on, so its cluster stays, also if it is seen only at the end."""
    left_behind(site)
    result = site.falcon("cluster", *command)
    assert (1, True) == (result.exit_code, "still has work/falcon-j1 (its job is gone);" in result.stderr)
    monkeypatch.setattr(people, "read_strays", lambda *_: ())
    result = site.falcon("cluster", *command)
    assert (1, True) == (result.exit_code, result.stderr.endswith(": drain it first\n"))
    assert [site.cluster.path] == [cluster.path for cluster in site.store.read().clusters]


@pytest.mark.every_server
@pytest.mark.parametrize("why", ["never made", "asked to go", "ended"])
def test_a_job_that_is_no_more_does_not_count(site: Site, why: str) -> None:
    """A cluster is not kept for ever by what is over, or was never made."""
    if why == "ended":
        site.falcon("submit", "-f", "-", text=json.dumps(JOB))
        site.change("Pending", "Failed/JobFailed", 0, columns={"attempt": 1})
        site.by_hand("DELETE FROM job")
    left_behind(site, None if why == "never made" else "u1", "2026-01-01" if why == "asked to go" else None)
    assert "cluster/tpu-1 removed\n" == site.falcon("cluster", "remove", "tpu-1").stdout


@pytest.mark.every_server
def test_abandon_writes_off_a_job_whose_row_is_gone(site: Site) -> None:
    """It is named with the rest, and keeps the cluster no more."""
    left_behind(site)
    result = site.falcon("cluster", "abandon", "tpu-1", text="y\n")
    assert "cluster/tpu-1 goes offline; written off: work/falcon-j1 (its job is gone)" == result.stdout.splitlines()[0]
    assert (0, 0) == (result.exit_code, site.falcon("cluster", "remove", "tpu-1").exit_code)


def test_abandon_a_cluster_whose_row_is_gone(site: Site) -> None:
    """By its id: what somebody stranded there with SQL ends like on any other (P77)."""
    site.run()
    site.falcon("abort", "j1")
    site.store.database.unit(lambda run: run.must("DELETE FROM clusters"))
    assert 0 == site.falcon("cluster", "abandon", site.cluster.id, "--yes").exit_code
    assert ("Aborted", ()) == (site.row()[0], site.store.read().pools)
    assert [f"cluster/{site.cluster.id}"] == site.audit("cluster abandoned")
    assert 1 == site.falcon("cluster", "abandon", site.cluster.id, "--yes").exit_code


@pytest.mark.every_server
@pytest.mark.parametrize("option", ["--project=other-project", "--location=us-east1", "--gke-name=other"])
def test_move_is_refused_while_anything_lives(site: Site, option: str) -> None:
    """The row names the same GKE cluster while a job runs there, else it would run again elsewhere (design.md 3)."""
    site.run()
    result = site.falcon("cluster", "set", "tpu-1", option, "--status", "offline")
    assert (1, True) == (result.exit_code, "job/j1 (Running), pool/falcon-j1 (Active)" in result.stderr)
    assert (site.cluster,) == site.store.read().clusters


def test_move_of_an_empty_cluster(site: Site) -> None:
    """Where nothing lives a wrong location is set right; the zone that was found in the old one is forgotten."""
    site.store.record_health(RecordHealth(site.cluster.id, None, "us-central1-a"))
    assert 0 == site.falcon("cluster", "set", "tpu-1", "--location", "us-east1").exit_code
    rows = site.store.read()
    assert ("us-east1", {}) == (rows.clusters[0].location, dict(rows.health))
    assert ["cluster/tpu-1"] == site.audit("cluster changed")


def test_its_own_name_is_no_move(site: Site) -> None:
    """A GKE name that says what was meant already may be set while a job runs there."""
    site.run()
    assert 0 == site.falcon("cluster", "set", "tpu-1", "--gke-name", "tpu-1", "--zone", "us-central1-a").exit_code
    assert site.cluster.path == site.store.read().clusters[0].path


@pytest.mark.every_server
@pytest.mark.parametrize(
    ("command", "more", "text"),
    [
        ("remove", (), "cluster 'tpu-1' is active, or something lives there: drain it first"),
        ("set", ("--gke-name", "other"), "something lives on cluster 'tpu-1': drain it first"),
    ],
    ids=["remove", "set"],
)
@pytest.mark.parametrize("lives", ["job", "pool"])
def test_looks_again(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    lives: str,
    command: str,
    more: tuple[str, ...],
    text: str,
) -> None:
    """What a pass writes after the look keeps the row all the same, from its end and from a move."""
    from falcon_rm import clearing

    site.run()
    site.falcon("cluster", "set", "tpu-1", "--status", "offline")
    rest = "DELETE FROM node_pools" if lives == "job" else "DELETE FROM job"
    site.by_hand(rest)
    monkeypatch.setattr(clearing, "living", lambda *_: clearing.Living((), ()))
    assert f"error: {text}\n" == site.falcon("cluster", command, "tpu-1", *more).stderr
    assert [site.cluster.path] == [cluster.path for cluster in site.store.read().clusters]


def test_abandon_asks(site: Site) -> None:
    """Abandon says what it will write off; without a yes nothing is written."""
    site.run()
    for answer, code, end in (("n\n", 1, "error: nothing was done"), ("", 130, "error: interrupted")):
        result = site.falcon("cluster", "abandon", "tpu-1", text=answer)
        assert (code, end) == (result.exit_code, result.stderr.splitlines()[-1])
        expected = "cluster/tpu-1 goes offline; written off: job/j1 (Running), pool/falcon-j1 (Active)"
        assert expected == result.stdout.splitlines()[0]
    assert ("active", "Running") == (site.status(), site.row()[0])


@pytest.mark.parametrize(("arguments", "text"), [(("--yes",), None), ((), "y\n")])
def test_abandon(site: Site, arguments: tuple[str, ...], text: str | None) -> None:
    """After a yes the job has failed, its lease and pool are closed, the cluster is offline, the audit has it all."""
    site.run()
    result = site.falcon("cluster", "abandon", "tpu-1", *arguments, text=text)
    assert (0, "cluster/tpu-1 abandoned") == (result.exit_code, result.stdout.splitlines()[-1])
    assert (("Failed", "JobFailed", WORDS), "offline") == (site.row(), site.status())
    rows = site.store.database.rows
    assert (("Deleted", None, 1),) == rows("SELECT state, lease, deleted_at IS NOT NULL FROM node_pools")
    assert (("abandoned", 1),) == rows("SELECT ended, until_at IS NOT NULL FROM pool_leases")
    assert (("Failed", "JobFailed", "cluster tpu-1 was abandoned"),) == rows(
        "SELECT to_status, to_reason, why FROM job_events ORDER BY id DESC LIMIT 1"
    )
    subject = f"pool/{site.cluster.id}/falcon-j1"
    assert (["cluster/tpu-1"], [subject]) == (site.audit("cluster abandoned"), site.audit("pool deleted"))
    assert 0 == site.falcon("cluster", "remove", "tpu-1").exit_code


def test_abandon_what_was_being_aborted(site: Site) -> None:
    """A job that upstream aborts is Aborted."""
    site.run()
    site.falcon("abort", "j1")
    assert 0 == site.falcon("cluster", "abandon", "tpu-1", "--yes").exit_code
    assert ("Aborted", None, WORDS) == site.row()


@pytest.mark.parametrize("command", ["drain", "remove", "abandon"])
def test_no_such_cluster(site: Site, command: str) -> None:
    """A name that is not registered is one line and exit code 1."""
    result = site.falcon("cluster", command, "nope")
    assert (1, "", "error: there is no cluster 'nope'\n") == (result.exit_code, result.stdout, result.stderr)


def test_wrong_time(site: Site) -> None:
    """A bound that is no time is wrong usage."""
    result = site.falcon("cluster", "drain", "tpu-1", "--timeout", "soon")
    assert (64, "active") == (result.exit_code, site.status())
    assert "'soon'; allowed: written like 90, 90s, 15m, 6h or 7d" in result.stderr
