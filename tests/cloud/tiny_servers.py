"""
Two tiny servers on loopback for what the adapters do on the wire: one speaks HTTPS, one GKE's gRPC.

1. A test says what is answered; every request is written down with its Authorization header.
2. They know nothing of clouds: what a cloud does is the simulated cloud's business.
"""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import grpc
from attrs import define, field, frozen
from cloudsim.tls import Authority
from google.cloud import container_v1


@frozen
class Request:
    """A request that came: *body* is JSON or, over gRPC, the message."""

    method: str
    path: str
    query: dict[str, str]
    authorization: str
    body: Any = None


@frozen
class Answer:
    """What is answered. *trickle*: the seconds between two bytes, from the first one on."""

    status: int = 200
    body: Any = field(factory=dict)
    trickle: float | None = None

    def data(self) -> bytes:
        """Return the bytes of the body: JSON unless it is text."""
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


def refusal(status: int, reason: str, message: str) -> Answer:
    """Return a Kubernetes error with its Status body."""
    return Answer(status, {"kind": "Status", "code": status, "reason": reason, "message": message})


@define(eq=False)
class Server:
    """A server that runs: where it listens, and what it was asked."""

    port: int = 0
    requests: list[Request] = field(factory=list)
    connections: int = 0
    ended: threading.Event = field(factory=threading.Event)
    """Set once a trickled answer ended, because its reader went away or all was read."""

    @property
    def address(self) -> str:
        """Return host:port."""
        return f"127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Return method and path of every request."""
        return [(request.method, request.path) for request in self.requests]


@contextmanager
def https(context: ssl.SSLContext, answer: Callable[[Request], Answer]) -> Iterator[Server]:
    """Serve HTTPS until the end of the block."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            server.connections += 1
            super().setup()

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            request = Request(self.command, url.path, query, self.headers.get("Authorization", ""), body)
            server.requests.append(request)
            self.send(answer(request))

        def send(self, reply: Answer) -> None:
            data = reply.data()
            head = (
                f"HTTP/1.1 {reply.status} Word\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
            )
            try:
                if reply.trickle is None:
                    self.wfile.write(head.encode() + data)
                    return
                pause = threading.Event()
                for byte in head.encode() + data:
                    self.wfile.write(bytes([byte]))
                    pause.wait(reply.trickle)
            except OSError:
                self.close_connection = True
            finally:
                if reply.trickle is not None:
                    server.ended.set()

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not trust us hangs up: nothing to print."""

    listener = Quiet(("127.0.0.1", 0), Handler)
    listener.socket = context.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
    server.port = listener.server_address[1]
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()


GKE_METHODS: dict[str, tuple[Any, Any]] = {
    "GetCluster": (container_v1.GetClusterRequest, container_v1.Cluster),
    "ListNodePools": (container_v1.ListNodePoolsRequest, container_v1.ListNodePoolsResponse),
    "ListOperations": (container_v1.ListOperationsRequest, container_v1.ListOperationsResponse),
    "CreateNodePool": (container_v1.CreateNodePoolRequest, container_v1.Operation),
    "DeleteNodePool": (container_v1.DeleteNodePoolRequest, container_v1.Operation),
}


class Refused(Exception):
    """What the gRPC server answers instead of a message."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@contextmanager
def gke(authority: Authority, answer: Callable[[Request], Any]) -> Iterator[Server]:
    """Serve GKE's gRPC over TLS until the end of the block; *answer* returns a message or raises Refused."""
    server = Server()

    def handler(name: str) -> grpc.RpcMethodHandler:
        asked, told = GKE_METHODS[name]

        def act(message: Any, context: grpc.ServicerContext) -> Any:
            sent = dict(context.invocation_metadata())
            request = Request(name, "", {}, str(sent.get("authorization", "")), message)
            server.requests.append(request)
            try:
                return answer(request)
            except Refused as error:
                context.abort(error.code, error.text)

        return grpc.unary_unary_rpc_method_handler(
            act, request_deserializer=asked.deserialize, response_serializer=told.serialize
        )

    listener = grpc.server(ThreadPoolExecutor(4))
    handlers = {name: handler(name) for name in GKE_METHODS}
    service = "google.container.v1.ClusterManager"
    listener.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    key, chain = authority.key_and_chain()
    server.port = listener.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
    listener.start()
    try:
        yield server
    finally:
        listener.stop(0)
