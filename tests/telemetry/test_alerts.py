"""The alert rules of hack/deploy: legal, the same in every form, each shown to come when it should and only then."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from alert_forms import FORMS, RULES, written
from attrs import field, frozen
from private_prometheus import promtool

from falcon_rm.metrics import API_REQUESTS, COUNTERS, GAUGES, HISTOGRAMS

OURS = {each.name for each in (*GAUGES, *COUNTERS, API_REQUESTS)} | {f"{each.name}_count" for each in HISTOGRAMS}
ALWAYS = {"falcon_last_success_timestamp_seconds", "falcon_build_info"}

Series = dict[str, str]


@frozen
class Case:
    """When an alert comes: series by a minute, when to look, what it says; and series that leave it silent."""

    fires: Series
    silent: Series
    summary: str
    minute: int = 61
    labels: dict[str, str] = field(factory=dict)


WELL = {"falcon_last_success_timestamp_seconds": "0+60x90"}
QUEUE = {"cluster": "c1", "topology": "2x2x4"}
PASSES = 'falcon_passes_total{{result="{}"}}'.format
ENDED = 'falcon_jobs_ended_total{{status="{}",reason="{}"}}'.format
ASKED = 'falcon_api_requests_total{{api="gke",method="list_node_pools",code="{}"}}'.format
STARTED, FAILED = 'falcon_acquire_seconds_count{result="started"}', 'falcon_failed_starts_total{reason="capacity"}'
HELD, DEPTH = (
    f'{name}{{cluster="c1",topology="2x2x4"}}' for name in ("falcon_slot_held_seconds", "falcon_queue_depth")
)
WAIT = 'falcon_oldest_waiting_seconds{{cluster="{}",topology="2x2x4"}}'.format
MAKING = 'falcon_pool_creating_seconds{cluster="c1",topology="2x2x4",mode="on-demand"}'

CASES = {
    "FalconNotPassing": Case(
        {"falcon_last_success_timestamp_seconds": "0+60x40 2400x50"},
        WELL,
        "No pass of Falcon has come to its end for more than ten minutes.",
    ),
    "FalconDatabaseAway": Case(
        {PASSES("no-database"): "0+6x90", PASSES("done"): "100x90"},
        {PASSES("no-database"): "0+1x90", PASSES("done"): "0+6x90"},
        "Falcon cannot use its database.",
    ),
    "FalconUnforeseenError": Case(
        {PASSES("failed"): "0x55 1x40", 'falcon_actions_total{action="FreeSlot",result="failed"}': "0x90"},
        {PASSES("failed"): "0x20 1x90", 'falcon_actions_total{action="FreeSlot",result="failed"}': "0x90"},
        "A pass or an action of Falcon failed in a way that nobody foresaw.",
    ),
    "FalconConflicts": Case(
        {"falcon_stale_writes_total": "0+4x90"},
        {"falcon_stale_writes_total": "0+1x90"},
        "Many writes of Falcon came second: 60 in 15 minutes.",
    ),
    "FalconApiErrors": Case(
        {ASKED("ok"): "0+6x90", ASKED("unknown"): "0+6x90"},
        {ASKED("ok"): "0+60x90", ASKED("unknown"): "0+6x90", ASKED("gone"): "0+60x90"},
        "50% of the requests to gke fail.",
        labels={"api": "gke"},
    ),
    "FalconBrakeHolds": Case(
        {"falcon_sweep_braked": "0x50 1x40"},
        {"falcon_sweep_braked": "0x50 1x1 0x90"},
        "Falcon sweeps nothing, since too much would go at once.",
    ),
    "FalconClusterUnread": Case(
        {'falcon_cluster_up{cluster="c1"}': "1x40 0x50", 'falcon_cluster_up{cluster="c2"}': "1x90"},
        {'falcon_cluster_up{cluster="c1"}': "1x40 0x5 1x90"},
        "Cluster c1 cannot be read.",
        labels={"cluster": "c1"},
    ),
    "FalconOrphansStay": Case(
        {'falcon_orphans{cluster="c1",kind="pool"}': "0x20 2x70"},
        {'falcon_orphans{cluster="c1",kind="pool"}': "0x20 2x20 0x2 1x20 0x90"},
        "2 orphans (pool) on cluster c1 do not go.",
        labels={"cluster": "c1", "kind": "pool"},
    ),
    "FalconPoolCreationLong": Case(
        {MAKING: "0+60x90"},
        {MAKING: "0+60x40 0+60x50"},
        "A pool 2x2x4 (on-demand) on c1 has been in the making for 1h 1m 0s.",
        labels={**QUEUE, "mode": "on-demand"},
    ),
    "FalconLongWait": Case(
        {WAIT(""): "21600+60x90", WAIT("c1"): "600x90"},
        {WAIT("c1"): "15000+60x90"},
        "A job has waited 7h 1m 0s for 2x2x4 on no cluster yet.",
        labels={"topology": "2x2x4"},
    ),
    "FalconSlotHeld": Case(
        {HELD: "6000+60x90", DEPTH: "3x90"},
        {HELD: "6000+60x90", DEPTH: "0x90"},
        "One job has been acquiring 2x2x4 on c1 for 2h 41m 0s while others wait.",
        labels=QUEUE,
    ),
    "FalconStartsFail": Case(
        {FAILED: "0+1x90", STARTED: "0x90"},
        {FAILED: "0+1x90", STARTED: "0+2x90"},
        "More starts of jobs fail than succeed: 60 failed in an hour.",
    ),
    "FalconJobsFail": Case(
        {ENDED("Failed", "NodePoolFailed"): "0+1x90", ENDED("Failed", "Timeout"): "0+1x90"},
        {ENDED("Failed", "NodePoolFailed"): "2x90", ENDED("Failed", "Timeout"): "0+1x90"},
        "Jobs fail with NodePoolFailed: 60 in an hour.",
        labels={"reason": "NodePoolFailed"},
    ),
    "FalconWorkloadsFail": Case(
        {ENDED("Failed", "JobFailed"): "0+1x90", ENDED("Succeeded", ""): "7x90"},
        {ENDED("Failed", "JobFailed"): "0+1x90", ENDED("Succeeded", ""): "0+1x90"},
        "Nothing succeeds, and jobs fail with JobFailed: 60 in an hour.",
        labels={"reason": "JobFailed"},
    ),
}


def alerts() -> dict[str, dict[str, Any]]:
    """Return the rules by the names of their alerts."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_every_alert_says_what_to_do() -> None:
    """Each alert has a severity, a summary and what to do, and asks only for metrics that there are."""
    assert CASES.keys() == alerts().keys()
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, name
        assert {"summary", "description"} == rule["annotations"].keys(), name
        asked = set(re.findall(r"falcon_\w+", rule["expr"]))
        assert asked <= OURS | ALWAYS, name


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form.kind))
def test_operators_get_the_same_rules(form: Any) -> None:
    """What the Prometheus Operator and Google's managed Prometheus are given is what promtool checks here."""
    assert written(form) == form.path.read_text(encoding="utf-8"), "hack/telemetry write"
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    assert groups == yaml.safe_load(written(form))["spec"]["groups"]


@pytest.mark.prometheus
def test_rules_are_legal() -> None:
    """Promtool finds nothing wrong with the rules."""
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert (0, f"{len(CASES)} rules found") == (checked.returncode, checked.stdout.strip().split(": ")[-1]), checked


@pytest.mark.prometheus
def test_alerts_come_when_they_should(tmp_path: Path) -> None:
    """Each alert comes in the case that is meant for it, with its labels and words, and not in the one like it."""
    tests = [expected(name, case, fires=fires) for name, case in CASES.items() for fires in (True, False)]
    unit = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "alerts.test.yaml").write_text(yaml.safe_dump(unit), encoding="utf-8")
    tested = promtool("test", "rules", str(tmp_path / "alerts.test.yaml"))
    assert 0 == tested.returncode, tested.stdout + tested.stderr


def expected(name: str, case: Case, *, fires: bool) -> dict[str, Any]:
    """Return one case in promtool's words."""
    rule = alerts()[name]
    told = re.sub(r"{{ \$labels\.(\w+) }}", lambda found: case.labels[found[1]], rule["annotations"]["description"])
    alert = {
        "exp_labels": {**rule["labels"], **case.labels},
        "exp_annotations": {"summary": case.summary, "description": told},
    }
    look = {"eval_time": f"{case.minute}m", "alertname": name, "exp_alerts": [alert] if fires else []}
    series = case.fires if fires else case.silent
    given = [{"series": key, "values": values} for key, values in series.items()]
    return {"name": name, "interval": "1m", "input_series": given, "alert_rule_test": [look]}
