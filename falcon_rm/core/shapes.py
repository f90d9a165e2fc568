"""TPU types, machines and topologies (reference: cloud.google.com TPU documentation)."""

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

    @property
    def multi_host(self) -> bool:
        """Whether the slice has more than one VM, which decides placement, Job mode and Service."""
        return self.hosts > 1
