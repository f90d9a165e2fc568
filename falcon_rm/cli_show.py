"""Commands that only look: status, config, table; and completion, for the shell."""

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from falcon_rm.cli_base import App, output_option, until_interrupted
from falcon_rm.core.words import Status
from falcon_rm.ports import StoreDown

if TYPE_CHECKING:
    from falcon_rm.overview import Overview, Section

WATCH_SECONDS = 2.0

COMPLETE_VARIABLE = "_FALCON_RM_COMPLETE"
"""Where click looks for a shell that asks what completes."""

FISH_COMMAS = ('string split ","', 'string split --max 1 ","')
"""click's script for fish ends what a command does at its first comma."""


@click.command()
@click.option("--watch", is_flag=True, help="Show it again and again, in place on a terminal, until Control-C.")
@click.option("--cluster", help="Show only what is of this cluster.")
@click.option("--actor", help="Show only this actor's jobs, and the pools they hold.")
@click.option(
    "--status",
    "statuses",
    metavar="STATUS",
    multiple=True,
    type=click.Choice(list(Status), case_sensitive=False),
    help="Show only jobs of this status, e.g. Pending; may be given several times.",
)
@output_option("wide", "json", "yaml", "name")
@click.pass_obj
def status(
    app: App, watch: bool, cluster: str | None, actor: str | None, statuses: tuple[Status, ...], output: str | None
) -> int:
    """
    Show clusters, queues, pools and jobs.

    It is what the database has; no cloud is asked. What nobody knows reads <unknown>: whether a cluster can be reached
    if no pass has looked, and ROOM, the slices a reservation has left by topology, while no job waits for them. Jobs
    that ended long ago are left out. On a terminal tables are as wide as it is, else, and with -o wide, as need be.

    \b
    Example:
      falcon-rm status --watch
      falcon-rm status --actor user-a --status Pending --status Running
    """
    from falcon_rm import overview
    from falcon_rm.cloud import present

    if watch and output:
        raise click.UsageError("--watch shows tables that fit; it goes with no -o.")
    wanted = overview.Wanted(cluster, actor, tuple(each.value for each in statuses))
    sections = wanted.sections()

    def look() -> "overview.Overview":
        with app.database() as database:
            return present.read(database, wanted, output)

    if watch:
        return until_interrupted(lambda: _watch(look, sections))
    shown = overview.render(look(), output, sections=sections, width=_width())
    click.echo(shown, nl=bool(shown))
    return 0


def _watch(look: "Callable[[], Overview]", sections: "Sequence[Section]") -> None:
    """Show it until somebody interrupts; a look that fails is told in place of it, and tried again."""
    from falcon_rm import overview, watch

    if not sys.stdout.isatty():
        while True:
            seen = look()
            click.echo(f"{watch.head(seen)}\n{overview.render(seen, sections=sections)}\n")
            _pause()
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, markup=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                text = watch.screen(look(), console.width, console.height, sections=sections)
            except StoreDown as error:
                text = f"the database does not answer, trying again: {error}"
            live.update(Text(text, no_wrap=True, overflow="crop"), refresh=True)
            _pause()


def _width() -> int | None:
    """Return the columns of the terminal; None if there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _pause() -> None:
    time.sleep(WATCH_SECONDS)


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


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """
    Print what makes a SHELL complete commands and options.

    \b
    bash, in ~/.bashrc:                        eval "$(falcon-rm completion bash)"
    zsh, in ~/.zshrc after compinit:           eval "$(falcon-rm completion zsh)"
    fish, in ~/.config/fish/config.fish:       falcon-rm completion fish | source

    \b
    Example:
      eval "$(falcon-rm completion bash)"
    """
    from click.shell_completion import get_completion_class

    form = get_completion_class(shell)
    assert form is not None
    program = context.find_root()
    script = form(program.command, {}, "falcon-rm", COMPLETE_VARIABLE).source()
    click.echo(script.replace(*FISH_COMMAS))
