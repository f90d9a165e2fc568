"""
What the chips were used for: lives of node pools in, attributed chip-seconds out.

1. A pool counts from when Falcon asked GKE for it (or first saw it, if it did not ask) until the ledger closed it:
   nobody held it and a full list of the cluster lacked it. That is GKE's own time and at most one pass more at its end.
   A pool that no list ever had does not count once its row is closed.
2. Every second of a pool has one use, and belongs to one lease: waiting from the lease on, busy from when all pods of
   the job run, idle from the lease's end, releasing from when the pool is given up. What comes after a lease belongs to
   it until the next one begins; what comes before the first lease belongs to nobody.
3. Chips are those of the whole pool, whether or not its nodes are there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from attrs import evolve, field, frozen

DAY_SECONDS = 86400
"""Of a day in UTC, which in this count has no leap second."""


class Use(StrEnum):
    """What a pool is doing."""

    WAITING = "waiting"  # held: it is made, or nodes and pods come up
    BUSY = "busy"  # held: the job's pods ran
    IDLE = "idle"  # between two leases
    RELEASING = "releasing"  # given up, and not gone yet


@frozen
class Lease:
    """One row of `pool_leases`: who held the pool from when to when."""

    job: str
    actor: str
    experiment: str
    from_at: float
    running_at: float | None = None
    until_at: float | None = None


@frozen
class Life:
    """One row of `node_pools` with its leases, the oldest first."""

    cluster: str  # its name
    pool: str
    topology: str
    chips: int
    mode: str
    reservation: str | None = None
    requested_at: float | None = None
    seen_at: float | None = None
    deleting_at: float | None = None
    deleted_at: float | None = None
    leases: Sequence[Lease] = ()


@frozen
class Stretch:
    """A time in which nothing about a pool changed. *lease* is whose time it is."""

    life: Life
    use: Use
    lease: Lease | None
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.begin

    @property
    def actor(self) -> str | None:
        """Whose time it is; None: nobody's."""
        return self.lease.actor if self.lease else None


def span(life: Life, now: float) -> tuple[float, float] | None:
    """Return from when to when a pool counts; None if it never was."""
    if life.seen_at is None and life.deleted_at is not None:
        return None
    began = [at for at in (life.requested_at, life.seen_at) if at is not None]
    return (min(began), now if life.deleted_at is None else life.deleted_at) if began else None


def stretches(life: Life, now: float) -> Iterator[Stretch]:
    """Yield a pool's time in order, without a gap and without an overlap."""
    counted = span(life, now)
    if counted is None:
        return
    at, end = counted
    use, lease = Use.IDLE, None
    for changed, next_use, next_lease in (*_turns(life), (end, Use.IDLE, None)):
        turn = min(max(changed, at), end)
        if turn > at:
            yield Stretch(life, use, lease, at, turn)
        at, use, lease = turn, next_use, next_lease


def _turns(life: Life) -> Iterator[tuple[float, Use, Lease | None]]:
    """Yield when a pool's use changed, what it then was, and whose."""
    lease = None
    for lease in life.leases:
        yield lease.from_at, Use.WAITING, lease
        if lease.running_at is not None:
            yield lease.running_at, Use.BUSY, lease
        if lease.until_at is not None:
            yield lease.until_at, Use.IDLE, lease
    if life.deleting_at is not None:
        yield life.deleting_at, Use.RELEASING, lease


@frozen
class Window:
    """The time that is asked about; None: from the first pool on, until now."""

    since: float | None = None
    until: float | None = None

    def cut(self, stretch: Stretch) -> Stretch | None:
        """Return the part of a stretch that lies inside; None if there is none."""
        begin = stretch.begin if self.since is None else max(stretch.begin, self.since)
        end = stretch.end if self.until is None else min(stretch.end, self.until)
        if (begin, end) == (stretch.begin, stretch.end):
            return stretch
        return evolve(stretch, begin=begin, end=end) if begin < end else None


EVER = Window()


def day(at: float) -> str:
    """Return the day, UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def by_day(stretch: Stretch) -> Iterator[Stretch]:
    """Yield a stretch in pieces that lie within one day, UTC."""
    if stretch.begin // DAY_SECONDS == stretch.end // DAY_SECONDS:
        yield stretch
        return
    begin = stretch.begin
    while begin < stretch.end:
        midnight = datetime.fromtimestamp(begin, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        end = min(stretch.end, (midnight + timedelta(days=1)).timestamp())
        yield evolve(stretch, begin=begin, end=end)
        begin = end


KEYS: Mapping[str, Callable[[Stretch], str | None]] = {
    "actor": lambda stretch: stretch.actor,
    "cluster": lambda stretch: stretch.life.cluster,
    "mode": lambda stretch: stretch.life.mode,
    "reservation": lambda stretch: stretch.life.reservation,
    "experiment": lambda stretch: (stretch.lease.experiment or None) if stretch.lease else None,
    "job": lambda stretch: stretch.lease.job if stretch.lease else None,
    "day": lambda stretch: day(stretch.begin),
}
"""What chip-hours may be counted by."""

Key = tuple[str | None, ...]


@frozen
class Row:
    """What was used under one key: chip-seconds by use."""

    key: Key
    chip_seconds: Mapping[Use, float] = field(factory=dict)

    @property
    def total(self) -> float:
        """Chip-seconds of every use."""
        return sum(self.chip_seconds.values())


def all_stretches(lives: Iterable[Life], now: float, window: Window = EVER) -> Iterator[Stretch]:
    """Yield the time of every pool that lies in the window."""
    for life in lives:
        for stretch in stretches(life, now):
            inside = window.cut(stretch)
            if inside is not None:
                yield inside


def account(lives: Iterable[Life], now: float, by: Sequence[str] = (), window: Window = EVER) -> tuple[Row, ...]:
    """
    Return the chip-seconds of pools, by key in order; the empty key comes last.

    Args:
        lives: the pools.
        now: until when pools that are still there count.
        by: names of KEYS; none: one row for everything.
        window: what counts.
    """
    sums, parts = dict[Key, dict[Use, float]](), [KEYS[name] for name in by]
    for whole in all_stretches(lives, now, window):
        for stretch in by_day(whole) if "day" in by else (whole,):
            key = tuple(part(stretch) for part in parts)
            if key not in sums:
                sums[key] = dict.fromkeys(Use, 0.0)
            sums[key][stretch.use] += stretch.seconds * stretch.life.chips
    if not by:
        sums.setdefault((), dict.fromkeys(Use, 0.0))
    ordered = sorted(sums, key=lambda key: tuple((part is None, part or "") for part in key))
    return tuple(Row(key, sums[key]) for key in ordered)
