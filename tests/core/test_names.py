"""Names and labels: legal where they go, and never one for two things."""

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from falcon_rm.core.names import (
    annotations,
    cloud_name,
    gcp_label_value,
    is_of,
    is_ours,
    label_value,
    labels,
    policy_name,
    resource_labels,
    selector,
)

POOL_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
KUBERNETES_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
KUBERNETES_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
GOOGLE_VALUE = re.compile(r"[-a-z0-9_]{0,63}")
GOOGLE_KEY = re.compile(r"[a-z][-a-z0-9_]{0,62}")

HASHED = cloud_name("X", 1).removeprefix("falcon-")
IDS = st.one_of(
    st.text(min_size=1, max_size=64),
    st.text("abh2-", min_size=1, max_size=45),
    st.sampled_from(["x", "x-2", "x-2-2", "X", "x-", "-x", HASHED, HASHED[:14], f"{HASHED[:14]}-2"]),
)
ATTEMPTS = st.integers(1, 12) | st.integers(1, 10**6)
ARGUMENTS: dict[str, Any] = {
    "instance": "i1",
    "cluster_id": "c1",
    "job_id": "j1",
    "attempt": 1,
    "exp_id": "",
    "owner": "",
}


@pytest.mark.parametrize(
    ("job_id", "attempt", "expected"),
    [
        ("job-u1wm3wuha2", 1, "falcon-job-u1wm3wuha2"),
        ("job-u1wm3wuha2", 2, "falcon-job-u1wm3wuha2-2"),
        ("j1", 13, "falcon-j1-13"),
    ],
)
def test_a_plain_id_is_its_own_name(job_id: str, attempt: int, expected: str) -> None:
    """An id that is legal and clear appears unchanged, with the attempt behind it from the second on."""
    assert expected == cloud_name(job_id, attempt)


@pytest.mark.parametrize(
    ("job_id", "attempt", "pattern"),
    [
        ("3f0c2c5e-7d0e-4a54-9f55-0a4b8a5b8f10", 1, r"falcon-h[a-z2-7]{13}-3f0c2c5e-7d0e-4a54"),
        ("3f0c2c5e-7d0e-4a54-9f55-0a4b8a5b8f10", 2, r"falcon-h[a-z2-7]{13}-3f0c2c5e-7d0e-4a-2"),
        ("Train_7", 1, r"falcon-h[a-z2-7]{13}-train-7"),
        ("x-2", 1, r"falcon-h[a-z2-7]{13}-x-2"),
        ("训练", 3, r"falcon-h[a-z2-7]{13}-3"),
    ],
)
def test_another_id_is_hashed_and_legible(job_id: str, attempt: int, pattern: str) -> None:
    """The hash comes first, since instance names keep only the first characters."""
    assert re.fullmatch(pattern, cloud_name(job_id, attempt))


def test_a_name_begins_with_the_first_attempt() -> None:
    """There is no name for an attempt that was not claimed."""
    with pytest.raises(ValueError, match="attempt 0"):
        cloud_name("j1", 0)


@given(IDS, ATTEMPTS)
def test_names_are_legal(job_id: str, attempt: int) -> None:
    """A name fits GKE, and with the parts that Kubernetes adds a pod's name fits a host name."""
    assert POOL_NAME.fullmatch(cloud_name(job_id, attempt))


@given(IDS, ATTEMPTS, IDS, ATTEMPTS)
@example("x", 2, "x-2", 1)
@example("x-2", 2, "x", 2)
@example("X", 1, HASHED, 1)
@example("x", 22, "x-2", 2)
def test_names_are_injective(one: str, first: int, other: str, second: int) -> None:
    """Two attempts never share a name (P42)."""
    assert ((one, first) == (other, second)) == (cloud_name(one, first) == cloud_name(other, second))


def test_names_that_look_like_others_stay_apart() -> None:
    """Ids made of other ids, suffixes and hashed names have names of their own (P42)."""
    ids = {"x", "x-2", "x-3", "x-2-2", "X", "x-02", "x.2", "x_2", "X-2"}
    for _ in range(2):
        ids |= {cloud_name(job_id, attempt).removeprefix("falcon-") for job_id in ids for attempt in (1, 2)}
    names = [cloud_name(job_id, attempt) for job_id, attempt in product(ids, range(1, 30))]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("made", "legal"), [(label_value, KUBERNETES_VALUE), (gcp_label_value, GOOGLE_VALUE)])
@pytest.mark.parametrize(
    "text", ["a@b.c", "-x", "x-", ".", "a" * 63, "a" * 64, "a" * 65, "日本", "", "Ann", "\ud800", "a\n"]
)
def test_people_have_labels(made: Callable[[str], str], legal: re.Pattern[str], text: str) -> None:
    """Whatever people are called, their label is legal (P41)."""
    assert legal.fullmatch(made(text))


@pytest.mark.parametrize("made", [label_value, gcp_label_value])
def test_legal_values_stay(made: Callable[[str], str]) -> None:
    """A legal value is its own label, and so is nothing."""
    assert ["", "ann", "a" * 63, "job-1_x"] == [made(text) for text in ("", "ann", "a" * 63, "job-1_x")]


def test_a_changed_value_stays_legible() -> None:
    """A value made legal begins with what can be kept of it."""
    assert re.fullmatch(r"ann-example\.com_h[a-z2-7]{13}", label_value("ann@example.com"))
    assert re.fullmatch(r"ann-example-com_h[a-z2-7]{13}", gcp_label_value("Ann@example.com"))


VALUES = st.one_of(
    st.text(max_size=80),
    st.text("ab-_.@", max_size=70),
    st.text("ab@", max_size=3).map(label_value),
    st.text("aB", min_size=62, max_size=66),
)


@pytest.mark.parametrize(("made", "legal"), [(label_value, KUBERNETES_VALUE), (gcp_label_value, GOOGLE_VALUE)])
@given(one=VALUES, other=VALUES)
def test_values_are_legal_and_injective(
    made: Callable[[str], str], legal: re.Pattern[str], one: str, other: str
) -> None:
    """Different values have different labels, also when one is the label of the other (P41)."""
    assert legal.fullmatch(made(one))
    assert (one == other) == (made(one) == made(other))
    assert (one == made(one)) or made(one) != made(made(one))


def test_labels_of_a_job() -> None:
    """The contract's labels stand on everything, empty ones are left out."""
    assert {
        "managed-by": "falcon",
        "falcon.io/instance": "i1",
        "falcon.io/job-id": "j1",
        "falcon.io/attempt": "2",
        "falcon.io/cluster-id": "c1",
        "falcon.io/exp-id": "e1",
    } == labels(instance="i1", cluster_id="c1", job_id="j1", attempt=2, exp_id="e1", owner="")


def test_resource_labels_of_a_pool() -> None:
    """Google Cloud has the same labels in its own spelling."""
    made = resource_labels(instance="i1", cluster_id="c1", job_id="J1", attempt=1, exp_id="", owner="ann")
    assert {
        "managed-by": "falcon",
        "falcon-io-instance": "i1",
        "falcon-io-job-id": gcp_label_value("J1"),
        "falcon-io-attempt": "1",
        "falcon-io-cluster-id": "c1",
        "owner": "ann",
    } == made


@pytest.mark.parametrize(
    "key",
    [
        "falcon.io/job-id",
        "managed-by",
        "job-name",
        "controller-uid",
        "batch.kubernetes.io/job-name",
        "cloud.google.com/gke-nodepool",
        "k8s.io/x",
        "",
        "/x",
        "x/",
        "a..b/x",
        "A/x",
        "with space",
    ],
)
def test_reserved_and_illegal_keys_are_respelled(key: str) -> None:
    """A user's label never takes a key that means something to Kubernetes, GKE or Falcon."""
    ours = labels(**ARGUMENTS)
    made = labels(**ARGUMENTS, extra={key: "v"})
    (theirs,) = made.keys() - ours.keys()
    assert re.fullmatch(r"[A-Za-z0-9][-A-Za-z0-9_.]*_h[a-z2-7]{13}", theirs)
    assert ours == {name: made[name] for name in ours}


@pytest.mark.parametrize("key", ["Owner", "1st", "goog-owner", "", "with space"])
def test_keys_that_google_refuses_are_respelled(key: str) -> None:
    """A user's label gets a key that Google takes and does not keep for itself."""
    (theirs,) = resource_labels(**ARGUMENTS, extra={key: "v"}).keys() - resource_labels(**ARGUMENTS).keys()
    assert re.fullmatch(r"x-[-a-z0-9_]*_h[a-z2-7]{13}", theirs)


def test_legal_keys_of_users_stay() -> None:
    """A legal label of a user is written as it was given."""
    extra = {"team": "a", "example.com/Project": "B", "x": ""}
    assert {**labels(**ARGUMENTS), **extra} == labels(**ARGUMENTS, extra=extra)


def test_a_users_label_never_overrides_ours() -> None:
    """Where a user's key is one of ours, ours holds."""
    arguments = {**ARGUMENTS, "owner": "ann"}
    assert labels(**arguments) == labels(**arguments, extra={"owner": "bob"})
    assert resource_labels(**arguments) == resource_labels(**arguments, extra={"falcon-io-job-id": "j2"})


@given(
    st.dictionaries(st.text(max_size=80) | st.text("ab./-_", max_size=20), st.text(max_size=80), max_size=40),
    st.text(max_size=80),
)
def test_all_labels_are_legal_and_bounded(extra: dict[str, str], owner: str) -> None:
    """Keys and values are legal in both clouds, and all of them fit one request."""
    arguments = {**ARGUMENTS, "owner": owner}
    for made, key_is, value_is in (
        (labels(**arguments, extra=extra), KUBERNETES_KEY, KUBERNETES_VALUE),
        (resource_labels(**arguments, extra=extra), GOOGLE_KEY, GOOGLE_VALUE),
    ):
        assert all(key_is.fullmatch(key) and value_is.fullmatch(value) for key, value in made.items())
        assert 1024 >= sum(len(key) + len(value) for key, value in made.items())
        assert 7 + 30 >= len(made)


def test_the_longest_labels_of_ours_fit() -> None:
    """Our own labels are all there, however long their values."""
    longest: dict[str, Any] = dict.fromkeys(("instance", "cluster_id", "job_id", "exp_id", "owner"), "x" * 200)
    assert 7 == len(labels(**longest, attempt=10**9))


def test_annotations_are_exact() -> None:
    """What a label cannot spell stands in an annotation."""
    made = annotations(job_id="J 1", exp_id="", owner="a@b.c", extra={"队": "日本", "a": "b"})
    assert {
        "falcon.io/job-id": "J 1",
        "falcon.io/owner": "a@b.c",
        "falcon.io/labels": '{"a": "b", "队": "日本"}',
    } == made


def test_ours_by_prefix_and_both_labels() -> None:
    """A thing is ours by the prefix of its name, the instance and the cluster, and by nothing less."""
    found = labels(**ARGUMENTS)
    assert is_ours("falcon-j1", found, instance="i1", cluster_id="c1")
    assert not is_ours("other-j1", found, instance="i1", cluster_id="c1")
    assert not is_ours("falcon-j1", found, instance="i2", cluster_id="c1")
    assert not is_ours("falcon-j1", found, instance="i1", cluster_id="c2")
    assert not is_ours("falcon-j1", {}, instance="i1", cluster_id="c1")
    assert "falcon.io/instance=i1,falcon.io/cluster-id=c1" == selector("i1", "c1")


def test_made_for_one_attempt() -> None:
    """Job id and attempt both must be the same."""
    found = labels(**{**ARGUMENTS, "job_id": "J 1", "attempt": 2})
    assert [True, False, False] == [is_of(found, job_id, 2) for job_id in ("J 1", "j 1", "J")]
    assert not is_of(found, "J 1", 1)


def test_one_policy_a_topology() -> None:
    """A workload policy is named after type and topology (P40)."""
    assert "falcon-v7x-2x2x4" == policy_name("v7x", "2x2x4")


@pytest.mark.parametrize("made", [labels, resource_labels])
def test_labels_end_where_a_request_is_full(made: Callable[..., dict[str, str]]) -> None:
    """As many of a user's labels as GKE takes in one request, in the order of their keys, none of ours left out."""
    extra = {f"k{number:02}": "v" * 60 for number in range(30)}
    ours, all_of_them = made(**ARGUMENTS), made(**ARGUMENTS, extra=extra)
    assert ours == {key: value for key, value in all_of_them.items() if key in ours}
    taken = [key for key in all_of_them if key not in ours]
    assert sorted(extra)[: len(taken)] == taken
    assert sum(len(key) + len(value) for key, value in all_of_them.items()) in range(1024 - 63, 1025)
