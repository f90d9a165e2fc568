"""
Real control planes behind the clusters of a world: who may enter them, and where GetCluster says they are.

1. Google's tokens are good there, for Falcon's rights and no more; the world's own hands hold a certificate.
2. GKE's webhook for pods is the world's.
3. The IP endpoint shows the plane's own certificate, the DNS endpoint one of Google's authority, as in a GKE cluster.
"""

import base64

from control_plane import plane
from control_plane.rights import grant

from cloudsim.metadata import EMAIL
from cloudsim.pod_webhook import PodWebhook
from cloudsim.premises import Premises
from cloudsim.real_kube import Kubelets, replace
from cloudsim.token_review import TokenReviewDoor
from cloudsim.world import World


class RealKubernetes:
    """A control plane for each cluster of a world."""

    def __init__(self, world: World, premises: Premises) -> None:
        """Start them; the world's clusters are theirs from now on."""
        authority = self.authority = premises.authority
        self._world = world
        self._door = TokenReviewDoor(premises.tokens, authority.context(), authority.path)
        self._webhook = PodWebhook(authority.context(), authority.path)
        key, chain = authority.key_and_chain()
        files = premises.directory / "localhost.pem", premises.directory / "localhost.key"
        files[0].write_bytes(chain)
        files[1].touch(mode=0o600)
        files[1].write_bytes(key)
        try:
            self._run = plane.start(len(world.clusters), tokens=self._door.config, localhost=files)
        except BaseException:
            self._door.stop()
            self._webhook.stop()
            raise
        self.kubeconfig = self._run.kubeconfig
        self.planes = dict(zip(world.clusters, self._run.planes, strict=True))
        self._kubelets = []
        for path, made in self.planes.items():
            grant(made.client(), EMAIL)
            self._webhook.register(made.client())
            self._kubelets.append(Kubelets(replace(world, path, made.client())))

    def announce(self, path: str) -> None:
        """Let GetCluster answer where a cluster is."""
        cluster, made = self._world.clusters[path], self.planes[path]
        with self._world.lock:
            cluster.ip_endpoint = made.endpoint
            cluster.ca_certificate = base64.b64encode(made.papers.authority.read_bytes()).decode()
            cluster.dns_endpoint = f"localhost:{made.port}"

    def stop(self) -> None:
        """End the planes and everything that looks at them."""
        for each in self._kubelets:
            each.stop()
        self._run.stop()
        self._door.stop()
        self._webhook.stop()
