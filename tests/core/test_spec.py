"""TaskSpec: every field of the contract, its faults, and that no input whatever raises."""

import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from falcon_rm.core.model import InvalidSpec, Mount, TaskSpec
from falcon_rm.core.readers import FORBIDDEN_OPTIONS
from falcon_rm.core.shapes import shape
from falcon_rm.core.spec import parse
from falcon_rm.core.words import Mode

LEAST: dict[str, Any] = {"image": "busybox:1.36", "device_type": "v6e", "device_topo": "2x2"}
PARSED = TaskSpec(image="busybox:1.36", shape=shape("v6e", "2x2"))
CPU: dict[str, Any] = {"image": "busybox:1.36", "device_type": "cpu"}
MOUNT: dict[str, Any] = {"name": "m", "type": "gcs", "bucket": "models", "mount_path": "/models"}


def of(**changes: Any) -> TaskSpec | InvalidSpec:
    """Parse the least spec with some fields set."""
    return parse(json.dumps({**LEAST, **changes}))


def fault(**changes: Any) -> tuple[str, str]:
    """Return the field that is refused and what it holds."""
    refused = of(**changes)
    assert isinstance(refused, InvalidSpec), refused
    assert refused.allowed
    return refused.field, refused.got


def test_the_least_spec() -> None:
    """Image, type and topology are enough."""
    assert PARSED == parse(json.dumps(LEAST)) == parse(json.dumps(LEAST).encode())


def test_a_whole_spec() -> None:
    """Every field arrives, numbers also as strings, values of variables as strings."""
    raw = {
        "image": "us-docker.pkg.dev/example/jax:1",
        "command": "set -eu\ncat <<'EOF'\n$x\nEOF\n",
        "device_type": "tpu-v7x",
        "device_topo": "2x2x4",
        "replica": "4",
        "device_count": "32",
        "machine_type": "tpu7x-standard-4t",
        "supply_mode": "reservation",
        "envs": {"A": "x", "B": 32, "C": True, "D": None, "E": 0.5, "f.g-h": False},
        "mounts": [{**MOUNT, "prefix": "/a/b/", "read_only": "true", "mount_options": ["uid=1", "a:b:-1"]}],
        "resources": {"cpu_request": 2, "cpu_limit": "2500m", "memory_request": "1Gi", "memory_limit": 2e9},
        "exp_id": "exp-1",
        "owner": "ann@example.com",
        "labels": {"team": "a", "n": 1},
        "max_retries": 2,
        "log": "none",
        "termination_grace_seconds": 60.0,
    }
    expected = TaskSpec(
        image="us-docker.pkg.dev/example/jax:1",
        command="set -eu\ncat <<'EOF'\n$x\nEOF\n",
        shape=shape("v7x", "2x2x4"),
        mode=Mode.RESERVATION,
        envs={"A": "x", "B": "32", "C": "true", "D": "", "E": "0.5", "f.g-h": "false"},
        mounts=(Mount("m", "models", "/models", "a/b", read_only=True, options=("uid=1", "a:b:-1")),),
        resources={
            "cpu_request": "2",
            "cpu_limit": "2500m",
            "memory_request": "1Gi",
            "memory_limit": "2000000000.0",
        },
        exp_id="exp-1",
        owner="ann@example.com",
        labels={"team": "a", "n": "1"},
        max_retries=2,
        log=False,
        grace_seconds=60,
    )
    assert expected == parse(json.dumps(raw))


@pytest.mark.parametrize(
    "changes",
    [
        {"device_type": None, "tpu_type": "v6e"},
        {"device_topo": None, "topology": "2x2"},
        {"replicas": 1},
        {"replica": 1, "replicas": 1},
        {"env": {}},
        {"device_count": 4},
        {"command": None, "args": None, "mounts": None, "log": None, "max_retries": None},
        {"command": "", "supply_mode": "", "machine_type": "", "exp_id": "", "owner": ""},
        {"command": [], "args": [], "mounts": [], "resources": {}, "labels": {}},
        {"resources": {"cpu_limit": None, "memory_limit": ""}},
    ],
)
def test_aliases_and_empty_fields(changes: dict[str, Any]) -> None:
    """An alias is its field; null and empty values are as good as absent."""
    assert PARSED == of(**changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"command": ["python3", "-m", "x", 3, 0.5]}, {"command": ("python3", "-m", "x", "3", "0.5")}),
        ({"command": ["run"], "args": ["--n", 3]}, {"command": ("run",), "args": ("--n", "3")}),
        ({"args": ["a"]}, {"args": ("a",)}),
        ({"command": "x" * 120_000}, {"command": "x" * 120_000}),
        ({"supply_mode": "flex-start"}, {"mode": Mode.FLEX_START}),
        ({"supply_mode": "On-Demand"}, {"mode": Mode.ON_DEMAND}),
        ({"device_topo": "2x4"}, {"shape": shape("v6e", "2x4")}),
        ({"device_topo": "2x4", "replica": 2}, {"shape": shape("v6e", "2x4", replica=2)}),
        ({"device_topo": "2x4", "machine_type": "ct6e-standard-4t"}, {"shape": shape("v6e", "2x4", replica=2)}),
        ({"device_type": "TPU7X", "device_topo": "2x2x1", "device_count": 8}, {"shape": shape("v7x", "2x2x1")}),
        (
            {"device_type": "v4", "device_topo": "2x2x1", "supply_mode": "flex-start"},
            {"shape": shape("v4", "2x2x1"), "mode": Mode.FLEX_START},
        ),
        ({"mounts": [{**MOUNT, "mount_path": "//models//a/"}]}, {"mounts": (Mount("m", "models", "/models/a"),)}),
        ({"termination_grace_seconds": 0}, {"grace_seconds": 0}),
        ({"labels": {"Any key!": None}}, {"labels": {"Any key!": ""}}),
    ],
)
def test_values(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    """What submitters write is read as they mean it."""
    assert evolve(PARSED, **expected) == of(**changes)


@pytest.mark.parametrize(
    "changes", [{}, {"replica": 1, "device_count": 0, "device_topo": "", "supply_mode": "on-demand"}]
)
def test_a_cpu_job(changes: dict[str, Any]) -> None:
    """A CPU job has no shape and no mode."""
    assert TaskSpec(image="busybox:1.36", shape=None) == parse(json.dumps({**CPU, **changes}))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"device_topo": "2x2"}, ("device_topo", "'2x2'")),
        ({"machine_type": "n2-standard-4"}, ("machine_type", "'n2-standard-4'")),
        ({"replica": 2}, ("replica", "2")),
        ({"device_count": 8}, ("device_count", "8")),
    ],
)
def test_a_cpu_job_has_no_slice(changes: dict[str, Any], expected: tuple[str, str]) -> None:
    """A CPU job that asks for what only a TPU job has is refused."""
    refused = parse(json.dumps({**CPU, **changes}))
    assert InvalidSpec(*expected, "nothing: device_type is cpu") == refused


@pytest.mark.parametrize(
    ("raw", "field", "got"),
    [
        (None, "spec", "null"),
        ("", "spec", "''"),
        (b"", "spec", "b''"),
        ("not json", "spec", "'not json'"),
        ("[]", "spec", "[]"),
        ("3", "spec", "3"),
        ("null", "spec", "null"),
        ("{}", "image", "nothing"),
        ('{"image": 3}', "image", "3"),
        ('{"image": NaN}', "spec", "'{\"image\": NaN}'"),
        ('{"image": ' + "9" * 5000 + "}", "spec", ""),
        (b'{"image": "\xff"}', "spec", ""),
        ("[" * 90 + "]" * 90, "spec", "[[[...]]]"),
        ('{"x":' * 90 + "1" + "}" * 90, "image", "nothing"),
        ("[" * 100_000, "spec", ""),
        ('{"x":' + "[" * 100_000 + "]" * 100_000 + "}", "spec", ""),
        (json.dumps({f"field{i}": "x" * 100 for i in range(50_000)}), "spec", ""),
        ('{"image": "\\ud800"}', "image", "'\\ud800'"),
        ('{"image": "a\\u0000"}', "image", "'a\\x00'"),
        ('{"image": 1e999}', "image", "inf"),
    ],
)
def test_what_is_no_spec(raw: str | bytes | None, field: str, got: str) -> None:
    """Anything that is no possible spec says which field is wrong and what it holds (P98)."""
    refused = parse(raw)
    assert isinstance(refused, InvalidSpec)
    assert field == refused.field
    assert refused.got == got or not got
    assert "\n" not in refused.got
    assert 200 >= len(refused.got)


@pytest.mark.parametrize(
    ("changes", "field", "got"),
    [
        ({"image": None}, "image", "nothing"),
        ({"image": ""}, "image", "''"),
        ({"image": "a b"}, "image", "'a b'"),
        ({"image": "x" * 1001}, "image", None),
        ({"command": 3}, "command", "3"),
        ({"command": True}, "command", "True"),
        ({"command": "x" * 120_001}, "command", None),
        ({"command": "训" * 40_001}, "command", None),
        ({"command": ["a"] * 60_001}, "command", None),
        ({"command": "a\0b"}, "command", "'a\\x00b'"),
        ({"command": "\ud800"}, "command", "'\\ud800'"),
        ({"command": ["", "x"]}, "command", "['', 'x']"),
        ({"command": ["a", None]}, "command", "null"),
        ({"command": ["a", ["b"]]}, "command", "['b']"),
        ({"args": "a b"}, "args", "'a b'"),
        ({"command": "echo", "args": ["a"]}, "args", "('a',)"),
        ({"device_type": None}, "device_type", "nothing"),
        ({"device_type": "gpu"}, "device_type", "'gpu'"),
        ({"device_type": 5}, "device_type", "5"),
        ({"device_topo": None}, "device_topo", "''"),
        ({"device_topo": "3x3"}, "device_topo", "'3x3'"),
        ({"topology": "4x4"}, "topology", "'4x4'"),
        ({"replica": 3}, "replica", "3"),
        ({"replica": 0}, "replica", "0"),
        ({"replica": True}, "replica", "True"),
        ({"replica": "one"}, "replica", "'one'"),
        ({"replica": 1.5}, "replica", "1.5"),
        ({"replica": -1}, "replica", "-1"),
        ({"replica": 10**300}, "replica", None),
        ({"device_count": 3}, "device_count", "3"),
        ({"machine_type": "ct6e-standard-8t"}, "machine_type", "'ct6e-standard-8t'"),
        ({"supply_mode": "spot"}, "supply_mode", "'spot'"),
        ({"supply_mode": 1}, "supply_mode", "1"),
        ({"envs": ["A"]}, "envs", "['A']"),
        ({"envs": {"1A": "x"}}, "envs", "'1A'"),
        ({"envs": {"A=B": "x"}}, "envs", "'A=B'"),
        ({"envs": {"": "x"}}, "envs", "''"),
        ({"envs": {".": "x"}}, "envs", "'.'"),
        ({"envs": {"..a": "x"}}, "envs", "'..a'"),
        ({"envs": {"A": {}}}, "envs", "{}"),
        ({"envs": {"A": "\0"}}, "envs", "'\\x00'"),
        ({"envs": {"A": "x" * 120_001}}, "envs", "'A'"),
        ({"envs": {f"A{i}": "x" * 100_000 for i in range(3)}}, "envs", None),
        ({"mounts": {}}, "mounts", "{}"),
        ({"mounts": [3]}, "mounts[0]", "3"),
        ({"mounts": [MOUNT] * 17}, "mounts", None),
        ({"mounts": [MOUNT, {**MOUNT, "name": None, "mount_path": "/b"}]}, "mounts[1].name", "nothing"),
        ({"mounts": [{**MOUNT, "type": "nfs"}]}, "mounts[0].type", "'nfs'"),
        ({"mounts": [{**MOUNT, "bucket": "gs://b"}]}, "mounts[0].bucket", "'gs://b'"),
        ({"mounts": [{**MOUNT, "bucket": "_"}]}, "mounts[0].bucket", "'_'"),
        ({"mounts": [{**MOUNT, "prefix": "a,o=b"}]}, "mounts[0].prefix", "'a,o=b'"),
        ({"mounts": [{**MOUNT, "prefix": "a/../b"}]}, "mounts[0].prefix", "'a/../b'"),
        ({"mounts": [{**MOUNT, "mount_path": "models"}]}, "mounts[0].mount_path", "'models'"),
        ({"mounts": [{**MOUNT, "mount_path": "/"}]}, "mounts[0].mount_path", "'/'"),
        ({"mounts": [{**MOUNT, "mount_path": "/a:b"}]}, "mounts[0].mount_path", "'/a:b'"),
        ({"mounts": [{**MOUNT, "mount_path": "/a/../b"}]}, "mounts[0].mount_path", "'/a/../b'"),
        ({"mounts": [{**MOUNT, "mount_path": "/a/./b"}]}, "mounts[0].mount_path", "'/a/./b'"),
        ({"mounts": [{**MOUNT, "mount_path": "/gcs"}]}, "mounts[0].mount_path", "'/gcs'"),
        ({"mounts": [{**MOUNT, "mount_path": "/gcs/x/"}]}, "mounts[0].mount_path", "'/gcs/x/'"),
        ({"mounts": [{**MOUNT, "mount_path": "/tmp"}]}, "mounts[0].mount_path", "'/tmp'"),
        ({"mounts": [MOUNT, {**MOUNT, "mount_path": "/models/"}]}, "mounts[1].mount_path", "'/models'"),
        ({"mounts": [{**MOUNT, "read_only": 1}]}, "mounts[0].read_only", "1"),
        ({"mounts": [{**MOUNT, "mount_options": "ro"}]}, "mounts[0].mount_options", "'ro'"),
        ({"mounts": [{**MOUNT, "mount_options": ["a,b"]}]}, "mounts[0].mount_options", "'a,b'"),
        ({"mounts": [{**MOUNT, "mount_options": [""]}]}, "mounts[0].mount_options", "''"),
        ({"mounts": [{**MOUNT, "mount_options": ["x"] * 33}]}, "mounts[0].mount_options", None),
        ({"resources": []}, "resources", "[]"),
        ({"resources": {"cpu_limit": "1 core"}}, "resources.cpu_limit", "'1 core'"),
        ({"resources": {"cpu_limit": "-1"}}, "resources.cpu_limit", "'-1'"),
        ({"resources": {"cpu_limit": True}}, "resources.cpu_limit", "True"),
        ({"resources": {"memory_limit": "1KiB"}}, "resources.memory_limit", "'1KiB'"),
        ({"resources": {"memory_limit": "99999E"}}, "resources.memory_limit", "'99999E'"),
        ({"resources": {"memory_request": "7Ei"}}, "resources.memory_request", "'7Ei'"),
        ({"resources": {"memory_request": "100m"}}, "resources.memory_request", "'100m'"),
        ({"resources": {"cpu_request": "2", "cpu_limit": "1999m"}}, "resources.cpu_request", "'2'"),
        ({"resources": {"memory_request": "1Gi", "memory_limit": "1G"}}, "resources.memory_request", "'1Gi'"),
        ({"exp_id": []}, "exp_id", "[]"),
        ({"owner": "x" * 1001}, "owner", None),
        ({"labels": "x"}, "labels", "'x'"),
        ({"labels": {"a": []}}, "labels", "[]"),
        ({"labels": {"a": "x" * 40_000}}, "labels", None),
        ({"max_retries": 101}, "max_retries", "101"),
        ({"max_retries": -1}, "max_retries", "-1"),
        ({"log": "stdout"}, "log", "'stdout'"),
        ({"log": True}, "log", "True"),
        ({"termination_grace_seconds": 3601}, "termination_grace_seconds", "3601"),
    ],
)
def test_faults(changes: dict[str, Any], field: str, got: str | None) -> None:
    """A fault names its field and shows what it holds, shortened."""
    found = fault(**changes)
    assert (field, found[1] if got is None else got) == found


@pytest.mark.parametrize("name", FORBIDDEN_OPTIONS)
@pytest.mark.parametrize("form", ["{}", "{}=x", "--{}=x", "{}:x"])
def test_options_that_break_the_mount(name: str, form: str) -> None:
    """Options that the driver forbids are refused by name, however they are written."""
    option = form.format(name)
    assert ("mounts[0].mount_options", repr(option)) == fault(mounts=[{**MOUNT, "mount_options": ["ro", option]}])


def test_the_first_fault_is_told() -> None:
    """Of many faults the one of the field that stands first in the contract is told."""
    assert ("image", "3") == fault(log="x", mounts=3, image=3, device_type="gpu")
    assert ("device_topo", "'9x9'") == fault(device_topo="9x9", device_count=77)


def test_what_is_allowed_is_told() -> None:
    """The message says what would be right."""
    expected = InvalidSpec("device_count", "3", "4, 8, 16, 32: v7x 2x2x4 on 4 hosts")
    assert expected == of(device_type="v7x", device_topo="2x2x4", device_count=3)


def test_unknown_fields_are_named() -> None:
    """Fields that nobody knows are named, a bounded number of them, and change nothing."""
    spec = of(zeta=1, alpha=[[[]]], mounts=[{**MOUNT, "x": 1}], resources={"gpu": 1})
    assert isinstance(spec, TaskSpec)
    assert ("alpha", "mounts.x", "resources.gpu", "zeta") == spec.unknown_fields
    many = of(**{f"f{i:03}{'x' * 100}\n\ud800": 1 for i in range(100)})
    assert isinstance(many, TaskSpec)
    assert tuple(f"f{i:03}{'x' * 60}" for i in range(20)) == many.unknown_fields


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "image command args device_type tpu_type device_topo topology replica replicas device_count machine_type "
    "supply_mode envs env mounts resources exp_id owner labels max_retries log termination_grace_seconds x"
)


@given(st.text(st.characters(), max_size=20) | st.binary(max_size=20) | JSON.map(json.dumps))
def test_no_input_raises(raw: str | bytes) -> None:
    """Whatever stands in the column, the answer is a value."""
    assert isinstance(parse(raw), InvalidSpec)


@given(st.dictionaries(st.sampled_from(FIELDS.split()), JSON, max_size=4))
def test_no_value_of_a_field_raises(changes: dict[str, Any]) -> None:
    """Whatever stands in a field, the answer is a value on one line that can be stored."""
    answer = of(**changes)
    if isinstance(answer, InvalidSpec):
        told = f"{answer.field} {answer.got} {answer.allowed}"
        assert told.encode().decode().isprintable()


@given(JSON, st.dictionaries(st.sampled_from(["name", "bucket", "prefix", "mount_path", "mount_options"]), JSON))
def test_no_mount_raises(one: Any, changes: dict[str, Any]) -> None:
    """Whatever stands in a mount, the answer is a value."""
    assert isinstance(of(mounts=[one]), InvalidSpec)
    assert isinstance(of(mounts=[{**MOUNT, **changes}]), InvalidSpec | TaskSpec)
