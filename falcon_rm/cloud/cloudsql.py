"""
Login to Cloud SQL as a Google account, without a password: the extra `falcon-rm[cloudsql]`, loaded only when asked for.

1. The connector is made once a process: it keeps keys and certificates, and renews them when a connection needs them.
2. It has no bound of its own for all that it does, so each connection is waited for no longer than any other call.
3. What goes wrong leaves here as the database driver's own error, as if the server could not be reached.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import aiohttp
import google.auth.exceptions
import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR
from pymysql.cursors import Cursor

from falcon_rm.cloud.errors import bounded
from falcon_rm.cloud.retry import Deadline, within
from falcon_rm.core.words import CloudError

MODULE = "google.cloud.sql.connector"
MISSING = "cloud_sql needs the extra that logs in to Cloud SQL: pip install 'falcon-rm[cloudsql]'"
FAILURES = (aiohttp.ClientError, google.auth.exceptions.GoogleAuthError, OSError, ValueError, CloudError)


def is_there() -> bool:
    """Return whether the extra is installed."""
    try:
        return find_spec(MODULE) is not None
    except ModuleNotFoundError:  # of a package above it
        return False


def connect(instance: str, address: str, options: Mapping[str, Any], seconds: float) -> "Connection[Cursor]":
    """
    Return a connection to the instance PROJECT:REGION:NAME.

    Args:
        instance: its connection name.
        address: which of its addresses, `private`, `public` or `psc`.
        options: what the driver is told; a password is not among them.
        seconds: how long to wait.

    Raises:
        pymysql.err.OperationalError: there is none.
    """
    from google.cloud.sql.connector import exceptions  # noqa: PLC0415 - an extra, see above

    own = (kind for _, kind in inspect.getmembers(exceptions, inspect.isclass) if issubclass(kind, Exception))
    failures: tuple[type[Exception], ...] = (*FAILURES, *own)

    def ask() -> "Connection[Cursor]":
        made: Connection[Cursor] = _connector().connect(
            instance, "pymysql", ip_type=address, enable_iam_auth=True, timeout=max(1, int(seconds)), **options
        )
        return made

    try:
        return within(Deadline(seconds), ask)
    except pymysql.err.Error:
        raise
    except failures as error:
        text = bounded(f"Cloud SQL {instance}: {str(error) or type(error).__name__}")
        raise pymysql.err.OperationalError(CR.CR_CONN_HOST_ERROR, text) from error


@cache
def _connector() -> Any:
    from google.cloud.sql.connector import Connector  # noqa: PLC0415 - an extra, see above

    return Connector(refresh_strategy="lazy")
