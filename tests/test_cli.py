"""The command line: what each command takes, says and ends with."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from database_roles import url_for

from falcon_rm import __version__
from falcon_rm.cli import build, commands

Cli = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("kept_log")

JOB = {"id": "bench-7", "actor": "user-a", "spec": {"image": "busybox:1.36", "device_type": "cpu", "command": "true"}}

ADD = ("cluster", "add", "c1", "--project", "project-1", "--location", "us-central1", "--tpu-type", "tpu7x")


@pytest.fixture
def offline() -> Cli:
    """The command line without a database."""
    return lambda *arguments, **more: CliRunner().invoke(commands, arguments, obj=build(more.pop("env", {})), **more)


@pytest.fixture
def cli(controller_url: str) -> Cli:
    """The command line on a new database, each command under the role of who gives it."""

    def ask(*arguments: str, **more: Any) -> Result:
        app = build({"FALCON_DATABASE_URL": url_for(controller_url, arguments)})
        return CliRunner().invoke(commands, arguments, obj=app, **more)

    return ask


def every(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that name it."""
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every(command, (*path, name))


def complaint(result: Result, code: int) -> str:
    """Return the one line on stderr of a command that failed with *code* and answered nothing."""
    assert (code, "") == (result.exit_code, result.stdout), result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


@pytest.mark.parametrize("path", [path for path, _ in every(commands)], ids=" ".join)
def test_help_has_an_example(offline: Cli, path: tuple[str, ...]) -> None:
    """Every command's help shows an example that names it."""
    result = offline(*path, "--help")
    assert 0 == result.exit_code
    assert "Example:\n" in result.stdout
    assert f"falcon-rm {' '.join(path)}" in result.stdout


def test_summaries_are_whole(offline: Cli) -> None:
    """What each command does stands whole in the list of its group, on 80 columns too."""
    for path in ((), ("cluster",), ("db",)):
        told = offline(*path, "--help").stdout.partition("Commands:\n")[2].splitlines()
        assert [] == [line for line in told if not line.endswith(".") or line.endswith("...")]


def test_version(offline: Cli) -> None:
    """The version is the package's."""
    assert f"falcon-rm {__version__}\n" == offline("--version").stdout


def test_help_is_quick() -> None:
    """Help of every command, the version and completion come without the libraries of any cloud or database."""
    heavy = ("google", "grpc", "kubernetes", "pymysql", "structlog", "requests", "urllib3", "yaml", "cattrs", "rich")
    asked = [
        ["--version"],
        [],
        ["frobnicate"],
        ["completion", "fish"],
        *([*path, "--help"] for path, _ in every(commands)),
    ]
    script = f"""
import sys
from falcon_rm.cli import commands
for words in {[["--help"], *asked]}:
    commands(words, standalone_mode=False)
    found = [name for name in {heavy} if name in sys.modules]
    assert not found, (words, found)
"""
    subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)


@pytest.mark.parametrize("path", [(), ("cluster",), ("db",)], ids=" ".join)
def test_no_command(offline: Cli, path: tuple[str, ...]) -> None:
    """Without a command its group's help is the answer, and the exit code says that nothing was done."""
    result = offline(*path)
    assert (64, "", offline(*path, "--help").stdout) == (result.exit_code, result.stderr, result.stdout)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("frobnicate",), "No such command 'frobnicate'. See 'falcon-rm --help'."),
        (("stauts",), "No such command 'stauts'. Did you mean 'status'? See 'falcon-rm --help'."),
        (
            ("plan", "--clustr", "x"),
            "No such option '--clustr'. Did you mean '--cluster'? See 'falcon-rm plan --help'.",
        ),
        (("run-once", "--now"), "No such option '--now'. See 'falcon-rm run-once --help'."),
        (("run-once", "--plan", "x"), "Invalid value for --plan: 'x'; allowed: the checksum that falcon-rm plan shows"),
        (("abort",), "Missing argument 'JOB'. See 'falcon-rm abort --help'."),
        (
            ("submit", "-f", "nothere"),
            "Invalid value for '-f' / '--filename': 'nothere': No such file or directory. See 'falcon-rm submit",
        ),
        (("submit",), "Missing option '-f' / '--filename'. See 'falcon-rm submit --help'."),
        (("status", "-o", "xml"), "Invalid value for '-o' / '--output': 'xml' is not one of"),
        (
            ("cluster", "add", "c1", "--project", "p"),
            "Missing option '--location'. See 'falcon-rm cluster add --help'.",
        ),
        (("cluster", "set", "c1"), "Nothing to change. See 'falcon-rm cluster set --help'."),
        ((*ADD[:-1], "v9"), "tpu_type holds 'v9'; allowed: v4, v5e, v5p, v6e or v7x"),
        ((*ADD, "--status", "on"), "status holds 'on'; allowed: active, maintenance, offline"),
        ((*ADD, "--zone", "us-central1"), "zone holds 'us-central1'; allowed: a zone"),
        (
            (*ADD, "--project", "p", "--location", "here"),
            "project holds 'p'; allowed: a project id, 6 to 30 small letters, digits and hyphens. location holds "
            "'here'; allowed: a region or a zone, like us-central1 or us-east1-d. See 'falcon-rm cluster add --help'.",
        ),
        ((*ADD, "--gcs-bucket", "gs://b"), "gcs_bucket holds 'gs://b'; allowed: a bucket's name without gs://"),
        (("cluster", "add", "C 1", *ADD[3:]), "name holds 'C 1'; allowed: a GKE cluster's name"),
        (("cluster", "set", "c1", "--project", ""), "project cannot be empty; allowed: a project id"),
    ],
)
def test_usage(offline: Cli, arguments: tuple[str, ...], expected: str) -> None:
    """Wrong usage is one line on stderr and exit code 64, before anything is connected to."""
    assert complaint(offline(*arguments), 64).startswith(expected)


@pytest.mark.parametrize("arguments", [("status",), ("run-once",), ("plan", "--dry-run"), ("run",), ("db", "check")])
def test_no_database_given(offline: Cli, arguments: tuple[str, ...]) -> None:
    """A command that needs the database says which setting is missing."""
    assert "FALCON_DATABASE_URL is not set" == complaint(offline(*arguments), 1)


def test_all_faults_of_settings(offline: Cli) -> None:
    """Settings that cannot be used end every command with one line that names them all."""
    told = complaint(offline("config", env={"FALCON_LANG": "xx", "FALCON_IDEL": "1m"}), 1)
    assert "FALCON_IDEL is no setting; did you mean FALCON_IDLE?; FALCON_LANG holds 'xx'; allowed: zh or en" == told


def test_config(offline: Cli) -> None:
    """Config shows every setting with value and origin, and hides secrets."""
    answer = offline("config", env={"FALCON_DATABASE_URL": "mysql://u:hunter2@h/d", "FALCON_IDLE": "5m"}).stdout
    rows = {line.split()[0]: line.split()[1:3] for line in answer.splitlines()}
    assert ["mysql://u:***@h/d", "environment"] == rows["FALCON_DATABASE_URL"]
    assert ["5m", "environment"] == rows["FALCON_IDLE"]
    assert ["10s", "default"] == rows["FALCON_INTERVAL"]


def test_table(offline: Cli) -> None:
    """The table shows each rule in order with what it wins; as JSON it holds the same."""
    lines = offline("table").stdout.splitlines()
    rules = json.loads(offline("table", "-o", "json").stdout)
    assert ["PHASE", "POOL", "WORK", "TIMING", "LEFT", "CHANCE", "WINS", "STEP"] == lines[0].split()
    assert len(rules) == len(lines) - 1
    assert all(rule["wins"] > 0 for rule in rules)


def test_file_that_is_not_there(offline: Cli) -> None:
    """A file that cannot be opened is told in one line."""
    told = complaint(offline("submit", "-f", "/nowhere.yaml"), 64)
    assert "'/nowhere.yaml': No such file or directory" in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id: a\nactor: u\n", "<stdin>: spec is missing; allowed: an object"),
        ("id: [", "<stdin>: neither JSON nor YAML: line 1: "),
        (b"id: \xff", "<stdin>: "),
    ],
)
def test_file_that_is_no_job(offline: Cli, text: str | bytes, expected: str) -> None:
    """A file that holds no job is refused in one line, before anything is connected to."""
    assert complaint(offline("submit", "-f", "-", input=text), 1).startswith(expected)


def test_submit_and_status(cli: Cli, tmp_path: Path) -> None:
    """A submitted job is Pending, with its spec as it was given."""
    file = tmp_path / "job.json"
    file.write_text(json.dumps(JOB), encoding="utf-8")
    result = cli("submit", "-f", str(file))
    assert (0, "job/bench-7 submitted\n") == (result.exit_code, result.stdout)
    (row,) = json.loads(cli("status", "-o", "json").stdout)["jobs"]
    assert ("bench-7", "user-a", "Pending", None) == tuple(row[key] for key in ("id", "actor", "status", "reason"))


def test_submit_several_files(cli: Cli, tmp_path: Path) -> None:
    """Several files are submitted together: an id that a second one repeats refuses both."""
    for name in ("a", "b"):
        (tmp_path / name).write_text(json.dumps(JOB | {"id": name}), encoding="utf-8")
    (tmp_path / "again").write_text(json.dumps(JOB | {"id": "a"}), encoding="utf-8")
    told = complaint(cli("submit", "-f", str(tmp_path / "a"), "-f", str(tmp_path / "again")), 1)
    assert f"{tmp_path}/again: id 'a' is given more than once" == told
    result = cli("submit", "-f", str(tmp_path / "a"), "-f", str(tmp_path / "b"))
    assert "job/a submitted\njob/b submitted\n" == result.stdout


def test_submit_all_or_none(cli: Cli) -> None:
    """Of a file with a job that is there already nothing is submitted."""
    assert 0 == cli("submit", "-f", "-", input=json.dumps(JOB)).exit_code
    told = complaint(cli("submit", "-f", "-", input=json.dumps([JOB | {"id": "new"}, JOB])), 1)
    assert "bench-7" in told
    assert ["job/bench-7"] == cli("status", "-o", "name").stdout.splitlines()


def test_abort(cli: Cli) -> None:
    """Abort sets Aborting, and again is no error."""
    cli("submit", "-f", "-", input=json.dumps(JOB))
    for _ in range(2):
        result = cli("abort", "bench-7")
        assert (0, "job/bench-7 aborting\n") == (result.exit_code, result.stdout)
    (row,) = json.loads(cli("status", "-o", "json").stdout)["jobs"]
    assert "Aborting" == row["status"]


def test_abort_of_nothing(cli: Cli) -> None:
    """A job that is not there cannot be aborted."""
    assert "'nope'" in complaint(cli("abort", "nope"), 1)


def test_cluster(cli: Cli) -> None:
    """A cluster is added, listed and changed; its type is kept by the name that Falcon uses."""
    assert "cluster/c1 added\n" == cli(*ADD, "--zone", "us-central1-a").stdout
    assert "cluster/c1 changed\n" == cli("cluster", "set", "c1", "--status", "maintenance", "--zone", "").stdout
    (row,) = json.loads(cli("cluster", "list", "-o", "json").stdout)["clusters"]
    expected = {"name": "c1", "tpu_type": "v7x", "status": "maintenance", "zone": None}
    assert expected == {key: row[key] for key in expected}
    assert 36 == len(row["id"])


def test_cluster_twice(cli: Cli) -> None:
    """A name that is registered is refused, and the row stays as it was."""
    cli(*ADD)
    assert "c1" in complaint(cli(*ADD, "--status", "offline"), 1)
    (row,) = json.loads(cli("cluster", "list", "-o", "json").stdout)["clusters"]
    assert "active" == row["status"]


def test_cluster_that_is_not_there(cli: Cli) -> None:
    """A cluster that is not registered cannot be changed."""
    assert "nope" in complaint(cli("cluster", "set", "nope", "--status", "offline"), 1)


def test_people_clusters(cli: Cli) -> None:
    """With a GKE name the name may be any word, and stays legal when other columns change."""
    assert 0 == cli("cluster", "add", "Big_One", *ADD[3:], "--gke-name", "tpu-1").exit_code
    assert 0 == cli("cluster", "set", "Big_One", "--status", "offline").exit_code
    assert complaint(cli("cluster", "set", "Big_One", "--gke-name", ""), 64).startswith("name holds 'Big_One'")


def test_migrate(empty_database: str) -> None:
    """Migrate makes the tables, then has nothing to do; check names what is missing until upstream's is there too."""
    app = build({"FALCON_DATABASE_URL": empty_database})
    runner = CliRunner()
    assert 1 == runner.invoke(commands, ["db", "check"], obj=app).exit_code
    first = runner.invoke(commands, ["db", "migrate"], obj=app)
    assert "step/001_falcon_meta taken" == first.stdout.splitlines()[0]
    assert "nothing to do\n" == runner.invoke(commands, ["db", "migrate"], obj=app).stdout
    lacking = runner.invoke(commands, ["db", "check"], obj=app)
    assert (1, True) == (lacking.exit_code, lacking.stdout.startswith("job: there is no table or view of this name"))


def test_check(cli: Cli) -> None:
    """On a database that fits, check says so."""
    assert (0, "everything is there\n") == (cli("db", "check").exit_code, cli("db", "check").stdout)


def test_status_of_an_unfit_schema(empty_database: str) -> None:
    """On a database without tables a command says which command tells what is missing."""
    result = CliRunner().invoke(commands, ["status"], obj=build({"FALCON_DATABASE_URL": empty_database}))
    assert complaint(result, 1).endswith("doesn't exist; falcon-rm db check says what is missing")


def test_run_refuses_an_unfit_schema(empty_database: str) -> None:
    """Run ends at once on a schema that fails the check, with the statements that mend it (P95)."""
    result = CliRunner().invoke(commands, ["run"], obj=build({"FALCON_DATABASE_URL": empty_database}))
    told = complaint(result, 1)
    assert told.startswith("the database does not fit.")
    assert "falcon-rm db migrate" in told
    assert "CREATE TABLE" in told


def test_once_at_rest(cli: Cli) -> None:
    """With nothing to do run-once ends with 0, plan with an empty plan and 0."""
    assert 0 == cli("run-once").exit_code
    result = cli("plan", "--dry-run", "--detailed-exitcode")
    assert (0, "Plan: 0 to create, 0 to change, 0 to delete, 0 unknown.") == (
        result.exit_code,
        result.stdout[:-1].splitlines()[-1],
    )
    assert result.stdout.startswith("Checksum: ")


def test_plan_writes_nothing(cli: Cli) -> None:
    """A plan with changes ends with 2 and leaves every row as it was; the pass itself then makes them."""
    cli("submit", "-f", "-", input=json.dumps(JOB))
    before = cli("status", "-o", "json").stdout
    result = cli("plan", "--dry-run", "--detailed-exitcode", "-o", "json")
    assert 2 == result.exit_code
    assert ["Change"] == [each["action"] for each in json.loads(result.stdout)["actions"]]
    assert before == cli("status", "-o", "json").stdout
    assert 0 == cli("plan").exit_code
    assert 0 == cli("run-once").exit_code
    (row,) = json.loads(cli("status", "-o", "json").stdout)["jobs"]
    assert ("Pending", "Waiting") == (row["status"], row["reason"])


def test_database_down(tmp_path: Path) -> None:
    """A database that does not answer ends a command with 1 and one line without the password."""
    url = f"mysql://falcon:hunter2@localhost/falcon?unix_socket={tmp_path}/none"
    for arguments in (["status"], ["run-once"], ["plan", "--detailed-exitcode"]):
        result = CliRunner().invoke(commands, arguments, obj=build({"FALCON_DATABASE_URL": url}))
        assert 1 == result.exit_code
        assert "hunter2" not in result.output


def test_run_ends_on_sigterm(controller_url: str) -> None:
    """Run goes on until SIGTERM, and then ends with 0."""
    environment = {"PATH": os.environ["PATH"], "FALCON_DATABASE_URL": controller_url, "FALCON_INTERVAL": "0.1s"}
    command = [sys.executable, "-m", "falcon_rm", "run"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = json.loads(process.stderr.readline())
        process.terminate()
        started = time.monotonic()
        process.communicate(timeout=20)
    assert "Finished pass" == first["message"]
    assert 0 == process.returncode
    assert time.monotonic() - started < 10
