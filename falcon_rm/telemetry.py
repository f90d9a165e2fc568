"""
The log: one line an action, one line a pass, on stderr.

1. One JSON object a line with the keys that Cloud Logging lifts (severity, time, message); for people, if they ask
   for it, a coloured line.
2. A message is a constant in the past tense; what varies stands in keys, spelt one way each: pass, job, actor, cluster,
   pool, action, from, to, reason, durationSeconds, err.
3. An expected failure is INFO with err; ERROR means that somebody must act.
4. A secret is blotted out on the way out, wherever it hides: in a text, a list, an object, a traceback, also of what
   nobody caught.
"""

import logging
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from types import TracebackType
from typing import Any, TextIO

import structlog
from attrs import field, frozen
from structlog.typing import FilteringBoundLogger, Processor

from falcon_rm.core.actions import (
    Action,
    Change,
    CreatePool,
    DeletePool,
    DeleteWork,
    EndLease,
    EnsureSlot,
    EnterPool,
    FreeSlot,
    MarkPool,
    Note,
    RecordHealth,
    ResumeWork,
    RetirePool,
    SubmitWork,
)
from falcon_rm.redaction import redact
from falcon_rm.report import describe

MESSAGES: Mapping[type[Any], str] = {
    Change: "Changed job",
    CreatePool: "Created pool",
    DeletePool: "Deleted pool",
    DeleteWork: "Deleted work",
    EndLease: "Ended lease",
    EnsureSlot: "Made slot",
    EnterPool: "Entered pool",
    FreeSlot: "Freed slot",
    MarkPool: "Noted times of pool",
    Note: "Noted",
    RecordHealth: "Recorded health of cluster",
    ResumeWork: "Let work go",
    RetirePool: "Retired pool",
    SubmitWork: "Submitted work",
}
"""What is said of an action that was carried out."""


def configure(log_format: str, *, secrets: Iterable[str] = (), stream: TextIO | None = None) -> None:
    """
    Set the log up for this process; what other libraries warn of goes the same way.

    Args:
        log_format: json or console.
        secrets: texts that must never show.
        stream: stderr if not given.
    """
    stream = stream or sys.stderr
    hidden = tuple(secrets)

    def blot(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {key: _blotted(value, hidden) for key, value in event.items()}

    shared: list[Processor] = [_severity, structlog.processors.TimeStamper(fmt="iso", utc=True, key="time")]
    last: list[Processor] = [structlog.processors.format_exc_info, blot]
    if log_format == "json":
        last += [_named, structlog.processors.JSONRenderer(ensure_ascii=False)]
    else:
        last += [structlog.dev.ConsoleRenderer(colors=stream.isatty())]
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def take_crashes() -> None:
    """Let an error that ends the process be one line of the log, as everything else is."""

    def crashed(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        log().critical("Crashed", exc_info=(kind, error, traceback))

    sys.excepthook = crashed


def _blotted(value: Any, secrets: tuple[str, ...]) -> Any:
    """Return *value* without secrets, in what JSON knows; anything else becomes its repr first."""
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {redact(str(key), secrets): _blotted(each, secrets) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_blotted(each, secrets) for each in value]
    return redact(value if isinstance(value, str) else repr(value), secrets)


def _severity(_logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Name the level as Cloud Logging does."""
    event["severity"] = {"warn": "WARNING", "exception": "ERROR"}.get(method, method.upper())
    return event


def _named(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Put what every line has first, by the names that Cloud Logging knows."""
    return {
        "severity": event.pop("severity"),
        "time": event.pop("time"),
        "message": event.pop("event"),
        **event,
    }


def log() -> FilteringBoundLogger:
    """Return the log."""
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


@frozen
class PassLog:
    """The log of one pass. *actors* has the actor of every job, *clusters* the name of every cluster, by id."""

    number: str
    actors: Mapping[str, str] = field(factory=dict)
    clusters: Mapping[str, str] = field(factory=dict)

    def acted(self, action: Action, *, result: str, seconds: float, err: str | None = None) -> None:
        """Write the line of one action: what was done, or with which *result* it was not."""
        line = describe(action)
        done = result in {"done", "told"}
        before, arrow, after = line.what.partition(" -> ")
        keys = {
            "pass": self.number,
            "job": line.job,
            "actor": self.actors.get(line.job or ""),
            "cluster": self.clusters.get(line.cluster or "", line.cluster),
            "pool": line.pool,
            "action": type(action).__name__,
            "from": before if arrow else None,
            "to": after or None,
            "reason": line.why or None,
            "result": None if done else result,
            "err": err,
            "durationSeconds": round(seconds, 3),
        }
        log().info(MESSAGES[type(action)] if done else "Did not act", **_told(keys))

    def ended(self, *, actions: int, unread: Iterable[str], brake: str | None, seconds: float) -> None:
        """Write the line of the whole pass: an ERROR if the brake holds, a WARNING if something was not read."""
        unknown = sorted(unread)
        level = logging.ERROR if brake else logging.WARNING if unknown else logging.INFO
        keys = {
            "pass": self.number,
            "actions": actions,
            "unread": unknown or None,
            "err": brake,
            "durationSeconds": round(seconds, 3),
        }
        log().log(level, "Finished pass", **_told(keys))


def _told(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return *keys* without those that say nothing."""
    return {key: value for key, value in keys.items() if value is not None}
