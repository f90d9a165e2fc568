"""Rows that no pass reads: what the tests look at to see what was done."""

from attrs import frozen

START = 1_700_000_000.0
"""When the databases of tests begin."""


@frozen
class Lease:
    """One row of `pool_leases`."""

    cluster_id: str
    pool: str
    job_id: str
    attempt: int
    actor: str
    exp_id: str
    owner: str
    mode: str
    reservation: str | None
    from_at: float
    until_at: float | None = None
    ended: str | None = None
    ended_text: str | None = None
    running_at: float | None = None


@frozen
class Event:
    """One row of `job_events`."""

    job_id: str
    at: float
    from_status: str
    from_reason: str | None
    to_status: str
    to_reason: str | None
    why: str
    message: str | None
    cluster_id: str | None
    pool: str | None
    attempt: int


@frozen
class Audit:
    """One row of `audit_events`, without who did it."""

    at: float
    kind: str
    subject: str
    text: str
