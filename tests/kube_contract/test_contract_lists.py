"""Lists, at every door: selectors, pages, what an empty one looks like, what cannot be asked."""

from typing import Any

import pytest
from control_plane.client import Json
from kube_doors import Cluster

LABELS = {"a": {"app": "x", "tier": "one"}, "b": {"app": "y", "tier": "one"}, "c": {"app": "x"}, "d": {}}


def filled(cluster: Cluster) -> Cluster:
    """Return a namespace with four service accounts beside its own, labelled as LABELS says."""
    for name, labels in LABELS.items():
        cluster.create("serviceaccounts", {"metadata": {"name": name, "labels": {**labels, "of": "test"}}})
    return cluster


def names(items: list[Json]) -> list[str]:
    """Return the names, in the order of the list."""
    return [item["metadata"]["name"] for item in items]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=x", "ac"),
        ("app==x", "ac"),
        ("app!=x", "bd"),
        ("app in (x,y)", "abc"),
        ("app in (x, z)", "ac"),
        ("app notin (x)", "bd"),
        ("app", "abc"),
        ("!app", "d"),
        ("app=x,tier=one", "a"),
        ("app=x,!tier", "c"),
        ("app=nothing", ""),
        ("app=", ""),
    ],
)
def test_label_selectors(cluster: Cluster, selector: str, expected: str) -> None:
    """Equality, sets, existence and several at once."""
    found = filled(cluster).items("serviceaccounts", f"of=test,{selector}")
    assert expected == "".join(names(found))


@pytest.mark.parametrize("selector", ["app in x", "=x", "app=a b", "app in (x", "a b"])
def test_a_selector_that_cannot_be_read(cluster: Cluster, selector: str) -> None:
    """400 BadRequest."""
    answer = cluster.call("list", "serviceaccounts", labelSelector=selector)
    assert (400, "BadRequest") == (answer.status, answer.body["reason"])


def test_field_selectors(cluster: Cluster) -> None:
    """By name everywhere, by type for events; another field is refused."""
    filled(cluster)
    assert ["b"] == names(cluster.items("serviceaccounts", fieldSelector="metadata.name=b"))
    assert [] == cluster.items("events", fieldSelector="type=Warning,involvedObject.kind=Pod")
    answer = cluster.call("list", "pods", fieldSelector="spec.nonsense=b")
    assert (400, "BadRequest") == (answer.status, answer.body["reason"])
    assert answer.body["message"].endswith("field label not supported: spec.nonsense")


def test_pages(cluster: Cluster) -> None:
    """Each page says how many follow and how to go on; the last one says neither."""
    filled(cluster)
    first = cluster.call("list", "serviceaccounts", limit=2).body
    assert (["a", "b"], 3) == (names(first["items"]), first["metadata"]["remainingItemCount"])
    second = cluster.call("list", "serviceaccounts", limit=2, **{"continue": first["metadata"]["continue"]}).body
    assert (["c", "d"], 1) == (names(second["items"]), second["metadata"]["remainingItemCount"])
    last = cluster.call("list", "serviceaccounts", limit=2, **{"continue": second["metadata"]["continue"]}).body
    assert ["default"] == names(last["items"])
    assert not last["metadata"].get("continue")
    assert "remainingItemCount" not in last["metadata"]
    assert 1 == len({page["metadata"]["resourceVersion"] for page in (first, second, last)})


def test_a_page_shows_the_world_of_the_first_one(cluster: Cluster) -> None:
    """What is deleted or made meanwhile changes nothing on the pages that follow."""
    filled(cluster)
    first = cluster.call("list", "serviceaccounts", limit=2).body
    cluster.call("delete", "serviceaccounts", "c")
    cluster.create("serviceaccounts", {"metadata": {"name": "cc"}})
    rest = cluster.call("list", "serviceaccounts", limit=9, **{"continue": first["metadata"]["continue"]}).body
    assert ["c", "d", "default"] == names(rest["items"])
    assert ["a", "b", "cc", "d", "default"] == names(cluster.items("serviceaccounts"))


def test_a_selector_on_pages_leaves_the_count_open(cluster: Cluster) -> None:
    """With a selector nobody says how many remain."""
    filled(cluster)
    first = cluster.call("list", "serviceaccounts", labelSelector="of=test", limit=3).body
    assert (["a", "b", "c"], False) == (names(first["items"]), "remainingItemCount" in first["metadata"])
    rest: Any = {"continue": first["metadata"]["continue"]}
    second = cluster.call("list", "serviceaccounts", labelSelector="of=test", limit=3, **rest).body
    assert (["d"], False) == (names(second["items"]), bool(second["metadata"].get("continue")))


def test_a_token_that_is_none(cluster: Cluster) -> None:
    """400 BadRequest: it is not one of the server's."""
    more: Any = {"continue": "nonsense"}
    answer = cluster.call("list", "serviceaccounts", limit=2, **more)
    assert (400, "BadRequest") == (answer.status, answer.body["reason"])


@pytest.mark.parametrize(
    ("kind", "word", "version"),
    [
        ("jobs", "JobList", "batch/v1"),
        ("pods", "PodList", "v1"),
        ("events", "EventList", "v1"),
        ("services", "ServiceList", "v1"),
    ],
)
def test_an_empty_list(cluster: Cluster, kind: str, word: str, version: str) -> None:
    """A list object with no items and a version."""
    body = cluster.call("list", kind).body
    assert (word, version, []) == (body["kind"], body["apiVersion"], body["items"])
    assert int(body["metadata"]["resourceVersion"]) > 0


def test_items_do_not_say_what_they_are(cluster: Cluster) -> None:
    """The list does; alone an object says it itself."""
    filled(cluster)
    assert [] == [item for item in cluster.items("serviceaccounts") if {"kind", "apiVersion"} & set(item)]
    alone = cluster.get("serviceaccounts", "a")
    assert ("ServiceAccount", "v1") == (alone["kind"], alone["apiVersion"])


def test_version_zero_asks_for_what_is_at_hand(cluster: Cluster) -> None:
    """Any version may be answered, so it is awaited here; there are no pages."""
    filled(cluster)
    cluster.until(lambda: len(cluster.items("serviceaccounts", resourceVersion="0")) == 5)
    answer = cluster.call("list", "serviceaccounts", resourceVersion="0", limit=2)
    assert (200, 5, None) == (answer.status, len(answer.body["items"]), answer.body["metadata"].get("continue"))


def test_a_version_that_is_none(cluster: Cluster) -> None:
    """400 BadRequest."""
    answer = cluster.call("list", "serviceaccounts", resourceVersion="nonsense")
    text = 'resourceVersion: Invalid value: "nonsense": strconv.ParseUint: parsing "nonsense": invalid syntax'
    assert (400, "BadRequest", f"invalid resource version: {text}") == (
        answer.status, answer.body["reason"], answer.body["message"],
    )  # fmt: skip


def test_a_version_that_is_not_there_yet(cluster: Cluster) -> None:
    """504 Timeout, after some seconds, with a cause and when to ask again."""
    answer = cluster.call("list", "serviceaccounts", resourceVersion="9999999999")
    assert (504, "Timeout") == (answer.status, answer.body["reason"])
    assert answer.body["message"].startswith("Timeout: Too large resource version: 9999999999, current: ")
    assert 1 == answer.body["details"]["retryAfterSeconds"]
    assert ["ResourceVersionTooLarge"] == [cause["reason"] for cause in answer.body["details"]["causes"]]


def test_versions_only_grow(cluster: Cluster) -> None:
    """Each write has a new resource version, and a list one that is as new."""
    one = cluster.create("serviceaccounts", {"metadata": {"name": "one"}})
    two = cluster.create("serviceaccounts", {"metadata": {"name": "two"}})
    seen = cluster.call("list", "serviceaccounts").body["metadata"]
    versions = [int(each["resourceVersion"]) for each in (one["metadata"], two["metadata"], seen)]
    assert versions == sorted(versions)
    assert versions[0] < versions[1]
