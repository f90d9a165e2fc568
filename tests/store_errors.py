"""What a database server can say to a statement, by what it asks of Falcon (proof.md 5)."""

from severed_line import CONNECT, Cut, Fault

BUSY = (1205, 1213, 3572, 1020)
"""Somebody is at it: the unit is off for this pass."""

TAKEN = (1062,)
"""Somebody was first."""

DOWN = (1053, 1317, 1927, 1969, 3024, 4031, 1040, 1044, 1045, 1049, 1054, 1142, 1143, 1146, 1290, 1792, 1836, 1114)
"""No pass: what was written is unknown, and nothing is decided on it."""

REFUSED = (1406, 1366, 1265, 1264, 3819, 4025)
"""A value that its column refuses: the status is stored without its message, everything else is left as it is."""


def numbers_at(statement: str) -> tuple[int, ...]:
    """Return the errors that can strike a statement."""
    verb = statement.split(maxsplit=1)[0]
    if verb in (CONNECT, "SET"):
        return DOWN if verb == "SET" else ()
    refused = REFUSED if verb in ("INSERT", "UPDATE") else ()
    return (*BUSY, *DOWN, *refused, *(TAKEN if verb == "INSERT" else ()))


def said(number: int) -> str:
    """Return the statement to which a server answers an error of this number."""
    return f"SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'struck'"


def faults_at(statement: str) -> list[Fault]:
    """Return everything that can go wrong at a statement."""
    return [*map(said, numbers_at(statement)), Cut.BEFORE, Cut.AFTER]
