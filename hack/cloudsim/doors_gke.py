"""
The gRPC door: `google.container.v1.ClusterManager` over TLS.

1. Requests and answers are the real messages; the world sees their proto3 JSON.
2. Nobody gets an answer without a good token.
3. A call that hangs holds its thread until the client's deadline passes, the client leaves or the door closes.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc
from attrs import frozen
from google.cloud import container_v1
from google.protobuf import json_format

from cloudsim.doors_faults import Wire, WireFaults
from cloudsim.errors import Hang, SimError
from cloudsim.metadata import Tokens
from cloudsim.tls import Authority
from cloudsim.values import Json
from cloudsim.world import World

SERVICE = "google.container.v1.ClusterManager"
THREADS = 64
UNAUTHENTICATED = {
    "missing": "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or "
    "other valid authentication credential.",
    "unknown": "Request had invalid authentication credentials.",
    "stale": "Request had invalid authentication credentials.",
}


@frozen
class Method:
    """One method of the service: its messages, the call it is to the world, what the call is about."""

    request: Any
    answer: Any
    call: str
    target: Callable[[Any], str]
    act: Callable[[World, Any], Json]


def _list_operations(world: World, request: Any) -> Json:
    operations = world.gke.list_operations(request.parent)
    return {"operations": list(operations), "missingZones": list(operations.missing_zones)}


def _owner(name: str) -> tuple[str, str]:
    """Split a node pool's name into its cluster's path and its own name."""
    path, _, pool = name.partition("/nodePools/")
    return path, pool


METHODS = {
    "GetCluster": Method(
        container_v1.GetClusterRequest,
        container_v1.Cluster,
        "gke.get_cluster",
        lambda request: request.name,
        lambda world, request: world.gke.get_cluster(request.name),
    ),
    "ListNodePools": Method(
        container_v1.ListNodePoolsRequest,
        container_v1.ListNodePoolsResponse,
        "gke.list_node_pools",
        lambda request: request.parent,
        lambda world, request: {"nodePools": list(world.gke.list_node_pools(request.parent))},
    ),
    "GetNodePool": Method(
        container_v1.GetNodePoolRequest,
        container_v1.NodePool,
        "gke.get_node_pool",
        lambda request: request.name,
        lambda world, request: world.gke.get_node_pool(*_owner(request.name)),
    ),
    "CreateNodePool": Method(
        container_v1.CreateNodePoolRequest,
        container_v1.Operation,
        "gke.create_node_pool",
        lambda request: f"{request.parent}/nodePools/{request.node_pool.name}",
        lambda world, request: world.gke.create_node_pool(request.parent, to_json(request.node_pool)),
    ),
    "DeleteNodePool": Method(
        container_v1.DeleteNodePoolRequest,
        container_v1.Operation,
        "gke.delete_node_pool",
        lambda request: request.name,
        lambda world, request: world.gke.delete_node_pool(*_owner(request.name)),
    ),
    "GetOperation": Method(
        container_v1.GetOperationRequest,
        container_v1.Operation,
        "gke.get_operation",
        lambda request: request.name,
        lambda world, request: world.gke.get_operation(request.name),
    ),
    "ListOperations": Method(
        container_v1.ListOperationsRequest,
        container_v1.ListOperationsResponse,
        "gke.list_operations",
        lambda request: request.parent,
        _list_operations,
    ),
}


def to_json(message: Any) -> Json:
    """Return a message of google.container.v1 as proto3 JSON."""
    return dict(json_format.MessageToDict(type(message).pb(message)))


def to_message(kind: Any, value: Json) -> Any:
    """Return proto3 JSON as a message; an unknown field raises ParseError."""
    message = kind()
    json_format.ParseDict(value, kind.pb(message))
    return message


class GkeDoor:
    """The running gRPC server; the system chooses its `port`."""

    def __init__(self, world: World, authority: Authority, tokens: Tokens, wires: WireFaults) -> None:
        """Listen at once."""
        self._world = world
        self._tokens = tokens
        self._wires = wires
        self._threads = ThreadPoolExecutor(THREADS, "gke")
        self._server = grpc.server(self._threads, options=[("grpc.so_reuseport", 0)])
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._handler(method), method.request.deserialize, method.answer.serialize
            )
            for name, method in METHODS.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        credentials = grpc.ssl_server_credentials([authority.key_and_chain()])
        self.port: int = self._server.add_secure_port("127.0.0.1:0", credentials)
        self._server.start()

    def stop(self) -> None:
        """Close the port and end every call."""
        self._server.stop(grace=0).wait(timeout=5)
        self._threads.shutdown()

    def _handler(self, method: Method) -> Callable[[Any, grpc.ServicerContext], Any]:
        def handle(request: Any, context: grpc.ServicerContext) -> Any:
            metadata = dict(context.invocation_metadata())
            refusal = self._tokens.refusal(metadata.get("authorization"))
            if refusal is not None:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, UNAUTHENTICATED[refusal])
            try:
                return self._answer(method, request, context)
            except SimError as error:
                context.abort(grpc.StatusCode[error.code], error.message)
            except Hang:
                _hold(context)

        return handle

    def _answer(self, method: Method, request: Any, context: grpc.ServicerContext) -> Any:
        wire = self._wires.take(method.call, method.target(request))
        if wire is not None and wire.lost:
            _break(context)
        answer = to_message(method.answer, method.act(self._world, request))
        if wire is not None and wire.wire is Wire.RESET:
            _break(context)
        return answer


def _break(context: grpc.ServicerContext) -> NoReturn:
    """Answer what a gRPC client makes of a connection that broke."""
    context.abort(grpc.StatusCode.UNAVAILABLE, "recvmsg:Connection reset by peer")
    raise AssertionError("abort raises")


def _hold(context: grpc.ServicerContext) -> NoReturn:
    """Keep the caller waiting until nobody waits any more."""
    ended = threading.Event()
    if context.add_callback(ended.set):
        ended.wait()
    context.abort(grpc.StatusCode.CANCELLED, "nobody waits any more")
    raise AssertionError("abort raises")
