"""What a pass means for exit codes: the command line on a store in memory and the simulated cloud."""

import json
from contextlib import nullcontext
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cloudsim.direct import DirectClouds
from cloudsim.workload import NEVER_ENDS
from world import Falcon, cluster, spec

from falcon_rm.cli import commands
from falcon_rm.cli_base import App
from falcon_rm.config import Settings

pytestmark = pytest.mark.usefixtures("kept_log")


def invoke(falcon: Falcon, *arguments: str) -> Result:
    """Run a command in a world."""

    def no_database() -> Any:
        raise AssertionError("a pass asks the store alone")

    app = App(
        settings=lambda: Settings(limits=falcon.bounds),
        store=lambda: nullcontext(falcon.store),
        database=no_database,
        clouds=lambda: DirectClouds(falcon.sim),
    )
    return CliRunner().invoke(commands, arguments, obj=app)


def unread() -> Falcon:
    """Return a world at rest with a registered cluster that the cloud does not know."""
    falcon = Falcon()
    falcon.store.add_cluster(cluster("c2"))
    falcon.passes(2)
    return falcon


def test_unread_cluster_is_an_error() -> None:
    """A pass that could not read a cluster ends with 1, and so does a plan that is empty for that reason."""
    falcon = unread()
    assert 1 == invoke(falcon, "run-once").exit_code
    plan = invoke(falcon, "plan", "--detailed-exitcode")
    assert 1 == plan.exit_code
    assert plan.stdout.splitlines()[-1] == "Plan: 0 to create, 0 to change, 0 to delete, 1 unknown."
    assert 0 == invoke(falcon, "plan").exit_code


def test_plan_shows_what_the_pass_does() -> None:
    """The plan names what the next pass carries out, with the clusters' names."""
    falcon = Falcon()
    falcon.submit("j1", spec())
    falcon.until_state("j1", "Pending/Provisioning")
    plan = json.loads(invoke(falcon, "plan", "-o", "json").stdout)
    assert [("CreatePool", "c1")] == [(each["action"], each["cluster"]) for each in plan["actions"]]
    assert [] == falcon.pools()
    assert 0 == invoke(falcon, "run-once").exit_code
    assert ["falcon-j1"] == falcon.creates()


def test_brake() -> None:
    """Run-once ends with 3 while the brake holds, until it is told to go on (P26)."""
    falcon = Falcon()
    for number, topology in enumerate(["1x1", "2x2", "2x4", "4x4", "4x8"]):
        falcon.sim.scripts_by_job_id[f"j{number}"] = NEVER_ENDS
        falcon.submit(f"j{number}", spec(topology))
    falcon.until(lambda: all(falcon.state(f"j{number}") == "Running" for number in range(5)))
    for number in range(5):
        falcon.store.delete_row(f"j{number}")
    falcon.passes(5)
    result = invoke(falcon, "run-once")
    assert 3 == result.exit_code
    assert "5 orphaned Jobs (limit 3)" in json.loads(result.stderr.splitlines()[-1])["err"]
    assert 5 == len(falcon.pools())
    assert 0 == invoke(falcon, "run-once", "--allow-mass-delete").exit_code
