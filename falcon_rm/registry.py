"""
What a row of `clusters` may hold, for `falcon-rm cluster add` and `cluster set`.

1. COLUMNS is the only list: the options, the checks and their texts come from it.
2. What is optional may be emptied again; what is required may not.
"""

import re
from collections.abc import Mapping

from attrs import frozen

from falcon_rm.core.words import ClusterStatus

GKE_NAME = r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?"


class RegistryError(Exception):
    """A value that its column does not take; the text is one line."""


@frozen
class Column:
    """One column: its option is `--` and the name with hyphens; *pattern* must match the whole value."""

    name: str
    pattern: str
    allowed: str
    help: str
    required: bool = False


COLUMNS = (
    Column(
        "project",
        r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]",
        "a project id, 6 to 30 small letters, digits and hyphens",
        "the Google Cloud project",
        True,
    ),
    Column(
        "location",
        r"[a-z]+-[a-z]+\d+(-[a-z])?",
        "a region or a zone, like us-central1 or us-east1-d",
        "where the cluster is",
        True,
    ),
    Column("tpu_type", r"v4|v5e|v5p|v6e|v7x", "v4, v5e, v5p, v6e or v7x", "the TPU type it offers", True),
    Column("status", "|".join(ClusterStatus), ", ".join(ClusterStatus), "whether it takes jobs", True),
    Column("gcs_bucket", r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", "a bucket's name without gs://", "mounted at /gcs"),
    Column(
        "default_reservation",
        rf"{GKE_NAME.replace('38', '61')}|projects/[a-z0-9.:-]+/reservations/[a-z0-9-]+(/[A-Za-z0-9-]+)*",
        "a reservation's name or projects/P/reservations/R",
        "taken by jobs that name no supply mode",
    ),
    Column(
        "gke_name",
        GKE_NAME,
        "a GKE cluster's name, at most 40 small letters, digits and hyphens",
        "GKE's name of it, when NAME is only for people",
    ),
    Column("zone", r"[a-z]+-[a-z]+\d+-[a-z]", "a zone, like us-central1-a", "where node pools go"),
    Column("node_service_account", r"[a-z0-9-]+@[a-z0-9.-]+", "an e-mail address", "the nodes' service account"),
    Column("endpoint", "ip|dns", "ip or dns", "how Kubernetes is reached"),
)
"""The columns of `clusters` beside id, name and created_at (contract.md 1)."""


def check_name(name: str, gke_name: str | None) -> None:
    """Check what a cluster is called: GKE's own name, or any word beside a *gke_name*. Raises RegistryError."""
    if not re.fullmatch(GKE_NAME, name) and not (gke_name and re.fullmatch(r"\S{1,128}", name)):
        raise RegistryError(f"name holds {name!r}; allowed: a GKE cluster's name, or any word beside --gke-name")


def check_values(values: Mapping[str, str | None]) -> None:
    """
    Check what columns are to hold; None empties a column.

    Raises:
        RegistryError: every value that its column does not take.
    """
    faults = []
    for column in COLUMNS:
        value = values.get(column.name)
        if value is not None and not re.fullmatch(column.pattern, value):
            faults.append(f"{column.name} holds {value!r}; allowed: {column.allowed}")
        if value is None and column.name in values and column.required:
            faults.append(f"{column.name} cannot be empty; allowed: {column.allowed}")
    if faults:
        raise RegistryError(". ".join(faults))
