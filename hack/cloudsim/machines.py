"""TPU machine types as GKE sells them, and which topologies fit on them (reference/gke.md 1)."""

from itertools import pairwise
from math import prod

from attrs import frozen


@frozen
class Machine:
    """A TPU machine type. *topology* is what a pool of single hosts has."""

    name: str
    family: str
    accelerator: str  # node label cloud.google.com/gke-tpu-accelerator
    chips: int
    topology: str
    cpu: int
    memory_gb: int


MACHINES = {
    machine.name: machine
    for machine in (
        Machine("ct4p-hightpu-4t", "v4", "tpu-v4-podslice", 4, "2x2x1", 240, 407),
        Machine("ct5lp-hightpu-1t", "v5e", "tpu-v5-lite-podslice", 1, "1x1", 24, 48),
        Machine("ct5lp-hightpu-4t", "v5e", "tpu-v5-lite-podslice", 4, "2x2", 112, 192),
        Machine("ct5lp-hightpu-8t", "v5e", "tpu-v5-lite-podslice", 8, "2x4", 224, 384),
        Machine("ct5p-hightpu-4t", "v5p", "tpu-v5p-slice", 4, "2x2x1", 208, 448),
        Machine("ct6e-standard-1t", "v6e", "tpu-v6e-slice", 1, "1x1", 44, 176),
        Machine("ct6e-standard-4t", "v6e", "tpu-v6e-slice", 4, "2x2", 180, 720),
        Machine("ct6e-standard-8t", "v6e", "tpu-v6e-slice", 8, "2x4", 180, 1440),
        Machine("tpu7x-standard-1t", "v7x", "tpu7x", 1, "1x1x1", 56, 248),
        Machine("tpu7x-standard-4t", "v7x", "tpu7x", 4, "2x2x1", 224, 992),
        Machine("tpu7x-ultranet-4t", "v7x", "tpu7x", 4, "2x2x1", 224, 992),
    )
}

FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
SMALL_CUBOIDS = ("1x1x1", "2x2x1", "2x2x2", "2x2x4", "2x4x4")
CUBES = {"v4": 64, "v5p": 140, "v7x": 144}

VM_FAMILIES = {
    "v4": ("VM_FAMILY_CLOUD_TPU_POD_SLICE_CT4P", "ct4p"),
    "v5e": ("VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP", "ct5lp"),
    "v5p": ("VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P", "ct5p"),
    "v6e": ("VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E", "ct6e"),
    "v7x": ("VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU7X", "tpu7x"),
}
"""Family -> (vmFamily, accelerator type) of an aggregate reservation."""


def axes(topology: str) -> tuple[int, ...]:
    """Return the axes of a topology, none if the word is not one."""
    words = topology.split("x")
    return tuple(int(word) for word in words) if all(word.isdigit() for word in words) else ()


def legal(machine: Machine, topology: str) -> bool:
    """Whether GKE knows this topology for the machine's family."""
    sizes = axes(topology)
    if not sizes or prod(sizes) % machine.chips or (machine.chips != 4 and topology != machine.topology):
        return False
    if machine.family not in CUBES:
        return topology in FLAT
    if topology in SMALL_CUBOIDS:
        return True
    if len(sizes) != 3 or any(size % 4 or not 4 <= size <= 256 for size in sizes):
        return False
    rising = machine.family == "v4" or all(a <= b for a, b in pairwise(sizes))
    return rising and prod(size // 4 for size in sizes) <= CUBES[machine.family]


def hosts_of(machine: Machine, topology: str) -> int:
    """Return how many machines a slice of this topology has."""
    return prod(axes(topology)) // machine.chips
