"""The files of hack/deploy agree with one another, with the Dockerfile and with what falcon-rm takes."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from cloudsim.iam import NEEDED

from falcon_rm.config import load
from falcon_rm.core.manifest import NAMESPACE, SERVICE_ACCOUNT

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "hack" / "deploy"
EMAIL = "cluster-controller@tpu-service-473302.iam.gserviceaccount.com"


def read(name: str) -> list[Mapping[str, Any]]:
    """Return the objects of a file."""
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def bound(**settings: str) -> list[str]:
    """Return the commands that iam/bind would run."""
    environment = {"PATH": os.defpath, "DRY_RUN": "1", **settings}
    ended = subprocess.run([DEPLOY / "iam" / "bind"], env=environment, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


def test_everybody_means_the_same_account() -> None:
    """The pod's annotation, the edge cluster's bindings and the commands name one Google account and one pod."""
    (example,), (edge,) = read("overlays/example/kustomization.yaml"), read("overlays/example/edge/kustomization.yaml")
    assert EMAIL in example["patches"][0]["patch"]
    assert f"value: {EMAIL}" in edge["patches"][0]["patch"]
    commands = bound()
    (workload,) = (line for line in commands if "workloadIdentityUser" in line)
    assert f"add-iam-policy-binding {EMAIL} " in workload
    (account,), (namespace,) = read("base/service-account.yaml"), read("base/namespace.yaml")
    pod = f"{namespace['metadata']['name']}/{account['metadata']['name']}"
    assert workload.endswith(f"--member serviceAccount:tpu-service-473302.svc.id.goog[{pod}]")
    assert all(f"--member serviceAccount:{EMAIL}" in line for line in commands if "roles/falconController" in line)


def test_the_commands_for_an_edge_project() -> None:
    """The role is made and granted there and where the reservations are; the bucket goes to the jobs' account."""
    commands = bound(EDGE_PROJECT="e", RESERVATION_PROJECT="r", BUCKET="b", NODE_ACCOUNT="nodes@e")
    made = [re.findall(r"--project (\w+)", line)[0] for line in commands if "roles create" in line]
    assert ["e", "r"] == made
    assert all(
        "--file" in line and "falcon-controller.role.yaml" in line for line in commands if "roles create" in line
    )
    (acts,) = (line for line in commands if "iam.serviceAccountUser" in line)
    assert "add-iam-policy-binding nodes@e --project e" in acts
    assert commands[-1].endswith(f"e.svc.id.goog/subject/ns/{NAMESPACE}/sa/{SERVICE_ACCOUNT}")
    assert not [line for line in bound() if "buckets" in line]


def test_the_jobs_place_is_the_one_that_falcon_uses() -> None:
    """The edge cluster gets the namespace and the account that manifests name."""
    namespace, account = read("edge/jobs-namespace.yaml")
    assert (NAMESPACE, SERVICE_ACCOUNT) == (namespace["metadata"]["name"], account["metadata"]["name"])
    binding, _ = read("edge/bindings.yaml")
    assert NAMESPACE == binding["metadata"]["namespace"]


def test_the_role_names_real_permissions_once() -> None:
    """Each is one that a method needs, or the one of DNS endpoints; no wildcard, no role in disguise."""
    (role,) = read("iam/falcon-controller.role.yaml")
    permissions = role["includedPermissions"]
    assert len(set(permissions)) == len(permissions)
    known = {permission for needed in NEEDED.values() for permission in needed} | {"container.clusters.connect"}
    assert set(permissions) <= known


def test_settings_are_settings() -> None:
    """Whatever the manifests set, falcon-rm takes."""
    (example,) = read("overlays/example/kustomization.yaml")
    lines = (DEPLOY / "base" / "settings.env").read_text(encoding="utf-8").splitlines()
    given = dict(line.split("=", 1) for line in [*lines, *example["configMapGenerator"][0]["literals"]])
    (port,) = read("base/deployment.yaml")[0]["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert f"0.0.0.0:{port['containerPort']}" == load(given).metrics_address


def test_image_and_manifest_mean_one_user() -> None:
    """The numeric user of the Dockerfile is the pod's."""
    (user,) = re.findall(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    for name in ("base/deployment.yaml", "overlays/cronjob/cronjob.yaml"):
        spec = read(name)[0]["spec"]
        pod = spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"]
        assert user == (str(pod["securityContext"]["runAsUser"]), str(pod["securityContext"]["runAsGroup"]))
