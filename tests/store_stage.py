"""
A stage for scenes of the store: a fresh database, the store under its role behind a line, and hands that set it up.

Several may play at once, each on a connection of their own.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, dropwhile
from pathlib import Path
from typing import Any

import pymysql
import pytest
from attrs import define, field, frozen
from database_roles import FALCON, Roles
from mysql_store import SteeredStore
from pymysql.connections import Connection
from pymysql.cursors import Cursor
from severed_line import CONNECT, Line
from store_scenes import SCENES, Scene, State, state

from falcon_rm.cloud.database import Address, Database
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.ports import StoreDown

PATIENCE = 20


@frozen
class Recorded:
    """A scene without a fault: the rows before and after, what opened the connection, and its own statements."""

    scene: Scene
    key: str
    before: State
    after: State
    opening: list[str]
    statements: list[str]


@frozen
class Play:
    """One scene that is set up, with a store of its own."""

    name: str
    scene: Scene
    key: str
    before: State
    store: MySqlStore

    def answer(self) -> Any:
        """Play it; return True or False, or None if the store was down."""
        try:
            found = self.scene.act(self.store, self.key)
        except StoreDown:
            return None
        return True if self.scene.reads else found


@define
class Stage:
    """A database on which scenes are played: the store's connection goes over a line that can be struck."""

    store: SteeredStore
    hands: SteeredStore
    line: Line
    falcon: Address
    _numbers: Iterator[int] = field(factory=count)

    def prepared(self, scene: Scene) -> str:
        """Set a scene up; return its key."""
        key = f"k{next(self._numbers):05}"
        scene.stage(self.hands, key)
        return key

    def state(self, key: str) -> State:
        """Return what the tables hold under a key."""
        return state(self.hands.others, key)

    def played(self, scene: Scene, key: str) -> Any:
        """Play a scene; return True or False, or None if the store was down."""
        return Play("", scene, key, {}, self.store).answer()

    def plays(self, names: Iterable[str] = SCENES, *, timeout: float = 2, address: Address | None = None) -> list[Play]:
        """Set scenes up, each with a store that is not behind the line."""
        at, session = address or self.falcon, self.store.database.session
        return [
            Play(name, SCENES[name], key := self.prepared(SCENES[name]), self.state(key), store)
            for name in names
            for store in [MySqlStore(Database(at, timeout, session), "tests")]
        ]

    def connections(self, command: str = "%") -> list[int]:
        """Return the server's numbers of the controller's connections that are at a command."""
        sql = "SELECT id FROM information_schema.processlist WHERE user = %s AND command LIKE %s"
        return [int(str(number)) for (number,) in self.hands.others.rows(sql, (self.falcon.user, command))]

    def held_up(self) -> int:
        """Return how many connections to the server wait for a lock on rows."""
        ((_, count),) = self.hands.others.rows("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
        return int(str(count))

    def struck(
        self,
        plays: Sequence[Play],
        record: Mapping[str, Recorded],
        answers: Mapping[str, Any],
        must: Callable[[Play], Any],
    ) -> int:
        """
        Hold what a fault did to scenes against what it must do, and play them again without it.

        Returns:
            How many scenes it were.
        """
        got = [(play.name, answers[play.name], self.state(play.key) == play.before) for play in plays]
        assert [(play.name, must(play), True) for play in plays] == got
        again = [(play.name, play.answer(), self.state(play.key) == record[play.name].after) for play in plays]
        assert [(play.name, True, True) for play in plays] == again
        for play in plays:
            play.store.close()
        return len(plays)

    def recorded(self, scene: Scene) -> Recorded:
        """Play a scene without a fault, on a new connection."""
        key = self.prepared(scene)
        before = self.state(key)
        self.store.close()
        self.line.strike()
        assert True is self.played(scene, key)
        own = list(dropwhile(lambda each: each == CONNECT or each.startswith("SET "), self.line.statements))
        opening = self.line.statements[: -len(own)]
        return Recorded(scene, key, before, self.state(key), opening, own)


def lost(play: Play) -> bool | None:
    """Return what a scene answers where somebody was first: a read has no answer then."""
    return None if play.scene.reads else False


def down(_: Play) -> None:
    """Return what every scene answers without a database."""


@contextmanager
def session(at: Address, *statements: str) -> Iterator["Connection[Cursor]"]:
    """Open a connection beside the store, carry statements out on it, and end it with all that it holds."""
    other = pymysql.connect(
        unix_socket=at.unix_socket, host=at.host, port=at.port, user=at.user, password=at.password, database=at.database
    )
    with other, other.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        yield other


def becomes(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never became so"
        time.sleep(0.01)


def at_once(plays: Iterable[Play]) -> dict[str, Any]:
    """Let all play at the same time; return their answers by name."""
    there = list(plays)
    with ThreadPoolExecutor(len(there)) as pool:
        return dict(zip([play.name for play in there], pool.map(Play.answer, there), strict=True))


@pytest.fixture
def record(stage: Stage) -> dict[str, Recorded]:
    """Every scene as it goes without a fault."""
    return {name: stage.recorded(scene) for name, scene in SCENES.items()}


@pytest.fixture
def stage(roles: Roles, tmp_path: Path) -> Iterator[Stage]:
    """A stage on a fresh database."""
    hands, store = SteeredStore.under(roles), SteeredStore.under(roles, timeout=2)
    line = Line(roles.address(FALCON), tmp_path)
    store.database = Database(line.through(roles.address(FALCON)), 2, store.database.session)
    yield Stage(store, hands, line, roles.address(FALCON))
    line.close()
    store.close_all()
    hands.close_all()
