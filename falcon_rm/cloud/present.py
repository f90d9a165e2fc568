"""
What stands in the database now, read for people; passes read it through rows.py, the past is history.py's.

1. Only columns that are shown are read, specs never: ten thousand jobs are read in a fraction of a second.
2. Bounded where the past comes in: of the last ENDS_SEEN ends, at most ENDED_SHOWN jobs.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from falcon_rm.cloud.database import Argument, Database
from falcon_rm.cloud.rows import CLUSTER, JOB, LIVE, NOW, named, read_health, seconds
from falcon_rm.core.words import CPU_TOPOLOGY
from falcon_rm.overview import SHOWN, SHOWN_WIDE, ClusterRow, JobRow, Overview, PoolRow, QueueRow, Wanted
from falcon_rm.ports import Refused

ENDS_SEEN, ENDED_SHOWN = 2000, 50

COLUMNS = {None: SHOWN, "name": SHOWN, "wide": SHOWN_WIDE}
"""What each form shows of `job`; the forms for machines everything."""

ROOM = re.compile(r"reservation_remaining_slices=(\d+)")
"""What a job that shows ClusterBusy is told (contract.md 3)."""

ROOMS = """
    SELECT cluster_id, topology, MAX(message) FROM job
    WHERE status = 'Pending' AND reason = 'ClusterBusy' AND cluster_id IS NOT NULL AND topology IS NOT NULL
    GROUP BY cluster_id, topology ORDER BY cluster_id, topology
"""

WHOLE = tuple(column for column in JOB if column != "spec")

QUEUES = f"""
    SELECT cluster_id, topology, SUM(status = 'Pending' AND reason IN ('Waiting', 'ClusterBusy')),
           SUM(status = 'Running')
    FROM job WHERE {LIVE} AND cluster_id IS NOT NULL AND topology <> '{CPU_TOPOLOGY}'
    GROUP BY cluster_id, topology
"""
SLOTS = """FROM (
    SELECT s.cluster_id, s.topology, s.holder, s.held_at, j.actor, IF(j.status = 'Pending', j.reason, NULL) AS phase
    FROM queue_slots s LEFT JOIN job j ON j.id = s.holder
) t"""
SLOT = ("cluster_id", "topology", "holder", "held_at", "actor", "phase")

POOLS = """FROM (
    SELECT p.*, j.actor FROM node_pools p LEFT JOIN job j ON j.id = p.lease WHERE p.state IN ('Active', 'Deleting')
) t"""
POOL = (
    "name", "cluster_id", "topology", "machine_type", "hosts", "chips", "mode", "state", "reservation", "lease",
    "actor", "leased_at", "requested_at", "seen_at", "up_at", "ready_at", "idle_at", "error_kind", "error_text",
    "error_at",
)  # fmt: skip

ENDED = f"""FROM (
    SELECT j.*, e.last FROM (
        SELECT job_id, MAX(id) AS last FROM (
            SELECT job_id, id FROM job_events WHERE to_status IN ('Succeeded', 'Failed', 'Aborted')
            ORDER BY id DESC LIMIT {ENDS_SEEN}
        ) ends GROUP BY job_id
    ) e JOIN job j ON j.id = e.job_id WHERE NOT j.{LIVE}
) t"""


def read(database: Database, wanted: Wanted, output: str | None) -> Overview:
    """
    Return what is wanted of what there is.

    Args:
        database: where it stands.
        wanted: which rows.
        output: in which form they will be shown.

    Raises:
        Refused: there is no such cluster.
    """
    clusters = read_clusters(database)
    chosen = tuple(each for each in clusters if wanted.cluster in {None, each.name})
    if not chosen and wanted.cluster is not None:
        raise Refused(f"there is no cluster {wanted.cluster!r}")
    kinds = {section.kind for section in wanted.sections()}
    ((now,),) = database.rows(NOW)
    names = {each.id: each.name for each in clusters}
    queues = _queues(database, chosen) if "queue" in kinds else ()
    pools = _pools(database, names, wanted) if "pool" in kinds else ()
    jobs = _jobs(database, names, wanted, COLUMNS.get(output, WHOLE))
    return Overview(seconds(now) or 0.0, chosen, queues, pools, jobs)


def read_clusters(database: Database) -> tuple[ClusterRow, ...]:
    """Return every cluster, by name; reachable and room are what the last pass that looked wrote down."""
    health, rooms = read_health(database), _rooms(database)
    found = []
    for row in named(database, CLUSTER, "FROM clusters t"):
        problem, zone = health.get(row["id"], (None, None))
        looked = row["id"] in health and row["status"] in ("active", "maintenance")
        reachable = problem is None if looked else None
        room = rooms.get(row["id"], {})
        found.append(ClusterRow(reachable=reachable, problem=problem, used_zone=zone, room=room, **row))
    return tuple(sorted(found, key=lambda row: row.name))


def _rooms(database: Database) -> dict[str, dict[str, int]]:
    """Return the slices that reservations have left, by cluster id and topology, where somebody waits for them."""
    rooms: dict[str, dict[str, int]] = {}
    for cluster_id, topology, message in database.rows(ROOMS):
        told = ROOM.search(str(message))
        if told:
            rooms.setdefault(str(cluster_id), {})[str(topology)] = int(told[1])
    return rooms


def _queues(database: Database, clusters: Sequence[ClusterRow]) -> tuple[QueueRow, ...]:
    """Return every queue that has a slot, or a job that waits or runs."""
    slots = {(row.pop("cluster_id"), row.pop("topology")): row for row in named(database, SLOT, SLOTS)}
    numbers = {(str(row[0]), str(row[1])): row[2:] for row in database.rows(QUEUES)}
    found = []
    for cluster in clusters:
        for key in sorted(key for key in slots.keys() | numbers.keys() if key[0] == cluster.id):
            waiting, running = numbers.get(key, (0, 0))
            found.append(
                QueueRow(
                    cluster=cluster.name,
                    topology=key[1],
                    waiting=int(str(waiting)),
                    running=int(str(running)),
                    reserved=bool(cluster.default_reservation),
                    room=cluster.room.get(key[1]),
                    **slots.get(key, {}),
                )
            )
    return tuple(found)


def _pools(database: Database, names: Mapping[str, str], wanted: Wanted) -> tuple[PoolRow, ...]:
    """Return the node pools that are not Deleted, by cluster and name."""
    where, arguments = _where(names, wanted, ("cluster_id", "actor"))
    rows = (_placed(row, names) for row in named(database, POOL, f"{POOLS} WHERE {where}", arguments))
    found = [PoolRow(**{name: value for name, value in row.items() if name != "cluster_id"}) for row in rows]
    return tuple(sorted(found, key=lambda row: (row.cluster, row.name)))


def _jobs(database: Database, names: Mapping[str, str], wanted: Wanted, columns: Sequence[str]) -> tuple[JobRow, ...]:
    """Return the live jobs, oldest first, and those that ended last, newest first."""
    where, arguments = _where(names, wanted, ("cluster_id", "actor", "status"))
    live = f"FROM job t WHERE t.{LIVE} AND {where} ORDER BY t.created_at, t.id"
    ended = f"{ENDED} WHERE {where} ORDER BY t.last DESC LIMIT {ENDED_SHOWN}"
    return tuple(
        JobRow(**_placed(row, names)) for rest in (live, ended) for row in named(database, columns, rest, arguments)
    )


def _where(names: Mapping[str, str], wanted: Wanted, columns: Sequence[str]) -> tuple[str, list[Argument]]:
    """Return the condition of a filter on those of the columns that a table has."""
    chosen = {
        "cluster_id": [key for key, name in names.items() if name == wanted.cluster],
        "actor": [] if wanted.actor is None else [wanted.actor],
        "status": list(wanted.statuses),
    }
    terms, arguments = ["TRUE"], list[Argument]()
    for column in columns:
        if chosen[column]:
            terms.append(f"t.{column} IN ({', '.join(['%s'] * len(chosen[column]))})")
            arguments += chosen[column]
    return " AND ".join(terms), arguments


def _placed(row: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a row with its cluster's name; its id if the registry has it no more."""
    return {**row, "cluster": names.get(row["cluster_id"], row["cluster_id"])}
