"""Plain JSON values of the simulated servers: copying them, writing times and quantities."""

import marshal
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

Json = dict[str, Any]
"""A JSON object as the real API shows it, camelCase."""

WITHOUT_REFERENCES = 2  # of marshal's versions: what stands twice in a value is copied twice

SUFFIXES = {
    "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50,
}  # fmt: skip


def clone(value: Any) -> Any:
    """Return a copy of a JSON value that shares nothing with it."""
    return marshal.loads(kept(value))


def kept(value: Any) -> bytes:
    """Return a JSON value as bytes that are equal for equal values, of which marshal makes it again."""
    try:
        return marshal.dumps(value, WITHOUT_REFERENCES)
    except ValueError:  # a word of an enum stands in it
        return marshal.dumps(_plain(value), WITHOUT_REFERENCES)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


@lru_cache(maxsize=10_000)
def rfc3339(seconds: float) -> str:
    """Return a time as Google Cloud writes it, with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@lru_cache(maxsize=10_000)
def kube_time(seconds: float) -> str:
    """Return a time as Kubernetes writes it, in whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def quantity(text: object) -> float:
    """Return the number a Kubernetes quantity stands for; raises ValueError if it is none."""
    return _number(str(text))


@cache
def _number(word: str) -> float:
    digits = word.rstrip("".join(sorted({letter for suffix in SUFFIXES for letter in suffix})))
    if digits and (digits[-1].isdigit() or digits[-1] == "."):
        return float(digits) * suffix_of(word[len(digits) :])
    raise ValueError(word)


def suffix_of(word: str) -> float:
    """Return the factor of a quantity's suffix."""
    if word not in SUFFIXES:
        raise ValueError(word)
    return SUFFIXES[word]


def seconds_of(duration: object) -> float:
    """Return the seconds of a proto3 JSON Duration such as "600s"."""
    return float(str(duration).removesuffix("s"))
