"""hack/deploy on a real API server: taken without a warning, and what it describes does its work, rights and all."""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError

import pytest
import yaml
from attrs import frozen
from cloudsim.iam import granted
from cloudsim.premises import Premises
from cloudsim.real_planes import RealKubernetes
from cloudsim.server import CloudSim
from cloudsim.tempo import brisk
from cloudsim.world import World
from control_plane.client import Client, Json
from database_roles import FALCON, Roles
from deployed import DEPLOY, FOREIGN, NAMESPACE, Kubectl, component, cronjob, definition, deployment, kubectl_of

from falcon_rm.cloud import people
from falcon_rm.cloud.database import Address
from falcon_rm.submission import NewJob

EDGE = "projects/poc-tpu-partner/locations/us-central1/clusters/tpuv7x-64-node"
RESERVATION = "ghostfish-kankgdm2b4m7f"
SPEC = {"image": "busybox", "command": "true", "device_type": "v7x", "device_topo": "2x2x2"}
QUICK = {"FALCON_INTERVAL": "1s"}
PATIENCE = 240.0
STOP_SECONDS = 10


@frozen
class Site:
    """A cloud with one real cluster, central and edge at once, and everything of hack/deploy in it."""

    world: World
    sim: CloudSim
    kubectl: Kubectl
    admin: Client


@pytest.fixture(scope="module")
def site(premises: Premises, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cloud whose IAM knows the role of hack/deploy, its cluster's rights those of hack/deploy."""
    world = World(start=time.time(), tempo=brisk())
    world.add_cluster(EDGE, ["us-central1-a"])
    world.add_reservation("poc-tpu-partner", "us-central1-a", RESERVATION, "tpu7x-standard-4t", 16)
    world.permissions = granted()
    real = RealKubernetes(world, premises)
    try:
        with CloudSim(world, tmp_path_factory.mktemp("cloud"), premises=premises, speed=1.0, real=real) as sim:
            kubectl, admin = kubectl_of(real), real.planes[EDGE].client()
            for (group, kind), fields in FOREIGN.items():
                kubectl.apply(json.dumps(definition(group, kind, fields)))
            kubectl.wait_for_kinds()
            kubectl.apply(kubectl.render(DEPLOY / "overlays" / "example" / "edge"))
            kubectl.apply(kubectl.render(DEPLOY / "overlays" / "example"))
            yield Site(world, sim, kubectl, admin)
    finally:
        real.stop()


def give_secret(site: Site, **values: str) -> None:
    """Let the Secret of the database hold this."""
    secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "falcon-database"}, "stringData": values}
    secret["metadata"]["namespace"] = NAMESPACE
    site.kubectl.apply(json.dumps(secret))


def url_of(at: Address, *, password: bool) -> str:
    """Return the URL of a database on this machine."""
    who = f"{at.user}:{at.password}" if password else at.user
    return f"mysql://{who}@{at.host}:{at.port}/{at.database}" + (
        f"?unix_socket={at.unix_socket}" if at.unix_socket else ""
    )


def enter(roles: Roles) -> None:
    """Register the first edge cluster and submit a job of four hosts."""
    row = {"project": "poc-tpu-partner", "location": "us-central1", "tpu_type": "v7x", "endpoint": "dns"}
    people.add_cluster(roles.administrator, "tpuv7x-64-node", {**row, "default_reservation": RESERVATION})
    people.submit(roles.administrator, [NewJob("j1", "ann", json.dumps(SPEC), "n", 0, None, None)])


def state(roles: Roles) -> str:
    """Return status and message of the job."""
    ((status, message),) = roles.administrator.rows("SELECT status, COALESCE(message, '') FROM job")
    return f"{status} {message}".strip()


def until(look: Callable[[], bool], told: Callable[[], str]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < end, told()
        time.sleep(0.1)


def answers(path: str, port: int) -> bool:
    """Return whether a probe passes."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


@pytest.fixture
def identified(site: Site, premises: Premises) -> Iterator[str]:
    """The pod is who its service account's annotation says: at the metadata server, and at the API server."""
    who = deployment(site.admin).identity()
    premises.tokens.expire()  # the API server remembers whose those were
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloudsim.token_review.EMAIL", who)
        yield who
        premises.tokens.expire()


def test_the_deployment_does_its_work(site: Site, identified: str, roles: Roles, tmp_path: Path) -> None:
    """Its command line, environment and account take a job to its end; probes pass; SIGTERM ends it in time."""
    assert "cluster-controller@tpu-service-473302.iam.gserviceaccount.com" == identified
    give_secret(site, url=url_of(roles.address(FALCON), password=True))
    enter(roles)
    made = deployment(site.admin)
    environment = {**site.sim.environment(), **made.environment(tmp_path), "PATH": os.environ["PATH"], **QUICK}
    (port,) = (each["containerPort"] for each in made.container["ports"])
    probes = {made.container[kind]["httpGet"]["path"] for kind in ("livenessProbe", "readinessProbe", "startupProbe")}
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(made.command(), env=environment, cwd=tmp_path, stderr=log) as process,
    ):
        try:
            until(lambda: state(roles) == "Succeeded", lambda: state(roles) + (tmp_path / "log").read_text())
            assert {"/livez", "/readyz"} == {path for path in probes if answers(path, port)}
            process.terminate()
            assert 0 == process.wait(STOP_SECONDS)
        finally:
            process.kill()
    assert STOP_SECONDS < made.pod["spec"]["terminationGracePeriodSeconds"]


def test_the_fallback_with_a_password_from_a_file(site: Site, identified: str, roles: Roles, tmp_path: Path) -> None:
    """The CronJob replaces the Deployment; its passes, password mounted as a file, take a job to a pool."""
    assert identified
    address = roles.address(FALCON)
    give_secret(site, password=address.password + "\n")
    url = url_of(address, password=False)
    overlay = component(tmp_path / "overlay", "overlays/cronjob", "password-file", FALCON_DATABASE_URL=url)
    rendered = site.kubectl.render(overlay)
    assert {"Deployment", "PodMonitoring", "Rules"}.isdisjoint(each["kind"] for each in yaml.safe_load_all(rendered))
    site.kubectl.apply(rendered)
    enter(roles)
    made = cronjob(site.admin)
    environment = {**site.sim.environment(), **made.environment(tmp_path), "PATH": os.environ["PATH"]}
    assert "secret" not in environment["FALCON_DATABASE_URL"]
    said: list[str] = []

    def pass_leads_to_a_pool() -> bool:
        ended = subprocess.run(
            made.command(), env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False
        )
        said.append(ended.stderr)
        return state(roles).startswith("Pending 正在创建 node pool")

    until(pass_leads_to_a_pool, lambda: state(roles) + "".join(said))


def test_the_fallback_runs_the_deployments_pod(site: Site) -> None:
    """Both describe one pod, but for what a process that ends needs and what one that stays needs."""
    rendered = (yaml.safe_load_all(site.kubectl.render(DEPLOY / "overlays" / name)) for name in ("example", "cronjob"))
    stays, ends = (
        next(found for found in each if found["kind"] in {"Deployment", "CronJob"})["spec"] for each in rendered
    )
    one, other = stays["template"]["spec"], ends["jobTemplate"]["spec"]["template"]["spec"]
    assert ("Never", "Forbid") == (other.pop("restartPolicy"), ends["concurrencyPolicy"])
    (stayer,), (ender,) = one.pop("containers"), other.pop("containers")
    assert one == other
    assert (["run"], ["run-once"]) == (stayer.pop("args"), ender.pop("args"))
    for key in ("ports", "livenessProbe", "readinessProbe", "startupProbe"):
        del stayer[key]
    assert stayer == ender


def test_pods_are_admitted_where_only_restricted_ones_are(site: Site) -> None:
    """The pod of the Deployment is; the same one with any of its restrictions taken away is not."""
    spec = deployment(site.admin).pod["spec"]
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"

    def status(**changed: object) -> int:
        (container,) = spec["containers"]
        body = {"metadata": {"name": "it"}, "spec": {**spec, "containers": [{**container, **changed}]}}
        return site.admin.call("POST", path, body, {"dryRun": "All"}).status

    assert (201, 403) == (status(), status(securityContext={"allowPrivilegeEscalation": True}))


def test_every_component_is_taken(site: Site, tmp_path: Path) -> None:
    """A Prometheus of the Prometheus Operator finds the pod by its Service."""
    overlay = component(tmp_path / "overlay", "overlays/example", "prometheus-operator")
    applied = site.kubectl.apply(site.kubectl.render(overlay))
    assert "servicemonitor.monitoring.coreos.com/falcon-controller" in applied
    assert "prometheusrule.monitoring.coreos.com/falcon-controller" in applied
    service = site.admin.must("GET", f"/api/v1/namespaces/{NAMESPACE}/services/falcon-metrics")
    labels = deployment(site.admin).pod["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
