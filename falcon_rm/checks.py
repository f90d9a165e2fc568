"""
What of a cluster works, before the first job needs it: for each thing a verdict, and the command that mends it.

1. Nothing is changed by looking, and every call is bounded.
2. A check that fails stops no other; one that needs an answer nobody gave is unknown, and mended by that one's command.
3. Commands are whole: they can be pasted, but for what is written in CAPITALS.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from attrs import define, field

from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.manifest import NAMESPACE, SERVICE_ACCOUNT
from falcon_rm.core.model import Cluster
from falcon_rm.core.room import reservation_path
from falcon_rm.core.shapes import MACHINES
from falcon_rm.core.words import CloudError, ErrorKind
from falcon_rm.finding import Finding, failed, ok, refused, unknown
from falcon_rm.observe import find_zone
from falcon_rm.ports import Inspection, Rights

RIGHTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("batch", "jobs", ("get", "list", "create", "patch", "delete")),
    ("", "pods", ("list",)),
    ("", "events", ("list",)),
    ("", "nodes", ("list",)),
    ("", "services", ("get", "create")),
    ("", "serviceaccounts", ("get", "create")),
    ("", "namespaces", ("create",)),
)
"""What Falcon needs in Kubernetes: API group, kind, verbs."""

POOL_PERMISSIONS = ("container.clusters.get", "container.clusters.update", "container.operations.list")
POLICY_PERMISSIONS = ("compute.resourcePolicies.create", "compute.resourcePolicies.get")
ACT_AS = "iam.serviceAccounts.actAs"
WRITERS = ("roles/storage.objectUser", "roles/storage.objectAdmin", "roles/storage.admin")
"""The roles that let pods list, read and write objects."""

DEFAULT_ACCOUNT = (
    "$(gcloud projects describe {project} --format='value(projectNumber)')-compute@developer.gserviceaccount.com"
)
PRINCIPAL = (
    "principal://iam.googleapis.com/projects/$(gcloud projects describe {project} --format='value(projectNumber)')"
    f"/locations/global/workloadIdentityPools/{{project}}.svc.id.goog/subject/ns/{NAMESPACE}/sa/{SERVICE_ACCOUNT}"
)


@define
class Look:
    """One look at a cluster: whom to ask, and what earlier checks found. None: they did not."""

    cluster: Cluster
    clouds: Inspection
    member: str = "user:YOU"
    info: ClusterInfo | None = None
    zone: str | None = None
    rights: Rights | None = None
    annotations: Mapping[str, str] | None = None
    denied: set[tuple[str, str]] = field(factory=set)  # verb and kind that Kubernetes does not allow

    @property
    def place(self) -> str:
        """Say where the cluster is, as gcloud takes it."""
        return f"--location={self.cluster.location} --project={self.cluster.project}"

    def grant(self, role: str, project: str | None = None) -> str:
        """Return the command that gives us a role on a project."""
        return (
            f"gcloud projects add-iam-policy-binding {project or self.cluster.project}"
            f" --member={self.member} --role={role}"
        )

    def fill(self, text: str) -> str:
        """Return a text with the cluster's project in it."""
        return text.format(project=self.cluster.project)

    def set_row(self, change: str) -> str:
        """Return the command that changes the cluster's row."""
        return f"falcon-rm cluster set {self.cluster.name} {change}"


def check(look: Look) -> tuple[Finding, ...]:
    """Return what was found, in the order in which a job would need it."""
    return tuple(finding for each in CHECKS for finding in each(look))


# --- Google Cloud


def _credentials(look: Look) -> Iterator[Finding]:
    try:
        look.member = look.clouds.google.member()
    except CloudError as error:
        yield failed("credentials", error.text, "gcloud auth application-default login")
    else:
        yield ok("credentials", look.member)


def _cluster(look: Look) -> Iterator[Finding]:
    cluster = look.cluster
    try:
        look.info = look.clouds.gke.get_cluster(cluster)
    except CloudError as error:
        if re.search(r"has not been used|SERVICE_DISABLED", error.text):
            enable = f"gcloud services enable container.googleapis.com --project={cluster.project}"
            yield failed("cluster", error.text, enable)
        elif re.search(r"not found", error.text, re.IGNORECASE):
            yield failed("cluster", error.text, f"gcloud container clusters list --project={cluster.project}")
        else:
            ask = f"gcloud container clusters describe {cluster.gke} {look.place}"
            yield refused("cluster", error, look.grant("roles/container.admin"), ask)
    else:
        yield ok("cluster", cluster.path)


def _node_pools(look: Look) -> Iterator[Finding]:
    """Ask what we may do on the project: GKE itself has no such question."""
    project = look.cluster.project
    needed: list[tuple[str, tuple[str, ...], str]] = [
        ("node-pools", POOL_PERMISSIONS, look.grant("roles/container.admin")),
    ]
    if look.cluster.tpu_type == "v7x":
        role = f"falconPolicies --project={project} --permissions={','.join(POLICY_PERMISSIONS)}"
        make = f"gcloud iam roles create {role} && {look.grant(f'projects/{project}/roles/falconPolicies')}"
        needed.append(("workload-policies", POLICY_PERMISSIONS, make))
    account = look.cluster.node_service_account or look.fill(DEFAULT_ACCOUNT)
    act = (
        f"gcloud iam service-accounts add-iam-policy-binding {account} --member={look.member}"
        f" --role=roles/iam.serviceAccountUser --project={project}"
    )
    try:
        have = look.clouds.google.permitted(project, {*POOL_PERMISSIONS, *POLICY_PERMISSIONS, ACT_AS})
    except CloudError as error:
        for name in (*(name for name, _, _ in needed), "node-account"):
            enable = f"gcloud services enable cloudresourcemanager.googleapis.com --project={project}"
            yield unknown(name, f"nobody could be asked what is permitted: {error.text}", enable)
        return
    for name, permissions, command in needed:
        lacking = [each for each in permissions if each not in have]
        if lacking:
            yield failed(name, f"not permitted on project {project}: {', '.join(lacking)}", command)
        else:
            yield ok(name, ", ".join(permissions))
    if ACT_AS in have:
        yield ok("node-account", f"{ACT_AS} on the project")
    else:
        yield unknown("node-account", f"{ACT_AS} is not granted on the project; on the account itself is enough", act)


def _zone(look: Look) -> Iterator[Finding]:
    """Find the zone as a pass does that knows none yet, and see that it lies in the cluster's region."""
    locations = look.info.locations if look.info else ()
    fix = look.set_row("--zone ZONE")
    if not look.info and not look.cluster.zone and look.cluster.location.count("-") < 2:
        yield unknown("zone", "needs the cluster's answer")
        return
    try:
        zone, problem = find_zone(look.cluster, locations, None, look.clouds.compute)
    except CloudError as error:
        ask = f"gcloud compute reservations list --project={look.cluster.project}"
        yield refused("zone", error, look.grant("roles/compute.viewer"), ask)
        return
    if zone is None:
        yield failed("zone", problem or "no zone", fix)
    elif not zone.startswith("-".join(look.cluster.location.split("-")[:2])):
        yield failed("zone", f"{zone} is not in the cluster's region {look.cluster.location}", fix)
    else:
        look.zone = zone
        yield ok("zone", zone)


def _reservation(look: Look) -> Iterator[Finding]:
    path = reservation_path(look.cluster)
    if path is None:
        yield ok("reservation", "none: jobs that name no supply mode take flex-start")
        return
    _, project, _, name, *_ = path.split("/")
    if look.zone is None:
        yield unknown("reservation", "needs the zone")
        return
    describe = f"gcloud compute reservations describe {name} --zone={look.zone} --project={project}"
    try:
        found = look.clouds.compute.get_reservation(project, look.zone, name)
    except CloudError as error:
        if error.kind is ErrorKind.GONE:
            listing = f"gcloud compute reservations list --project={project}"
            yield failed("reservation", f"there is no {path} in {look.zone}", listing)
        else:
            yield refused("reservation", error, look.grant("roles/compute.viewer", project), describe)
        return
    machine = MACHINES.get(found.machine_type or "")
    if not found.ready:
        yield failed("reservation", f"{path} is not READY", describe)
    elif found.machine_type and (machine is None or machine.tpu_type != look.cluster.tpu_type):
        kind = f"{path} is for {found.machine_type}, the cluster's row says {look.cluster.tpu_type}"
        yield failed("reservation", kind, look.set_row("--default-reservation RESERVATION"))
    elif found.used >= found.total:
        yield failed("reservation", f"{path} has no room: {found.used} of {found.total} {found.unit}s in use", describe)
    else:
        yield ok("reservation", f"{path}: {found.total - found.used} of {found.total} {found.unit}s free")


# --- Kubernetes


def _kubernetes(look: Look) -> Iterator[Finding]:
    """Reach the API with the first question about rights, then ask the others."""
    if look.info is None:
        yield unknown("kubernetes", "needs the cluster's answer")
        yield from (unknown(f"right {kind}", "needs Kubernetes") for _, kind, _ in RIGHTS)
        return
    other = "ip" if look.cluster.endpoint == "dns" or not look.info.ip_endpoint else "dns"
    reach = look.set_row(f"--endpoint {other}")
    if other == "dns" and not look.info.dns_endpoint:
        reach = f"gcloud container clusters update {look.cluster.gke} --enable-dns-access {look.place} && {reach}"
    try:
        rights = look.clouds.rights(look.cluster, look.info)
        rights.is_allowed(*RIGHTS[0][:2], RIGHTS[0][2][0])
    except CloudError as error:
        yield failed("kubernetes", f"cannot be reached: {error.text}", reach)
        yield from (unknown(f"right {kind}", "needs Kubernetes") for _, kind, _ in RIGHTS)
        return
    look.rights = rights
    yield ok("kubernetes", f"answers at its {'dns' if other == 'ip' else 'ip'} endpoint")
    for group, kind, verbs in RIGHTS:
        yield _right(look, rights, group, kind, verbs)


def _right(look: Look, rights: Rights, group: str, kind: str, verbs: tuple[str, ...]) -> Finding:
    name, command = f"right {kind}", look.grant("roles/container.admin")
    try:
        lacking = [verb for verb in verbs if not rights.is_allowed(group, kind, verb)]
    except CloudError as error:
        return unknown(name, error.text, command)
    look.denied |= {(verb, kind) for verb in lacking}
    if lacking:
        return failed(name, f"may not {', '.join(lacking)} {kind}", command)
    return ok(name, ", ".join(verbs))


def _home(look: Look) -> Iterator[Finding]:
    """Look for namespace and service account; Falcon makes them with the first job, if it may."""
    make = f"kubectl create namespace {NAMESPACE}"
    give = f"kubectl create serviceaccount {SERVICE_ACCOUNT} --namespace={NAMESPACE}"
    if look.rights is None:
        yield unknown("namespace", "needs Kubernetes")
        yield unknown("service-account", "needs Kubernetes")
        return
    try:
        look.annotations = look.rights.service_account()
        account = _made(look, "service-account", "serviceaccounts", look.annotations is not None, give)
    except CloudError as error:
        account = unknown("service-account", error.text, give)
    try:
        there = look.annotations is not None or look.rights.has_namespace()
        yield _made(look, "namespace", "namespaces", there, make)
    except CloudError as error:
        yield unknown("namespace", error.text, make)
    yield account


def _made(look: Look, name: str, kind: str, there: bool, command: str) -> Finding:
    if there:
        return ok(name, NAMESPACE if kind == "namespaces" else f"{NAMESPACE}/{SERVICE_ACCOUNT}")
    if ("create", kind) in look.denied:
        return failed(name, "missing, and Falcon may not make it", command)
    return ok(name, "missing: Falcon makes it with the first job")


# --- what pods need to mount buckets


def _add_ons(look: Look) -> Iterator[Finding]:
    update = f"gcloud container clusters update {look.cluster.gke}"
    fuse = f"{update} --update-addons=GcsFuseCsiDriver=ENABLED {look.place}"
    wanted = f"{look.cluster.project}.svc.id.goog"
    identity = f"{update} --workload-pool={wanted} {look.place}"
    if look.info is None:
        yield unknown("gcs-fuse", "needs the cluster's answer")
        yield unknown("workload-identity", "needs the cluster's answer")
        return
    if look.info.gcs_fuse:
        yield ok("gcs-fuse", "the add-on is enabled")
    else:
        yield failed("gcs-fuse", "the add-on is not enabled: no pod can mount a bucket", fuse)
    if look.info.workload_pool == wanted:
        yield ok("workload-identity", wanted)
    else:
        yield failed("workload-identity", f"its pool is {look.info.workload_pool}, not {wanted}", identity)


def _bucket(look: Look) -> Iterator[Finding]:
    bucket, project = look.cluster.gcs_bucket, look.cluster.project
    if not bucket:
        what = "none: jobs run without /gcs, and their logs stay in the containers"
        yield ok("bucket", what, look.set_row("--gcs-bucket BUCKET"))
        return
    region = "-".join(look.cluster.location.split("-")[:2])
    make = f"gcloud storage buckets create gs://{bucket} --project={project} --location={region}"
    bind = f"gcloud storage buckets add-iam-policy-binding gs://{bucket}"
    try:
        if look.clouds.google.is_uniform(bucket):
            yield ok("bucket", f"gs://{bucket}")
        else:
            what = f"access to gs://{bucket} is not uniform: GCS FUSE is refused"
            yield failed("bucket", what, f"gcloud storage buckets update gs://{bucket} --uniform-bucket-level-access")
    except CloudError as error:
        if error.kind is ErrorKind.GONE:
            yield failed("bucket", f"there is no gs://{bucket}", f"{make} --uniform-bucket-level-access")
            yield unknown("bucket-writer", "needs the bucket", _writer(look, bind))
            return
        see = f"{bind} --member={look.member} --role=roles/storage.legacyBucketReader"
        yield unknown("bucket", f"may not be looked at: {error.text}", see)
    yield _bucket_writer(look, bucket, bind)


def _bucket_writer(look: Look, bucket: str, bind: str) -> Finding:
    """See whether the pods' principal, or the account it stands for, has a role on the bucket that lets it write."""
    try:
        roles = look.clouds.google.members(bucket)
    except CloudError as error:
        return unknown("bucket-writer", f"the bucket's policy may not be read: {error.text}", _writer(look, bind))
    for role in WRITERS:
        for member in sorted(roles.get(role, frozenset())):
            if _is_the_pods(look, member):
                return ok("bucket-writer", f"{role} for {member}")
    what = (
        f"the policy of gs://{bucket} names no pods of {NAMESPACE}/{SERVICE_ACCOUNT} (the project's is not looked at)"
    )
    return failed("bucket-writer", what, _writer(look, bind))


def _is_the_pods(look: Look, member: str) -> bool:
    account = (look.annotations or {}).get("iam.gke.io/gcp-service-account")
    if account:
        return member == f"serviceAccount:{account}"
    pool = re.escape(f"{look.cluster.project}.svc.id.goog")
    where = rf"://iam\.googleapis\.com/projects/\d+/locations/global/workloadIdentityPools/{pool}/"
    whom = rf"subject/ns/{NAMESPACE}/sa/{SERVICE_ACCOUNT}|namespace/{NAMESPACE}|\*"
    old = rf"serviceAccount:{pool}\[{NAMESPACE}/{SERVICE_ACCOUNT}\]"
    return re.fullmatch(rf"principal(Set)?{where}({whom})|{old}", member) is not None


def _writer(look: Look, bind: str) -> str:
    account = (look.annotations or {}).get("iam.gke.io/gcp-service-account")
    member = f"serviceAccount:{account}" if account else f'"{look.fill(PRINCIPAL)}"'
    return f"{bind} --member={member} --role=roles/storage.objectUser"


CHECKS: tuple[Callable[[Look], Iterator[Finding]], ...] = (
    _credentials, _cluster, _node_pools, _zone, _reservation, _kubernetes, _home, _add_ons, _bucket,
)  # fmt: skip
