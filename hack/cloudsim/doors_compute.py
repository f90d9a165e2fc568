"""
The Compute Engine door: the REST API over TLS, as far as reservations and resource policies go.

1. Error bodies are Google's: {"error": {"code", "message", "errors": [{"message", "domain", "reason"}], "status"}}.
2. Nobody gets an answer without a good token.
"""

import re
import ssl

from attrs import evolve

from cloudsim.doors_faults import WireFaults
from cloudsim.doors_http import Answer, HttpDoor, Request, json_answer
from cloudsim.errors import SimError
from cloudsim.metadata import Tokens
from cloudsim.values import Json
from cloudsim.world import World

NAME_FILTER = re.compile(r'\s*\(?\s*name\s*(?:=|:|eq)\s*"?([a-z0-9-]+)"?\s*\)?\s*$')


class ComputeDoor:
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
            return self._answer(request)
        except SimError as error:
            return error_answer(error)

    def _admit(self, request: Request) -> None:
        refusal = self._tokens.refusal(request.headers.get("authorization"))
        if refusal == "missing":
            raise SimError("UNAUTHENTICATED", "Login Required.", reason="required")
        if refusal is not None:
            raise SimError("UNAUTHENTICATED", "Invalid Credentials", reason="authError")

    def _answer(self, request: Request) -> Answer:
        if request.path[:3] != ("compute", "v1", "projects") or len(request.path) < 4:
            raise SimError("NOT_FOUND", "Not Found", reason="notFound")
        call, arguments = self._route(request, request.path[3], request.path[4:])
        wire = self._wires.take(f"compute.{call}", "/".join(request.path[2:]))
        if wire is not None and wire.lost:
            return Answer(200, b"", wire=wire)
        value = getattr(self._world.compute, call)(*arguments)
        if call == "aggregated_reservations":
            value = aggregated(request.path[3], value)
        return evolve(json_answer(200, value), wire=wire)

    @staticmethod
    def _route(request: Request, project: str, rest: tuple[str, ...]) -> tuple[str, tuple[object, ...]]:
        """Return the method of the world's Compute that a request means, and its arguments."""
        match (request.method, *rest):
            case ("GET", "zones", zone, "reservations", name):
                return "get_reservation", (project, zone, name)
            case ("GET", "aggregated", "reservations"):
                return "aggregated_reservations", (project, filtered_name(request.query.get("filter", "")))
            case ("GET", "regions", region, "resourcePolicies", name):
                return "get_resource_policy", (project, region, name)
            case ("POST", "regions", region, "resourcePolicies"):
                return "insert_resource_policy", (project, region, body_of(request))
            case ("GET", "regions", region, "operations", name):
                return "get_region_operation", (project, region, name)
            case ("POST", "regions", region, "operations", name, "wait"):
                return "get_region_operation", (project, region, name)
        raise SimError("NOT_FOUND", "Not Found", reason="notFound")


def body_of(request: Request) -> Json:
    """Return a request's JSON body."""
    try:
        return request.json()
    except ValueError as error:
        raise SimError("INVALID_ARGUMENT", f"Parse Error: {error}", reason="parseError") from error


def filtered_name(text: str) -> str | None:
    """Return the name a `filter` asks for; only filters on a name are known here."""
    if not text:
        return None
    if (found := NAME_FILTER.match(text)) is None:
        raise SimError("INVALID_ARGUMENT", f"Invalid value for field 'filter': '{text}'.", reason="invalid")
    return found[1]


def aggregated(project: str, by_zone: dict[str, list[Json]]) -> Json:
    """Return reservations by zone as Google's aggregated list."""
    return {
        "kind": "compute#reservationAggregatedList",
        "id": f"projects/{project}/aggregated/reservations",
        "items": {f"zones/{zone}": {"reservations": found} for zone, found in by_zone.items()},
    }


def error_answer(error: SimError) -> Answer:
    """Return an error as Google's REST APIs send it."""
    item = {"message": error.message, "domain": "global", "reason": error.reason or "backendError"}
    body = {"code": error.http, "message": error.message, "errors": [item], "status": error.code}
    return json_answer(error.http, {"error": body})
