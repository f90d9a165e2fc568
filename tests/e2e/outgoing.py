"""
Every call that leaves a process of Falcon, by name: statements, gRPC, HTTP; and what strikes the process at one.

1. The seam lies under the client libraries' own code: what they ask by themselves is met too.
2. A name says what is asked, not of which object: `COMMIT`, `UPDATE job`, `CreateNodePool`, `POST jobs`.
3. A strike is told in a line of a file before it falls.
"""

import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import grpc
from attrs import define, field
from grpc._channel import _UnaryUnaryMultiCallable
from pymysql.connections import Connection
from urllib3.connectionpool import HTTPConnectionPool

STATEMENT = re.compile(r"\s*(\w+)(?:.*?\b(?:FROM|INTO|UPDATE)\s+([\w.]+)|\s+(\w+))?", re.DOTALL)
KINDS = {
    "token", "jobs", "pods", "services", "nodes", "events", "namespaces", "serviceaccounts", "reservations",
    "resourcePolicies",
}  # fmt: skip
CHANGES = re.compile(r"COMMIT .*|CreateNodePool|DeleteNodePool|(?:POST|DELETE) .*")
"""Calls that change something outside."""


@define
class Strike:
    """What happens to this process, once. A name in *known* is one whose time has been."""

    told: Path
    known: Collection[str] = ()
    kill_after: int | None = None  # SIGKILL, after so many changes outside or one that is not known
    terminate: bool = False  # SIGTERM, at a call that is not known
    held: float | None = None  # SIGTERM, in a call that is not answered for so many seconds
    block: str | None = None  # a call of this name never comes back
    mute: str | None = None  # the address of a host of this name is never told
    _changes: int = 0
    _last: str = ""
    _fell: bool = False
    _lock: Any = field(factory=threading.Lock)

    def call(self, name: str, real: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make a call."""
        if name == "COMMIT":
            name = f"COMMIT {self._last}"
        self._last = name
        if self.terminate and name not in self.known:
            self._fall(name, signal.SIGTERM)
        if name in (self.block, f"look up {self.mute}"):
            self._fall(name, None)
            threading.Event().wait()
        with self._watched(name):
            answer = real(*arguments, **options)
        if self.kill_after and CHANGES.fullmatch(name) and went_well(answer):
            self._changes += 1
            if self._changes >= self.kill_after or name not in self.known:
                self._fall(name, signal.SIGKILL)
        return answer

    @contextmanager
    def _watched(self, name: str) -> Iterator[None]:
        """Let SIGTERM fall if a call takes too long."""
        if self.held is None:
            yield
            return
        late = threading.Timer(self.held, self._fall, (name, signal.SIGTERM))
        late.daemon = True
        late.start()
        try:
            yield
        finally:
            late.cancel()

    def _fall(self, name: str, number: signal.Signals | None) -> None:
        with self._lock:
            if self._fell:
                return
            self._fell = True
            self.told.write_text(name, encoding="utf-8")
            if number:
                os.kill(os.getpid(), number)


def went_well(answer: Any) -> bool:
    """Return whether a call was answered without an error."""
    if isinstance(answer, tuple):
        return answer[0].code is grpc.StatusCode.OK
    return getattr(answer, "status", HTTPStatus.OK) < HTTPStatus.BAD_REQUEST


def meet(strike: Strike) -> None:
    """Lead every call of this process through a strike."""
    seams: tuple[tuple[Any, str, Callable[..., str]], ...] = (
        (socket, "getaddrinfo", lambda host, *_, **__: f"look up {host}"),
        (Connection, "connect", lambda *_, **__: "connect"),
        (Connection, "begin", lambda *_: "BEGIN"),
        (Connection, "commit", lambda *_: "COMMIT"),
        (Connection, "rollback", lambda *_: "ROLLBACK"),
        (Connection, "query", lambda _, sql, *__: statement(sql)),
        (_UnaryUnaryMultiCallable, "_blocking", lambda call, *_, **__: method(call)),
        (HTTPConnectionPool, "_make_request", lambda _, __, verb, url, *___, **____: request(verb, url)),
    )
    for owner, attribute, name_of in seams:
        setattr(owner, attribute, _led(strike, getattr(owner, attribute), name_of))


def _led(strike: Strike, real: Callable[..., Any], name_of: Callable[..., str]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return strike.call(name_of(*arguments, **options), real, *arguments, **options)

    return call


def statement(sql: str | bytes) -> str:
    """Return the name of a statement."""
    found = STATEMENT.match(sql.decode() if isinstance(sql, bytes) else sql)
    return " ".join(part for part in found.groups() if part) if found else "nothing"


def method(call: Any) -> str:
    """Return the name of a gRPC method."""
    return str(call._method.decode().rpartition("/")[2])


def request(verb: str, url: str) -> str:
    """Return the name of an HTTP request: its verb and the kind of object."""
    parts = [part for part in url.partition("?")[0].split("/") if part in KINDS]
    return f"{verb} {parts[-1] if parts else 'else'}"
