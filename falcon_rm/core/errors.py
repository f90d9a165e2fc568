"""
What an error of a cloud means: the tables of design.md 4, from (call, code, text) to ErrorKind.

1. The first row that matches decides. The last rows match everything, so there is always an answer.
2. Text counts as well as code: a 403 may be quota, a 429 a full reservation, a 404 a reservation's name.
   Busy texts stand first, then reservations, capacity, quota, and what is left goes by its code.
3. An answer that leaves open whether the call took effect is UNKNOWN, whatever its text says.
4. A text nobody knows counts as CAPACITY where something was refused for sure or an operation has ended: bounded, never
   an exception. Everywhere else it is UNKNOWN.

Sources: gke.md 3.3; proof.md 5. Rows from the pattern lists of Google's autoscaler are as loose as those lists.
"""

import re
from collections.abc import Sequence
from typing import Literal

from attrs import field, frozen

from falcon_rm.core.words import ErrorKind

Call = Literal["create", "delete", "read", "submit", "operation"]
"""What was asked: make or delete something, read, submit a Kubernetes Job; or the error of a create that has ended."""

BUSY, FULL, CAPACITY, QUOTA = ErrorKind.BUSY, ErrorKind.FULL, ErrorKind.CAPACITY, ErrorKind.QUOTA
CLUSTER, PERMANENT = ErrorKind.CLUSTER, ErrorKind.PERMANENT
EXISTS, GONE, UNKNOWN = ErrorKind.EXISTS, ErrorKind.GONE, ErrorKind.UNKNOWN


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


@frozen
class Row:
    """One line of a table: the calls it is about, the whole code, a part of the text; both are regular expressions."""

    calls: str
    code: re.Pattern[str] = field(converter=_pattern)
    text: re.Pattern[str] = field(converter=_pattern)
    kind: ErrorKind

    def matches(self, call: Call, code: str, text: str) -> bool:
        """Say whether this row knows the error."""
        return call in self.calls.split() and bool(self.code.fullmatch(code) and self.text.search(text))


SYNC = "create delete read submit"
WRITE = "create delete submit"
MADE = "create operation"
EVERY = "create delete read submit operation"
ANY = ".*"
REFUSED = (  # the codes that say for sure that nothing was done
    "INVALID_ARGUMENT|FAILED_PRECONDITION|OUT_OF_RANGE|NOT_FOUND|ALREADY_EXISTS"
    "|PERMISSION_DENIED|RESOURCE_EXHAUSTED|UNAUTHENTICATED"
)

GOOGLE = (
    Row(SYNC, rf"(?!(?:{REFUSED})$).*", "", UNKNOWN),
    # busy: refused now, may be asked again
    Row(SYNC, ANY, r"too many operations", BUSY),
    Row(SYNC, ANY, r"currently (being )?(creat|delet|updat|upgrad|repair|resiz)", BUSY),
    Row(SYNC, ANY, r"incompatible operation", BUSY),
    Row(SYNC, ANY, r"CLUSTER_ALREADY_HAS_OPERATION", BUSY),
    Row(SYNC, ANY, r"rate[ _]?limit[ _]?exceeded", BUSY),
    Row(SYNC, ANY, r"CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", BUSY),
    Row(SYNC, ANY, r"quota exceeded for quota metric .* per minute", BUSY),
    Row(WRITE, "UNAUTHENTICATED", "", BUSY),  # refused before it was done
    # reservations: full may change, a wrong one will not
    Row("operation", ANY, r"lack of capacity in your reservation", FULL),
    Row(MADE, ANY, r"reservation does not have enough resources", FULL),
    Row(MADE, ANY, r"specified reservation.* does not have available resources", FULL),
    Row(MADE, ANY, r"no available resources in specified reservations", FULL),
    Row(MADE, ANY, r"reservation .*does not have sufficient capacity for the requested resources", FULL),
    Row(MADE, ANY, r"all automatic reservations in your project.* fully consumed", FULL),
    Row(MADE, ANY, r"requires reservation to be in READY state", FULL),
    Row(MADE, ANY, r"reservation \S+ not found", PERMANENT),
    Row(MADE, ANY, r"specified reservations?(\(s\))? .*do(es|\(es\))? not exist", PERMANENT),
    Row(MADE, ANY, r"could not find the given reservation", PERMANENT),
    Row(MADE, ANY, r"reservation .*is incorrect for the requested resources", PERMANENT),
    Row(MADE, ANY, r"incompatible AggregateReservation VMFamily", PERMANENT),
    Row(MADE, ANY, r"must use ReservationAffinity of", PERMANENT),
    Row(MADE, ANY, r"reservation must exist in the same project as the instance", PERMANENT),
    Row(MADE, ANY, r"only compatible with aggregate reservations", PERMANENT),
    Row(MADE, ANY, r"please target a reservation with workload_type", PERMANENT),
    Row(MADE, ANY, r"is not supported for aggregate reservations", PERMANENT),
    Row(MADE, ANY, r"there is no automatic reservation matching", PERMANENT),
    # capacity: no machines to be had
    Row(MADE, ANY, r"GCE_STOCKOUT", CAPACITY),
    Row(MADE, ANY, r"does not have enough resources available to fulfill", CAPACITY),
    Row(MADE, ANY, r"requested resource is exhausted", CAPACITY),
    Row(MADE, ANY, r"RESOURCE_POOL_EXHAUSTED", CAPACITY),
    Row(MADE, ANY, r"INSUFFICIENT_CAPACITY", CAPACITY),
    Row(MADE, ANY, r"does not currently have sufficient capacity", CAPACITY),
    # quota: machines not allowed, addresses used up
    Row(MADE, ANY, r"IP_SPACE_EXHAUSTED", QUOTA),
    Row(MADE, ANY, r"does not have available private IP space", QUOTA),
    Row(MADE, ANY, r"cannot find pod range with enough available IPs", QUOTA),
    Row(MADE, ANY, r"cluster byte size limit reached", QUOTA),
    Row(MADE, ANY, r"quota(?! project)", QUOTA),
    # a request that can never work
    Row(MADE, ANY, r"tpu[ _]?topology", PERMANENT),
    Row(MADE, ANY, r"use workload policy instead", PERMANENT),
    Row(MADE, ANY, r"invalid target size", PERMANENT),
    Row(MADE, ANY, r"flex[ -]start (node pools (require|don't support)|is not supported)", PERMANENT),
    Row(MADE, ANY, r"is not a valid size of TPU pod slice", PERMANENT),
    Row(MADE, ANY, r"queued_provisioning requires", PERMANENT),
    Row(MADE, ANY, r"unsupported TPU configuration", PERMANENT),
    Row(MADE, ANY, r"constraint constraints/\S+ violated", PERMANENT),
    # the cluster's own trouble
    Row(MADE, ANY, r"required .*permission", CLUSTER),
    Row(MADE, ANY, r"PERMISSIONS_ERROR", CLUSTER),
    Row(MADE, ANY, r"service account .*does not exist", CLUSTER),
    Row(MADE, ANY, r"does not have access to service account", CLUSTER),
    Row(MADE, ANY, r"node pools cannot be created while", CLUSTER),
    Row(MADE, ANY, r"API has not been used in project|SERVICE_DISABLED", CLUSTER),
    # by code
    Row("create delete read", "PERMISSION_DENIED", "", CLUSTER),
    Row("create", "ALREADY_EXISTS", "", EXISTS),
    Row("create", "NOT_FOUND", r"clusters/[\w-]+(?![\w/-])", CLUSTER),
    Row("create", "NOT_FOUND", "", UNKNOWN),  # seen answered for a pool that then existed
    Row("read", "NOT_FOUND", r"clusters/[\w-]+(?![\w/-])", UNKNOWN),
    Row("delete read", "NOT_FOUND", "", GONE),
    Row("delete", "FAILED_PRECONDITION|RESOURCE_EXHAUSTED", "", BUSY),
    Row(MADE, ANY, "", CAPACITY),  # a text nobody knows
    Row(EVERY, ANY, "", UNKNOWN),
)
"""Errors of GKE and Compute. The code is gRPC's word; "" for the error of an operation, whose text says it all."""

KUBERNETES = (
    Row(SYNC, r"(0|408|429|5\d\d) .*", "", UNKNOWN),
    Row(WRITE, r"401 .*", "", BUSY),  # refused before it was done
    Row(SYNC, r"403 .*", r"system:anonymous", UNKNOWN),  # the token did not arrive: our fault, nobody's permission
    Row("submit", r"4\d\d .+", r"exceeded quota|failed quota", QUOTA),
    Row("submit", r"4\d\d .+", r"denied (the )?request", PERMANENT),
    Row("submit", r"4\d\d .+", r"being (terminated|deleted)", BUSY),
    Row(SYNC, r"403 .+", r"cannot \w+ resource|permission", CLUSTER),
    Row("submit", r"403 Forbidden", "", PERMANENT),  # refused on admission
    Row("delete read", r"403 Forbidden", "", CLUSTER),
    Row("delete read", r"404 NotFound", "", GONE),
    Row("submit", r"409 AlreadyExists", "", EXISTS),
    Row("submit", r"422 Invalid", r"metadata\.uid: .*immutable", GONE),  # another one has that name
    Row("delete", r"409 Conflict", r"precondition", GONE),  # the object of that name is another one
    Row(WRITE, r"409 .*", "", BUSY),
    Row("submit", r"(400|413|415|422) .+", "", PERMANENT),
    Row(EVERY, ANY, "", UNKNOWN),
)
"""
Errors of Kubernetes. The code is "STATUS REASON"; the reason is empty if the body was no Status object, and then the
answer may come from a proxy: it proves nothing.
"""


def deciding(rows: Sequence[Row], *, call: Call, code: str, text: str) -> Row:
    """Return the row that decides."""
    return next(row for row in rows if row.matches(call, code, text))


def classify(*, call: Call, code: str, text: str) -> ErrorKind:
    """
    Return what an error of GKE or Compute means.

    Args:
        call: What was asked; "operation" for the error of an operation that has ended, and for a pool's own messages.
        code: gRPC's word, e.g. RESOURCE_EXHAUSTED; anything else of a call is an unknown outcome.
        text: The other side's own words.
    """
    return deciding(GOOGLE, call=call, code=code, text=text).kind


def classify_kubernetes(*, call: Call, status: int, reason: str, text: str) -> ErrorKind:
    """
    Return what an error of Kubernetes means.

    Args:
        call: What was asked.
        status: The HTTP status; 0 if there was no answer.
        reason: The reason in the Status body; empty if the body was something else.
        text: The message in the Status body, or what came instead.
    """
    return deciding(KUBERNETES, call=call, code=f"{status} {reason}", text=text).kind
