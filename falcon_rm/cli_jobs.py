"""Commands that act as upstream does: submit, abort."""

from typing import TextIO

import click

from falcon_rm.cli_base import App


@click.command()
@click.option(
    "-f",
    "--filename",
    "files",
    type=click.File(encoding="utf-8"),
    multiple=True,
    required=True,
    help="File, or - for stdin; may be given several times.",
)
@click.pass_obj
def submit(app: App, files: tuple[TextIO, ...]) -> None:
    """
    Submit the jobs of files, all of them or none.

    A file is YAML or JSON, one document a job, with the columns id, actor and spec and, if wanted, name, priority,
    timeout_seconds and artifact_path. A spec that can never run is taken; its job ends as Failed/InvalidSpec.

    \b
    Example:
      falcon-rm submit -f bench.yaml
    """
    from falcon_rm import submission
    from falcon_rm.cloud import people

    jobs: list[submission.NewJob] = []
    for file in files:
        try:
            jobs += submission.parse(file.read(), known={job.id for job in jobs})
        except (submission.SubmissionError, UnicodeDecodeError) as error:
            raise click.ClickException(f"{file.name}: {error}") from None
    with app.database() as database:
        people.submit(database, jobs)
    for job in jobs:
        click.echo(f"job/{job.id} submitted")


@click.command()
@click.argument("job")
@click.pass_obj
def abort(app: App, job: str) -> None:
    """
    Ask for the end of JOB.

    Falcon stops it, releases what it holds, and writes Aborted when nothing of it is left.

    \b
    Example:
      falcon-rm abort bench-7
    """
    from falcon_rm.cloud import people

    with app.database() as database:
        people.abort(database, job)
    click.echo(f"job/{job} aborting")
