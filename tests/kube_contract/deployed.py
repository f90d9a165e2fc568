"""
What hack/deploy comes to on a real API server: rendered by its kubectl, applied as strictly as it can be.

1. Everything is applied server-side, unknown fields are errors, and so is every warning, the pod security level's too.
2. What is run is read back from the server: command line, environment and mounts are those that the pod would get.
3. Who the pod is goes the way of Workload Identity: its token, its service account, the annotation there.
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from cloudsim.real_planes import RealKubernetes
from control_plane.build import programs
from control_plane.client import Client, Json

DEPLOY = Path(__file__).parents[2] / "hack" / "deploy"
NAMESPACE = "falcon"
ANNOTATION = "iam.gke.io/gcp-service-account"
SECONDS = 60
TEXT, LIST_OF = {"type": "string"}, {"type": "array"}
LABELS = {"type": "object", "additionalProperties": TEXT}
SELECTOR = {"type": "object", "properties": {"matchLabels": LABELS}}
ENDPOINT = {"type": "object", "required": ["port"], "properties": {"port": TEXT, "interval": TEXT}}
SCRAPED = {"selector": SELECTOR, "endpoints": {**LIST_OF, "items": ENDPOINT}}
RULE = {
    "type": "object",
    "required": ["expr"],
    "properties": {"alert": TEXT, "record": TEXT, "expr": TEXT, "for": TEXT, "labels": LABELS, "annotations": LABELS},
}
GROUP = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": TEXT, "interval": TEXT, "rules": {**LIST_OF, "items": RULE}},
}
RULES = {"groups": {**LIST_OF, "items": GROUP}}
FOREIGN: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("monitoring.googleapis.com", "PodMonitoring"): SCRAPED,
    ("monitoring.googleapis.com", "Rules"): RULES,
    ("monitoring.coreos.com", "ServiceMonitor"): SCRAPED,
    ("monitoring.coreos.com", "PrometheusRule"): RULES,
}
"""Kinds of others' operators -> the fields of their spec that are used here."""


def definition(group: str, kind: str, fields: Mapping[str, Any]) -> Json:
    """Return the definition of a kind that takes these fields and no other."""
    plural = kind.lower() + ("" if kind.endswith(("ing", "s")) else "s")
    spec = {"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "properties": fields}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


@frozen
class Kubectl:
    """The kubectl of the control planes, speaking to the first of them."""

    config: Path

    def render(self, folder: Path) -> str:
        """Return what kustomize makes of a folder."""
        return self._run("kustomize", str(folder))

    def apply(self, text: str) -> list[str]:
        """Apply manifests server-side and strictly; return what was applied."""
        strictly = ("--server-side", "--validate=strict", "--warnings-as-errors", "-o", "name")
        return self._run("apply", *strictly, "-f", "-", text=text).split()

    def wait_for_kinds(self) -> None:
        """Wait until the server knows every definition."""
        self._run("wait", "--for=condition=Established", "crd", "--all", f"--timeout={SECONDS}s")

    def _run(self, *arguments: str, text: str | None = None) -> str:
        ended = subprocess.run(
            [programs() / "kubectl", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=2 * SECONDS,
            env={"KUBECONFIG": str(self.config), "HOME": str(self.config.parent), "PATH": os.defpath},
            check=False,
        )
        assert 0 == ended.returncode, f"kubectl {' '.join(arguments)}: {ended.stderr}"
        return ended.stdout


def component(folder: Path, base: str, *components: str, **settings: str) -> Path:
    """Write an overlay of *base* with these components and settings to *folder*; returns that."""
    folder.mkdir(parents=True)
    made = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(DEPLOY / base, folder)],
        "components": [os.path.relpath(DEPLOY / "components" / name, folder) for name in components],
        "configMapGenerator": [
            {
                "name": "falcon-settings",
                "namespace": NAMESPACE,
                "behavior": "merge",
                "literals": [f"{key}={value}" for key, value in settings.items()],
            }
        ],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(made), encoding="utf-8")
    return folder


@frozen
class Workload:
    """A Deployment or CronJob as the server has it."""

    client: Client
    pod: Json
    """Its pod template."""

    @property
    def container(self) -> Json:
        """The one container."""
        (found,) = self.pod["spec"]["containers"]
        return dict(found)

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the container's environment; what it mounts is written below *folder*, and paths point there."""
        found: dict[str, str] = {}
        for source in self.container.get("envFrom", ()):
            found |= self._read("configmaps", source["configMapRef"]["name"])["data"]
        for entry in self.container.get("env", ()):
            ref = entry["valueFrom"]["secretKeyRef"]
            found[entry["name"]] = self._secret(ref["name"])[ref["key"]].decode()
        volumes = {each["name"]: each for each in self.pod["spec"].get("volumes", ())}
        for mount in self.container.get("volumeMounts", ()):
            assert mount["readOnly"]
            place = folder / mount["mountPath"].lstrip("/")
            place.mkdir(parents=True)
            secret = volumes[mount["name"]]["secret"]
            for item in secret["items"]:
                (place / item["path"]).write_bytes(self._secret(secret["secretName"])[item["key"]])
            found = {name: value.replace(mount["mountPath"], str(place)) for name, value in found.items()}
        return found

    def command(self) -> list[str]:
        """Return the command line: the image's entry point and the manifest's arguments."""
        return [sys.executable, "-m", "falcon_rm", *self.container["args"]]

    def identity(self) -> str:
        """Return the Google service account that the pod's own token stands for."""
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{self.pod['spec']['serviceAccountName']}"
        token = self.client.must("POST", f"{account}/token", {"spec": {"expirationSeconds": 600}})["status"]["token"]
        review = {"spec": {"token": token}}
        known = self.client.must("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]["user"]
        _, _, namespace, name = known["username"].split(":")
        found = self.client.must("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}")
        return str(found["metadata"]["annotations"][ANNOTATION])

    def _read(self, kind: str, name: str) -> Json:
        return self.client.must("GET", f"/api/v1/namespaces/{NAMESPACE}/{kind}/{name}")

    def _secret(self, name: str) -> dict[str, bytes]:
        return {key: base64.b64decode(value) for key, value in self._read("secrets", name)["data"].items()}


def deployment(client: Client) -> Workload:
    """Return the controller's Deployment."""
    found = client.must("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/falcon-controller")
    return Workload(client, found["spec"]["template"])


def cronjob(client: Client) -> Workload:
    """Return the fallback's CronJob."""
    found = client.must("GET", f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/falcon-controller")
    return Workload(client, found["spec"]["jobTemplate"]["spec"]["template"])


def kubectl_of(real: RealKubernetes) -> Kubectl:
    """Return the kubectl that speaks to a world's planes."""
    return Kubectl(real.kubeconfig)
