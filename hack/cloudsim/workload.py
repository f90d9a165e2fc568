"""
What a container does in the simulated world, chosen for a pod in this order:

1. its annotation, or its Job's, `sim.falcon.io/workload`: the fields of Workload as a JSON object;
2. `world.scripts_by_job_id`, by the label falcon.io/job-id;
3. the scripts given to `world.script(matcher, workload)`, the latest first;
4. `world.default_workload`.

`attempts` (by the label falcon.io/attempt) and then `indexes` (by completion index) of what was chosen override it.
"""

from collections.abc import Mapping
from typing import Any

from attrs import field, fields, frozen

ANNOTATION = "sim.falcon.io/workload"
JOB_ID = "falcon.io/job-id"
ATTEMPT = "falcon.io/attempt"
NESTED = {"indexes", "attempts"}


@frozen
class Workload:
    """One container's life. *kind* "run" runs *seconds* and exits; the others never get that far."""

    kind: str = "run"  # run image-pull invalid-image config-error run-error sidecar-stuck mount-stuck
    seconds: float | None = 20.0  # None: it never ends by itself
    exit_code: int = 0
    out_of_memory: bool = False  # OOMKilled, 137, after `seconds`
    message: str = ""  # the termination message
    lose_node_after: float | None = None  # seconds after it began to run its machine is gone
    stop_seconds: float | None = None  # from SIGTERM to its end; None: the world's default
    ignores_term: bool = False  # only SIGKILL ends it, after the pod's grace
    stop_exit_code: int = 143
    pull_seconds: float | None = None  # a large image; None: the world's default
    log: str = ""
    indexes: Mapping[int, "Workload"] = field(factory=dict)
    attempts: Mapping[int, "Workload"] = field(factory=dict)


NEVER_ENDS = Workload(seconds=None)
NEVER_PULLS = Workload(kind="image-pull")
CONFIG_ERROR = Workload(kind="config-error")
SIDECAR_STUCK = Workload(kind="sidecar-stuck")
OUT_OF_MEMORY = Workload(out_of_memory=True, exit_code=137)
LOSES_NODE = Workload(seconds=None, lose_node_after=10.0)


def workload(data: Mapping[str, Any]) -> Workload:
    """Return the Workload a JSON object describes; an unknown field raises TypeError."""
    known = {item.name for item in fields(Workload)}
    if unknown := set(data) - known:
        raise TypeError(f"workload has no {', '.join(sorted(unknown))}")
    plain: dict[str, Any] = {key: value for key, value in data.items() if key not in NESTED}
    for key in NESTED & set(data):
        plain[key] = {int(number): workload(inner) for number, inner in data[key].items()}
    return Workload(**plain)


def for_pod(chosen: Workload, attempt: str | None, index: int | None) -> Workload:
    """Return what this attempt, and in it this completion index, does."""
    if attempt is not None and attempt.isdigit():
        chosen = chosen.attempts.get(int(attempt), chosen)
    return chosen if index is None else chosen.indexes.get(index, chosen)
