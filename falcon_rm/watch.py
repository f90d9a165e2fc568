"""
What `falcon-rm status --watch` shows: as much of the overview as fits a terminal.

1. Nothing is wider or longer than the terminal; what is left out is counted.
2. Lines go where they are needed: a section that needs few leaves the rest to the others.
"""

from collections.abc import Sequence

from falcon_rm.core.messages import moment
from falcon_rm.overview import SECTIONS, JobRow, Overview, Section, cells, narrow, rows_of, short
from falcon_rm.report import NONE, table

ENDED = {"Succeeded", "Failed", "Aborted"}


def head(seen: Overview) -> str:
    """Return when this was, and how many live jobs stand where."""
    numbers: dict[str, int] = {}
    for job in seen.jobs:
        if job.status not in ENDED:
            numbers[job.status] = numbers.get(job.status, 0) + 1
    told = ", ".join(f"{number} {status}" for status, number in sorted(numbers.items()))
    return f"{moment(seen.now)}  jobs: {told or NONE}"


def screen(seen: Overview, width: int, height: int, *, sections: Sequence[Section] = SECTIONS) -> str:
    """Return what fits a terminal: of each section as many rows as its share of the lines allows, busy jobs first."""
    lists = [list(rows_of(seen, each)) for each in sections]
    for rows, section in zip(lists, sections, strict=True):
        if section.kind == "job":
            rows.sort(key=_rank)
    spare = height - 1 - 2 * len(sections)  # the head; a heading and an empty line each
    shares = share([len(rows) for rows in lists], spare)
    parts = [head(seen)[:width]]
    for section, rows, lines in zip(sections, lists, shares, strict=True):
        columns = narrow(section)
        cut = rows if len(rows) <= lines else rows[: max(0, lines - 1)]
        headers = [section.plural.upper(), *(header for header, _, _ in columns[1:])]
        parts.append(table(headers, [short(cells(seen, columns, row)) for row in cut], width=width))
        if len(cut) < len(rows):
            parts[-1] += f"\n... and {len(rows) - len(cut)} more"
    return parts[0] + "\n" + "\n\n".join(parts[1:])


def share(wanted: Sequence[int], lines: int) -> list[int]:
    """Return how many lines each gets: what it wants, and where that is too much as many as the others."""
    given = [0] * len(wanted)
    left = max(0, lines)
    for done, index in enumerate(sorted(range(len(wanted)), key=lambda index: wanted[index])):
        given[index] = min(wanted[index], left // (len(wanted) - done))
        left -= given[index]
    return given


def _rank(job: JobRow) -> int:
    """Return the order of interest: who acquires, runs or ends, then who waits, then who has ended."""
    if job.status in ENDED:
        return 2
    return 1 if job.status == "Pending" and job.reason in {None, "Waiting", "ClusterBusy"} else 0
