"""`cluster check` against the simulated cloud, whole and with each thing broken in turn."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import google.cloud.compute_v1  # noqa: F401 - it takes seconds, which no deadline of a call here allows
import pytest
from click.testing import CliRunner, Result
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault
from cloudsim.server import CloudSim
from cloudsim.world import World
from cloudsim_fixtures import Serve
from control_plane.rights import RIGHTS as GRANTED

from falcon_rm.checks import RIGHTS
from falcon_rm.cli import build, commands

PATH = "projects/my-project/locations/us-central1/clusters/tpu-1"
ZONE = "us-central1-c"
PRINCIPAL = (
    "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/"
    "my-project.svc.id.goog/subject/ns/falcon-jobs/sa/falcon-job"
)
BINDINGS = ({"role": "roles/storage.objectUser", "members": [PRINCIPAL]},)
EVERYTHING = frozenset({
    "container.clusters.get", "container.clusters.update", "container.operations.list", "container.clusters.connect",
    "compute.resourcePolicies.create", "compute.resourcePolicies.get", "compute.reservations.get",
    "compute.reservations.list", "iam.serviceAccounts.actAs", "storage.buckets.get", "storage.buckets.getIamPolicy",
})  # fmt: skip
ADD = (
    "cluster", "add", "tpu-1", "--project", "my-project", "--location", "us-central1", "--tpu-type", "v7x",
    "--default-reservation", "r", "--gcs-bucket", "logs",
)  # fmt: skip
CHECKED = [
    "credentials", "cluster", "node-pools", "workload-policies", "node-account", "zone", "reservation", "kubernetes",
    *(f"right {kind}" for _, kind, _ in RIGHTS), "namespace", "service-account", "gcs-fuse", "workload-identity",
    "bucket", "bucket-writer",
]  # fmt: skip


class Site:
    """A registered cluster in a simulated cloud where everything is as it should be, until a test breaks it."""

    def __init__(self, url: str, serve: Serve) -> None:
        self.world = World(seed=1)
        self.cluster = self.world.add_cluster(PATH, (ZONE, "us-central1-a"))
        self.world.add_reservation("my-project", ZONE, "r", "tpu7x-standard-4t", 16)
        self.world.buckets["logs"] = {"uniform": True, "bindings": list(BINDINGS)}
        self.world.permissions = EVERYTHING
        kube = self.world.kube(PATH)
        kube.create_by_hand("namespaces", None, {"metadata": {"name": "falcon-jobs"}})
        kube.create_by_hand("serviceaccounts", "falcon-jobs", {"metadata": {"name": "falcon-job"}})
        self.sim: CloudSim = serve(self.world)
        self.environment = {
            **self.sim.environment(), "FALCON_DATABASE_URL": url, "FALCON_CALL_TIMEOUT": "2s",
        }  # fmt: skip
        assert 0 == self.falcon(*ADD).exit_code

    def falcon(self, *arguments: str) -> Result:
        """Run a command."""
        ours = {name: value for name, value in self.environment.items() if name.startswith("FALCON_")}
        return CliRunner().invoke(commands, arguments, obj=build(ours))

    def forbid(self, *permissions: str) -> None:
        """Take IAM permissions away."""
        self.world.permissions = EVERYTHING - set(permissions)

    def reservation(self, **changes: Any) -> None:
        """Change the reservation."""
        self.world.compute.set_reservation("my-project", ZONE, "r", **changes)
        self.world.advance(60)

    def findings(self) -> dict[str, Mapping[str, Any]]:
        """Return what the command found, by check; its exit code says whether something failed."""
        result = self.falcon("cluster", "check", "tpu-1", "-o", "json")
        found = {each["check"]: each for each in json.loads(result.stdout)}
        failed = any(each["verdict"] == "failed" for each in found.values())
        assert (int(failed), "") == (result.exit_code, result.stderr), result.output
        return found


@pytest.fixture
def site(controller_url: str, serve: Serve) -> Site:
    """A cluster that is whole."""
    return Site(controller_url, serve)


def test_all_is_well(site: Site) -> None:
    """Of a cluster that is whole every line is ok, nothing is to be mended, and nothing was changed."""
    result = site.falcon("cluster", "check", "tpu-1")
    assert (0, "") == (result.exit_code, result.stderr)
    told = [line for line in result.stdout.splitlines() if not line.startswith(" ")]
    assert [("ok", check) for check in CHECKED] == [(line[:7].strip(), line[9:30].strip()) for line in told]
    assert len(told) == len(result.stdout.splitlines())
    assert "projects/my-project/reservations/r: 16 of 16 vms free" in result.stdout
    assert [] == site.world.effects


def break_kubernetes(site: Site) -> None:
    """Let nobody reach the control plane."""
    site.sim.close_cluster(PATH)


def remove_home(site: Site) -> None:
    """Delete the pods' namespace, and let Falcon make none."""
    site.world.kube(PATH).delete_by_hand("serviceaccounts", "falcon-jobs", "falcon-job")
    site.world.kube(PATH).delete_by_hand("namespaces", None, "falcon-jobs")
    site.world.advance(60)
    site.cluster.denied |= {("create", "namespaces"), ("create", "serviceaccounts")}


def remove_account(site: Site) -> None:
    """Delete the pods' service account, and let Falcon make none."""
    site.world.kube(PATH).delete_by_hand("serviceaccounts", "falcon-jobs", "falcon-job")
    site.cluster.denied |= {("create", "serviceaccounts")}


def no_reservation(site: Site) -> None:
    """Let there be no reservation of that name in the zone that the row says."""
    site.world.compute.reservations.clear()
    site.falcon("cluster", "set", "tpu-1", "--zone", ZONE)


def other_machines(site: Site) -> None:
    """Let the reservation be for another TPU type."""
    site.world.compute.reservations.clear()
    site.world.add_reservation("my-project", ZONE, "r", "ct6e-standard-4t", 16)


def set_row(*change: str) -> Callable[[Site], object]:
    """Return what changes the cluster's row."""
    return lambda site: site.falcon("cluster", "set", "tpu-1", *change)


def fault(call: str, error: SimError | KubeError) -> Callable[[Site], object]:
    """Return what lets a call fail from now on."""
    return lambda site: site.world.faults.add(Fault(call, error=error, times=None))


ME = r"serviceAccount:falcon-rm@sim-project\.iam\.gserviceaccount\.com"
ADMIN = rf"gcloud projects add-iam-policy-binding my-project --member={ME} --role=roles/container.admin"
OFF = "Kubernetes Engine API has not been used in project 1 before or it is disabled. (SERVICE_DISABLED)"
WHERE = "--location=us-central1 --project=my-project"

BROKEN: dict[str, tuple[Callable[[Site], object], str, str, str, str]] = {
    "cluster gone": (
        lambda site: setattr(site.cluster, "gone", True),
        "cluster", "failed", "Not found: projects/my-project/locations/us-central1/clusters/tpu-1",
        "gcloud container clusters list --project=my-project",
    ),
    "GetCluster forbidden": (
        lambda site: site.forbid("container.clusters.get"), "cluster", "failed", "container.clusters.get", ADMIN,
    ),
    "API off": (
        fault("gke.get_cluster", SimError("PERMISSION_DENIED", OFF)),
        "cluster", "failed", "has not been used",
        "gcloud services enable container.googleapis.com --project=my-project",
    ),
    "GKE silent": (
        lambda site: site.world.faults.add(Fault("gke.get_cluster", "hang", times=None)),
        "cluster", "unknown", "no answer within 2 s|Deadline", f"gcloud container clusters describe tpu-1 {WHERE}",
    ),
    "no pools": (
        lambda site: site.forbid("container.clusters.update"),
        "node-pools", "failed", "not permitted on project my-project: container.clusters.update$", ADMIN,
    ),
    "no policies": (
        lambda site: site.forbid("compute.resourcePolicies.create"),
        "workload-policies", "failed", "compute.resourcePolicies.create",
        r"gcloud iam roles create falconPolicies --project=my-project --permissions=\S+ && gcloud projects add-iam-.*",
    ),
    "no node account": (
        lambda site: site.forbid("iam.serviceAccounts.actAs"),
        "node-account", "unknown", "iam.serviceAccounts.actAs",
        rf"gcloud iam service-accounts add-iam-policy-binding \$\(gcloud .*\)-compute@developer.gserviceaccount.com"
        rf" --member={ME} --role=roles/iam.serviceAccountUser --project=my-project",
    ),
    "nobody to ask": (
        fault("iam.test_permissions", SimError("PERMISSION_DENIED", "Cloud Resource Manager API is disabled")),
        "node-pools", "unknown", "Resource Manager API is disabled",
        "gcloud services enable cloudresourcemanager.googleapis.com --project=my-project",
    ),
    "reservation in no zone": (
        lambda site: site.world.compute.reservations.clear(),
        "zone", "failed", "found in 0 zones", "falcon-rm cluster set tpu-1 --zone ZONE",
    ),
    "zone elsewhere": (
        set_row("--zone", "us-east5-a"),
        "zone", "failed", "us-east5-a is not in the cluster's region us-central1",
        "falcon-rm cluster set tpu-1 --zone ZONE",
    ),
    "no reservation": (
        no_reservation, "reservation", "failed", f"there is no projects/my-project/reservations/r in {ZONE}",
        "gcloud compute reservations list --project=my-project",
    ),
    "reservation forbidden": (
        lambda site: site.forbid("compute.reservations.get"),
        "reservation", "failed", "compute.reservations.get",
        rf"gcloud projects add-iam-policy-binding my-project --member={ME} --role=roles/compute.viewer",
    ),
    "reservation not ready": (
        lambda site: site.reservation(status="CREATING"),
        "reservation", "failed", "is not READY",
        f"gcloud compute reservations describe r --zone={ZONE} --project=my-project",
    ),
    "other machines": (
        other_machines, "reservation", "failed", "is for ct6e-standard-4t, the cluster's row says v7x",
        "falcon-rm cluster set tpu-1 --default-reservation RESERVATION",
    ),
    "no room": (
        lambda site: site.reservation(in_use=16),
        "reservation", "failed", "no room: 16 of 16 vms in use",
        f"gcloud compute reservations describe r --zone={ZONE} --project=my-project",
    ),
    "Kubernetes away": (
        break_kubernetes, "kubernetes", "failed", "cannot be reached", "falcon-rm cluster set tpu-1 --endpoint dns",
    ),
    "no namespace": (
        remove_home, "namespace", "failed", "missing, and Falcon may not make it",
        "kubectl create namespace falcon-jobs",
    ),
    "no service account": (
        remove_account, "service-account", "failed", "missing, and Falcon may not make it",
        "kubectl create serviceaccount falcon-job --namespace=falcon-jobs",
    ),
    "no GCS FUSE": (
        lambda site: setattr(site.cluster, "gcs_fuse", False),
        "gcs-fuse", "failed", "not enabled",
        f"gcloud container clusters update tpu-1 --update-addons=GcsFuseCsiDriver=ENABLED {WHERE}",
    ),
    "no Workload Identity": (
        lambda site: setattr(site.cluster, "workload_pool", None),
        "workload-identity", "failed", "not my-project.svc.id.goog",
        f"gcloud container clusters update tpu-1 --workload-pool=my-project.svc.id.goog {WHERE}",
    ),
    "no bucket": (
        lambda site: site.world.buckets.clear(),
        "bucket", "failed", "there is no gs://logs",
        "gcloud storage buckets create gs://logs --project=my-project --location=us-central1"
        " --uniform-bucket-level-access",
    ),
    "bucket with ACLs": (
        lambda site: site.world.buckets["logs"].update(uniform=False),
        "bucket", "failed", "not uniform", "gcloud storage buckets update gs://logs --uniform-bucket-level-access",
    ),
    "bucket hidden": (
        lambda site: site.forbid("storage.buckets.get"),
        "bucket", "unknown", "storage.buckets.get",
        rf"gcloud storage buckets add-iam-policy-binding gs://logs --member={ME} --role=roles/storage.\w+",
    ),
    "pods may not write": (
        lambda site: site.world.buckets["logs"].update(bindings=[]),
        "bucket-writer", "failed", "names no pods of falcon-jobs/falcon-job",
        r'gcloud storage buckets add-iam-policy-binding gs://logs --member="principal://.*/subject/ns/falcon-jobs/sa/'
        'falcon-job" --role=roles/storage.objectUser',
    ),
    "policy hidden": (
        lambda site: site.forbid("storage.buckets.getIamPolicy"),
        "bucket-writer", "unknown", "storage.buckets.getIamPolicy",
        r"gcloud storage buckets add-iam-policy-binding gs://logs --member=.* --role=roles/storage.objectUser",
    ),
}  # fmt: skip
"""What is broken -> how; which line says so, with which verdict and words, and the command that mends it."""


@pytest.mark.parametrize("broken", BROKEN)
def test_each_thing_broken(site: Site, broken: str) -> None:
    """The line of what is broken says so with the command that mends it, and every other line is still there."""
    act, check, verdict, what, command = BROKEN[broken]
    act(site)
    found = site.findings()
    assert CHECKED == list(found)
    assert (check, verdict) == (found[check]["check"], found[check]["verdict"]), found[check]
    assert re.search(what, found[check]["what"]), found[check]
    assert re.fullmatch(command, found[check]["command"]), found[check]


@pytest.mark.parametrize(("kind", "verb"), [(kind, verb) for _, kind, verbs in RIGHTS for verb in verbs])
def test_each_right(site: Site, kind: str, verb: str) -> None:
    """A right that lacks in Kubernetes is named, with the role that has it; all others are ok."""
    site.cluster.denied.add((verb, kind))
    found = site.findings()
    assert ("failed", f"may not {verb} {kind}") == (found[f"right {kind}"]["verdict"], found[f"right {kind}"]["what"])
    assert re.fullmatch(ADMIN, found[f"right {kind}"]["command"])
    assert [f"right {kind}"] == [name for name, each in found.items() if each["verdict"] != "ok"]


def test_rights_are_those_that_are_granted() -> None:
    """What is asked for is what an operator grants, and what the real control planes hold Falcon to."""
    assert sorted(GRANTED) == sorted(RIGHTS)


def test_no_credentials(site: Site) -> None:
    """Without a credential the first line says how to get one, and what needs one is unknown or failed."""
    site.sim.premises.tokens.expire()
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setenv("GCE_METADATA_HOST", "127.0.0.1:9")
        patch.setenv("GCE_METADATA_IP", "127.0.0.1:9")
        patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
        found = site.findings()
    assert ("failed", "gcloud auth application-default login") == (
        found["credentials"]["verdict"],
        found["credentials"]["command"],
    )
    assert CHECKED == list(found)
    assert "ok" not in {found[name]["verdict"] for name in ("cluster", "node-pools", "kubernetes", "bucket")}


def test_what_waits_for_another_line(site: Site) -> None:
    """What could not be asked since an earlier line failed has no command of its own: it may be well."""
    site.world.faults.add(Fault("gke.get_cluster", "hang", times=None))
    waits = {name: each for name, each in site.findings().items() if each["what"].startswith("needs")}
    names = {"kubernetes", *(f"right {kind}" for _, kind, _ in RIGHTS), "namespace", "service-account", "gcs-fuse"}
    assert {*names, "workload-identity"} <= set(waits)
    assert [("unknown", None)] * len(waits) == [(each["verdict"], each["command"]) for each in waits.values()]


def test_what_falcon_makes_itself(site: Site) -> None:
    """Namespace and account that are missing are fine where Falcon may make them."""
    remove_home(site)
    site.cluster.denied.clear()
    found = site.findings()
    assert [("ok", "missing: Falcon makes it with the first job")] * 2 == [
        (found[name]["verdict"], found[name]["what"]) for name in ("namespace", "service-account")
    ]


def test_an_account_of_google(site: Site) -> None:
    """Pods that stand for a Google account need the bucket for that one."""
    kube = site.world.kube(PATH)
    kube.delete_by_hand("serviceaccounts", "falcon-jobs", "falcon-job")
    annotations = {"iam.gke.io/gcp-service-account": "pods@p.iam.gserviceaccount.com"}
    kube.create_by_hand(
        "serviceaccounts", "falcon-jobs", {"metadata": {"name": "falcon-job", "annotations": annotations}}
    )
    found = site.findings()["bucket-writer"]
    assert "failed" == found["verdict"]
    assert "--member=serviceAccount:pods@p.iam.gserviceaccount.com " in found["command"]
    site.world.buckets["logs"]["bindings"] = [
        {"role": "roles/storage.objectAdmin", "members": ["serviceAccount:pods@p.iam.gserviceaccount.com"]},
    ]
    assert "ok" == site.findings()["bucket-writer"]["verdict"]


def test_without_a_bucket(site: Site) -> None:
    """A cluster without a bucket works; the line warns of what jobs then lack."""
    site.falcon("cluster", "set", "tpu-1", "--gcs-bucket", "")
    found = site.findings()
    assert ("ok", "none: jobs run without /gcs, and their logs stay in the containers") == (
        found["bucket"]["verdict"],
        found["bucket"]["what"],
    )
    assert "bucket-writer" not in found


def test_a_grant_under_a_condition(site: Site) -> None:
    """A role that holds only under a condition does not count."""
    binding = {**BINDINGS[0], "condition": {"title": "t", "expression": "false"}}
    site.world.buckets["logs"]["bindings"] = [binding]
    assert "failed" == site.findings()["bucket-writer"]["verdict"]


def test_no_such_cluster(site: Site) -> None:
    """A name that is not registered is one line and exit code 1."""
    result = site.falcon("cluster", "check", "nope")
    assert (1, "", "error: there is no cluster 'nope'\n") == (result.exit_code, result.stdout, result.stderr)
