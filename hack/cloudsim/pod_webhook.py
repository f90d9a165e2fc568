"""
GKE's webhook for pods, for a real API server: it gives pods with GCS FUSE volumes the sidecar that mounts them.

Admission in the simulated one (kube_pods.py) does the same.
"""

import base64
import json
import ssl
from pathlib import Path

from control_plane.client import Client

from cloudsim.doors_http import Answer, HttpDoor, Request, json_answer
from cloudsim.kube_pods import with_sidecar
from cloudsim.values import Json

NAME = "gcsfuse-sidecar-injector"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
SECONDS = 10


class PodWebhook:
    """The running webhook; the system chooses its `port`."""

    def __init__(self, tls: ssl.SSLContext, authority: Path) -> None:
        """Listen at once; *authority* is the file with the CA that signed the certificate of *tls*."""
        self._authority = authority
        self._door = HttpDoor(self._handle, tls)

    def stop(self) -> None:
        """Close the port."""
        self._door.stop()

    def register(self, client: Client) -> None:
        """Let an API server ask before it stores a pod."""
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
        webhook: Json = {
            "name": f"{NAME}.csi.storage.gke.io",
            "clientConfig": {
                "url": f"https://127.0.0.1:{self._door.port}/",
                "caBundle": base64.b64encode(self._authority.read_bytes()).decode(),
            },
            "rules": [rule],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": SECONDS,
        }
        client.must("POST", CONFIGURATIONS, {"metadata": {"name": NAME}, "webhooks": [webhook]})

    def _handle(self, request: Request) -> Answer:
        review = request.json()
        asked = review["request"]
        response: Json = {"uid": asked["uid"], "allowed": True}
        if (containers := with_sidecar(asked["object"])) is not None:
            patch = [{"op": "add", "path": "/spec/initContainers", "value": containers}]
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        return json_answer(200, {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
