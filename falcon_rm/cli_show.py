"""Commands that only look: status, config, table."""

import click

from falcon_rm.cli_base import App, output_option


@click.command()
@output_option("wide", "json", "yaml", "name")
@click.pass_obj
def status(app: App, output: str | None) -> None:
    """
    Show clusters, queues, pools and jobs.

    It is what the database has; no cloud is asked. Jobs that ended long ago are left out.

    \b
    Example:
      falcon-rm status -o wide
    """
    from falcon_rm import overview
    from falcon_rm.cloud import people

    with app.database() as database, app.store() as store:
        click.echo(overview.render(store.read(), people.ended_jobs(database), output))


@click.command()
@output_option("json", "yaml")
@click.pass_obj
def config(app: App, output: str | None) -> None:
    """
    Show every setting and its origin.

    \b
    Example:
      FALCON_IDLE=5m falcon-rm config
    """
    from falcon_rm import report

    origins = app.settings().origins
    if output:
        click.echo(report.FORMS[output](origins))
    else:
        rows = [(each.name, each.shown, each.source, each.help) for each in origins]
        click.echo(report.table(("NAME", "VALUE", "ORIGIN", "MEANING"), rows))


@click.command()
@output_option("json", "yaml")
def table(output: str | None) -> None:
    """
    Show the table that decides.

    Each rule in its order, how many situations it wins, and its step.

    \b
    Example:
      falcon-rm table | grep provisioning
    """
    from falcon_rm import report
    from falcon_rm.core import machine

    rules = machine.fold()
    if output:
        click.echo(
            report.FORMS[output]([{"rule": rule.split(), "step": step, "wins": wins} for rule, step, wins in rules])
        )
    else:
        head = ("PHASE", "POOL", "WORK", "TIMING", "LEFT", "CHANCE", "WINS", "STEP")
        click.echo(report.table(head, [(*rule.split(), wins, step) for rule, step, wins in rules]))
