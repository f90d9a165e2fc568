"""The database server lost in each phase of a job's life: nothing is written that did not happen, and life goes on."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import private_mysql
import pymysql
import pytest
from attrs import define, evolve
from database_roles import Roles
from mysql_store import SteeredStore
from private_mysql import PrivateServer
from store_stage import session
from world import Falcon, spec

from falcon_rm.cloud.database import Address, Database, parse_url
from falcon_rm.cloud.rows import JOB, job_of, named
from falcon_rm.cloud.schema import migrate, sql_files
from falcon_rm.core.actions import Change
from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Job
from falcon_rm.core.scene import phase_of
from falcon_rm.ports import StoreDown

pytestmark = pytest.mark.every_server

PHASES = (
    Phase.WAITING,
    Phase.PROVISIONING,
    Phase.WAITING_FOR_NODE,
    Phase.DISPATCHING,
    Phase.RUNNING,
    Phase.ENDING,
)
"""The phases of a job that ends by itself; another one is aborted while it provisions."""

DATABASE = "falcon"
ONE_FILE = ("--innodb-file-per-table=0", "--innodb-data-file-path=ibdata1:12M;ibdata2:4M")
"""All tables in one file of a fixed size: a disk that can be filled."""

FILLERS = (
    "INSERT INTO filler VALUES (REPEAT('x', 7000))",
    "INSERT INTO filler VALUES ('x')",
    "INSERT INTO job_events (job_id, from_status, to_status, why, attempt) VALUES ('', '', '', '', 0)",
)
"""What takes the last page, and what is left in the pages of that to which every change of a status writes."""


@define
class Server:
    """A server that can be lost, and a user of it who is nobody special."""

    private: PrivateServer
    root: Address

    def restart(self, *more: str) -> None:
        """Start it again on the same data, with further options if need be."""
        self.private.process.wait(30)
        (self.private.folder / "sock").unlink(missing_ok=True)
        command = [*self.private.process.args, *more]  # type: ignore[misc]
        self.private.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        private_mysql._wait(self.private)

    def ask(self, sql: str) -> None:
        """Carry out a statement as an administrator."""
        root = Database(self.root)
        root.rows(sql)
        root.close()

    def connect(self) -> "pymysql.Connection[Any]":
        """Connect as the user."""
        return pymysql.connect(unix_socket=self.root.unix_socket, user="falcon", password="secret")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Shut it down, as for an upgrade."""
        self.private.process.terminate()
        self.private.process.wait(30)
        yield
        self.restart()

    @contextmanager
    def killed(self) -> Iterator[None]:
        """End it without a word."""
        self.private.process.kill()
        self.private.process.wait(30)
        yield
        self.restart()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let it accept and never answer."""
        self.private.process.send_signal(signal.SIGSTOP)
        yield
        self.private.process.send_signal(signal.SIGCONT)

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Let it refuse every write, as in a fail-over."""
        self.ask("SET GLOBAL read_only = 1")
        yield
        self.ask("SET GLOBAL read_only = 0")

    @contextmanager
    def full(self) -> Iterator[None]:
        """Let it have no connection left."""
        self.ask("SET GLOBAL max_connections = 10")
        with ExitStack() as others:
            with pytest.raises(pymysql.err.OperationalError, match="1040"):
                for _ in range(20):
                    others.enter_context(self.connect())
            yield
        self.ask("SET GLOBAL max_connections = 200")

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Let it have no room for another row, until a transaction that took it all is rolled back."""
        with session(evolve(self.root, database=DATABASE), "BEGIN") as greedy, greedy.cursor() as cursor:
            for statement in FILLERS:
                with pytest.raises(pymysql.err.OperationalError, match="1114"):
                    while True:
                        cursor.execute(statement)
            yield
            greedy.rollback()


FULL_DISK = "full disk"
FAULTS: dict[str, Callable[[Server], Any]] = {
    "stopped": Server.stopped,
    "killed": Server.killed,
    "hanging": Server.hanging,
    "read-only": Server.read_only,
    "too many connections": Server.full,
    FULL_DISK: Server.full_disk,
}


def started(kind: str, *more: str) -> Server:
    """Start a server of a kind."""
    private = private_mysql.start(None if kind == "given" else kind, *more)
    return Server(private, parse_url(private.url("mysql")))


@pytest.fixture(scope="module")
def start_own() -> Iterator[Callable[[str], Server]]:
    """Start a server of a kind for this file alone, once."""
    servers: dict[str, Server] = {}

    def start(kind: str) -> Server:
        if kind not in servers:
            servers[kind] = started(kind, *ONE_FILE)
            servers[kind].ask("CREATE USER falcon@localhost IDENTIFIED BY 'secret'")
        return servers[kind]

    yield start
    for server in servers.values():
        server.private.stop()


@pytest.fixture
def server(start_own: Callable[[str], Server], database_server: str) -> Server:
    """A server of the test's kind."""
    return start_own(database_server)


@contextmanager
def falcon_on(server: Server) -> Iterator[Falcon]:
    """Give a simulated cloud, and a real database in which everybody has nothing but a role."""
    server.ask(f"CREATE DATABASE {DATABASE}")
    roles = Roles(Database(evolve(server.root, database=DATABASE)))
    migrate(roles.administrator)
    roles.administrator.rows("CREATE TABLE filler (data TEXT)")
    roles.administrator.rows(sql_files()["job.sql"])
    roles.make()
    roles.administrator.close()  # the server will be lost under it

    class OnServer(Falcon):
        def new_store(self) -> SteeredStore:
            return SteeredStore.under(roles, timeout=1)

    living = OnServer()
    yield living
    living.store.close_all()
    roles.drop()
    server.ask(f"DROP DATABASE {DATABASE}")


@pytest.fixture
def falcon(server: Server) -> Iterator[Falcon]:
    """Falcon on the server of this file."""
    with falcon_on(server) as living:
        yield living


@pytest.mark.parametrize("fault", FAULTS)
def test_the_server_lost_in_each_phase(server: Server, falcon: Falcon, fault: str) -> None:
    """No status changes that did not happen, no cloud is made to do anything, and one run comes of it (P91, P92)."""

    def written() -> Any:
        rows, events = all_jobs(falcon), falcon.store.event_rows()
        if fault == FULL_DISK:  # rows that are there have room for a message, an intent, the end of a lease
            return [(row.status, row.reason, row.outcome) for row in rows], events
        return rows, events, falcon.store.lease_rows(), len(falcon.sim.effects)

    def lost() -> None:
        before, row = written(), all_jobs(falcon)[-1]
        falcon.store.close_all()
        with FAULTS[fault](server):
            with pytest.raises(StoreDown):
                falcon.store.commit(over(row))
            with suppress(StoreDown):  # where only writes are refused, a pass may have nothing to write
                falcon.step()
            falcon.store.close_all()
        assert before == written()

    falcon.submit("j1", spec("4x4"))
    for phase in PHASES:
        falcon.until(lambda phase=phase: phase_of(falcon.job("j1")) is phase)  # type: ignore[misc]
        lost()
    falcon.until_state("j1", "Succeeded")
    falcon.submit("j2", spec("4x4"))
    falcon.until(lambda: phase_of(falcon.job("j2")) is Phase.PROVISIONING)
    falcon.store.set_status("j2", "Aborting")
    lost()
    falcon.until_state("j2", "Aborted")
    falcon.until(lambda: not falcon.store.read().pools)
    assert [1, 1] == [job.attempt for job in all_jobs(falcon)]


def over(row: Job) -> Change:
    """Return a write that would end a job."""
    return Change(row.id, row.version, row.status, row.reason, "Failed", "Timeout", "never")


def all_jobs(falcon: Falcon) -> list[Job]:
    """Return every row of `job`, the newest last."""
    return [job_of(row, {}) for row in named(falcon.store.others, JOB, "FROM job t ORDER BY t.id")]


def fill(store: SteeredStore) -> None:
    """Leave no room on the server's disk."""
    store.others.rows("ALTER TABLE filler MODIFY data LONGTEXT")
    for size in (1 << 16, 1 << 12):
        with pytest.raises(StoreDown, match="1114"):
            while True:
                store.others.rows("INSERT INTO filler VALUES (REPEAT('x', %s))", (size,))


def test_a_disk_that_is_full(database_server: str) -> None:
    """What finds no room is not written at all, in whatever row, and goes on once there is some (P92)."""
    server = started(database_server, *ONE_FILE)
    try:
        with falcon_on(server) as falcon:
            for number in range(60):
                falcon.submit(f"j{number:02}", spec("4x4", max_retries=number))
            fill(falcon.store)
            told = {row.id: evolve(over(row), message=f"{row.id} {'x' * 4000}") for row in all_jobs(falcon)}
            with pytest.raises(StoreDown, match="1114"):
                for change in told.values():
                    assert falcon.store.commit(change)
            failed = [row for row in all_jobs(falcon) if row.status == "Failed"]
            events = [event.job_id for event in falcon.store.event_rows()]
            assert ([row.id for row in failed], [1] * len(failed)) == (events, [row.version for row in failed])
            assert [told[row.id].message for row in failed] == [row.message for row in failed]
            falcon.store.close_all()
            server.private.process.terminate()
            server.restart(f"{ONE_FILE[-1]}:autoextend")
            for row in all_jobs(falcon)[len(failed) :]:
                assert (row.id, True) == (row.id, falcon.store.commit(told[row.id]))
            assert [1] * len(told) == [row.version for row in all_jobs(falcon)]
    finally:
        server.private.stop()
