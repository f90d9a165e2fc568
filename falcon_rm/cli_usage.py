"""The command that accounts for every chip: usage."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from falcon_rm.cli_base import App, output_option
from falcon_rm.config import duration

BY = ("actor", "cluster", "mode", "reservation", "experiment", "job", "day")

Moment = Callable[[float], float]
"""A time, once it is known what time it is now."""


def _moment(_context: click.Context, _option: click.Parameter, text: str | None) -> Moment | None:
    """Return the time that is so long ago, or a UTC date with or without a time."""
    if text is None:
        return None
    try:
        ago = duration(text)
    except ValueError:
        ago = None
    if ago is not None:
        return lambda now: max(0.0, now - ago)
    try:
        at = _in_utc(datetime.fromisoformat(text)).timestamp()
    except (ValueError, OverflowError):
        allowed = "so long ago, like 7d, 6h or 15m, or a UTC time, like 2026-11-30 or 2026-11-30T12:00"
        raise click.BadParameter(f"{text!r}; allowed: {allowed}") from None
    return lambda _: at


def _in_utc(moment: datetime) -> datetime:
    """Return a time in UTC, which it is in unless it names another offset."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.command()
@click.option("--by", multiple=True, type=click.Choice(BY), help="One row for each; more than once: each pair. [actor]")
@click.option(
    "--since", metavar="WHEN", callback=_moment, help="From then on: 7d or 6h ago, or 2026-11-30[T12:00] UTC."
)
@click.option("--until", metavar="WHEN", callback=_moment, help="Until then; written like --since.")
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw who held which pool into this SVG file."
)
@output_option("csv", "json")
@click.pass_obj
def usage(
    app: App,
    by: tuple[str, ...],
    since: Moment | None,
    until: Moment | None,
    picture: Path | None,
    output: str | None,
) -> None:
    """
    Account for every chip-hour.

    They are told by actor, cluster, mode, reservation, experiment, job or day. A pool counts with all its chips from
    the moment GKE was asked for it until nobody held it and a full list lacked it: GKE's own time, and at its end at
    most one pass more. Every second is one of WAITING (held by a job whose pods do not all run yet), BUSY (they run),
    IDLE (between two jobs) and RELEASING (given up, not gone yet), and belongs to the job that holds the pool or held
    it last. Rows of job may be deleted: nothing is lost.

    \b
    Example:
      falcon-rm usage --since 7d --by actor --by day -o csv
      falcon-rm usage --since 24h --picture pools.svg
    """
    from falcon_rm import bill
    from falcon_rm.cloud import accounts
    from falcon_rm.core.usage import Window, account

    with app.database() as database:
        now = accounts.read_now(database)
        window = Window(since and since(now), min(now, until(now)) if until else now)
        if window.since is not None and window.since >= (window.until or now):
            raise click.UsageError("--since is not before --until, or lies ahead.")
        lives = accounts.read_lives(database, window)
    if picture:
        from falcon_rm.picture import draw

        _write(picture, draw(lives, now, window))
        click.echo(f"picture/{picture} drawn")
        return
    keys = tuple(dict.fromkeys(by)) or ("actor",)
    rows = account(lives, now, keys, window)
    if output == "csv":
        click.echo(bill.as_csv(keys, rows))
    elif output == "json":
        click.echo(bill.as_object(keys, rows, window.since, window.until or now))
    else:
        click.echo(bill.as_table(keys, rows))


def _write(path: Path, text: str) -> None:
    """Write a file, or end with one line that says why not."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(path), error.strerror) from None
