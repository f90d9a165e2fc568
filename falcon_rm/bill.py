"""
How chip-hours read: a table, CSV, JSON.

1. Every number is in chip-hours: chips of the pool times hours.
2. The last row of a table is the sum of all; for machines the sum stands apart.
"""

import csv
import io
from collections.abc import Iterable, Sequence

from falcon_rm.core.messages import moment
from falcon_rm.core.usage import Row, Use
from falcon_rm.report import as_json, table

HOUR = 3600


def as_table(by: Sequence[str], rows: Sequence[Row]) -> str:
    """Return rows of chip-hours under their headers, the sum last."""
    headers = [*(name.upper() for name in by), *(use.upper() for use in Use), "CHIP-HOURS"]
    cells: list[list[object]] = [[*row.key, *(f"{value:.2f}" for value in hours(row).values())] for row in rows]
    if by:
        cells.append(["total", *([" "] * (len(by) - 1)), *(f"{value:.2f}" for value in summed(rows).values())])
    return table(headers, cells)


def as_csv(by: Sequence[str], rows: Sequence[Row]) -> str:
    """Return rows of chip-hours as CSV with a header, without their sum."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*by, *(f"{name}_chip_hours" for name in (*Use, "total"))])
    writer.writerows([*row.key, *(f"{value:.6f}" for value in hours(row).values())] for row in rows)
    return file.getvalue().rstrip("\n")


def as_object(by: Sequence[str], rows: Sequence[Row], since: float | None, until: float) -> str:
    """Return rows of chip-hours and their sum as a JSON object."""
    return as_json({
        "unit": "chip-hours",
        "since": None if since is None else moment(since),
        "until": moment(until),
        "rows": [{**dict(zip(by, row.key, strict=True)), **hours(row)} for row in rows],
        "total": summed(rows),
    })  # fmt: skip


def hours(row: Row) -> dict[str, float]:
    """Return a row's chip-hours by use, and in all."""
    uses = {use.value: row.chip_seconds[use] / HOUR for use in Use}
    return {**uses, "total": row.total / HOUR}


def summed(rows: Iterable[Row]) -> dict[str, float]:
    """Return the chip-hours of all rows by use, and in all."""
    sums = dict.fromkeys((*(use.value for use in Use), "total"), 0.0)
    for row in rows:
        for name, value in hours(row).items():
            sums[name] += value
    return sums
