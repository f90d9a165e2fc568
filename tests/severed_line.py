"""
A line to a database server that a test cuts, delays or garbles at one statement.

1. It is a proxy that reads MySQL's protocol: what goes wrong meets the real client library, and the server does what a
   server does when that happens to it.
2. Statements are numbered from the last `strike`; the arrival of a connection counts as one. The rest only passes.
3. The server's offer of TLS is withheld: what is encrypted could not be read here.
"""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path

from attrs import define, evolve, field

from falcon_rm.cloud.database import Address

CONNECT = "connect"
QUERY = 3
TLS_OFFERED = 0x0800


class Cut(Enum):
    """When the line breaks."""

    BEFORE = "before"  # the server never sees the statement
    AFTER = "after"  # the server has carried it out, and its answer is lost
    LATE = "late"  # the client gives up; the statement reaches the server at `release`, long after


Fault = Cut | str | Callable[[int], None]
"""A cut; another statement that is sent instead; or what is done first, to the connection of this number."""


@define
class Line:
    """The line to a server; `through` says where a client finds it."""

    server: Address
    folder: Path
    statements: list[str] = field(factory=list)
    _choose: Callable[[int, str], Fault | None] = field(default=lambda number, statement: None)
    _held: list[tuple[socket.socket, bytes]] = field(factory=list)
    _listener: socket.socket = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Listen as the server does: on a unix socket, or on a port."""
        if self.server.unix_socket:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(self.folder / "line"))
            self._listener.listen()
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def through(self, address: Address) -> Address:
        """Return a user's address at this end of the line."""
        if self.server.unix_socket:
            return evolve(address, unix_socket=str(self.folder / "line"))
        return evolve(address, host="127.0.0.1", port=self._listener.getsockname()[1])

    def strike(self, at: int | None = None, fault: Fault | None = None) -> None:
        """Count statements from now on, and let a fault strike one of them."""
        self.strike_where(lambda number, _: fault if number == at else None)

    def strike_where(self, choose: Callable[[int, str], Fault | None]) -> None:
        """Count statements from now on, and let *choose* say which fault strikes which statement."""
        self.statements, self._choose = [], choose

    def release(self) -> None:
        """Let what was held reach the server, and hang up as its client did."""
        for server, packet in self._held:
            server.sendall(packet)
            with suppress(OSError):  # it has answered, and was hung up on
                server.shutdown(socket.SHUT_WR)
        self._held = []

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _met(self, statement: str) -> Fault | None:
        """Number a statement; return the fault that strikes it."""
        self.statements.append(statement)
        return self._choose(len(self.statements) - 1, statement)

    def _carry(self, client: socket.socket) -> None:
        """Carry one connection until either side is gone."""
        server = socket.socket(socket.AF_UNIX if self.server.unix_socket else socket.AF_INET)
        silent = threading.Event()
        with suppress(OSError):
            if self._met(CONNECT) is None:
                server.connect(self.server.unix_socket or (self.server.host, self.server.port))
                number, greeting = _without_tls(_packet(server))
                client.sendall(greeting)
                threading.Thread(target=_answer, args=(server, client, silent), daemon=True).start()
                while (packet := _packet(client)) and (packet := self._passed(packet, number, server, silent)):
                    server.sendall(packet)
        if not any(held is server for held, _ in self._held):
            _hang_up(server)
        if not silent.is_set():
            _hang_up(client)

    def _passed(self, packet: bytes, number: int, server: socket.socket, silent: threading.Event) -> bytes:
        """Return what the server gets of a packet; nothing: the line is cut."""
        if packet[3] or packet[4] != QUERY:
            return packet
        fault = self._met(packet[5:].decode(errors="replace"))
        if isinstance(fault, str):
            return struct.pack("<I", len(fault.encode()) + 1)[:3] + bytes([0, QUERY]) + fault.encode()
        if fault is Cut.BEFORE:
            return b""
        if fault is Cut.AFTER:
            silent.set()
        if fault is Cut.LATE:
            self._held.append((server, packet))
            return b""
        if callable(fault):
            fault(number)
        return packet


def _answer(server: socket.socket, client: socket.socket, silent: threading.Event) -> None:
    """Carry the server's answers, until one must not arrive."""
    with suppress(OSError):
        while (data := server.recv(1 << 16)) and not silent.is_set():
            client.sendall(data)
    _hang_up(client)
    _hang_up(server)


def _packet(peer: socket.socket) -> bytes:
    """Return the next packet, its head included; nothing if the peer has hung up."""
    head = _exactly(peer, 4)
    body = _exactly(peer, int.from_bytes(head[:3], "little")) if head else b""
    return head + body if body else b""


def _exactly(peer: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        data = peer.recv(count - len(found))
        if not data:
            return b""
        found += data
    return found


def _without_tls(greeting: bytes) -> tuple[int, bytes]:
    """Return the number of the connection, and the server's first packet without its offer of TLS."""
    begin = greeting.index(b"\0", 5) + 1
    (number,) = struct.unpack_from("<I", greeting, begin)
    (offered,) = struct.unpack_from("<H", greeting, begin + 13)
    changed = bytearray(greeting)
    struct.pack_into("<H", changed, begin + 13, offered & ~TLS_OFFERED)
    return number, bytes(changed)


def _hang_up(peer: socket.socket) -> None:
    with suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)
    peer.close()
