"""Errors that no other fast test raises, each at the `except` that handles it (R17)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pymysql
import pytest
from attrs import define
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault
from cloudsim.workload import Workload
from world import Falcon, cluster, spec

from falcon_rm.cloud import cloudsql
from falcon_rm.cloud.database import Database, LostRace, Run, Unstorable, is_storable, parse_url
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.core.actions import Change, FreeSlot, Note
from falcon_rm.core.model import Bounds
from falcon_rm.core.words import Status
from falcon_rm.loop import Pass, one_pass, run
from falcon_rm.ports import StoreDown
from falcon_rm.stop import Stop

SILENT = SimError("UNAVAILABLE", "The service is currently unavailable.")
REFUSED = KubeError(503, "ServiceUnavailable", "the server is currently unable to handle the request")
STRUCK = (
    "gke.get_cluster", "gke.list_node_pools", "gke.list_operations", "gke.create_node_pool", "gke.delete_node_pool",
    "compute.get_reservation", "kube.list.jobs", "kube.create.jobs", "kube.patch.jobs", "kube.delete.jobs",
)  # fmt: skip


def test_every_call_of_a_life_fails_once() -> None:
    """Whatever fails, once each, in the life of a job: it succeeds, and nothing is left."""
    falcon = Falcon(cluster("c1", "v7x", default_reservation="r"))
    falcon.sim.add_reservation("p", falcon.clusters["c1"].location, "r", "tpu7x-standard-4t", 1)
    faults = [falcon.sim.faults.add(Fault(call, error=REFUSED if "kube" in call else SILENT)) for call in STRUCK]
    falcon.submit("j1", spec("2x2x1", "v7x", "reservation"))
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")
    assert [1] * len(STRUCK) == [fault.struck for fault in faults]


def test_events_that_cannot_be_read_cost_nothing_else() -> None:
    """The warnings about pods that start slowly are only a help: the job goes on without."""
    falcon = Falcon()
    fault = falcon.sim.faults.add(Fault("kube.list.events", error=REFUSED, times=None))
    falcon.sim.default_workload = Workload(seconds=20, pull_seconds=60)
    falcon.submit("j1")
    falcon.settle()
    assert ("Succeeded", True) == (falcon.state("j1"), fault.struck > 0)


def test_strange_answer_costs_one_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that nobody foresaw makes its cluster unknown, read by threads as in a pass; the other one is read."""
    falcon = Falcon(cluster("c1"), cluster("c2", location="us-east5-b"))
    real = falcon.sim.gke.list_node_pools

    def strange(path: str) -> Any:
        return None if "us-east5-b" in path else real(path)

    monkeypatch.setattr(falcon.sim.gke, "list_node_pools", strange)
    made = one_pass(store=falcon.open_store, clouds=falcon.clouds, bounds=Bounds(), pass_seconds=60)
    assert ("c2",) == made.unread


@define
class BrokenWrites:
    """A store that reads, and fails at the first write of a job."""

    store: Any
    error: Exception

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, change: Change) -> bool:
        """Fail."""
        raise self.error


def broken_pass(error: Exception) -> Pass:
    """Make a pass in which a job's first write fails."""
    falcon = Falcon()
    falcon.submit("j1")
    store = BrokenWrites(falcon.store, error)
    return one_pass(store=lambda: nullcontext(store), clouds=falcon.clouds, bounds=Bounds(), pass_seconds=60)


def test_action_that_fails_in_no_foreseen_way() -> None:
    """One action is given up, the pass comes to its end."""
    assert None in [each.result for each in broken_pass(ZeroDivisionError()).acted]


def test_database_that_goes_away_in_an_action() -> None:
    """It ends the pass."""
    with pytest.raises(StoreDown, match="away"):
        broken_pass(StoreDown("away"))


@pytest.mark.parametrize("error", [StoreDown("away"), ZeroDivisionError()])
def test_passes_go_on_after_any_error(error: Exception) -> None:
    """A pass that an error ends is followed by another one."""
    falcon, stop, told = Falcon(), Stop(), list[Pass | Exception]()

    @contextmanager
    def store() -> Iterator[Any]:
        if not told:
            raise error
        yield falcon.store

    def watch(made: Pass | Exception) -> None:
        told.append(made)
        if len(told) == 2:
            stop._asked.set()

    run(store=store, clouds=falcon.clouds, bounds=Bounds(), interval=0, pass_seconds=60, stop=stop, watch=watch)
    assert [type(error), Pass] == [type(made) for made in told]


def test_passes_go_on_when_whoever_watches_fails() -> None:
    """That a pass cannot be told to whoever watches ends nothing: the next one follows."""
    falcon, stop, told = Falcon(), Stop(), list[Pass | Exception]()

    def watch(made: Pass | Exception) -> None:
        told.append(made)
        if len(told) == 2:
            stop._asked.set()
        raise ZeroDivisionError

    run(
        store=falcon.open_store,
        clouds=falcon.clouds,
        bounds=Bounds(),
        interval=0,
        pass_seconds=60,
        stop=stop,
        watch=watch,
    )
    assert [Pass, Pass] == [type(made) for made in told]


def test_note_that_cannot_be_kept_costs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fact about one job that the database refuses is passed over: the other job goes its way in the same pass."""
    falcon = Falcon()
    falcon.submit("j1", spec(strange=1))
    falcon.submit("j2", actor="bob")
    monkeypatch.setattr(type(falcon.store), "note", lambda _, note: {}[note])
    made = falcon.step()
    assert ("job/j1", True) == (made.plan.notes[0].subject, made.progress)
    assert {"Pending/Waiting"} == {falcon.state("j1"), falcon.state("j2")}


class Gone:
    """A connection on which nothing works."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def fail(*_: Any) -> Any:
            raise pymysql.err.InterfaceError(0, "")

        return fail


@define
class Begun(Gone):
    """One on which a transaction can be begun."""

    def begin(self) -> None:
        """Begin."""

    def cursor(self) -> AbstractContextManager[None]:
        """Return a cursor that nobody uses."""
        return nullcontext()


def connected(connection: Any) -> Database:
    """Return a database that has this connection."""
    made = Database(parse_url("mysql://u@h/d"))
    made._connection, made._used = connection, float("inf")
    return made


def test_table_that_may_not_be_read() -> None:
    """A table is missing only if the server says so."""
    with pytest.raises(StoreDown):
        connected(Gone()).has("job")


def test_close_of_a_connection_that_is_gone() -> None:
    """Nothing is said: it is closed."""
    database = connected(Gone())
    database.close()
    assert database._connection is None


@pytest.mark.parametrize(
    ("raised", "expected"), [(LostRace(), False), (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"), Unstorable)]
)
def test_rollback_on_a_connection_that_is_gone(raised: Exception, expected: Any) -> None:
    """A unit that is given up ends the connection if it cannot be rolled back."""
    database = connected(Begun())

    def work(_: Run) -> None:
        raise raised

    if expected is False:
        assert database.unit(work) is False
    else:
        with pytest.raises(expected):
            database.unit(work)
    assert database._connection is None


def test_unit_that_is_interrupted() -> None:
    """Whatever else ends a unit ends its connection, and goes on its way."""
    database = connected(Begun())

    def work(_: Run) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database.unit(work)
    assert database._connection is None


def test_text_that_no_database_takes() -> None:
    """Half a surrogate cannot be stored."""
    assert not is_storable("\ud800")
    assert is_storable("ä")


@define
class Picky:
    """A database whose columns refuse everything, so many times."""

    times: int

    def unit(self, work: Callable[[Run], None]) -> bool:
        """Refuse, or take it."""
        self.times -= 1
        if self.times >= 0:
            raise Unstorable("1406: Data too long for column")
        return True


def test_value_that_a_column_refuses() -> None:
    """A Change goes without its message, another write is noted and lost, a note is left out."""
    change = Change("j1", 0, Status.PENDING, None, Status.RUNNING, None, message="long", why="w")
    assert MySqlStore(Picky(1)).commit(change)  # type: ignore[arg-type]
    assert not MySqlStore(Picky(1)).free_slot(FreeSlot("c1", "2x2", "j1"))  # type: ignore[arg-type]
    assert not MySqlStore(Picky(1)).note(Note("kind", "subject", "text"))  # type: ignore[arg-type]


def test_extra_is_missing_with_what_is_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Cloud SQL connector is not there if a package that would hold it is not."""

    def find(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(cloudsql, "find_spec", find)
    assert not cloudsql.is_there()
