"""Migrations that may be repeated, and a check that names what `job` lacks."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.cloud.schema import ADDS, NEEDED, Problem, check, check_job, migrate, sql_files, steps
from falcon_rm.core.words import ErrorKind, Mode, PoolState
from falcon_rm.ports import StoreDown

pytestmark = pytest.mark.every_server

SQL = Path(__file__).parents[2] / "sql"


@pytest.fixture
def empty(empty_database: str) -> Iterator[Database]:
    """A database without tables."""
    connection = Database(parse_url(empty_database))
    yield connection
    connection.close()


@pytest.fixture
def whole(database: str) -> Iterator[Database]:
    """A database with all tables."""
    connection = Database(parse_url(database))
    yield connection
    connection.close()


def test_finds_the_files_of_the_tree() -> None:
    """What migrate reads is what sql/ holds, steps in the order of their numbers."""
    assert {path.name: path.read_text(encoding="utf-8") for path in SQL.glob("*.sql")} == dict(sql_files())
    assert [f"{number:03}" for number in range(1, len(steps()) + 1)] == [name[:3] for name in steps()]


@pytest.mark.parametrize("name", steps())
def test_a_step_is_one_statement(name: str) -> None:
    """One statement that may be repeated, so that a runner that dies between statement and record does no harm."""
    statement = "\n".join(line for line in steps()[name].splitlines() if not line.startswith("--"))
    repeatable = statement.startswith("CREATE TABLE IF NOT EXISTS ") or ADDS.match(statement) is not None
    assert (True, False) == (repeatable, ";" in statement)


def test_migrate_twice(empty: Database) -> None:
    """The second time there is nothing to do, and the instance id stays."""
    assert tuple(steps()) == migrate(empty)
    first = empty.rows("SELECT value FROM falcon_meta WHERE name = 'instance'")
    assert () == migrate(empty)
    assert first == empty.rows("SELECT value FROM falcon_meta WHERE name = 'instance'")
    assert (True, 10) == (str(first[0][0]).isalnum(), len(str(first[0][0])))


def test_migrate_two_at_once(empty_database: str) -> None:
    """Of two runners one takes each step, and neither fails."""

    def one(_: int) -> tuple[str, ...]:
        return migrate(Database(parse_url(empty_database)))

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, range(2))
    assert tuple(steps()) == tuple(sorted(first + second))


def test_migrate_goes_on_where_it_stopped(empty: Database) -> None:
    """A step that was made and not recorded is made again without harm."""
    migrate(empty)
    for step in steps():
        if step != "001_falcon_meta":
            empty.unit(lambda run, step=step: run.must("DELETE FROM falcon_meta WHERE name = %s", (f"step {step}",)))  # type: ignore[misc]
            assert (Problem(step, "this step was not taken", "falcon-rm db migrate"),) == check(empty)[:1]
            assert (step,) == migrate(empty)


def test_migrate_waits_only_so_long(empty_database: str, empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that is never given ends in an error, and nothing was made."""
    monkeypatch.setattr("falcon_rm.cloud.schema.LOCK_SECONDS", 0)
    other = Database(parse_url(empty_database))
    name = "falcon-" + sha256(empty.address.database.encode()).hexdigest()[:16]
    assert ((1,),) == other.rows("SELECT GET_LOCK(%s, 0)", (name,))
    with pytest.raises(StoreDown, match="another"):
        migrate(empty)
    other.close()
    assert () == empty.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("node_pools.error_kind", ErrorKind),
        ("workloads.error_kind", ErrorKind),
        ("node_pools.mode", Mode),
        ("node_pools.state", PoolState),
    ],
)
def test_an_enum_holds_every_word(whole: Database, column: str, words: type[ErrorKind | Mode | PoolState]) -> None:
    """What the code can write, the column takes; what the column takes, the code can read."""
    table, name = column.split(".")
    sql = "SELECT column_type FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s"
    ((column_type,),) = whole.rows(f"{sql} AND column_name = %s", (table, name))
    assert f"enum({','.join(repr(word.value) for word in words)})" == str(column_type)


def test_key_columns_are_compared_byte_by_byte(whole: Database) -> None:
    """Every text column of Falcon's tables has the binary collation (P97)."""
    sql = """
        SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = DATABASE() AND collation_name IS NOT NULL AND collation_name <> 'utf8mb4_bin'
    """
    assert () == whole.rows(sql)


def test_the_reference_fits(whole: Database) -> None:
    """A table made by sql/job.sql has everything."""
    assert () == check(whole)


def test_a_table_that_is_missing(empty: Database) -> None:
    """The statement that mends a missing table is the reference itself."""
    migrate(empty)
    (problem,) = check(empty)
    assert ("job", sql_files()["job.sql"]) == (problem.column, problem.statement)


@pytest.mark.parametrize("column", NEEDED)
def test_a_missing_column(whole: Database, column: str) -> None:
    """Each column is missed by name, and the statement makes one that does (P95)."""
    whole.rows("CREATE TABLE other (only_this INT)")
    whole.rows("DROP TABLE job")
    whole.rows("CREATE TABLE job LIKE other")
    problems = {problem.column: problem for problem in check_job(whole)}
    assert NEEDED.keys() == problems.keys()
    whole.rows(problems[column].statement)
    assert NEEDED.keys() - {column} == {problem.column for problem in check_job(whole)}


@pytest.mark.parametrize(
    ("column", "ddl", "what"),
    [
        ("message", "VARCHAR(255) NULL", "varchar(255) is too narrow"),
        ("message", "TEXT CHARACTER SET latin1 NULL", "character set latin1 does not hold every character"),
        ("spec", "TEXT NOT NULL", "text is too narrow"),
        ("id", "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL",
         "collation utf8mb4_general_ci takes different ids for one"),
        ("status", "ENUM('Pending', 'Running') NOT NULL", "enum('Pending','Running') does not fit"),
        ("reason", "VARCHAR(8) NULL", "varchar(8) is too narrow"),
        ("reason", "VARCHAR(64) NOT NULL", "does not take NULL"),
        ("retry_at", "DATETIME(6) NULL", "datetime(6) does not fit"),
        ("retry_at", "TIMESTAMP NULL", "timestamp keeps no microseconds"),
        ("version", "INT NOT NULL DEFAULT 0", "int"),
        ("attempt", "SMALLINT NOT NULL DEFAULT 0", "smallint"),
        ("outcome", "VARCHAR(4) NULL", "varchar(4) is too narrow"),
    ],
)  # fmt: skip
def test_a_column_that_does_not_do(whole: Database, column: str, ddl: str, what: str) -> None:
    """It is named with what is wrong, and the statement mends it (P95)."""
    whole.rows(f"ALTER TABLE job MODIFY COLUMN {column} {ddl}")
    (problem,) = check(whole)
    assert (column, True) == (problem.column, problem.what.startswith(what))
    whole.rows(problem.statement)
    assert () == check(whole)


def test_wider_columns_do(whole: Database) -> None:
    """Upstream may have wider types, further columns and a real JSON type."""
    whole.rows("ALTER TABLE job MODIFY spec JSON NOT NULL, MODIFY message LONGTEXT NULL, ADD COLUMN team TEXT NULL")
    whole.rows("ALTER TABLE job MODIFY attempt BIGINT NOT NULL DEFAULT 0, MODIFY cluster_id VARCHAR(64) NULL")
    assert () == check(whole)


def test_a_view_does(whole: Database) -> None:
    """A view named job is checked like a table."""
    whole.rows("RENAME TABLE job TO upstream_job")
    whole.rows("CREATE VIEW job AS SELECT * FROM upstream_job")
    assert () == check(whole)
