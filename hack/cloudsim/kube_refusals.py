"""
The refusals of an API server that come from what stands around it: rights, load, quota, webhooks, age of a list.

A test that lets one strike takes it from here; the contract suite holds each to what a real server says.
"""

from cloudsim.errors import KubeError
from cloudsim.kube_check import GROUPS

CROWDED = "Too many requests, please try again later.\n"
TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def about(kind: str, name: str | None) -> dict[str, str]:
    """Return what the details of a refusal say of the object."""
    group = {"group": GROUPS[kind]} if kind in GROUPS else {}
    return {**({"name": name} if name else {}), **group, "kind": kind}


def full(kind: str) -> str:
    """Return a kind as answers name it, such as jobs.batch."""
    return f"{kind}.{GROUPS[kind]}" if kind in GROUPS else kind


def forbidden(kind: str, name: str | None, why: str, causes: tuple[dict[str, str], ...] = ()) -> KubeError:
    """Return a 403 about an object, or about a collection."""
    what = f'{full(kind)} "{name}"' if name else full(kind)
    return KubeError(403, "Forbidden", f"{what} is forbidden: {why}", causes, details=about(kind, name))


def no_right(user: str, verb: str, kind: str, namespace: str | None, name: str | None = None) -> KubeError:
    """Return the answer to who lacks a right."""
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    what = f'resource "{kind}" in API group "{GROUPS.get(kind, "")}"'
    return forbidden(kind, name, f'User "{user}" cannot {verb} {what} {where}')


def over_quota(kind: str, name: str, quota: str, what: str, *, asked: int, used: int, limit: int) -> KubeError:
    """Return the answer to who asks for more than a ResourceQuota has."""
    amounts = ", ".join(f"{word}: {what}={n}" for word, n in (("requested", asked), ("used", used), ("limited", limit)))
    return forbidden(kind, name, f"exceeded quota: {quota}, {amounts}")


def leaving(kind: str, name: str, namespace: str) -> KubeError:
    """Return the answer to who makes something in a namespace that is being deleted."""
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden(kind, name, why, (cause,))


def denied(webhook: str, message: str, status: int = 400, reason: str = "") -> KubeError:
    """Return the answer that an admission webhook gave; 400 without a reason if it named none."""
    return KubeError(status, reason, f'admission webhook "{webhook}" denied the request: {message}')


def webhook_away(webhook: str, url: str, why: str) -> KubeError:
    """Return the answer while a webhook that has to be asked cannot be."""
    text = f'failed calling webhook "{webhook}": failed to call webhook: Post "{url}": {why}'
    return KubeError(500, "InternalError", f"Internal error occurred: {text}", [{"message": text}])


def crowded() -> KubeError:
    """Return the answer to who asks too often: no Status, and when to ask again in a header."""
    return KubeError(429, "", "", retry_after=1, raw=CROWDED)


def unauthorized() -> KubeError:
    """Return the answer to who is nobody."""
    return KubeError(401, "Unauthorized", "Unauthorized")


def too_old(token: str) -> KubeError:
    """Return the answer to a continue token that is too old, with one for a rest that may not fit."""
    return KubeError(410, "Expired", TOO_OLD, token=token)
