"""The manifest: what a pod gets, and that Kubernetes takes it."""

import json
import re
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes import client

from falcon_rm.core import wrapper
from falcon_rm.core.manifest import build
from falcon_rm.core.model import Cluster, Job, Mount, TaskSpec
from falcon_rm.core.names import annotations, labels
from falcon_rm.core.shapes import shape
from falcon_rm.core.spec import parse

CLUSTER = Cluster("c-1", "tpu-east", "p", "us-east5-a", "v7x", gcs_bucket="logs")
ONE = TaskSpec(image="busybox:1.36", shape=shape("v7x", "2x2x1"), command="echo hi")
MANY = evolve(ONE, shape=shape("v7x", "2x2x4"))
CPU = evolve(ONE, shape=None)
TEMPLATE = "logs/{job_id}/{pod_name}.log"


def built(
    task: TaskSpec, *, cluster: Cluster = CLUSTER, pool: str | None = "falcon-j0", name: str = "falcon-j1", **job: Any
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Build the manifests of job j1, attempt 1."""
    row = Job(**{"id": "j1", "actor": "ann", "task": task, "status": "Pending", "created_at": 0, "attempt": 1, **job})
    pool = pool if task.shape else None
    return build(job=row, task=task, cluster=cluster, name=name, pool=pool, instance="i-1", log_path_template=TEMPLATE)


def job_of(task: TaskSpec, **more: Any) -> dict[str, Any]:
    """Return the Job alone."""
    return built(task, **more)[0]


def pod_of(task: TaskSpec, **more: Any) -> dict[str, Any]:
    """Return the pod's spec."""
    pod: dict[str, Any] = job_of(task, **more)["spec"]["template"]["spec"]
    return pod


def container_of(task: TaskSpec, **more: Any) -> dict[str, Any]:
    """Return the one container."""
    (container,) = pod_of(task, **more)["containers"]
    assert isinstance(container, dict)
    return container


def expanded(text: str, variables: dict[str, str]) -> str:
    """Expand $(NAME) and $$ as the kubelet does."""
    return re.sub(
        r"\$\$|\$\(([^)]*)\)",
        lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]),
        text,
    )


def env_of(task: TaskSpec, **more: Any) -> dict[str, str]:
    """Return the variables as the workload sees them; a field reference as its path."""
    seen: dict[str, str] = {}
    for variable in container_of(task, **more)["env"]:
        assert variable["name"] not in seen
        if "value" in variable:
            seen[variable["name"]] = expanded(variable["value"], seen)
        else:
            seen[variable["name"]] = f"<{variable['valueFrom']['fieldRef']['fieldPath']}>"
    return seen


def test_one_host() -> None:
    """One host is a plain Job without a Service, pinned to its pool."""
    job, service = built(ONE)
    spec = job["spec"]
    assert service is None
    assert ("NonIndexed", 1, 1, 0) == tuple(
        spec[key] for key in ("completionMode", "completions", "parallelism", "backoffLimit")
    )
    assert "ttlSecondsAfterFinished" not in spec
    pod = spec["template"]["spec"]
    assert {
        "cloud.google.com/gke-nodepool": "falcon-j0",
        "cloud.google.com/gke-tpu-accelerator": "tpu7x",
        "cloud.google.com/gke-tpu-topology": "2x2x1",
    } == pod["nodeSelector"]
    assert ("falcon-job", "Never", 30) == tuple(
        pod[key] for key in ("serviceAccountName", "restartPolicy", "terminationGracePeriodSeconds")
    )
    assert "subdomain" not in pod
    assert {"requests": {"google.com/tpu": "4"}, "limits": {"google.com/tpu": "4"}} == container_of(ONE)["resources"]
    assert {"google.com/tpu", "cloud.google.com/gke-flex-start"} == {t["key"] for t in pod["tolerations"]}


def test_many_hosts() -> None:
    """A slice of several hosts is an Indexed Job whose pods find each other through a headless Service."""
    job, service = built(MANY)
    assert ("Indexed", 4, 4) == tuple(job["spec"][key] for key in ("completionMode", "completions", "parallelism"))
    assert "falcon-j1" == job["spec"]["template"]["spec"]["subdomain"]
    assert service is not None
    assert {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": "falcon-j1"}} == service[
        "spec"
    ]
    assert ("falcon-j1", "falcon-jobs") == (service["metadata"]["name"], service["metadata"]["namespace"])


def test_a_cpu_job() -> None:
    """A CPU job has no selector, no toleration and no chips, but the same environment."""
    task = evolve(CPU, resources={"cpu_request": "250m", "cpu_limit": "1", "memory_limit": "4Gi"})
    pod = pod_of(task)
    assert not {"nodeSelector", "tolerations"} & pod.keys()
    assert {"requests": {"cpu": "250m"}, "limits": {"cpu": "1", "memory": "4Gi"}} == container_of(task)["resources"]
    assert {} == container_of(CPU)["resources"]
    assert env_of(ONE) == env_of(CPU)


@pytest.mark.parametrize("pool", ["", None])
def test_no_pin_no_manifest(pool: str | None) -> None:
    """Without the name of its pool a TPU job cannot be built (P43)."""
    with pytest.raises(ValueError, match="node pool"):
        built(ONE, pool=pool)


def test_infrastructure_is_told_from_workload() -> None:
    """The Job itself says whether its pods were disrupted, and no pod is replaced."""
    spec = job_of(ONE)["spec"]
    condition = {"type": "DisruptionTarget", "status": "True"}
    assert {"rules": [{"action": "FailJob", "onPodConditions": [condition]}]} == spec["podFailurePolicy"]
    assert "Failed" == spec["podReplacementPolicy"]


def test_labels_and_exact_values() -> None:
    """Job and pods carry the labels, and what a label cannot spell as an annotation (P41)."""
    task = evolve(ONE, owner="a@b.c", exp_id="e 1", labels={"team": "x", "job-name": "y"})
    job = job_of(task, id="J 1")
    pod = job["spec"]["template"]["metadata"]
    made = labels(
        instance="i-1", cluster_id="c-1", job_id="J 1", attempt=1, exp_id="e 1", owner="a@b.c", extra=task.labels
    )
    exact = annotations(job_id="J 1", exp_id="e 1", owner="a@b.c", extra=task.labels)
    assert (made, exact) == (job["metadata"]["labels"], job["metadata"]["annotations"])
    assert made == pod["labels"]
    assert exact.items() <= pod["annotations"].items()
    assert "false" == pod["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"]


def test_environment_of_one_host() -> None:
    """One host is rank 0 of 1 and coordinates itself."""
    assert {
        "FALCON_POD_NAME": "<metadata.name>",
        "POD_NAME": "<metadata.name>",
        "FALCON_JOB_ID": "j1",
        "FALCON_EXP_ID": "",
        "FALCON_ATTEMPT": "1",
        "FALCON_CLUSTER": "tpu-east",
        "FALCON_RANK": "0",
        "FALCON_WORLD_SIZE": "1",
        "FALCON_JAX_PROCESS_ID": "0",
        "FALCON_JAX_PROCESS_COUNT": "1",
        "FALCON_JAX_COORDINATOR_ADDRESS": "localhost:8476",
        "FALCON_LOG_PATH": "/gcs/logs/j1/<metadata.name>.log",
        "PYTHONUNBUFFERED": "1",
    } == env_of(ONE)


def test_environment_of_many_hosts() -> None:
    """Each host of many learns its place from its completion index."""
    index = "<metadata.annotations['batch.kubernetes.io/job-completion-index']>"
    assert {
        "FALCON_RANK": index,
        "FALCON_WORLD_SIZE": "4",
        "FALCON_JAX_PROCESS_ID": index,
        "FALCON_JAX_PROCESS_COUNT": "4",
        "FALCON_JAX_COORDINATOR_ADDRESS": "falcon-j1-0.falcon-j1:8476",
        "TPU_WORKER_ID": index,
        "TPU_WORKER_HOSTNAMES": ",".join(f"falcon-j1-{i}.falcon-j1" for i in range(4)),
    }.items() <= env_of(MANY).items()


def test_the_largest_slice_can_start() -> None:
    """No variable is longer than Linux takes, however many hosts there are."""
    task = evolve(ONE, shape=shape("v7x", "16x24x24"))
    assert 131_072 > max(len(value) for value in env_of(task, name="falcon-" + "x" * 33).values())


def test_artifacts() -> None:
    """With an artifact path the workload learns where to put them, under the mount and as a URI."""
    env = env_of(ONE, artifact_path="/exp/a$b/")
    assert {
        "ARTIFACT_LOCAL_DIR": "/gcs/exp/a$b",
        "FALCON_ARTIFACT_DIR": "/gcs/exp/a$b",
        "FALCON_ARTIFACT_URI": "gs://logs/exp/a$b",
    }.items() <= env.items()


def test_a_users_variables_win_over_all_but_ours() -> None:
    """A user may set anything but what begins with FALCON_ and is Falcon's."""
    given = {
        "PYTHONUNBUFFERED": "0",
        "TPU_WORKER_ID": "7",
        "POD_NAME": "$(HOME)$$",
        "FALCON_RANK": "9",
        "FALCON_X": "y",
    }
    env = env_of(evolve(MANY, envs=given))
    assert {**given, "FALCON_RANK": env["FALCON_JAX_PROCESS_ID"]}.items() <= env.items()
    assert "/gcs/logs/j1/<metadata.name>.log" == env["FALCON_LOG_PATH"]


@pytest.mark.parametrize(
    ("job_id", "directory"),
    [("a/../b", "a%2F%2E%2E%2Fb"), ("..", "%2E%2E"), ("x$(HOME)$$", "x$(HOME)$$"), ("训 练", "训 练")],
)
def test_the_log_stays_in_its_directory(job_id: str, directory: str) -> None:
    """The job id is one part of the path, whatever it looks like."""
    assert f"/gcs/logs/{directory}/<metadata.name>.log" == env_of(ONE, id=job_id)["FALCON_LOG_PATH"]


def test_dollars_arrive() -> None:
    """Every dollar sign of a user reaches the workload as it is (P112)."""
    script = "echo $$ $(echo hi) '$(HOME)' \"$FALCON_JOB_ID\" $(FALCON_JOB_ID)"
    task = evolve(ONE, command=script, envs={"A": "$(FALCON_JOB_ID) $$ $A"})
    seen = [expanded(word, env_of(task)) for word in container_of(task)["command"]]
    assert wrapper.wrap(["/bin/sh", "-c", script]) == seen
    assert "$(FALCON_JOB_ID) $$ $A" == env_of(task)["A"]


@pytest.mark.parametrize(
    ("changes", "bucket", "command", "args"),
    [
        ({}, "logs", wrapper.wrap(["/bin/sh", "-c", "echo hi"]), None),
        ({"command": ("run", "$x"), "args": ("a",)}, "logs", wrapper.wrap(["run", "$x", "a"]), None),
        ({"log": False}, "logs", ["/bin/sh", "-c", "echo hi"], None),
        ({}, None, ["/bin/sh", "-c", "echo hi"], None),
        ({}, "", ["/bin/sh", "-c", "echo hi"], None),
        ({"command": ("run",), "args": ("$a",)}, None, ["run", "$a"], None),
        ({"command": None}, "logs", None, None),
        ({"command": None, "args": ("$a",)}, "logs", None, ["$a"]),
    ],
)
def test_what_runs(changes: Any, bucket: str | None, command: list[str] | None, args: list[str] | None) -> None:
    """The wrapper stands before a command where there is a log to write; an entry point is left alone."""
    cluster = evolve(CLUSTER, gcs_bucket=bucket)
    container = container_of(evolve(ONE, **changes), cluster=cluster)
    found = [container.get(key) and [expanded(word, {}) for word in container[key]] for key in ("command", "args")]
    assert [command, args] == found
    wrapped = command is not None and wrapper.SCRIPT in command
    assert wrapped == ("FALCON_LOG_PATH" in env_of(evolve(ONE, **changes), cluster=cluster))


def test_buckets() -> None:
    """The cluster's bucket is at /gcs, a user's where it was asked for, with the options as they were given."""
    options = ("metadata-cache:ttl-secs:-1", "uid=1000", "implicit-dirs")
    mounts = (
        Mount("Model_Storage!", "models", "/models", read_only=True, options=options),
        Mount("wheels", "logs", "/wheels", prefix="exp/a"),
        Mount("模型", "models", "/again"),
    )
    task = evolve(ONE, mounts=mounts)
    pod, places = pod_of(task), container_of(task)["volumeMounts"]
    attributes = {v["name"]: v["csi"]["volumeAttributes"] for v in pod["volumes"] if "csi" in v}
    assert {
        "gcs": ("logs", "implicit-dirs,file-mode=666,dir-mode=777,enable-streaming-writes=false"),
        "mount-0-model-storage": ("models", "metadata-cache:ttl-secs:-1,uid=1000,implicit-dirs"),
        "mount-1-wheels": ("logs", "implicit-dirs,only-dir=exp/a"),
        "mount-2": ("models", "implicit-dirs"),
    } == {name: (found["bucketName"], found["mountOptions"]) for name, found in attributes.items()}
    assert {"true"} == {found["skipCSIBucketAccessCheck"] for found in attributes.values()}
    assert [
        {"name": "tpu-logs", "mountPath": "/tmp/tpu_logs"},
        {"name": "gcs", "mountPath": "/gcs"},
        {"name": "mount-0-model-storage", "mountPath": "/models", "readOnly": True},
        {"name": "mount-1-wheels", "mountPath": "/wheels"},
        {"name": "mount-2", "mountPath": "/again"},
    ] == places
    assert [True] == [v["csi"]["readOnly"] for v in pod["volumes"] if "readOnly" in v.get("csi", {})]


@pytest.mark.parametrize(
    ("bucket", "mounts", "expected"),
    [("logs", (), True), (None, (Mount("m", "b", "/m"),), True), (None, (), False)],
)
def test_the_sidecar_only_where_it_is_needed(bucket: str | None, mounts: tuple[Mount, ...], expected: bool) -> None:
    """Pods without a bucket do not ask for the sidecar."""
    job = job_of(evolve(ONE, mounts=mounts), cluster=evolve(CLUSTER, gcs_bucket=bucket))
    found = job["spec"]["template"]["metadata"]["annotations"]
    assert expected == ("gke-gcsfuse/volumes" in found)


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
SPECS = st.fixed_dictionaries(
    {
        "image": st.just("busybox"),
        "device_type": st.just("v6e"),
        "device_topo": st.sampled_from(["1x1", "2x2", "2x4", "4x4", "16x16"]),
    },
    optional={
        "command": TEXTS | st.lists(TEXTS.map("x{}".format), max_size=3),
        "envs": st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,9}", fullmatch=True), TEXTS, max_size=4),
        "mounts": st.lists(
            st.fixed_dictionaries(
                {
                    "name": TEXTS,
                    "bucket": st.just("models"),
                    "mount_path": st.integers(0, 9).map("/m{}".format),
                    "read_only": st.booleans(),
                },
                optional={"mount_options": st.lists(st.sampled_from(["uid=1", "a:b:-1", "ro"]), max_size=2)},
            ),
            max_size=3,
            unique_by=lambda mount: mount["mount_path"],
        ),
        "resources": st.fixed_dictionaries(
            {}, optional={"cpu_limit": st.integers(1, 9), "memory_request": st.just(1.5e9)}
        ),
        "owner": TEXTS,
        "exp_id": TEXTS,
        "labels": st.dictionaries(TEXTS, TEXTS, max_size=4),
        "termination_grace_seconds": st.integers(0, 3600),
        "log": st.sampled_from(["gcs", "none"]),
    },
)


@settings(deadline=None, max_examples=60)
@given(SPECS, st.sampled_from([None, "logs"]), TEXTS.filter(bool))
def test_kubernetes_models_take_every_possible_spec(spec: dict[str, Any], bucket: str | None, job_id: str) -> None:
    """What the parser lets through becomes models of the Kubernetes client, field by field, and nothing is lost."""
    task = parse(json.dumps(spec))
    assert isinstance(task, TaskSpec)
    job, service = built(task, cluster=evolve(CLUSTER, gcs_bucket=bucket), id=job_id)
    api: Any = client.ApiClient()
    assert job == api.sanitize_for_serialization(client.V1Job.model_validate(job))
    volumes = [volume["name"] for volume in job["spec"]["template"]["spec"]["volumes"]]
    assert len(volumes) == len(set(volumes))
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", volume) for volume in volumes)
    if service is not None:
        assert service == api.sanitize_for_serialization(client.V1Service.model_validate(service))
