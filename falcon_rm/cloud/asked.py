"""
How often the clouds were asked by this process, and how that went: counted where requests leave, told to Prometheus.

1. Each request counts, also a second try; one that was given up at its deadline counts as unknown.
2. The words are closed sets: an API, a method of its client, ok or an ErrorKind. No name, path or text gets in.
3. Nothing is decided by it.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

from attrs import frozen

from falcon_rm.core.words import CloudError

T = TypeVar("T")

OK = "ok"


@frozen
class Name:
    """What is asked: an API, and a method of its client."""

    api: str
    method: str


_COUNTS = Counter[tuple[str, str, str]]()
_LOCK = threading.Lock()


def counted(name: Name, send: Callable[[], T]) -> T:
    """Return what *send* returns or raise what it raises, and count it."""
    code = OK
    try:
        return send()
    except CloudError as error:
        code = error.kind.value
        raise
    finally:
        with _LOCK:
            _COUNTS[name.api, name.method, code] += 1


def counts() -> Mapping[tuple[str, ...], float]:
    """Return (API, method, ok or an ErrorKind) -> how many requests there were."""
    with _LOCK:
        return {(*words,): count for words, count in _COUNTS.items()}
