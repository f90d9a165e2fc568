"""What a pass means for exit codes: the command line on a store in memory and the simulated cloud."""

import json
from contextlib import nullcontext
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cloudsim.direct import DirectClouds
from cloudsim.gke_pools import Doom
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
        inspection=no_database,
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


def reviewed(falcon: Falcon, *arguments: str) -> str:
    """Return the checksum of the plan that is shown."""
    checksum: str = json.loads(invoke(falcon, "plan", "-o", "json", *arguments).stdout)["checksum"]
    return checksum


def test_reviewed_plan_is_carried_out() -> None:
    """What was reviewed is done as long as it is what would be done, however much time goes by."""
    falcon = Falcon()
    falcon.submit("j1", spec())
    falcon.until_state("j1", "Pending/Provisioning")
    checksum = reviewed(falcon)
    falcon.advance(30)
    assert checksum == reviewed(falcon)
    assert checksum in invoke(falcon, "plan").stdout
    assert 0 == invoke(falcon, "run-once", "--plan", checksum).exit_code
    assert ["falcon-j1"] == falcon.creates()


def test_another_plan_is_refused() -> None:
    """If anything else would be done nothing is, and the exit code says so."""
    falcon = Falcon()
    falcon.submit("j1", spec())
    falcon.until_state("j1", "Pending/Provisioning")
    checksum = reviewed(falcon)
    falcon.submit("j2", spec("4x4"))
    refused = invoke(falcon, "run-once", "--plan", checksum)
    now = reviewed(falcon)
    told = f"error: nothing was done: the plan is now {now}, not {checksum}; see what it is with falcon-rm plan\n"
    assert (4, "", told) == (refused.exit_code, refused.stdout, refused.stderr)
    assert ([], "Pending") == (falcon.creates(), falcon.state("j2"))
    assert 0 == invoke(falcon, "run-once", "--plan", now).exit_code
    assert ["falcon-j1"] == falcon.creates()


def test_backing_off_is_one_plan() -> None:
    """A pool that failed gives the same plan a minute later, though the back-off then ends a minute later too."""
    falcon = Falcon()
    falcon.sim.gke.doom(Doom("falcon-j1", "[GCE_STOCKOUT]: no machines", condition="GCE_STOCKOUT"))
    falcon.submit("j1", spec())
    falcon.until(lambda: "gives its pool up: capacity" in invoke(falcon, "plan").stdout)
    checksum = reviewed(falcon)
    falcon.advance(60)
    assert 0 == invoke(falcon, "run-once", "--plan", checksum).exit_code
    assert ("Pending/Waiting", 1) == (falcon.state("j1"), falcon.job("j1").pool_failures)


def test_mass_delete_is_reviewed() -> None:
    """What the brake holds is shown when it is allowed, and carried out as shown."""
    falcon = Falcon()
    for number, topology in enumerate(["1x1", "2x2", "2x4", "4x4", "4x8"]):
        falcon.sim.scripts_by_job_id[f"j{number}"] = NEVER_ENDS
        falcon.submit(f"j{number}", spec(topology))
    falcon.until(lambda: all(falcon.state(f"j{number}") == "Running" for number in range(5)))
    for number in range(5):
        falcon.store.delete_row(f"j{number}")
    falcon.passes(5)
    held, allowed = reviewed(falcon), reviewed(falcon, "--allow-mass-delete")
    assert held != allowed
    falcon.advance(60)
    assert 4 == invoke(falcon, "run-once", "--plan", allowed).exit_code
    assert 4 == invoke(falcon, "run-once", "--allow-mass-delete", "--plan", held).exit_code
    assert 5 == len(falcon.works())
    assert 0 == invoke(falcon, "run-once", "--allow-mass-delete", "--plan", allowed).exit_code
    falcon.passes(3)
    assert [] == falcon.works()


def test_part_of_a_plan() -> None:
    """A job's or a cluster's part is shown with its counts; the exit code is the whole plan's."""
    falcon = Falcon(cluster("c1"), cluster("c2", "v5e"))
    falcon.submit("j1", spec())
    falcon.submit("j2", spec("2x2", "v5e"))
    falcon.submit("bad", "{}")
    whole = invoke(falcon, "plan").stdout.splitlines()
    heads = [line.partition(":")[0] for line in whole if line and not line.startswith((" ", "Checksum", "Plan"))]
    assert ["cluster c1", "cluster c2", "no cluster"] == heads
    part = invoke(falcon, "plan", "--cluster", "c2", "--detailed-exitcode")
    assert 2 == part.exit_code
    assert "j2" in part.stdout
    assert "j1" not in part.stdout
    assert whole[-2:] == part.stdout.splitlines()[-2:]
    (act,) = json.loads(invoke(falcon, "plan", "--job", "j1", "-o", "json").stdout)["actions"]
    assert ("Change", "j1", "c1") == (act["action"], act["job"], act["cluster"])


def test_part_of_nothing() -> None:
    """A job or cluster that is not there is refused in one line."""
    falcon = Falcon()
    for option, told in (
        ("--job", "there is no job 'x' that is not over; see falcon-rm explain"),
        ("--cluster", "there is no cluster 'x'"),
    ):
        result = invoke(falcon, "plan", option, "x")
        assert (1, "", f"error: {told}\n") == (result.exit_code, result.stdout, result.stderr)
