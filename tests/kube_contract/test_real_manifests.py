"""Manifests on a real API server, strictly validated: what the parser of specs lets through, Kubernetes accepts."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from cloudsim.real_kube import path_of
from control_plane.client import Client, Json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from falcon_rm.core import readers
from falcon_rm.core.manifest import build
from falcon_rm.core.model import Cluster, InvalidSpec, Job, TaskSpec
from falcon_rm.core.names import cloud_name
from falcon_rm.core.shapes import MACHINES
from falcon_rm.core.spec import parse

NAMESPACE = "falcon-jobs"
TEMPLATE = "logs/{job_id}/{pod_name}.log"
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
HOSTILE = st.sampled_from(
    [
        "$(POD_NAME)",
        "$$",
        "$(",
        "a\nb\t\r",
        "\x01\x7f",
        "长" * 30,
        "-rf",
        "--",
        "'\"`\\",
        "{{.}}",
        "%s",
        " ",
        "",
        "null",
        "🦀",
    ]
)
TEXTS = WORDS | HOSTILE
NAMES = st.from_regex(r"[A-Za-z_.-][A-Za-z0-9_.-]{0,20}", fullmatch=True) | TEXTS
PATHS = st.lists(st.from_regex(r"[^/\0]{1,9}", fullmatch=True), min_size=1, max_size=3).map(lambda p: "/" + "/".join(p))
KEYS = st.from_regex(r"([a-z]{1,5}\.[a-z]{1,3}/)?[A-Za-z0-9_.-]{1,70}", fullmatch=True) | TEXTS
QUANTITIES = (
    st.sampled_from(
        ["1", "500m", "1.5", "2Gi", "100M", "1e3", "1E3", "0.1", "0", "1n", "3u", "7Ei", "16P", "1.5Gi", ".5", "5."]
    )
    | st.integers(0, 500)
    | st.floats(0, 1e12, allow_nan=False)
    | TEXTS
)
SHAPES = [
    {"device_type": machine.tpu_type, "device_topo": topology, "machine_type": name}
    for name, machine in MACHINES.items()
    for topology in (*machine.topologies[:5], machine.topologies[-1])
] + [{"device_type": "cpu"}]
IMAGES = st.sampled_from(
    [
        "busybox",
        "gcr.io/p/i:tag",
        "localhost:5000/a/b@sha256:" + "0" * 64,
        "a" * 200,
        "A B",
        " x",
        "x ",
        "x\n",
        "UPPER/x",
    ]
)
MOUNT = st.fixed_dictionaries(
    {"name": TEXTS, "bucket": st.sampled_from(["models", "a-b_c.d", "b" * 63]) | TEXTS, "mount_path": PATHS | TEXTS},
    optional={
        "type": st.just("gcs"),
        "prefix": TEXTS | PATHS,
        "read_only": st.booleans(),
        "mount_options": st.lists(st.sampled_from(["uid=1", "a:b:-1", "ro", "implicit-dirs"]) | TEXTS, max_size=3),
    },
)
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "command": TEXTS | st.lists(TEXTS, max_size=4),
    "args": st.lists(TEXTS, max_size=3),
    "supply_mode": st.sampled_from(["", "reservation", "on-demand", "flex-start"]),
    "envs": st.dictionaries(NAMES, TEXTS | st.integers() | st.booleans(), max_size=4),
    "mounts": st.lists(MOUNT, max_size=3),
    "resources": st.dictionaries(
        st.sampled_from(["cpu_request", "cpu_limit", "memory_request", "memory_limit"]), QUANTITIES, max_size=4
    ),
    "exp_id": TEXTS,
    "owner": TEXTS,
    "labels": st.dictionaries(KEYS, TEXTS, max_size=4),
    "termination_grace_seconds": st.integers(0, 3600),
    "log": st.sampled_from(["gcs", "none"]),
}


@st.composite
def specs(draw: Callable[..., Any]) -> Json:
    """Return a spec of any shape, of which some fields may be wrong."""
    spec = {"image": draw(st.just("busybox") | IMAGES), **draw(st.sampled_from(SHAPES))}
    chosen = draw(st.sets(st.sampled_from(sorted(OPTIONS)), max_size=5))
    return spec | {name: draw(OPTIONS[name]) for name in sorted(chosen)}


def manifests(task: TaskSpec, job_id: str, attempt: int, *, bucket: str | None, artifacts: str | None) -> list[Json]:
    """Return the Job and the Service, if it has one."""
    cluster = Cluster("c-1", "tpu-east", "p", "us-east5-a", task.tpu_type or "v7x", gcs_bucket=bucket)
    row = Job(job_id, "ann", task, "Pending", 0, attempt=attempt, artifact_path=artifacts)
    name = cloud_name(job_id, attempt)
    pool = name if task.shape else None
    made, service = build(
        job=row, task=task, cluster=cluster, name=name, pool=pool, instance="i-1", log_path_template=TEMPLATE
    )
    return [made, *([service] if service else [])]


def accepted(client: Client, manifest: Json) -> None:
    """Let the server say whether it would take an object as it is."""
    kind = "jobs" if manifest["kind"] == "Job" else "services"
    answer = client.call("POST", path_of(kind, NAMESPACE), manifest, STRICT)
    told = {name: value for name, value in answer.headers.items() if name.lower() == "warning"}
    assert (201, {}) == (answer.status, told), (answer.body.get("message"), manifest)


@pytest.fixture(scope="module")
def home(admin: Client) -> Client:
    """The server, with the namespace and the account that Falcon makes."""
    admin.call("POST", path_of("namespaces", None), {"metadata": {"name": NAMESPACE}})
    admin.call("POST", path_of("serviceaccounts", NAMESPACE), {"metadata": {"name": "falcon-job"}})
    return admin


PASSED: dict[str, int] = {"accepted": 0, "refused by the parser": 0}


@settings(max_examples=2000, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(
    specs(),
    TEXTS.filter(bool),
    st.integers(1, 99),
    st.sampled_from([None, "logs"]),
    st.sampled_from([None, "runs/1", "/a b/", "$(X)"]) | TEXTS,
)
def test_what_the_parser_accepts_kubernetes_accepts(
    home: Client, spec: Json, job_id: str, attempt: int, bucket: str | None, artifacts: str | None
) -> None:
    """No rejection, no warning, no unknown field, whatever a spec holds."""
    task = parse(json.dumps(spec))
    if isinstance(task, InvalidSpec):
        PASSED["refused by the parser"] += 1
        return
    PASSED["accepted"] += 1
    for manifest in manifests(task, job_id, attempt, bucket=bucket, artifacts=artifacts):
        accepted(home, manifest)


def test_enough_specs_were_possible() -> None:
    """The specs above are not all refused before a server sees them."""
    assert PASSED["accepted"] > 500, PASSED


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(shape.values()))
def test_every_shape(home: Client, shape: Json) -> None:
    """Every machine with its topologies, smallest to largest."""
    task = parse(json.dumps({"image": "busybox", "command": "echo hi", **shape}))
    assert isinstance(task, TaskSpec), task
    for manifest in manifests(task, "job-u1wm3wuha2", 1, bucket="logs", artifacts="runs/1"):
        accepted(home, manifest)


def test_the_largest_spec_is_stored(home: Client) -> None:
    """Script, variables and labels at their limits fit into one object, which is really written."""
    spec: Json = {
        "image": "busybox",
        "command": "$" * readers.COMMAND_BYTES,
        "device_type": "v7x",
        "device_topo": MACHINES["tpu7x-standard-4t"].topologies[-1],
        "envs": {"A": "$" * readers.ENV_BYTES, "B": "$" * readers.ENV_BYTES, "C": "$" * 20_000},
        "labels": {"a": "长" * 10_000},
    }
    task = parse(json.dumps(spec))
    assert isinstance(task, TaskSpec), task
    made = manifests(task, "large", 1, bucket="logs", artifacts=None)[0]
    made["spec"]["suspend"] = True  # it is about the Job; hundreds of pods of this size keep a server busy
    answer = home.call("POST", path_of("jobs", NAMESPACE), made, {"fieldValidation": "Strict"})
    assert 201 == answer.status, answer.body.get("message")
    home.must("DELETE", path_of("jobs", NAMESPACE, made["metadata"]["name"]), {"propagationPolicy": "Background"})
