"""
The tables: made by numbered steps, and upstream's `job` compared with what is needed.

1. A step is one file of sql/ with one statement that may be repeated; `falcon_meta` has a row for each that was taken.
2. One runner at a time, by a named lock with a bounded wait; losing the lock half-way does no harm, see 1.
3. Upstream's table is never altered: what it lacks is named, with the statement that mends it (P95).
4. NEEDED is the only list of what `job` must have; sql/job.sql is its reference form.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from uuid import uuid4

from attrs import frozen

from falcon_rm.cloud.database import Database
from falcon_rm.ports import StoreDown

LOCK_SECONDS, LOCK_TRIES = 2, 15
"""Each wait for the lock is shorter than the read time-out of the connection."""

ADDS = re.compile(r"^ALTER TABLE (\w+) ADD (COLUMN|KEY) (\w+) ", re.MULTILINE)
"""A step that, unlike CREATE TABLE IF NOT EXISTS, is not carried out again if nobody recorded that it was."""

IS_THERE = {
    kind: f"SELECT 1 FROM information_schema.{view} WHERE table_schema = DATABASE() AND table_name = %s AND {name} = %s"
    for kind, view, name in (("COLUMN", "columns", "column_name"), ("KEY", "statistics", "index_name"))
}
"""What tells that such a step was carried out."""

STEP = "step "
"""What the names of steps begin with in `falcon_meta`."""


@frozen
class Problem:
    """Something that `db check` names: the column, what is wrong, the statement that mends it."""

    column: str
    what: str
    statement: str


@frozen
class Needed:
    """
    What a column of `job` must be.

    *kind* is a key of FITTING; *least* the characters a text must take; *empty* whether it must take NULL.
    """

    kind: str
    ddl: str
    least: int = 0
    empty: bool = False


def _text(length: int) -> Needed:
    return Needed("text", f"VARCHAR({length}) NULL", length, empty=True)


TIME = Needed("time", "TIMESTAMP(6) NULL", empty=True)
COUNT = Needed("integer", "INT NOT NULL DEFAULT 0")

NEEDED = {
    "id":              Needed("key", "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL", 64),
    "name":            Needed("text", "VARCHAR(255) NULL", 1),
    "actor":           Needed("text", "VARCHAR(255) NOT NULL", 1),
    "spec":            Needed("document", "LONGTEXT NOT NULL", 2**24 - 1),
    "priority":        COUNT,
    "timeout_seconds": Needed("integer", "INT NULL"),
    "artifact_path":   Needed("text", "VARCHAR(512) NULL", 1),
    "created_at":      Needed("time", "TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"),
    "status":          Needed("text", "VARCHAR(16) NOT NULL DEFAULT 'Pending'", 16),
    "reason":          _text(64),
    "message":         Needed("message", "TEXT CHARACTER SET utf8mb4 NULL", 4096, empty=True),
    "aborting_at":     TIME,
    "cluster_id":      Needed("text", "CHAR(36) NULL", 36, empty=True),
    "topology":        _text(32),
    "node_pool_name":  _text(64),
    "job_uid":         _text(64),
    "supply_mode":     _text(16),
    "attempt":         COUNT,
    "pool_failures":   COUNT,
    "losses":          COUNT,
    "retry_at":        TIME,
    "outcome":         _text(16),
    "queued_at":       TIME,
    "provisioning_at": TIME,
    "dispatched_at":   TIME,
    "started_at":      TIME,
    "finished_at":     TIME,
    "aborted_at":      TIME,
    "version":         Needed("big integer", "BIGINT NOT NULL DEFAULT 0"),
}  # fmt: skip
"""The columns of `job` (contract.md 2)."""

TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
FITTING = {
    "key": TEXTS,
    "text": TEXTS,
    "message": TEXTS,
    "document": TEXTS | {"json"},
    "integer": frozenset({"int", "bigint"}),
    "big integer": frozenset({"bigint"}),
    "time": frozenset({"timestamp"}),
}
"""Kind -> the server's data types that fit."""

ACTUAL = """
    SELECT column_name, data_type, character_maximum_length, datetime_precision, is_nullable, collation_name,
           character_set_name, column_type
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'job'
"""


def sql_files() -> Mapping[str, str]:
    """Return name -> text of the files of sql/: from the installed package, else from the source tree."""
    folder: Traversable
    try:
        folder = files("falcon_rm.sql")
    except ModuleNotFoundError:
        folder = Path(__file__).parents[2] / "sql"
    found = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".sql")}
    return dict(sorted(found.items()))


def steps() -> Mapping[str, str]:
    """Return name -> statement of the numbered steps, in order."""
    return {name.removesuffix(".sql"): text for name, text in sql_files().items() if re.match(r"\d+_", name)}


def migrate(database: Database) -> tuple[str, ...]:
    """
    Take the steps that were not taken yet, and give the database its instance id.

    Returns:
        The steps taken now.

    Raises:
        StoreDown: another runner holds the lock for too long, or a step failed; what was taken stays.
    """
    name = "falcon-" + sha256(database.address.database.encode()).hexdigest()[:16]
    for _ in range(LOCK_TRIES):
        if database.rows("SELECT GET_LOCK(%s, %s)", (name, LOCK_SECONDS)) == ((1,),):
            break
    else:
        raise StoreDown("another falcon-rm db migrate is at it")
    try:
        done = _taken(database)
        todo = {step: statement for step, statement in steps().items() if step not in done}
        for step, statement in todo.items():
            if not _is_carried_out(database, statement):
                database.rows(statement)
            _remember(database, STEP + step, "done")
        _remember(database, "instance", uuid4().hex[:10])
        return tuple(todo)
    finally:
        database.close()  # and with it goes the lock


def _is_carried_out(database: Database, statement: str) -> bool:
    """Return whether the first that a step adds is there: a runner died before it could record the step."""
    added = ADDS.search(statement)
    return bool(added and database.rows(IS_THERE[added[2]], (added[1], added[3])))


def _taken(database: Database) -> frozenset[str]:
    there = database.rows(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'falcon_meta'"
    )
    if not there:
        return frozenset()
    names = (str(name) for (name,) in database.rows("SELECT name FROM falcon_meta"))
    return frozenset(name.removeprefix(STEP) for name in names if name.startswith(STEP))


def _remember(database: Database, name: str, value: str) -> None:
    """Write a row of `falcon_meta`, unless it stands there already."""
    database.unit(lambda run: run.must("INSERT INTO falcon_meta (name, value) VALUES (%s, %s)", (name, value)))


def check(database: Database) -> tuple[Problem, ...]:
    """Return what keeps Falcon from working on this database; nothing is changed."""
    done = _taken(database)
    if not done:
        database.has("falcon_meta")  # what may not be read looks as if it were missing
    missing = [Problem(step, "this step was not taken", "falcon-rm db migrate") for step in steps() if step not in done]
    return (*missing, *check_job(database))


def check_job(database: Database) -> tuple[Problem, ...]:
    """Return what `job`, a table or a view, lacks."""
    actual = {str(row[0]).lower(): Actual(*row[1:]) for row in database.rows(ACTUAL)}  # type: ignore[arg-type]
    if NEEDED.keys() - actual.keys():
        database.has("job")
    if not actual:
        return (Problem("job", "there is no table or view of this name", sql_files()["job.sql"]),)
    problems = []
    for name, needed in NEEDED.items():
        if name not in actual:
            problems.append(Problem(name, "missing", f"ALTER TABLE job ADD COLUMN {name} {needed.ddl}"))
        elif what := misfit(needed, actual[name]):
            problems.append(Problem(name, what, f"ALTER TABLE job MODIFY COLUMN {name} {needed.ddl}"))
    return tuple(problems)


@frozen
class Actual:
    """A column as information_schema shows it."""

    data_type: str
    characters: int | None
    precision: int | None
    nullable: str
    collation: str | None
    charset: str | None
    column_type: str


def misfit(needed: Needed, actual: Actual) -> str | None:
    """Return why a column does not do, in a few words; None if it does."""
    data_type = actual.data_type.lower()
    if data_type not in FITTING[needed.kind]:
        return f"{actual.column_type} does not fit"
    if data_type in TEXTS and (actual.characters or 0) < needed.least:
        return f"{actual.column_type} is too narrow"
    if needed.kind == "time" and (actual.precision or 0) < 6:
        return f"{actual.column_type} keeps no microseconds"
    if needed.kind in ("key", "message") and actual.charset != "utf8mb4":
        return f"character set {actual.charset} does not hold every character"
    if needed.kind == "key" and not (actual.collation or "").endswith("_bin"):
        return f"collation {actual.collation} takes different ids for one"
    if needed.empty and actual.nullable != "YES":
        return "does not take NULL"
    return None
