"""
The door to Resource Manager and Cloud Storage: their REST APIs over TLS, as far as somebody asks who only looks.

1. Nobody gets an answer without a good token; error bodies are Google's, as Compute's door sends them.
"""

import ssl

from attrs import evolve

from cloudsim.doors_compute import body_of, error_answer
from cloudsim.doors_faults import WireFaults
from cloudsim.doors_http import Answer, HttpDoor, Request, json_answer
from cloudsim.errors import SimError
from cloudsim.metadata import Tokens
from cloudsim.values import Json
from cloudsim.world import World

TEST = ":testIamPermissions"


class OnlookersDoor:
    """The running server; the system chooses its `port`."""

    def __init__(self, world: World, tls: ssl.SSLContext, tokens: Tokens, wires: WireFaults) -> None:
        """Listen at once."""
        self._world = world
        self._tokens = tokens
        self._wires = wires
        self._door = HttpDoor(self._handle, tls)
        self.port = self._door.port

    def stop(self) -> None:
        """Close the port and every connection."""
        self._door.stop()

    def _handle(self, request: Request) -> Answer:
        try:
            self._admit(request)
            wire = self._wires.take("onlookers.*", "/".join(request.path))
            if wire is not None and wire.lost:
                return Answer(200, b"", wire=wire)
            return evolve(json_answer(200, self._answer(request)), wire=wire)
        except SimError as error:
            return error_answer(error)

    def _admit(self, request: Request) -> None:
        if self._tokens.refusal(request.headers.get("authorization")) is not None:
            raise SimError("UNAUTHENTICATED", "Invalid Credentials", reason="authError")

    def _answer(self, request: Request) -> Json:
        there = self._world.onlookers
        match (request.method, *request.path):
            case ("POST", "v1", "projects", what) if what.endswith(TEST):
                return there.test_permissions(what.removesuffix(TEST), body_of(request).get("permissions", ()))
            case ("GET", "storage", "v1", "b", name):
                return there.get_bucket(name)
            case ("GET", "storage", "v1", "b", name, "iam"):
                return there.get_policy(name)
        raise SimError("NOT_FOUND", "Not Found", reason="notFound")
