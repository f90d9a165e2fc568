"""
Commands that make one pass: run-once, and plan, which stops before it acts.

1. A pass is a value that loop.py returns; what it means for the exit code stands here.
2. What was reviewed is approved by its checksum: the pass plans again, and acts only if the same is to be done.
"""

import click

from falcon_rm.cli_base import ERROR, App, one_pass, output_option, with_log
from falcon_rm.ports import Refused

CHANGES, BRAKE_HOLDS, PLAN_DIFFERS = 2, 3, 4


class PlanDiffersError(click.ClickException):
    """What would be done is not what was reviewed."""

    exit_code = PLAN_DIFFERS


MASS_DELETE = click.option(
    "--allow-mass-delete", is_flag=True, help="Let this pass sweep more than the brake would allow."
)


@click.command("run-once")
@click.option("--plan", "reviewed", metavar="CHECKSUM", help="Act only if the plan still is the one reviewed.")
@MASS_DELETE
@click.pass_obj
def run_once(app: App, reviewed: str | None, allow_mass_delete: bool) -> int:
    """
    Make one pass: read everything, decide, act.

    With --plan and the checksum that falcon-rm plan shows, it acts only if exactly the same is still to be done.

    Exit codes: 0 acted or nothing to do, 1 something could not be read, 3 the brake on sweeping holds, 4 the plan is
    another one than the reviewed: nothing was done.

    \b
    Example:
      falcon-rm run-once
      falcon-rm run-once --plan 5f0c2a9be1d3477a
    """
    from falcon_rm import review

    if reviewed is not None and not review.is_checksum(reviewed):
        raise click.BadParameter(f"{reviewed!r}; allowed: the checksum that falcon-rm plan shows", param_hint="--plan")
    made = one_pass(
        app,
        with_log(app),
        allow_mass_delete=allow_mass_delete,
        approves=lambda plan: reviewed in {None, review.checksum(plan)},
    )
    found = review.checksum(made.plan)
    if reviewed not in {None, found}:
        raise PlanDiffersError(
            f"nothing was done: the plan is now {found}, not {reviewed}; see what it is with falcon-rm plan"
        )
    return BRAKE_HOLDS if made.plan.brake else ERROR if made.unread else 0


@click.command()
@click.option("--dry-run", is_flag=True, help="Say it aloud: plan never writes, with or without it.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 0 nothing to do, 2 changes, 1 error or unread.")
@click.option("--job", help="Show only what is about this job and the pools it holds.")
@click.option("--cluster", help="Show only what is about this cluster.")
@MASS_DELETE
@output_option("json")
@click.pass_obj
def plan(
    app: App,
    dry_run: bool,  # noqa: ARG001
    detailed_exitcode: bool,
    job: str | None,
    cluster: str | None,
    allow_mass_delete: bool,
    output: str | None,
) -> int:
    """
    Show what the next pass would do, and why. Nothing is written anywhere.

    By cluster a line an action: + creates, ~ changes, - deletes; ? is left alone, since its state is unknown. Counts,
    checksum and exit code are about the whole plan, also when a part of it is shown. run-once --plan CHECKSUM does
    exactly this, or nothing.

    \b
    Example:
      falcon-rm plan --cluster tpu-1
      falcon-rm plan --dry-run -o json
    """
    from falcon_rm import report, review

    made = one_pass(app, with_log(app), dry=True, allow_mass_delete=allow_mass_delete)
    names = {view.cluster.id: view.cluster.name for view in made.snapshot.views}
    if cluster is not None and cluster not in names.values():
        raise Refused(f"there is no cluster {cluster!r}")
    part = review.Part(
        job, cluster, {pool.name for pool in made.snapshot.pools if job is not None and pool.lease == job}
    )
    live = {each.id for each in made.snapshot.jobs}
    if job is not None and job not in live and not review.lines(made.plan, names, part):
        raise Refused(f"there is no job {job!r} that is not over; see falcon-rm explain")
    click.echo(report.as_json(review.data(made.plan, names, part)) if output else review.text(made.plan, names, part))
    if not detailed_exitcode:
        return 0
    return CHANGES if made.plan.actions else ERROR if made.unread else 0
