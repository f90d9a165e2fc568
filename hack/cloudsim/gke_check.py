"""
What GKE refuses of a CreateNodePool request at once, with its texts (reference/gke.md 2 and 3.3).

1. Each check raises SimError or returns; they run in the order of CHECKS.
2. Texts marked "usual form" in the reference are worded here in that form.
"""

import re
from collections.abc import Callable

from cloudsim.errors import SimError
from cloudsim.machines import MACHINES, Machine, hosts_of, legal
from cloudsim.values import Json, seconds_of

NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
RESOURCE_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
RESOURCE_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
RESERVATION_KEY = "compute.googleapis.com/reservation-name"
LABEL_CHARACTERS = 1024
WEEK = 7 * 86400


def invalid(text: str) -> SimError:
    """Return the refusal of a request that is wrong in itself."""
    return SimError("INVALID_ARGUMENT", text)


def machine_of(pool: Json) -> Machine | None:
    """Return the TPU machine of a pool, None for an ordinary one."""
    return MACHINES.get(pool.get("config", {}).get("machineType", ""))


def topology_of(pool: Json) -> str:
    """Return the topology of the placement policy, "" if it names none."""
    return str(pool.get("placementPolicy", {}).get("tpuTopology", ""))


def affinity_of(pool: Json) -> str:
    """Return how the pool may draw from reservations; left out means any."""
    affinity = pool.get("config", {}).get("reservationAffinity", {})
    return str(affinity.get("consumeReservationType", "ANY_RESERVATION"))


def mode_of(pool: Json) -> str:
    """Return where the machines come from: reservation, flex-start, spot or on-demand."""
    config = pool.get("config", {})
    if config.get("flexStart"):
        return "flex-start"
    if config.get("spot"):
        return "spot"
    return "reservation" if affinity_of(pool) == "SPECIFIC_RESERVATION" else "on-demand"


def check_name(pool: Json) -> None:
    """At most 40 characters, a letter first, nothing but lower case, digits and hyphens."""
    name = str(pool.get("name", ""))
    if len(name) > 40 or not NAME.fullmatch(name):
        raise invalid(f'Invalid value for field "node_pool.name": "{name}". Must be a match of regex "{NAME.pattern}".')


def check_labels(pool: Json) -> None:
    """Node labels by the rules of Kubernetes, resource labels by those of Google Cloud."""
    config = pool.get("config", {})
    labels: dict[str, str] = config.get("labels", {})
    for key, value in labels.items():
        if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
            raise invalid(f'Node labels are invalid: "{key}": "{value}".')
    if sum(len(key) + len(value) for key, value in labels.items()) > LABEL_CHARACTERS:
        raise invalid(f"Node labels are invalid: more than {LABEL_CHARACTERS} characters in total.")
    resource: dict[str, str] = config.get("resourceLabels", {})
    for key, value in resource.items():
        if not RESOURCE_KEY.fullmatch(key) or not RESOURCE_VALUE.fullmatch(value):
            raise invalid(f'Invalid resource label: "{key}": "{value}".')
    if len(resource) > 64:
        raise invalid("Invalid resource labels: more than 64.")


def check_topology(pool: Json) -> None:
    """A topology is for slices of several hosts, and must exist."""
    machine, topology = machine_of(pool), topology_of(pool)
    placed = pool.get("placementPolicy", {})
    if machine is None:
        if topology:
            raise invalid("TPU topology can only be specified for TPU node pools.")
        return
    if topology and not legal(machine, topology):
        raise invalid(f'Invalid TPU topology "{topology}" for machine type "{machine.name}".')
    if topology and hosts_of(machine, topology) == 1:
        raise invalid(
            "TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology field."
        )
    if placed.get("type") == "COMPACT" and not topology and not placed.get("policyName"):
        raise invalid("TPU topology is required with compact placement.")


def check_boot_disk(pool: Json) -> None:
    """The newest types take one kind of disk only."""
    machine, disk = machine_of(pool), pool.get("config", {}).get("diskType")
    if machine and disk and machine.family in ("v6e", "v7x") and disk != "hyperdisk-balanced":
        raise invalid(f"{disk} is not supported by machine type {machine.name}.")


def check_flex_start(pool: Json) -> None:
    """The refusals of flex-start, in the words of its users' reports."""
    config, scaling = pool.get("config", {}), pool.get("autoscaling", {})
    if not config.get("flexStart"):
        return
    machine, topology = machine_of(pool), topology_of(pool)
    if machine and machine.family == "v4":
        raise invalid(f"Flex start is not supported for machine type {machine.name}.")
    if pool.get("queuedProvisioning", {}).get("enabled"):
        raise invalid("Flex start node pools don't support TPUs with queued provisioning.")
    if not scaling.get("enabled"):
        raise invalid("Flex start node pools require autoscaling enabled.")
    if pool.get("initialNodeCount", 0):
        raise invalid("Flex start node pools require initial node count to be set to 0.")
    if affinity_of(pool) != "NO_RESERVATION":
        raise invalid("Flex start node pools require reservation affinity to be set to none.")
    if pool.get("management", {}).get("autoRepair"):
        raise invalid("Flex start node pools require node auto-repair to be disabled.")
    if config.get("spot"):
        raise invalid("Flex start node pools can't use Spot VMs.")
    most = scaling.get("maxNodeCount", 0)
    if machine and topology and most != hosts_of(machine, topology):
        raise invalid(f'Maximum node count {most} is not a valid size of TPU pod slice with topology "{topology}"')
    if scaling.get("totalMaxNodeCount") and most:
        raise invalid("Per-zone and total node limits can't be set together.")


def check_durations(pool: Json) -> None:
    """What may be asked of the autoscaler, and how long flex-start machines live."""
    config = pool.get("config", {})
    if "consolidationDelay" in config and not 60 <= seconds_of(config["consolidationDelay"]) <= 86400:
        raise invalid("Consolidation delay must be between 60s and 86400s.")
    if "maxRunDuration" in config and not 0 < seconds_of(config["maxRunDuration"]) <= WEEK:
        raise invalid("Max run duration must be at most 7 days.")


def check_affinity(pool: Json) -> None:
    """A specific reservation needs the one key there is, and a name."""
    affinity = pool.get("config", {}).get("reservationAffinity", {})
    if affinity_of(pool) != "SPECIFIC_RESERVATION":
        return
    if affinity.get("key") != RESERVATION_KEY or len(affinity.get("values", [])) != 1:
        raise invalid(f"Reservation affinity needs the key {RESERVATION_KEY} and exactly one value.")


CHECKS: tuple[Callable[[Json], None], ...] = (
    check_name,
    check_labels,
    check_topology,
    check_boot_disk,
    check_affinity,
    check_flex_start,
    check_durations,
)


def check(pool: Json) -> None:
    """Refuse a node pool that is wrong in itself."""
    for one in CHECKS:
        one(pool)


def late_refusal(pool: Json, policy: Json | None) -> str | None:
    """Return why machines can't be made of a request that was accepted, None if they can."""
    machine, topology = machine_of(pool), topology_of(pool)
    placed = pool.get("placementPolicy", {})
    if machine is None or not (topology or placed.get("policyName")):
        return None
    if machine.family == "v7x" and placed.get("type") == "COMPACT":
        return (
            f"Creation of a managed instance group with {machine.name} machine type with placement policy "
            "is not supported. Use workload policy instead."
        )
    if policy is not None and not policy.get("workloadPolicy", {}).get("acceleratorTopology"):
        return "does not support TPU topology with group placement policy and workload policy at the same time"
    shape = topology or str((policy or {})["workloadPolicy"]["acceleratorTopology"])
    if policy is not None and policy["workloadPolicy"]["acceleratorTopology"] != shape:
        return f"The accelerator topology of the workload policy does not match TPU topology {shape}."
    count, gang = pool.get("initialNodeCount", 0), hosts_of(machine, shape)
    if mode_of(pool) != "flex-start" and count != gang:
        return (
            f"Google Compute Engine: Invalid value for field 'resource.resizeBy': '{count}'. Requested invalid target "
            f"size '{count}' for a Managed Instance Group in the gang mode of size '{gang}'."
        )
    return None
