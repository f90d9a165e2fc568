"""
From the exceptions of four client libraries to CloudError.

1. Every call of a cloud stands inside `translating(call)`; what leaves it is a CloudError, and what it means stands in
   `core/errors.py`, not here.
2. A text is one line of at most 2,000 bytes and holds no token.
3. Where no answer came (time-outs, refused and lost connections, bodies nobody can read) the outcome is unknown.
"""

import binascii
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import google.api_core.exceptions
import google.auth.exceptions
import requests
import urllib3
from google.protobuf.json_format import ParseError
from kubernetes.client.exceptions import ApiException
from pydantic import ValidationError

from falcon_rm.core.errors import Call, classify, classify_kubernetes
from falcon_rm.core.text import clean
from falcon_rm.core.words import CloudError, ErrorKind

TEXT_LIMIT = 2000

SECRETS = re.compile(r"(Bearer\s+|ya29\.|\"(?:access_|id_)?token\"\s*:\s*\")[^\s\"']+", re.IGNORECASE)

HTTP_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
}
"""gRPC's words for what Compute answers over HTTP; every other status leaves the outcome open."""

UNAVAILABLE_STATUSES = (502, 503)


class Unauthenticated(CloudError):
    """The credential was refused, so nothing was done."""


class Expired(CloudError):
    """The rest of a Kubernetes list is not to be had any more: begin again (P102)."""


class Unavailable(CloudError):
    """Nobody took the call, or nobody says so: a read may be asked again."""


GOOGLE_ERRORS = (google.api_core.exceptions.GoogleAPIError, google.auth.exceptions.GoogleAuthError)
BROKEN_ANSWERS = (ParseError, json.JSONDecodeError, UnicodeDecodeError, binascii.Error)
LOST_CONNECTIONS = (urllib3.exceptions.HTTPError, requests.RequestException, OSError)
LIBRARY_ERRORS = (*GOOGLE_ERRORS, *BROKEN_ANSWERS, *LOST_CONNECTIONS, ApiException, ValidationError)


@contextmanager
def translating(call: Call) -> Iterator[None]:
    """Turn what the client libraries raise into CloudError."""
    try:
        yield
    except LIBRARY_ERRORS as error:
        raise translate(call, error) from error


def translate(call: Call, error: Exception) -> CloudError:
    """Return the CloudError for one of LIBRARY_ERRORS that *call* raised."""
    if isinstance(error, google.api_core.exceptions.GoogleAPICallError):
        return _google(call, error)
    if isinstance(error, google.auth.exceptions.GoogleAuthError):
        text = f"no credential: {error}"
        return Unauthenticated(classify(call=call, code="UNAUTHENTICATED", text=""), bounded(text))
    if isinstance(error, ApiException):
        return _kubernetes(call, error)
    if isinstance(error, ValidationError):  # by the kubernetes client, before anything was sent
        faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        return CloudError(ErrorKind.PERMANENT, bounded(f"not a legal manifest: {'; '.join(faults)}"))
    known = Unavailable if isinstance(error, LOST_CONNECTIONS) and not timed_out(error) else CloudError
    return known(ErrorKind.UNKNOWN, bounded(f"{type(error).__name__}: {error}"))


def timed_out(error: Exception) -> bool:
    """Say whether the time for the call is used up."""
    return isinstance(error, (TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError))


def bounded(text: str) -> str:
    """Return *text* as it may be shown and kept: one line, bounded, without tokens."""
    return clean(SECRETS.sub(r"\1***", text), TEXT_LIMIT)


def _google(call: Call, error: google.api_core.exceptions.GoogleAPICallError) -> CloudError:
    code = error.grpc_status_code.name if error.grpc_status_code else HTTP_CODES.get(error.code or 0, "UNKNOWN")
    reasons = [error.reason, *(entry.get("reason") for entry in error.errors or () if isinstance(entry, dict))]
    text = str(error.message or code)
    extra = " ".join(str(reason) for reason in reasons if reason and str(reason) not in text)
    text = bounded(f"{text} ({extra})" if extra else text)
    kind = classify(call=call, code=code, text=text)
    if code == "UNAUTHENTICATED":
        return Unauthenticated(kind, text)
    return Unavailable(kind, text) if code == "UNAVAILABLE" else CloudError(kind, text)


def _kubernetes(call: Call, error: ApiException) -> CloudError:
    body = error.body if isinstance(error.body, str) else ""
    reason, text = status_of(body)
    status = int(error.status or 0)
    text = bounded(text or f"{status} {error.reason or ''} {body}")
    kind = classify_kubernetes(call=call, status=status, reason=reason, text=text)
    if status == 401:
        return Unauthenticated(kind, text)
    if status == 410:
        return Expired(kind, text)
    return Unavailable(kind, text) if status in UNAVAILABLE_STATUSES else CloudError(kind, text)


def status_of(body: str) -> tuple[str, str]:
    """Return reason and message of a Kubernetes Status; both empty if the body is anything else."""
    try:
        status = json.loads(body)
    except ValueError:
        return "", ""
    if not isinstance(status, dict) or status.get("kind") != "Status":
        return "", ""
    return str(status.get("reason") or "Unknown"), str(status.get("message") or "")
