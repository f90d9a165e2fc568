"""
What several test files share: a fresh database for a test, the profiles of Hypothesis, and the count of cases.

A test of proof.md that runs a matrix says how large it was, and `hack/proof` adds it up:

    def test_every_fault(proof: Callable[[int, int], None]) -> None:
        ...
        proof(len(sites) * len(faults), runs)

A test that says nothing counts as one case. Tests of one property may say it once each, or several times.
"""

import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
import structlog
from hypothesis import HealthCheck, settings

from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.cloud.schema import migrate, sql_files

pytest_plugins = [
    "cloudsim_fixtures",
    "database_roles",
    "database_servers",
    "kube_table",
    "left_out",
    "store_stage",
]

LONGEST = (
    "test_world_interleavings", "test_process_kills", "test_world_intents", "test_real_demo", "test_world_machine",
    "test_contract_jobs", "test_world_lives", "test_store_locks", "test_world_everywhere", "test_world_faults",
    "test_sameness", "test_world_pairs_6", "test_store_loss", "test_store_convergence", "test_store_values",
    "test_world_pairs_5", "test_real_deploy", "test_process_signals", "test_process_demo", "test_process_wedge",
    "test_store_faults", "test_real_tokens", "test_world_crashes", "test_store_contract", "test_coverage",
    "test_process_telemetry", "test_world_stale", "test_process_life", "test_clusters_and_sweep",
    "test_world_pairs_2", "test_readme", "test_world_pairs_4", "test_wrapper", "test_contract_objects",
    "test_world_pairs_1", "test_store_refusals", "test_world_everywhere_later", "test_work_that_fails", "test_size",
    "test_kube_table", "test_world_faults_between", "test_store_mysql", "test_wire", "test_real_manifests",
    "test_contract_placing", "test_life_of_a_job", "test_contract_refusals", "test_usage_world", "test_cli_check",
    "test_real_run", "test_world_bounded", "test_store_size", "test_process_start", "test_pools_that_fail",
    "test_process_pass", "test_world_pairs_3", "test_contract_tables", "test_plan_properties", "test_process_input",
    "test_iam", "test_store_race", "test_schema", "test_world_stale_between", "test_kube", "test_serve", "test_brake",
    "test_contract_lists", "test_pitfalls_capacity", "test_pitfalls_told",
)  # fmt: skip
"""
Files that take the longest, as measured: they begin first, so that no worker is left alone with one in the end. Those
that compute and those that wait for servers take turns, so that the cores have work all the while.
"""

YOUNG_OBJECTS = 50_000  # of which most go by themselves

# dev: by hand; ci: the same examples every time; soak: by night. `--hypothesis-profile` picks another.
settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=500,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak", derandomize=False, deadline=None, max_examples=100_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure() -> None:
    """
    Listen to SIGINT, and look for garbage less often.

    A shell that runs tests in the background lets them ignore the signal, and all that they start; and worlds are made
    of so many objects that the collector would look through them all the while.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(YOUNG_OBJECTS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the files that take the longest come first."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and never look for it through what was loaded for all tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture
def proof(record_property: Callable[[str, object], None]) -> Callable[[int, int], None]:
    """Report the cases of a matrix: those *planned*, from a recording or a product, and those really *executed*."""

    def report(planned: int, executed: int) -> None:
        record_property("planned", planned)
        record_property("executed", executed)
        assert planned == executed, "cases that were planned were not executed"

    return report


@pytest.fixture(scope="session")
def proved() -> dict[str, Any]:
    """What was proved on each ground (proving.py), by whichever file came first."""
    return {}


@pytest.fixture(scope="module")
def grounds(proved: dict[str, Any]) -> dict[str, Any]:
    """The same; each file strikes every state anew, so that it counts its cases whatever ran before it."""
    for known in proved.values():
        known.struck.clear()
    return proved


@pytest.fixture
def empty_database(database_url: str) -> Iterator[str]:
    """The URL of a new database that is dropped after the test."""
    name = f"falcon_test_{uuid4().hex[:12]}"
    server = Database(parse_url(database_url))
    try:
        server.rows(f"CREATE DATABASE {name}")
        head, _, options = database_url.partition("?")
        yield f"{head.rpartition('/')[0]}/{name}" + (f"?{options}" if options else "")
        server.rows(f"DROP DATABASE {name}")
    finally:
        server.close()


@pytest.fixture
def database(empty_database: str) -> str:
    """The URL of a new database with Falcon's tables and upstream's `job`."""
    new = Database(parse_url(empty_database))
    migrate(new)
    new.rows(sql_files()["job.sql"])
    new.close()
    return empty_database


@pytest.fixture
def kept_log() -> Iterator[None]:
    """The log as it was before, whatever a test sets up."""
    root, settings = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.configure(**settings)
    root.handlers[:] = handlers
    root.setLevel(level)
