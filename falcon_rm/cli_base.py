"""
What every command shares: how errors end it, what it may ask for, and in which form it answers.

1. Results go to stdout, errors alone to stderr, each in one line.
2. Exit codes: 0 done, 1 error, 64 usage; a command's --help names its others. Without a command help is the answer.
3. A command asks App for what it needs, so that nothing is imported or connected before.
"""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from falcon_rm.config import ConfigError, Settings
from falcon_rm.ports import Refused, StoreDown
from falcon_rm.redaction import redact

if TYPE_CHECKING:
    from falcon_rm.cloud.database import Database
    from falcon_rm.core.plan import Plan
    from falcon_rm.loop import Pass
    from falcon_rm.ports import Clouds, Inspection, Store

ERROR, USAGE, INTERRUPTED = 1, 64, 130

NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
"""What the system says when what is written finds no place."""

UNFIT = ("1146: ", "1054: ")
"""How the errors of a database begin that lacks a table or a column."""


@frozen
class App:
    """The doors to the outside; each opens when it is called. Only cli.py builds one."""

    settings: Callable[[], Settings]
    store: Callable[[], "AbstractContextManager[Store]"]
    database: Callable[[], "AbstractContextManager[Database]"]
    clouds: Callable[[], "Clouds"]
    inspection: Callable[[], "Inspection"]


class Commands(click.Group):
    """A group whose every error is one line on stderr, and whose commands return their exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that *args* name and, if it stands alone, end the process with its exit code."""
        try:
            code = super().main(args, prog_name or "falcon-rm", complete_var, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            code = USAGE
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else "falcon-rm"
            said = error.format_message()
            end = "" if said.endswith((".", "?")) else "."
            code = _complain(f"{said}{end} See '{path} --help'.", USAGE)
        except click.ClickException as error:
            code = _complain(error.format_message(), error.exit_code)
        except StoreDown as error:
            hint = "; falcon-rm db check says what is missing" if str(error).startswith(UNFIT) else ""
            code = _complain(f"{error}{hint}", ERROR)
        except (ConfigError, Refused) as error:
            code = _complain(str(error), ERROR)
        except click.Abort:
            code = _complain("interrupted", INTERRUPTED)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is not written yet is tried once more
            code = _complain(f"the answer could not be written: {error.strerror}", ERROR)
        if standalone_mode:
            sys.exit(code or 0)
        return code


def _complain(text: str, code: int) -> int:
    """Say what went wrong in one line, without what looks like a secret, and return the exit code."""
    click.echo("error: " + redact(" ".join(text.split())), err=True)
    return code


def output_option(*forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option -o with these forms; without it the answer is a table."""
    return click.option("-o", "--output", type=click.Choice(forms), help="Form of the answer; a table if not given.")


def one_pass(
    app: App,
    settings: Settings,
    *,
    dry: bool = False,
    allow_mass_delete: bool = False,
    approves: "Callable[[Plan], bool]" = lambda _: True,
) -> "Pass":
    """Make one pass with these settings."""
    from falcon_rm import loop

    return loop.one_pass(
        store=app.store,
        clouds=app.clouds,
        bounds=settings.bounds(allow_mass_delete=allow_mass_delete),
        dry=dry,
        approves=approves,
        pass_seconds=settings.pass_timeout,
    )


def until_interrupted(work: Callable[[], object]) -> int:
    """Do what people end with Control-C, which is no error of it; return the exit code."""
    try:
        work()
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def with_log(app: App) -> Settings:
    """
    Set the log up, and return the settings of a command that needs the database too.

    Raises:
        ConfigError: with every fault of either.
    """
    from falcon_rm import telemetry

    faults: dict[str, None] = {}
    for door in (app.settings, app.store):
        try:
            door()
        except ConfigError as error:
            faults |= dict.fromkeys(error.faults)
    if faults:
        raise ConfigError(tuple(faults))
    settings = app.settings()
    telemetry.configure(settings.log_format, secrets=settings.secrets)
    telemetry.take_crashes()
    return settings
