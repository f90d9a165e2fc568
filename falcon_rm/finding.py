"""
What a check found, and how that reads.

1. A finding has a verdict, what was seen, and, where something is to be done, the command that does it.
"""

from collections.abc import Iterable
from enum import StrEnum

from attrs import frozen

from falcon_rm.core.words import CloudError, ErrorKind


class Verdict(StrEnum):
    """How a check went; unknown: it could not be asked, or no call can tell."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@frozen
class Finding:
    """One line: what was looked at, how it is, what was seen, and the command that mends it."""

    check: str
    verdict: Verdict
    what: str
    command: str | None = None


def ok(name: str, what: str, command: str | None = None) -> Finding:
    """Return that something works."""
    return Finding(name, Verdict.OK, what, command)


def failed(name: str, what: str, command: str) -> Finding:
    """Return that something does not work."""
    return Finding(name, Verdict.FAILED, what, command)


def unknown(name: str, what: str, command: str | None = None) -> Finding:
    """Return that nobody knows whether something works."""
    return Finding(name, Verdict.UNKNOWN, what, command)


def refused(name: str, error: CloudError, command: str, ask: str) -> Finding:
    """Return what an error says: it was refused, which *command* mends, or no answer tells: *ask* asks once more."""
    if error.kind in (ErrorKind.UNKNOWN, ErrorKind.BUSY):
        return unknown(name, error.text, ask)
    return failed(name, error.text, command)


def lines(findings: Iterable[Finding]) -> str:
    """Return findings for people: a line each, and its command below."""
    told = []
    for each in findings:
        told.append(f"{each.verdict:<7}  {each.check:<21}  {each.what}")
        if each.command:
            told.append(f"{'':<7}  {'':<21}  $ {each.command}")
    return "\n".join(told)
