"""The database server lost in each phase of a job's life: nothing is written that did not happen, and life goes on."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from uuid import uuid4

import private_mysql
import pymysql
import pytest
from attrs import define, evolve
from mysql_store import SteeredStore
from private_mysql import PrivateServer
from world import Falcon, spec

from falcon_rm.cloud.database import Address, Database, parse_url
from falcon_rm.cloud.schema import migrate, sql_files
from falcon_rm.core.actions import Change
from falcon_rm.core.model import Job
from falcon_rm.ports import StoreDown

pytestmark = pytest.mark.every_server

PHASES = ("Pending/Waiting", "Pending/Provisioning", "Pending/Dispatching", "Running")


@define
class Server:
    """A server that can be lost, and a user of it who is nobody special."""

    private: PrivateServer
    root: Address

    def restart(self) -> None:
        """Start it again on the same data."""
        self.private.process.wait(30)
        (self.private.folder / "sock").unlink(missing_ok=True)
        self.private.process = subprocess.Popen(self.private.process.args, stderr=subprocess.DEVNULL)
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


FAULTS: dict[str, Callable[[Server], Any]] = {
    "stopped": Server.stopped,
    "killed": Server.killed,
    "hanging": Server.hanging,
    "read-only": Server.read_only,
    "too many connections": Server.full,
}


@pytest.fixture(scope="module")
def start_own() -> Iterator[Callable[[str], Server]]:
    """Start a server of a kind for this file alone, once."""
    started: dict[str, Server] = {}

    def start(kind: str) -> Server:
        if kind not in started:
            private = private_mysql.start(None if kind == "given" else kind)
            started[kind] = Server(private, parse_url(private.url("mysql")))
            started[kind].ask("CREATE USER falcon@localhost IDENTIFIED BY 'secret'")
        return started[kind]

    yield start
    for server in started.values():
        server.private.stop()


@pytest.fixture
def server(start_own: Callable[[str], Server], database_server: str) -> Server:
    """A server of the test's kind."""
    return start_own(database_server)


@pytest.fixture
def falcon(server: Server) -> Iterator[Falcon]:
    """A simulated cloud, and a real database in which the user may write rows and nothing else."""
    name = f"falcon_{uuid4().hex[:12]}"
    server.ask(f"CREATE DATABASE {name}")
    made = Database(evolve(server.root, database=name))
    migrate(made)
    made.rows(sql_files()["job.sql"])
    made.close()
    server.ask(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name}.* TO falcon@localhost")
    user = evolve(server.root, user="falcon", password="secret", database=name)

    class OnServer(Falcon):
        def new_store(self) -> SteeredStore:
            store = SteeredStore(Database(user, 1), "tests", others=Database(user, 1))
            store.now = 1_800_000_000.0
            return store

    living = OnServer()
    yield living
    living.store.close_all()
    server.ask(f"DROP DATABASE {name}")


@pytest.mark.parametrize("fault", FAULTS)
def test_the_server_lost_in_each_phase(server: Server, falcon: Falcon, fault: str) -> None:
    """No status changes that did not happen, no cloud is made to do anything, and one run comes of it (P91, P92)."""

    def written() -> Any:
        return falcon.store.row("j1"), falcon.store.event_rows(), falcon.store.lease_rows()

    falcon.submit("j1", spec("4x4"))
    for phase in PHASES:
        falcon.until_state("j1", phase)
        before, effects = written(), len(falcon.sim.effects)
        falcon.store.close_all()
        with FAULTS[fault](server):
            with pytest.raises(StoreDown):
                falcon.store.commit(over(before[0]))
            with suppress(StoreDown):  # where only writes are refused, a pass may have nothing to write
                falcon.step()
            falcon.store.close_all()
        assert (before, effects) == (written(), len(falcon.sim.effects))
    falcon.until_state("j1", "Succeeded")
    falcon.until(lambda: not falcon.store.read().pools)
    assert 1 == falcon.job("j1").attempt


def over(row: Job) -> Change:
    """Return a write that would end a job."""
    return Change("j1", row.version, row.status, row.reason, "Failed", "Timeout", "never")
