"""Commands that are asked wrongly, and tables that do not fit: one line, the right exit code, nothing half done."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from processes import COMMAND, Site, people, site, until

from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.cloud.schema import steps as schema_steps

JOB = {"id": "there", "actor": "ann", "spec": {"image": "i", "command": "true", "device_type": "cpu"}}
WHERE = ("--project", "my-project", "--location", "us-central1-a", "--tpu-type", "v6e")
NO_CLUSTERS: dict[str, list[str]] = {"clusters": []}

FILES = {
    "new-then-wrong.yaml": "{id: new, actor: ann, spec: {image: i}}\n---\n{id: other, actor: ann}\n",
    "new-then-there.yaml": "{id: new, actor: ann, spec: {image: i}}\n---\n{id: there, actor: ann, spec: {image: i}}\n",
    "twice.yaml": "{id: new, actor: ann, spec: {}}\n---\n{id: new, actor: ann, spec: {}}\n",
    "stranger.yaml": "{id: new, actor: ann, spec: {}, status: Running}\n",
    "broken.yaml": "{id: new, actor: [ann\n",
    "nothing.yaml": "# no job\n",
    "new.yaml": "{id: new, actor: ann, spec: {image: i}}\n",
}
"""Files to submit; the job `there` is there already."""

WRONG = {
    "submit": (64, "Missing option '-f'"),
    "submit -f none.yaml": (64, "none.yaml"),
    "submit -f new.yaml more": (64, "unexpected extra argument"),
    "submit -f new-then-wrong.yaml": (1, "document 2: spec is missing"),
    "submit -f new-then-there.yaml": (1, "job 'there' is there already"),
    "submit -f new.yaml -f twice.yaml": (1, "given more than once"),
    "submit -f stranger.yaml": (1, "unknown column 'status'"),
    "submit -f broken.yaml": (1, "neither JSON nor YAML"),
    "submit -f new.yaml -f nothing.yaml": (1, "no job in it"),
    "abort": (64, "Missing argument 'JOB'"),
    "abort nobody": (1, "there is no job 'nobody'"),
    "abort there there": (64, "unexpected extra argument"),
    "abort --now there": (64, "No such option"),
    "cluster add c2": (64, "Missing option '--project'"),
    "cluster add c1 {where}": (1, "cluster 'c1' is registered already"),
    "cluster add C_2 {where}": (64, "name holds 'C_2'"),
    "cluster add c2 {where} --tpu-type v9": (64, "tpu_type holds 'v9'"),
    "cluster add c2 {where} --location moon": (64, "location holds 'moon'"),
    "cluster add c2 {where} --gcs-bucket gs://b": (64, "gcs_bucket holds 'gs://b'"),
    "cluster set c1": (64, "Nothing to change"),
    "cluster set c1 --status asleep": (64, "status holds 'asleep'"),
    "cluster set c1 --zone us-central1-b --endpoint udp": (64, "endpoint holds 'udp'"),
    "cluster set c9 --status offline": (1, "there is no cluster 'c9'"),
    "cluster check c9": (1, "there is no cluster 'c9'"),
    "cluster check": (64, "Missing argument 'NAME'"),
    "cluster drain c9": (1, "there is no cluster 'c9'"),
    "cluster drain c1 --timeout soon": (64, "'soon'; allowed: written like 90, 90s, 15m, 6h or 7d"),
    "cluster remove c1": (1, "cluster 'c1' is active; first: falcon-rm cluster drain c1"),
    "cluster abandon c9 --yes": (1, "there is no cluster 'c9'"),
    "cluster grow": (64, "No such command 'grow'"),
    "usage --since soon": (64, "'soon'; allowed: so long ago, like 7d"),
    "usage --by colour": (64, "'colour' is not one of"),
    "usage --picture /": (64, "is a directory"),
    "plan -o xml": (64, "'xml' is not"),
    "plan now": (64, "unexpected extra argument"),
    "run-once --allow": (64, "No such option"),
    "db drop": (64, "No such command 'drop'"),
    "db migrate --force": (64, "No such option"),
    "fly": (64, "No such command 'fly'"),
}
"""What is typed -> exit code, and what the line says. `{where}` stands for what a cluster needs."""

NARROW = """
    ALTER TABLE job DROP COLUMN outcome, MODIFY COLUMN message VARCHAR(20) NULL, MODIFY COLUMN started_at TIMESTAMP NULL
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose cloud nobody needs."""
    with site(tmp_path_factory.mktemp("site"), NO_CLUSTERS) as opened:
        yield opened


@pytest.fixture
def rows(database: str) -> Iterator[Database]:
    """The database, to look at and to break."""
    opened = Database(parse_url(database))
    yield opened
    opened.close()


def test_wrong_input_changes_nothing(there: Site, controller_url: str, rows: Database, tmp_path: Path) -> None:
    """Whatever is typed wrongly ends with its exit code and one line on stderr, and no row of any table is changed."""
    people(controller_url, "submit", "-f", "-", text=json.dumps(JOB))
    people(controller_url, "cluster", "add", "c1", *WHERE)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    tables = [str(name) for (name,) in rows.rows("SHOW TABLES")]
    before = {name: rows.rows(f"SELECT * FROM {name}") for name in tables}
    started = {}
    for typed in WRONG:
        words = [word for part in typed.split() for word in (WHERE if part == "{where}" else (part,))]
        paths = [str(tmp_path / word) if word.endswith(".yaml") else word for word in words]
        started[typed] = there.begin(controller_url, *paths)
    for typed, (code, says) in WRONG.items():
        ended = started[typed].wait()
        assert (code, "", 1) == (ended.code, ended.out, ended.err.count("\n")), (typed, ended)
        assert ended.err.startswith("error: "), (typed, ended)
        assert says in ended.err, (typed, ended)
    assert before == {name: rows.rows(f"SELECT * FROM {name}") for name in tables}


def test_wrong_settings_are_told_at_once(there: Site, controller_url: str) -> None:
    """Every setting that cannot be is named, all in the one line that ends the command."""
    ended = there.falcon(controller_url, "run", FALCON_INTERVAL="soon", FALCON_LANG="fr", FALCON_INTERVALL="1s")
    assert (1, "", 1) == (ended.code, ended.out, ended.err.count("\n"))
    assert [True] * 3 == [name in ended.err for name in ("FALCON_INTERVAL ", "FALCON_LANG", "FALCON_INTERVALL")]


def test_two_migrations_at_once(empty_database: str) -> None:
    """Two processes migrate at the same time: both end well, each step is taken once, a third has nothing to do."""
    command = [*COMMAND, "db", "migrate"]
    environment = {"FALCON_DATABASE_URL": empty_database}
    pair = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    steps = sorted(line for process in pair for line in process.communicate(timeout=60)[0].splitlines())
    third = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)

    assert [0, 0] == [process.returncode for process in pair]
    assert [f"step/{name[:3]}" for name in schema_steps()] == [
        line.partition("_")[0] for line in steps if line != "nothing to do"
    ]
    assert "nothing to do\n" == third.stdout


def test_run_refuses_a_table_that_does_not_fit(there: Site, controller_url: str, rows: Database) -> None:
    """Run ends with 1 and names each column with the statement that mends it; after these it starts (P95)."""
    rows.rows(NARROW)
    refused = there.falcon(controller_url, "run")
    assert (1, "", 1) == (refused.code, refused.out, refused.err.count("\n"))
    statements = re.findall(r"mend it with: (.*?)(?:\. |$)", refused.err)
    assert ["message", "outcome", "started_at"] == sorted(statement.split()[5] for statement in statements)
    for statement in statements:
        rows.rows(statement)
    assert (0, "everything is there\n", "") == attrs.astuple(there.falcon(controller_url, "db", "check"))
    process = there.begin(controller_url, "run")
    until(process.made_a_pass, 30)
    process.kill(signal.SIGTERM)
    assert 0 == process.wait(10).code
