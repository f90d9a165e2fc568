"""
Who goes next in one queue: the pick rule (design.md 3).

1. Highest priority present first; in it each actor's oldest; of these the actor served longest ago, never served first.
2. Ties go to the older submission, then to the smaller id.
3. The place of a job is its submission: nothing that happens to it moves it.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush

from falcon_rm.core.model import Job


def place(job: Job) -> tuple[float, str]:
    """Return the order of submission."""
    return job.created_at, job.id


def line(jobs: Iterable[Job], served: Mapping[str, float]) -> Iterator[Job]:
    """
    Yield waiting jobs of one queue in the order in which they will be picked if nothing changes.

    Args:
        jobs: those that count; leave out who cannot start now to find who is picked now.
        served: when each actor was last served in this queue; an actor that never was is missing.
    """
    by_priority: dict[int, dict[str, list[Job]]] = defaultdict(lambda: defaultdict(list))
    for job in jobs:
        by_priority[job.priority][job.actor].append(job)
    turn: dict[str, tuple[int, float]] = {actor: (0, at) for actor, at in served.items()}
    count = 0
    for priority in sorted(by_priority, reverse=True):
        backlogs = {actor: deque(sorted(own, key=place)) for actor, own in by_priority[priority].items()}
        heap = [(turn.get(actor, (-1, 0.0)), place(own[0]), actor) for actor, own in backlogs.items()]
        heapify(heap)
        while heap:
            _, _, actor = heappop(heap)
            yield backlogs[actor].popleft()
            count += 1
            turn[actor] = (1, float(count))
            if backlogs[actor]:
                heappush(heap, (turn[actor], place(backlogs[actor][0]), actor))
