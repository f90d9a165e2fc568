"""Label and field selectors as the API server reads them."""

import re
from functools import lru_cache

from attrs import frozen

from cloudsim.errors import KubeError
from cloudsim.values import Json

KEY = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
SET_BASED = re.compile(rf"\s*({KEY})\s+(in|notin)\s+\(([^()]*)\)\s*")
EQUALITY = re.compile(rf"\s*({KEY})\s*(==|=|!=)\s*([-A-Za-z0-9_.]*)\s*")
EXISTENCE = re.compile(rf"\s*(!?)\s*({KEY})\s*")
PARTS = re.compile(r",(?![^(]*\))")

FIELDS = {
    "pods": ("spec.nodeName", "status.phase", "spec.serviceAccountName", "spec.restartPolicy"),
    "jobs": ("status.successful",),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "events": (
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.uid",
        "reason",
        "type",
    ),
}
"""Kind -> the fields one may select by, besides metadata.name and metadata.namespace."""


@frozen
class Requirement:
    """One term of a label selector."""

    key: str
    operator: str  # in notin exists absent
    values: frozenset[str] = frozenset()

    def holds(self, labels: dict[str, str]) -> bool:
        """Whether an object with these labels fits."""
        if self.operator == "exists":
            return self.key in labels
        if self.operator == "absent":
            return self.key not in labels
        if self.operator == "in":
            return labels.get(self.key) in self.values
        return labels.get(self.key) not in self.values


def check_version(asked: str, latest: int) -> None:
    """Refuse a list from a resource version that is none, or is not there yet; an old one gets the latest."""
    if asked and not asked.isdigit():
        why = f'Invalid value: "{asked}": strconv.ParseUint: parsing "{asked}": invalid syntax'
        raise KubeError(400, "BadRequest", f"invalid resource version: resourceVersion: {why}")
    if asked and int(asked) > latest:
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        text = f"Timeout: Too large resource version: {asked}, current: {latest}"
        raise KubeError(504, "Timeout", text, [cause], retry_after=1)


@lru_cache(maxsize=1000)
def requirements(selector: str) -> tuple[Requirement, ...]:
    """Return the terms of a label selector; a bad one is answered 400."""
    return tuple(requirement(part) for part in PARTS.split(selector)) if selector.strip() else ()


def requirement(part: str) -> Requirement:
    """Return one term."""
    if match := SET_BASED.fullmatch(part):
        key, operator, values = match.groups()
        return Requirement(key, operator, frozenset(value.strip() for value in values.split(",")))
    if match := EQUALITY.fullmatch(part):
        key, sign, value = match.groups()
        return Requirement(key, "notin" if sign == "!=" else "in", frozenset({value}))
    if match := EXISTENCE.fullmatch(part):
        absent, key = match.groups()
        return Requirement(key, "absent" if absent else "exists")
    raise KubeError(400, "BadRequest", f"unable to parse requirement: found '{part.strip()}', expected: identifier")


def matches(labels: dict[str, str], terms: tuple[Requirement, ...]) -> bool:
    """Whether labels fit every term."""
    return all(term.holds(labels) for term in terms)


def field_terms(kind: str, selector: str) -> tuple[tuple[str, str, bool], ...]:
    """Return (field, value, wanted) of a field selector; a field one may not select by is answered 400."""
    terms = []
    for part in filter(None, selector.split(",")):
        name, sign, value = part.partition("!=") if "!=" in part else part.replace("==", "=").partition("=")
        if not sign or name not in ("metadata.name", "metadata.namespace", *FIELDS.get(kind, ())):
            raise KubeError(400, "BadRequest", f"field label not supported: {name}")
        terms.append((name, value, sign == "="))
    return tuple(terms)


def field_value(obj: Json, name: str) -> str:
    """Return a field as selectors compare it."""
    if name == "status.successful":
        return str(obj.get("status", {}).get("succeeded", 0))
    value: object = obj
    for step in name.split("."):
        value = value.get(step, "") if isinstance(value, dict) else ""
    return "true" if value is True else "" if value is False else str(value)


def fields_match(obj: Json, terms: tuple[tuple[str, str, bool], ...]) -> bool:
    """Whether an object fits every term of a field selector."""
    return all((field_value(obj, name) == value) is wanted for name, value, wanted in terms)
