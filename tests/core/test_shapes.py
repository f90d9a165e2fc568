"""Shapes: every figure of the reference, and what is refused."""

from math import prod

import pytest

from falcon_rm.core.shapes import (
    ACCELERATORS,
    MACHINES,
    Shape,
    ShapeError,
    device_counts,
    parse_type,
    shape,
    shape_of,
)

HOSTS = {
    ("v5e", "ct5lp-hightpu-4t"): "2x2:1 2x4:2 4x4:4 4x8:8 8x8:16 8x16:32 16x16:64",
    ("v6e", "ct6e-standard-4t"): "2x2:1 2x4:2 4x4:4 4x8:8 8x8:16 8x16:32 16x16:64",
    ("v7x", "tpu7x-standard-4t"): (
        "2x2x1:1 2x2x2:2 2x2x4:4 2x4x4:8 4x4x4:16 4x4x8:32 4x4x12:48 4x4x16:64 4x8x8:64 4x4x20:80 4x8x12:96 8x8x8:128 "
        "8x8x12:192 8x8x16:256 8x16x16:512 16x16x16:1024 16x16x24:1536 16x16x32:2048 16x24x24:2304"
    ),
    ("v5p", "ct5p-hightpu-4t"): "2x2x1:1 4x4x4:16 8x16x16:512 16x16x16:1024 16x16x24:1536 16x20x28:2240",
    ("v4", "ct4p-hightpu-4t"): (
        "2x2x1:1 2x2x2:2 2x2x4:4 2x4x4:8 4x4x4:16 4x4x8:32 4x8x8:64 8x8x8:128 8x8x12:192 8x8x16:256 8x16x16:512"
    ),
}


@pytest.mark.parametrize(
    ("tpu_type", "machine_type", "topology", "hosts"),
    [(tpu_type, machine, *row.split(":")) for (tpu_type, machine), rows in HOSTS.items() for row in rows.split()],
)
def test_hosts_of_the_reference(tpu_type: str, machine_type: str, topology: str, hosts: str) -> None:
    """Hosts are the product of the axes over the chips of the machine (P38)."""
    made = shape(tpu_type, topology, machine_type)
    assert int(hosts) == made.hosts
    assert prod(map(int, topology.split("x"))) == made.chips


@pytest.mark.parametrize(
    ("tpu_type", "topology", "replica", "machine_type", "hosts"),
    [
        ("v5e", "1x1", None, "ct5lp-hightpu-1t", 1),
        ("v5e", "2x2", None, "ct5lp-hightpu-4t", 1),
        ("v5e", "2x4", None, "ct5lp-hightpu-8t", 1),
        ("v5e", "2x4", 1, "ct5lp-hightpu-8t", 1),
        ("v5e", "2x4", 2, "ct5lp-hightpu-4t", 2),
        ("v6e", "1x1", 1, "ct6e-standard-1t", 1),
        ("v6e", "2x2", None, "ct6e-standard-4t", 1),
        ("v6e", "2x4", None, "ct6e-standard-8t", 1),
        ("v6e", "2x4", 2, "ct6e-standard-4t", 2),
        ("v6e", "4x4", 4, "ct6e-standard-4t", 4),
        ("v7x", "1x1x1", None, "tpu7x-standard-1t", 1),
        ("v7x", "2x2x1", None, "tpu7x-standard-4t", 1),
        ("v7x", "2X2X4", 4, "tpu7x-standard-4t", 4),
    ],
)
def test_the_machine_is_chosen(tpu_type: str, topology: str, replica: int, machine_type: str, hosts: int) -> None:
    """Topology and replica pick the machine; a single host has at least one node (P38, P39)."""
    made = shape(tpu_type, topology, replica=replica)
    assert (machine_type, hosts, topology.lower()) == (made.machine_type, made.hosts, made.topology)
    assert ACCELERATORS[tpu_type] == made.accelerator


def test_an_explicit_machine_is_taken() -> None:
    """A machine type that the table allows is taken as it is, also one that is never chosen."""
    assert 2 == shape("v6e", "2x4", "ct6e-standard-4t").hosts
    assert "tpu7x-ultranet-4t" == shape("v7x", "2x2x4", "tpu7x-ultranet-4t").machine_type


@pytest.mark.parametrize(
    ("arguments", "field", "allowed"),
    [
        (("v9", "2x2"), "device_type", "v4, v5e, v5p, v6e, v7x"),
        (
            ("v7x", "4x2x1"),
            "device_topo",
            "1x1x1, 2x2x1, 2x2x2, 2x2x4, 2x4x4, or three multiples of 4 that do not decrease, 9216 chips at most",
        ),
        (("v6e", "3x3"), "device_topo", "1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16 or 16x16"),
        (("v6e", ""), "device_topo", "1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16 or 16x16"),
        (("v5p", "8x4x4"), "device_topo", "4x4x8 (the order of the axes matters)"),
        (("v7x", "4x2x2"), "device_topo", "2x2x4 (the order of the axes matters)"),
        (("v7x", "2x2x4", None, 3), "replica", "4, the number of hosts of v7x 2x2x4"),
        (("v6e", "2x4", None, 4), "replica", "1 or 2, the number of hosts of v6e 2x4"),
        (("v6e", "2x4", "ct6e-standard-8t", 2), "replica", "1, the number of hosts of v6e 2x4"),
        (("v6e", "4x4", "ct6e-standard-8t"), "machine_type", "ct6e-standard-4t for v6e 4x4"),
        (("v6e", "2x4", "n2-standard-4"), "machine_type", "ct6e-standard-4t or ct6e-standard-8t for v6e 2x4"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[str, str], field: str, allowed: str) -> None:
    """An impossible shape names the field that is wrong, what it holds and what is allowed."""
    with pytest.raises(ShapeError) as raised:
        shape(*arguments)
    assert (field, allowed) == (raised.value.field, raised.value.allowed)


def test_v4_takes_any_order_of_axes() -> None:
    """GKE has no order of axes for v4."""
    assert 32 == shape("v4", "8x4x4").hosts


def test_the_families_have_their_size() -> None:
    """The generator makes exactly the shapes that GKE sells."""
    assert (414, 432) == tuple(len(MACHINES[name].topologies) for name in ("ct5p-hightpu-4t", "tpu7x-standard-4t"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((name, name) for name in ACCELERATORS),
        ("tpu-v6e", "v6e"),
        ("TPU-V5P", "v5p"),
        ("tpu7x", "v7x"),
        (" V7X ", "v7x"),
        ("tpu-v7x", "v7x"),
        ("cpu", None),
        ("", None),
        ("tpu", None),
        ("v2", None),
        ("tpu-tpu-v4", None),
    ],
)
def test_type_names(text: str, expected: str | None) -> None:
    """A type may be written with a prefix and in any case."""
    assert expected == parse_type(text)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("v7x", "2x2x1"), {4, 8}),
        (("v7x", "2x2x4"), {4, 8, 16, 32}),
        (("v6e", "2x4"), {8}),
        (("v6e", "2x4", None, 2), {4, 8}),
        (("v5e", "4x4"), {4, 16}),
        (("v5p", "2x2x2"), {4, 8, 16}),
        (("v4", "4x4x4"), {4, 8, 64, 128}),
    ],
)
def test_device_counts(arguments: tuple[str, str], expected: set[int]) -> None:
    """Chips and JAX devices, per pod and in all, are what a submitter may mean."""
    assert expected == device_counts(shape(*arguments))


def test_a_live_pool_has_the_shape_it_was_made_of() -> None:
    """Every shape of the tables is found again from machine type and topology."""
    for name, machine in MACHINES.items():
        for topology in machine.topologies:
            assert shape(machine.tpu_type, topology, name) == shape_of(name, topology)


@pytest.mark.parametrize(
    ("machine_type", "topology", "expected"),
    [
        ("ct6e-standard-8t", "", shape("v6e", "2x4")),
        ("ct6e-standard-4t", "", shape("v6e", "2x2")),
        ("tpu7x-standard-4t", "", shape("v7x", "2x2x1")),
        ("tpu7x-standard-1t", "", shape("v7x", "1x1x1")),
        ("ct6e-standard-4t", "9x9", None),
        ("e2-medium", "", None),
        ("", "2x2", None),
    ],
)
def test_a_pool_without_topology_is_a_single_host(machine_type: str, topology: str, expected: Shape | None) -> None:
    """A pool that names no topology is a single host; an unknown one has no shape (P39)."""
    assert expected == shape_of(machine_type, topology)
