"""
An HTTP server on a loopback port, with or without TLS, that can misbehave on the wire.

1. A door answers through one function, Request -> Answer. The function may raise `Hang`: then no answer ever comes.
2. A request that waits costs no other request anything: a thread a connection, the TLS handshake included.
3. A broken connection is the client's affair: it ends the thread and is not reported.
"""

import json
import os
import select
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import field, frozen

from cloudsim.doors_faults import Wire, WireFault
from cloudsim.errors import Hang

IDLE_SECONDS = 120.0  # no connection is held longer without a request, or without an answer
LOOK_SECONDS = 0.2  # how often a held connection looks whether its client has left


@frozen
class Request:
    """What a client asked."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]  # keys in lower case
    body: bytes

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object, an empty one as {}; raises ValueError."""
        value = json.loads(self.body) if self.body else {}
        if isinstance(value, dict):
            return value
        raise ValueError("the body is not a JSON object")


@frozen
class Answer:
    """What it gets."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(factory=dict)
    wire: WireFault | None = None


def json_answer(status: int, value: object, headers: Mapping[str, str] | None = None) -> Answer:
    """Return *value* as JSON."""
    return Answer(status, json.dumps(value, separators=(",", ":")).encode(), headers=headers or {})


class HttpDoor:
    """A running HTTP or HTTPS server; the system chooses its `port`."""

    def __init__(self, handle: Callable[[Request], Answer], tls: ssl.SSLContext | None = None) -> None:
        """Listen at once and answer through *handle*."""
        self._server = _Server(handle, tls)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name=f"door-{self.port}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection."""
        self._server.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.close_connections()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handle: Callable[[Request], Answer], tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.handle = handle
        self.closing = threading.Event()
        self._tls = tls
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, threading.Thread] = {}

    def server_bind(self) -> None:
        """Bind without the look-up of the host's name that HTTPServer does."""
        TCPServer.server_bind(self)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; the handshake is left to its own thread."""
        connection, address = self.socket.accept()
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection to its end."""
        with self._lock:
            self._connections[request] = threading.current_thread()
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                del self._connections[request]

    def close_connections(self) -> None:
        """End every connection and wait for its thread."""
        with self._lock:
            connections = dict(self._connections)
        for connection, thread in connections.items():
            try:
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
            except OSError:
                continue  # it ended by itself
            finally:
                thread.join(timeout=5)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report mistakes of this program, keep silent about broken connections."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Connection(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()

    def log_message(self, *_: Any) -> None:
        """Say nothing: the world keeps the log of calls."""

    def _serve(self) -> None:
        try:
            answer = self.server.handle(self._read())
        except Hang:
            self.close_connection = True
            self._hold(IDLE_SECONDS)
            return
        if answer.wire is None:
            self.wfile.write(self._head(answer) + answer.body)
            return
        self.close_connection = True
        if answer.wire.wire is Wire.TRICKLE:
            self._trickle(answer)
        else:
            self._reset()

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = _serve  # noqa: N815

    def _read(self) -> Request:
        url = urlsplit(self.path)
        return Request(
            method=self.command,
            path=tuple(unquote(part) for part in url.path.split("/") if part),
            query=dict(parse_qsl(url.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(self.headers.get("Content-Length") or 0)),
        )

    def _head(self, answer: Answer) -> bytes:
        fields = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body)), **answer.headers}
        reason = self.responses[answer.status][0] if answer.status in self.responses else ""
        lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1")

    def _hold(self, seconds: float) -> bool:
        """Wait; answer True if the client or the door ended the connection meanwhile."""
        while seconds > 0 and not self.server.closing.is_set():
            if select.select([self.connection], [], [], min(seconds, LOOK_SECONDS))[0]:
                return True
            seconds -= LOOK_SECONDS
        return self.server.closing.is_set()

    def _trickle(self, answer: Answer) -> None:
        self.wfile.write(self._head(answer))
        for byte in answer.body:
            self.wfile.write(bytes((byte,)))
            if self._hold(1.0):
                return

    def _reset(self) -> None:
        """End the connection with RST in place of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())
