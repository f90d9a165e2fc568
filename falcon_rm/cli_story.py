"""Commands that tell what happens to a job, and what happened: explain, events."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import click

from falcon_rm.cli_base import App, one_pass, output_option, until_interrupted, with_log
from falcon_rm.config import duration
from falcon_rm.ports import Refused, StoreDown
from falcon_rm.redaction import redact

if TYPE_CHECKING:
    from falcon_rm.cloud.database import Database
    from falcon_rm.core.live import Pod
    from falcon_rm.core.model import Job, Snapshot
    from falcon_rm.explain import Explanation
    from falcon_rm.story import History

POLL_SECONDS = 1.0

LONGEST_SECONDS = 20 * 365 * 86_400.0
"""Longer ago nothing happened: the database's clock cannot be counted back as far as people can write."""


def _span(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """Return the seconds of a time span as settings write it."""
    try:
        return None if text is None else min(duration(text), LONGEST_SECONDS)
    except ValueError:
        raise click.BadParameter(f"{text!r}; allowed: written like 90, 90s, 15m, 6h or 7d") from None


@click.command()
@click.argument("job")
@output_option("json")
@click.pass_obj
def explain(app: App, job: str, output: str | None) -> None:
    """
    Say why JOB stands where it does.

    Database and clouds are read as a pass reads them, and what that pass would decide is shown: the reason, what would
    let the job go on, who is ahead, what was tried. Nothing is written. Of a job that is over its story is told.

    \b
    Example:
      falcon-rm explain bench-7
    """
    from falcon_rm import explain as explaining
    from falcon_rm import report
    from falcon_rm.cloud import history
    from falcon_rm.cloud.rows import read_clusters

    with app.database() as database:
        clusters, names = {each.id: each for each in read_clusters(database)}, history.cluster_names(database)
        kept = history.read_history(database, job)
        told = None if explaining.is_over(kept.job) else _live(app, kept, job)
        if told is None:
            kept = history.read_history(database, job)
            story = history.read_story(database, history.Wanted(job))
            told = explaining.explain_ended(job, kept, clusters, app.settings().bounds(), story)
    click.echo(report.as_json(told) if output else explaining.text(told, names))


def _live(app: App, kept: "History", job_id: str) -> "Explanation | None":
    """Return the explanation of a live job from a pass that only looks; None if it is over by now."""
    from falcon_rm import explain as explaining

    made = one_pass(app, with_log(app), dry=True)
    job = next((each for each in made.snapshot.jobs if each.id == job_id), None)
    if job is None:
        return None
    pods, problem = _pods(app, job, made.snapshot)
    return explaining.explain(job, made.snapshot, made.plan, kept, pods=pods, pods_problem=problem)


def _pods(app: App, job: "Job", snapshot: "Snapshot") -> "tuple[tuple[Pod, ...] | None, str | None]":
    """Return the pods of a job, or why they could not be read; a pass does not list those of a job that runs well."""
    from falcon_rm.core.names import selector
    from falcon_rm.core.scene import scene, work_name
    from falcon_rm.core.words import CloudError, ClusterStatus, Status

    seen = scene(snapshot)
    listed, view = seen.pods_of(job), seen.views.get(job.cluster_id or "")
    if listed is not None or job.status != Status.RUNNING or view is None:
        return listed, None
    if view.cluster.status is ClusterStatus.OFFLINE:
        return None, f"cluster {view.cluster.name} is offline"
    try:
        with closing(app.clouds()) as clouds:
            kube = clouds.kubernetes(view.cluster, clouds.gke.get_cluster(view.cluster))
            return kube.list_pods(
                f"{selector(snapshot.instance, view.cluster.id)},job-name in ({work_name(job)})"
            ), None
    except CloudError as error:
        return None, error.text


@click.command()
@click.argument("job", required=False)
@click.option("--since", metavar="SPAN", callback=_span, help="Only what happened in so long, e.g. 1h or 7d.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes; with JOB until it is over.")
@click.option("--pool", help="Only about this node pool.")
@click.option("--cluster", help="Only about this cluster, its pools and its jobs.")
@output_option("json")
@click.pass_obj
def events(
    app: App,
    job: str | None,
    since: float | None,
    follow: bool,
    pool: str | None,
    cluster: str | None,
    output: str | None,
) -> int:
    """
    Tell what happened, oldest first: to JOB, or to everything.

    Every change of a job's status or reason, what was done with node pools, and what operators did, in one story. With
    -o json each line is an object. -f alone tells what happens from now on, until Control-C.

    \b
    Example:
      falcon-rm events bench-7 -f
      falcon-rm events --since 1h --cluster tpu-1
    """
    from falcon_rm import explain as explaining
    from falcon_rm import story
    from falcon_rm.cloud import history

    bounded = any(each is not None for each in (job, since, pool, cluster))
    if not bounded and not follow:
        raise click.UsageError("Missing argument 'JOB', or one of --since, --pool, --cluster, --follow.")
    wanted = history.Wanted(job, pool, cluster, since)
    write = story.json_lines if output else story.lines

    def look(database: "Database", told: story.Told) -> bool:
        """Tell what came; return whether nothing more will."""
        over = job is not None and explaining.is_over(history.read_history(database, job).job)
        clusters = history.cluster_names(database)
        entries = history.read_story(database, wanted, told.known)
        if not (entries or follow) and wanted == history.Wanted(pool=pool):
            raise Refused(f"nothing is known of node pool {pool!r}")
        for line in write([entry for entry in entries if told.add(entry)], clusters):
            click.echo(line)
        if history.is_cut(entries):
            click.echo(f"note: only the newest {history.SHOWN} of a kind are told; name less", err=True)
        return over or not follow

    def tell() -> None:
        with app.database() as database:
            told = story.Told(story.START if bounded else history.newest(database).safe)
            for entry in () if bounded else history.read_story(database, wanted, told.start):
                told.add(entry)
            over = look(database, told)
            while not over:
                _pause()
                over = _again(lambda: look(database, told))

    return until_interrupted(tell)


def _again(look: Callable[[], bool]) -> bool:
    """Look once more; while the database is away, which is said once, look again and again."""
    said = False
    while True:
        try:
            return look()
        except StoreDown as error:
            if not said:
                click.echo(f"note: the database does not answer, trying again: {redact(str(error))}", err=True)
            said = True
            _pause()


def _pause() -> None:
    time.sleep(POLL_SECONDS)
