"""Commands of the registry: cluster add, list, set, check, drain, abandon, remove."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from falcon_rm.cli_base import ERROR, App, output_option
from falcon_rm.config import duration
from falcon_rm.registry import COLUMNS, RegistryError, check_name, check_values

if TYPE_CHECKING:
    from falcon_rm.clearing import Living
    from falcon_rm.core.model import Cluster

POLL_SECONDS = 1.0
NAMES_SHOWN = 20


def _span(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Return the seconds of a time span as settings write it."""
    try:
        return duration(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}; allowed: written like 90, 90s, 15m, 6h or 7d") from None


@click.group()
def cluster() -> None:
    """
    Register clusters, list and change them.

    \b
    Example:
      falcon-rm cluster list -o wide
    """


def column_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command one option for each column of the registry."""
    for column in reversed(COLUMNS):
        text = f"{column.help}: {column.allowed}."
        command = click.option(f"--{column.name.replace('_', '-')}", column.name, help=text)(command)
    return command


@cluster.command()
@click.argument("name")
@column_options
@click.pass_obj
def add(app: App, /, name: str, **values: str | None) -> None:
    """
    Register the cluster NAME. Needs --project, --location and --tpu-type; the rest is worked out if not given.

    \b
    Example:
      falcon-rm cluster add tpu-1 --project my-project --location us-central1 --tpu-type v7x --gcs-bucket my-bucket
    """
    given = {column: value for column, value in values.items() if value}
    missing = [column.name for column in COLUMNS if column.required and column.name not in {*given, "status"}]
    if missing:
        raise click.UsageError(f"Missing option '--{missing[0].replace('_', '-')}'.")
    row = _checked(given)
    _legal(name, row.get("gke_name"))
    from falcon_rm.cloud import people

    with app.database() as database:
        people.add_cluster(database, name, row)
    click.echo(f"cluster/{name} added")


@cluster.command("set")
@click.argument("name")
@column_options
@click.pass_obj
def change(app: App, /, name: str, **values: str | None) -> None:
    """
    Change columns of the cluster NAME.

    An empty value empties a column that may be empty.

    Another project, location or GKE name is refused while anything of ours lives there: it would be lost from sight.

    \b
    Example:
      falcon-rm cluster set tpu-1 --status maintenance --zone ''
    """
    changes = {column: value or None for column, value in values.items() if value is not None}
    if not changes:
        raise click.UsageError("Nothing to change.")
    changes = _checked(changes)
    if "gke_name" in changes:
        _legal(name, changes["gke_name"])
    from falcon_rm import clearing
    from falcon_rm.cloud import people

    with app.database() as database, app.store() as store:
        row = people.read_cluster(database, name)
        if _moves(row, changes):
            _check_empty(name, clearing.living(store.read(), row.id, people.read_strays(database, row.id)))
            people.move_cluster(database, row, changes)
        else:
            people.set_cluster(database, name, changes)
    click.echo(f"cluster/{name} changed")


@cluster.command("list")
@output_option("wide", "json", "yaml", "name")
@click.pass_obj
def list_clusters(app: App, output: str | None) -> None:
    """
    List the clusters and what is wrong with them.

    \b
    Example:
      falcon-rm cluster list
    """
    from falcon_rm import overview
    from falcon_rm.cloud import present

    with app.database() as database:
        seen = overview.Overview(0, clusters=present.read_clusters(database))
    shown = overview.render(seen, output, sections=overview.SECTIONS[:1])
    click.echo(shown, nl=bool(shown))


@cluster.command("check")
@click.argument("name")
@output_option("json")
@click.pass_obj
def check_cluster(app: App, name: str, output: str | None) -> int:
    """
    Say what of the cluster NAME works, and what does not.

    Each with the command that mends it; nothing is changed. Credentials, GetCluster, what is permitted, zone,
    reservation, Kubernetes and every right in it, namespace, service account, GCS FUSE, Workload Identity and the
    bucket are looked at. Unknown is what could not be asked, or what no call can tell.

    Exit codes: 0 nothing failed, 1 something did.

    \b
    Example:
      falcon-rm cluster check tpu-1
    """
    from falcon_rm import report
    from falcon_rm.checks import Look, check
    from falcon_rm.cloud import people
    from falcon_rm.finding import Verdict, lines

    with app.database() as database:
        row = people.read_cluster(database, name)
    with closing(app.inspection()) as clouds:
        findings = check(Look(row, clouds))
    click.echo(report.as_json(findings) if output else lines(findings))
    return ERROR if any(each.verdict is Verdict.FAILED for each in findings) else 0


@cluster.command()
@click.argument("name")
@click.option("--timeout", default="1h", show_default=True, callback=_span, help="How long to wait.")
@click.pass_obj
def drain(app: App, name: str, timeout: float) -> None:
    """
    Let the cluster NAME run empty, and wait for it.

    It goes into maintenance: it takes no new jobs and gives those that wait away; what acquires or runs there is
    followed to its end, and its pools go. To wait again is no harm, and to stop waiting changes nothing: the cluster
    stays in maintenance.

    Exit codes: 0 nothing is left there, 1 something still is.

    \b
    Example:
      falcon-rm cluster drain tpu-1 --timeout 6h
    """
    from falcon_rm import clearing
    from falcon_rm.cloud import people

    with app.database() as database:
        people.set_cluster(database, name, {"status": "maintenance"}, kind="cluster drained")
        row = people.read_cluster(database, name)
    click.echo(f"cluster/{name} takes no new jobs")
    deadline, told = time.monotonic() + timeout, ""
    while True:
        with app.database() as database, app.store() as store:
            left = clearing.living(store.read(), row.id, people.read_strays(database, row.id))
        if not left:
            break
        there = _listed(left.named())
        if there != told:
            click.echo(f"cluster/{name} still has {there}")
            told = there
        if time.monotonic() > deadline:
            raise click.ClickException(f"cluster {name!r} still has {there}")
        _pause()
    click.echo(f"cluster/{name} drained")


@cluster.command()
@click.argument("name")
@click.pass_obj
def remove(app: App, name: str) -> None:
    """
    Take the cluster NAME out of the registry. Refused while it is active or anything of ours lives there.

    \b
    Example:
      falcon-rm cluster drain tpu-1 && falcon-rm cluster remove tpu-1
    """
    from falcon_rm import clearing
    from falcon_rm.cloud import people
    from falcon_rm.core.words import ClusterStatus

    with app.database() as database, app.store() as store:
        row = people.read_cluster(database, name)
        _check_empty(name, clearing.living(store.read(), row.id, people.read_strays(database, row.id)))
        if row.status is ClusterStatus.ACTIVE:
            raise click.ClickException(f"cluster {name!r} is active; first: falcon-rm cluster drain {name}")
        people.remove_cluster(database, row)
    click.echo(f"cluster/{name} removed")


@cluster.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def abandon(app: App, name: str, *, yes: bool) -> None:
    """
    Write off what lives on the cluster NAME: it is gone for good.

    For a cluster that nobody will ever reach again. It goes offline; jobs there fail (JobFailed), those that are being
    aborted are Aborted, one whose end was seen ends so; its pools are Deleted. Jobs that wait go elsewhere. No cloud is
    asked: what does live there after all runs on, unseen. NAME may be the cluster's id, for one whose row was deleted.

    \b
    Example:
      falcon-rm cluster abandon tpu-1 --yes
    """
    from falcon_rm import clearing
    from falcon_rm.cloud import people
    from falcon_rm.core.actions import Note
    from falcon_rm.core.messages import Messages
    from falcon_rm.ports import Refused

    with app.database() as database, app.store() as store:
        rows = store.read()
        row = next((row for row in rows.clusters if name in (row.name, row.id)), None)
        cluster_id = row.id if row else name
        left = clearing.living(rows, cluster_id, people.read_strays(database, cluster_id))
        if not row and not left:
            raise Refused(f"there is no cluster {name!r}")
        if not yes:
            click.echo(f"cluster/{name} goes offline; written off: {_listed(left.named()) or 'nothing'}")
            if not click.confirm("Is it gone for good?"):
                raise click.ClickException("nothing was done")
        if row:
            people.set_cluster(database, row.name, {"status": "offline"}, kind="cluster abandoned")
        else:
            store.note(Note("cluster abandoned", f"cluster/{name}", "its row is gone"))
        people.write_off_strays(database, cluster_id)
        messages = Messages(app.settings().limits.language)
        left = clearing.write_off(store, cluster_id, row.name if row else name, messages)
    if left:
        raise click.ClickException(f"cluster {name!r} still has {_listed(left.named())}: try again")
    click.echo(f"cluster/{name} abandoned")


def _moves(row: "Cluster", changes: Mapping[str, str | None]) -> bool:
    """Return whether the changes make the row name another GKE cluster."""
    after = evolve(
        row,
        project=changes.get("project") or row.project,
        location=changes.get("location") or row.location,
        gke_name=changes.get("gke_name", row.gke_name),
    )
    return after.path != row.path


def _check_empty(name: str, left: "Living") -> None:
    """End in an error that names what lives on a cluster, if anything does."""
    if left:
        raise click.ClickException(
            f"cluster {name!r} still has {_listed(left.named())}; falcon-rm cluster drain {name} waits for them"
        )


def _listed(names: Sequence[str]) -> str:
    """Return names in one line, the first ones."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _pause() -> None:
    time.sleep(POLL_SECONDS)


def _checked(values: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the values, the TPU type by Falcon's name for it, or end in a usage error."""
    from falcon_rm.core.shapes import parse_type

    checked = dict(values)
    if checked.get("tpu_type"):
        checked["tpu_type"] = parse_type(checked["tpu_type"] or "") or checked["tpu_type"]
    try:
        check_values(checked)
    except RegistryError as error:
        raise click.UsageError(str(error)) from None
    return checked


def _legal(name: str, gke_name: str | None) -> None:
    """End in a usage error if a cluster cannot be called so."""
    try:
        check_name(name, gke_name)
    except RegistryError as error:
        raise click.UsageError(str(error)) from None
