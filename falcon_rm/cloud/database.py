"""
One connection to a MySQL-family server, and the only ways to use it: a read, or a transaction done whole.

1. A connection lives for one pass. Whatever goes wrong on it ends it, but for the errors in LOST and UNSTORABLE.
2. On any error the transaction is rolled back before anything else. No statement is repeated inside one that failed.
3. READ COMMITTED, strict, '+00:00', bounded waits: set by ourselves, never left to the server (mysql.md 2).
4. UPDATE counts the rows it matched, not those it changed: 0 means that somebody was first.
5. Nothing decides by the text of an error, and no text shows the password.
6. What goes over a unix socket stays on this machine: no TLS there, unless a CA is given.
"""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from attrs import define, field, frozen
from pymysql.connections import Connection
from pymysql.constants import CLIENT, ER
from pymysql.cursors import Cursor

from falcon_rm.core.text import clean
from falcon_rm.ports import StoreDown

Argument = str | int | float | None
Row = tuple[object, ...]

PORT = 3306

LOCK_WAIT_SECONDS = 5
"""Shorter than any read time-out, so that a blocked write ends on the server too."""

IDLE_SECONDS, WAIT_SECONDS = 30, 60
"""A connection that was idle for longer is replaced; the server ends it, and frees its locks, after the second."""

LOST = frozenset({
    1020,  # the row changed since the view was made (MariaDB)
    ER.DUP_ENTRY,
    ER.LOCK_WAIT_TIMEOUT,
    ER.LOCK_DEADLOCK,
    3572,  # NOWAIT on a locked row (MySQL)
})  # fmt: skip
"""Somebody was first, or is at it: the unit is given up, the next pass looks again."""

UNSTORABLE = frozenset({
    ER.DATA_TOO_LONG,
    ER.TRUNCATED_WRONG_VALUE_FOR_FIELD,
    ER.WARN_DATA_TRUNCATED,
    ER.WARN_DATA_OUT_OF_RANGE,
    3819,  # CHECK (MySQL)
    4025,  # CHECK (MariaDB)
})  # fmt: skip
"""A value that its column refuses: this row's trouble, not the database's."""


class LostRace(Exception):
    """Raised inside a unit whose guard matched no row: it is rolled back and answers False."""


class Unstorable(Exception):
    """A column refused a value; the transaction was rolled back."""


def is_storable(text: str) -> bool:
    """Return whether a text can stand in a database at all: one with half a surrogate cannot, so no row has it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@frozen
class Address:
    """Where the database is. The password is never shown."""

    user: str
    database: str
    host: str = "localhost"
    port: int = PORT
    password: str = field(default="", repr=False)
    unix_socket: str | None = None
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None
    cloud_sql: str | None = None
    """PROJECT:REGION:NAME of an instance that is logged in to as a Google account, without a password."""
    cloud_sql_ip: str = "private"


OPTIONS = ("unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "cloud_sql", "cloud_sql_ip")
CLOUD_SQL_ADDRESSES = ("private", "public", "psc")


def parse_url(url: str, password: str | None = None) -> Address:
    """
    Return the address that a URL holds.

    Args:
        url: `mysql://user:password@host:port/database`, percent-encoded where need be; what may stand after `?` is in
            OPTIONS.
        password: stands above the one in the URL.

    Raises:
        ValueError: it is no such URL; the text does not repeat it.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("not a URL") from None
    database = unquote(parts.path.lstrip("/"))
    if parts.scheme != "mysql" or not database or not parts.username:
        raise ValueError("must be mysql://user:password@host:port/database")
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    unknown = sorted(options.keys() - set(OPTIONS))
    if unknown:
        raise ValueError(f"unknown option {unknown[0]}; allowed: {', '.join(OPTIONS)}")
    if "cloud_sql" in options and not re.fullmatch(
        r"(?:[\w.-]+:)?[\w-]+:[\w-]+:[\w-]+", options["cloud_sql"], re.ASCII
    ):
        raise ValueError("cloud_sql must be PROJECT:REGION:NAME")
    if options.get("cloud_sql_ip", "private") not in CLOUD_SQL_ADDRESSES:
        raise ValueError(f"cloud_sql_ip must be {', '.join(CLOUD_SQL_ADDRESSES)}")
    return Address(
        user=unquote(parts.username),
        database=database,
        host=parts.hostname or "localhost",
        port=port or PORT,
        password=unquote(parts.password or "") if password is None else password,
        **options,
    )


@define
class Run:
    """What a unit of work may do inside its transaction. A `%` stands for itself where there are no arguments."""

    _cursor: Cursor

    def rows(self, sql: str, arguments: Sequence[Argument] = ()) -> tuple[Row, ...]:
        """Return the rows of a SELECT."""
        self._cursor.execute(sql, tuple(arguments) or None)
        return tuple(self._cursor.fetchall())

    def write(self, sql: str, arguments: Sequence[Argument] = ()) -> int:
        """Carry out a statement; return how many rows it matched."""
        return self._cursor.execute(sql, tuple(arguments) or None)

    def must(self, sql: str, arguments: Sequence[Argument] = ()) -> None:
        """Carry out a statement whose guard must match a row; else the whole unit is lost."""
        if not self.write(sql, arguments):
            raise LostRace


@define
class Database:
    """
    A database that is connected to when it is needed.

    *timeout* bounds each answer, in seconds. *session* holds further `name = value` settings, separated by commas, for
    each connection; it takes effect with the next one.
    """

    address: Address
    timeout: float = 8
    session: str = ""
    _connection: "Connection[Cursor] | None" = field(default=None, init=False)
    _used: float = field(default=0.0, init=False)

    def rows(self, sql: str, arguments: Sequence[Argument] = ()) -> tuple[Row, ...]:
        """Return the rows of a SELECT that stands alone. Raises StoreDown."""
        answer: list[tuple[Row, ...]] = []
        if not self._guarded(lambda run: answer.append(run.rows(sql, arguments)), transaction=False):
            raise StoreDown("the database was busy")
        return answer[0]

    def has(self, table: str) -> bool:
        """Return whether there is a table or view of this name. Raises StoreDown: among others, it may not be read."""
        try:
            self.rows(f"SELECT 1 FROM {table} LIMIT 0")
        except StoreDown as error:
            if isinstance(error.__cause__, pymysql.err.Error) and error.__cause__.args[:1] == (ER.NO_SUCH_TABLE,):
                return False
            raise
        return True

    def unit(self, work: Callable[[Run], None]) -> bool:
        """
        Carry out *work* as one transaction; False if it lost a race and nothing of it was kept.

        Raises:
            Unstorable: a column refused a value; nothing was kept.
            StoreDown: anything else went wrong; whether it was kept is unknown.
        """
        return self._guarded(work, transaction=True)

    def close(self) -> None:
        """End the connection; the server rolls back what is open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except pymysql.err.Error:  # closed already
                return

    def _guarded(self, work: Callable[[Run], None], *, transaction: bool) -> bool:
        if time.monotonic() - self._used > IDLE_SECONDS:
            self.close()
        try:
            connection = self._connection = self._connection or self._connect()
            self._used = time.monotonic()
            if transaction:
                connection.begin()
            with connection.cursor() as cursor:
                work(Run(cursor))
            if transaction:
                connection.commit()
        except LostRace:
            self._roll_back()
            return False
        except UnicodeEncodeError as error:
            self._roll_back()
            raise Unstorable("a text that cannot be encoded") from error
        except RuntimeError as error:  # PyMySQL needs one more package for the way this user's password goes
            self.close()
            raise StoreDown(f"{error}; falcon-rm[ed25519] brings what MariaDB's ed25519 needs") from error
        except pymysql.err.Error as error:
            return self._failed(error)
        except BaseException:
            self.close()
            raise
        return True

    def _failed(self, error: pymysql.err.Error) -> bool:
        number = error.args[0] if error.args else 0
        text = clean(": ".join(str(argument) for argument in error.args), 500)
        if number in LOST:
            self._roll_back()
            return False
        if number in UNSTORABLE:
            self._roll_back()
            raise Unstorable(text) from error
        self.close()
        raise StoreDown(text) from error

    def _roll_back(self) -> None:
        try:
            if self._connection is not None:
                self._connection.rollback()
        except pymysql.err.Error:  # then the server does it, once the connection is gone
            self.close()

    def _connect(self) -> "Connection[Cursor]":
        connection = self._opened()
        lock_wait = max(1, min(LOCK_WAIT_SECONDS, int(self.timeout) - 1))
        settings = (
            "time_zone = '+00:00'",
            f"innodb_lock_wait_timeout = {lock_wait}",
            f"lock_wait_timeout = {lock_wait}",
            f"wait_timeout = {WAIT_SECONDS}",
            "sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
            *([self.session] if self.session else []),
        )
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION " + ", ".join(settings))
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return connection

    def _opened(self) -> "Connection[Cursor]":
        """Return a new connection as it comes."""
        at = self.address
        session: dict[str, Any] = {
            "user": at.user,
            "database": at.database,
            "charset": "utf8mb4",
            "autocommit": True,
            "client_flag": CLIENT.FOUND_ROWS,
            "read_timeout": self.timeout,
            "write_timeout": self.timeout,
        }
        if at.cloud_sql is not None:
            from falcon_rm.cloud import cloudsql  # noqa: PLC0415 - an extra

            return cloudsql.connect(at.cloud_sql, at.cloud_sql_ip, session, self.timeout)
        files: dict[str, Any] = {"ssl_ca": at.ssl_ca, "ssl_cert": at.ssl_cert, "ssl_key": at.ssl_key}
        try:
            connection: Connection[Cursor] = pymysql.connect(
                **session,
                **files,
                password=at.password,
                host=at.host,
                port=at.port,
                unix_socket=at.unix_socket,
                ssl_disabled=True if at.unix_socket and not at.ssl_ca else None,
                ssl_verify_cert=True if at.ssl_ca else None,
                ssl_verify_identity=True if at.ssl_ca else None,
                connect_timeout=max(1, int(self.timeout)),
            )
        except OSError as error:  # of a server that cannot be reached the client tells by errors of its own
            told = ", ".join(f"{name} {path}" for name, path in files.items() if path)
            raise StoreDown(f"a file cannot be used, {told}: {error}") from None
        return connection
