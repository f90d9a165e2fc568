"""
TPU types, machines and topologies: what a slice is made of (gke.md 1).

1. Hosts = product of the axes / chips per VM of the machine; more than one host is a multi-host slice, nothing else is.
2. The machine decides as much as the topology: 2x4 is one -8t machine or two -4t machines.
3. What is not in these tables is refused by the name of the field that is wrong.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod

from attrs import frozen


@frozen
class Shape:
    """A slice: what one node pool is made of. *hosts* is the number of VMs, one pod each."""

    tpu_type: str  # v4 v5e v5p v6e v7x
    topology: str  # e.g. 2x2x1
    machine_type: str
    chips_per_host: int
    hosts: int
    accelerator: str  # value of the node label cloud.google.com/gke-tpu-accelerator

    @property
    def chips(self) -> int:
        """Chips of the whole slice."""
        return self.chips_per_host * self.hosts


class ShapeError(Exception):
    """A shape that cannot be: the field of the spec, what it holds, and in a few words what is allowed."""

    def __init__(self, field: str, got: str | int, allowed: str) -> None:
        super().__init__(f"{field}: {got}; allowed: {allowed}")
        self.field = field
        self.got = got
        self.allowed = allowed


@frozen
class Machine:
    """A machine type: the TPU type it belongs to, its chips, and the topologies that can be made of it."""

    tpu_type: str
    chips: int
    topologies: tuple[str, ...]
    by_request: bool = False  # never chosen, only taken when the spec names it


def _cubes(limit: int, *, ordered: bool) -> tuple[str, ...]:
    """
    Return the 3-D family of a type: four small shapes, then every AxBxC of whole 4x4x4 cubes.

    Args:
        limit: most cubes in one slice.
        ordered: whether GKE wants A <= B <= C.

    Source: gke.md 1.2.
    """
    sides = range(1, 65)  # an axis has at most 256 chips
    found = [
        (a, b, c)
        for a, b in product(sides, sides)
        if a * b <= limit
        for c in sides
        if a * b * c <= limit and (not ordered or a <= b <= c)
    ]
    found.sort(key=lambda axes: (prod(axes), axes))
    return ("2x2x1", "2x2x2", "2x2x4", "2x4x4", *(f"{4 * a}x{4 * b}x{4 * c}" for a, b, c in found))


_FLAT = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_V4 = _cubes(64, ordered=False)
_V5P = _cubes(140, ordered=True)
_V7X = _cubes(144, ordered=True)

ACCELERATORS: Mapping[str, str] = {
    "v4": "tpu-v4-podslice",
    "v5e": "tpu-v5-lite-podslice",
    "v5p": "tpu-v5p-slice",
    "v6e": "tpu-v6e-slice",
    "v7x": "tpu7x",
}

# Of two machines that offer a topology, the one with fewer hosts is chosen.
MACHINES: Mapping[str, Machine] = {
    "ct4p-hightpu-4t": Machine("v4", 4, _V4),
    "ct5lp-hightpu-1t": Machine("v5e", 1, ("1x1",)),
    "ct5lp-hightpu-4t": Machine("v5e", 4, _FLAT),
    "ct5lp-hightpu-8t": Machine("v5e", 8, ("2x4",)),
    "ct5p-hightpu-4t": Machine("v5p", 4, _V5P),
    "ct6e-standard-1t": Machine("v6e", 1, ("1x1",)),
    "ct6e-standard-4t": Machine("v6e", 4, _FLAT),
    "ct6e-standard-8t": Machine("v6e", 8, ("2x4",)),
    "tpu7x-standard-1t": Machine("v7x", 1, ("1x1x1",)),
    "tpu7x-standard-4t": Machine("v7x", 4, _V7X),
    "tpu7x-ultranet-4t": Machine("v7x", 4, _V7X, by_request=True),
}

_OFFERED: Mapping[str, frozenset[str]] = {name: frozenset(machine.topologies) for name, machine in MACHINES.items()}

_ALIASES: Mapping[str, str] = {"tpu7x": "v7x"}

# What a submitter may count for one chip: JAX shows a v7x chip as two devices, product names of v4 and v5p count cores.
_DEVICES_PER_CHIP: Mapping[str, int] = {"v4": 2, "v5e": 1, "v5p": 2, "v6e": 1, "v7x": 2}


def parse_type(text: str) -> str | None:
    """Return the TPU type that *text* names in any case, also as `tpu-v6e` or `tpu7x`; None if it names none."""
    name = text.strip().lower()
    name = _ALIASES.get(name, name.removeprefix("tpu-"))
    return name if name in ACCELERATORS else None


def shape(tpu_type: str, topology: str, machine_type: str | None = None, replica: int | None = None) -> Shape:
    """
    Return the slice that a spec describes.

    Args:
        tpu_type: as `parse_type` returns it.
        topology: the axes in GKE's order, in any case.
        machine_type: taken as it is if the table allows it; None: chosen by topology and replica.
        replica: the number of hosts the submitter expects; None: the fewest possible.

    Raises:
        ShapeError: the type, topology, machine type or replica is not in the table.
    """
    axes = topology.strip().lower()
    if tpu_type not in ACCELERATORS:
        raise ShapeError("device_type", tpu_type, ", ".join(ACCELERATORS))
    fitting = [name for name, machine in MACHINES.items() if machine.tpu_type == tpu_type and axes in _OFFERED[name]]
    if not fitting:
        raise ShapeError("device_topo", topology, _allowed_topologies(tpu_type, axes))
    if machine_type is not None and machine_type not in fitting:
        raise ShapeError("machine_type", machine_type, f"{_listed(fitting)} for {tpu_type} {axes}")
    chosen = [name for name in fitting if not MACHINES[name].by_request] if machine_type is None else [machine_type]
    shapes = sorted((_made_of(name, axes) for name in chosen), key=lambda made: made.hosts)
    if replica is None:
        return shapes[0]
    for made in shapes:
        if replica == made.hosts:
            return made
    hosts = _listed(str(made.hosts) for made in shapes)
    raise ShapeError("replica", replica, f"{hosts}, the number of hosts of {tpu_type} {axes}")


def device_counts(made: Shape) -> frozenset[int]:
    """Return every count a submitter may mean: chips or JAX devices, of one pod or of the whole slice."""
    units = {1, _DEVICES_PER_CHIP[made.tpu_type]}
    return frozenset(chips * unit for chips in (made.chips_per_host, made.chips) for unit in units)


def shape_of(machine_type: str, topology: str) -> Shape | None:
    """
    Return the shape of a live pool, or None if the tables do not know it.

    Args:
        machine_type: of the pool's nodes.
        topology: "" where the pool names none, as single-host pools do.
    """
    machine = MACHINES.get(machine_type)
    if machine is None:
        return None
    alone = next(axes for axes in machine.topologies if _chips(axes) == machine.chips)
    axes = topology or alone
    return _made_of(machine_type, axes) if axes in _OFFERED[machine_type] else None


def _made_of(machine_type: str, topology: str) -> Shape:
    machine = MACHINES[machine_type]
    return Shape(
        tpu_type=machine.tpu_type,
        topology=topology,
        machine_type=machine_type,
        chips_per_host=machine.chips,
        hosts=_chips(topology) // machine.chips,
        accelerator=ACCELERATORS[machine.tpu_type],
    )


def _chips(topology: str) -> int:
    return prod(int(axis) for axis in topology.split("x"))


def _allowed_topologies(tpu_type: str, got: str) -> str:
    """Say what is allowed: the same axes in GKE's order if that is all that is wrong, else the family."""
    known = [axes for machine in MACHINES.values() if machine.tpu_type == tpu_type for axes in machine.topologies]
    known = list(dict.fromkeys(known))
    turned = [axes for axes in known if sorted(axes.split("x")) == sorted(got.split("x"))]
    if turned:
        return f"{turned[0]} (the order of the axes matters)"
    small = [axes for axes in known if any(int(axis) % 4 for axis in axes.split("x")) or axes.count("x") == 1]
    if small == known:
        return _listed(known)
    order = "" if tpu_type == "v4" else " that do not decrease"
    most = max(_chips(axes) for axes in known)
    return f"{', '.join(small)}, or three multiples of 4{order}, {most} chips at most"


def _listed(words: Iterable[str]) -> str:
    """Join words as one says them: a, b or c."""
    *head, last = words
    return f"{', '.join(head)} or {last}" if head else last
