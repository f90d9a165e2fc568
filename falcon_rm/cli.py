"""
The command line: where settings, adapters and commands meet.

1. Adapters are built here and nowhere else; a command imports what it needs when it runs.
2. `run` starts only on a schema that passes the check, and waits for a database or a credential that is not there yet.
"""

import gc
import os
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING

import click

from falcon_rm import __version__
from falcon_rm.cli_base import ERROR, App, Commands, with_log
from falcon_rm.cli_cluster import cluster
from falcon_rm.cli_jobs import abort, submit
from falcon_rm.cli_pass import plan, run_once
from falcon_rm.cli_show import completion, config, status, table
from falcon_rm.cli_story import events, explain
from falcon_rm.cli_usage import usage
from falcon_rm.config import ConfigError, Settings, load
from falcon_rm.ports import StoreDown

if TYPE_CHECKING:
    from falcon_rm.cloud.credential import Credential
    from falcon_rm.cloud.database import Address, Database
    from falcon_rm.cloud.store import MySqlStore
    from falcon_rm.ports import Inspection
    from falcon_rm.stop import Stop

DATABASE_SETTINGS = ("FALCON_DATABASE_URL", "FALCON_DATABASE_PASSWORD_FILE")
"""Read by themselves, so that what is wrong with them is told beside the faults of all the others."""

GARBAGE = 100_000
"""New objects before garbage is looked for: with Python's own 700 a quarter of a large plan's time goes to that."""


@click.group(
    "falcon-rm", cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="falcon-rm", message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """
    Place batch jobs on TPU node pools of GKE, and give the chips up again.

    Settings are FALCON_* variables; falcon-rm config shows them. Exit codes: 0 done, 1 error, 64 usage; run-once and
    plan have more. falcon-rm COMMAND --help shows how a command is used.

    \b
    Example:
      FALCON_DATABASE_URL=mysql://falcon@db/falcon falcon-rm status
    """
    context.obj = context.obj or build(os.environ)


def build(environ: Mapping[str, str]) -> App:
    """Return the doors to the outside that *environ* sets up; none is opened yet."""

    @cache
    def settings() -> Settings:
        return load(environ)

    @cache
    def database_settings() -> Settings:
        return load({name: environ[name] for name in DATABASE_SETTINGS if name in environ})

    def address() -> "Address":
        from falcon_rm.cloud.database import parse_url

        own = database_settings()
        if own.database_url is None:
            raise ConfigError(("FALCON_DATABASE_URL is not set",))
        try:
            found = parse_url(own.database_url, own.database_password)
        except ValueError as error:
            raise ConfigError((f"FALCON_DATABASE_URL: {error}",)) from None
        if found.cloud_sql is not None:
            from falcon_rm.cloud import cloudsql

            if not cloudsql.is_there():
                raise ConfigError((f"FALCON_DATABASE_URL: {cloudsql.MISSING}",))
        return found

    def database() -> "closing[Database]":
        from falcon_rm.cloud.database import Database

        return closing(Database(address(), timeout=settings().call_timeout))

    def store() -> "MySqlStore":
        from falcon_rm.cloud.database import Database
        from falcon_rm.cloud.store import MySqlStore

        return MySqlStore(Database(address(), timeout=settings().call_timeout))

    @cache
    def credential() -> "Credential":
        from falcon_rm.cloud.credential import Credential

        return Credential(timeout_seconds=settings().call_timeout)

    def clouds() -> "Inspection":
        from falcon_rm.cloud.clouds import GoogleClouds

        return GoogleClouds(
            credential=credential,
            gke_endpoint=settings().gke_endpoint,
            compute_endpoint=settings().compute_endpoint,
            resource_manager_endpoint=settings().resource_manager_endpoint,
            storage_endpoint=settings().storage_endpoint,
            read_seconds=settings().call_timeout,
            write_seconds=settings().create_timeout,
        )

    return App(settings=settings, store=store, database=database, clouds=clouds, inspection=clouds)


@commands.command()
@click.pass_obj
def run(app: App) -> None:
    """
    Make pass after pass, until SIGTERM.

    Whatever is under way then, the process ends within ten seconds; another one goes on where it was.

    \b
    Example:
      FALCON_INTERVAL=5s falcon-rm run
    """
    from falcon_rm import loop, probes
    from falcon_rm.cloud import asked
    from falcon_rm.stop import Stop

    stop = Stop()
    stop.listen()
    settings = with_log(app)
    longest = settings.interval + settings.pass_timeout + settings.create_timeout
    watcher = probes.Watcher(max(3 * settings.interval, longest), asked=asked.counts)
    with probes.serving(settings.metrics_address, watcher):
        _await_start(app, stop)
        watcher.begin()
        loop.run(
            store=app.store,
            clouds=app.clouds,
            bounds=settings.bounds(),
            interval=settings.interval,
            pass_seconds=settings.pass_timeout,
            stop=stop,
            watch=watcher,
        )


@commands.group()
def db() -> None:
    """
    Make and check the tables.

    \b
    Example:
      falcon-rm db migrate && falcon-rm db check
    """


@db.command()
@click.pass_obj
def migrate(app: App) -> None:
    """
    Make the tables that are missing.

    It may be done again and again without harm.

    \b
    Example:
      falcon-rm db migrate
    """
    from falcon_rm.cloud import schema

    with app.database() as database:
        steps = schema.migrate(database)
    for step in steps:
        click.echo(f"step/{step} taken")
    if not steps:
        click.echo("nothing to do")


@db.command()
@click.pass_obj
def check(app: App) -> int:
    """
    Name what the database lacks.

    Each with the statement that mends it; nothing is changed.

    Exit codes: 0 everything is there, 1 something is missing.

    \b
    Example:
      falcon-rm db check
    """
    faults = _schema_faults(app)
    for fault in faults:
        click.echo(fault)
    if not faults:
        click.echo("everything is there")
    return ERROR if faults else 0


for _command in (run_once, plan, status, explain, events, usage, submit, abort, cluster, config, table, completion):
    commands.add_command(_command)


def _schema_faults(app: App) -> list[str]:
    """Return what the database lacks, a line each with the statement that mends it."""
    from falcon_rm.cloud import schema

    with app.database() as database:
        return [f"{each.column}: {each.what}; mend it with: {_flat(each.statement)}" for each in schema.check(database)]


def _flat(statement: str) -> str:
    """Return a statement in one line, without its comments."""
    lines = (line for line in statement.splitlines() if not line.startswith("--"))
    return " ".join(" ".join(lines).split())


def _await_start(app: App, stop: "Stop") -> None:
    """Wait for a database that is fit and, if a cluster is to be read, for Google's credential, each within a bound."""
    from falcon_rm.core.words import CloudError
    from falcon_rm.start import awaited

    faults = awaited("the database", lambda: _schema_faults(app), failure=StoreDown, stop=stop)
    if faults:
        raise click.ClickException("the database does not fit. " + ". ".join(faults))
    if not awaited("the database", lambda: _reads_clusters(app), failure=StoreDown, stop=stop):
        return
    with closing(app.inspection()) as inspection:
        awaited("a credential of Google", inspection.google.member, failure=CloudError, stop=stop)


def _reads_clusters(app: App) -> bool:
    """Return whether there is a cluster that passes read."""
    from falcon_rm.cloud.rows import read_clusters
    from falcon_rm.core.words import ClusterStatus

    with app.database() as database:
        return any(each.status is not ClusterStatus.OFFLINE for each in read_clusters(database))


def main() -> None:
    """Run the command line."""
    gc.set_threshold(GARBAGE)
    commands()
