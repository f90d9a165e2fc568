"""Lists as Tables, at every door: what kubectl shows of Jobs, pods and nodes."""

import re

import pytest
from kube_doors import Cluster, conditions, job

SPAN = r"\d+[smhd]"


def shown(cluster: Cluster, kind: str) -> tuple[list[str], list[list[str]]]:
    """Return the columns that kubectl shows without -o wide, and the cells of each row in them."""
    found = cluster.table(kind)
    assert ("Table", "meta.k8s.io/v1") == (found["kind"], found["apiVersion"])
    assert int(found["metadata"]["resourceVersion"]) > 0
    columns = [column["name"] for column in found["columnDefinitions"] if column["priority"] == 0]
    for row in found["rows"]:
        about = row["object"]
        assert ("PartialObjectMetadata", row["cells"][0]) == (about["kind"], about["metadata"]["name"])
    return columns, [row["cells"][: len(columns)] for row in found["rows"]]


def test_a_table_of_jobs_and_pods_that_run(cluster: Cluster) -> None:
    """State, how many are done or ready, how long it takes, how old it is."""
    cluster.create("jobs", job("j", cluster.nodes(1), seconds=None))
    cluster.until(lambda: cluster.get("jobs", "j")["status"].get("ready"))
    columns, ((name, state, done, took, age),) = shown(cluster, "jobs")
    assert ["Name", "Status", "Completions", "Duration", "Age"] == columns
    assert ("j", "Running", "0/1") == (name, state, done)
    assert re.fullmatch(SPAN, took) and re.fullmatch(SPAN, age)
    columns, ((name, ready, state, restarts, age),) = shown(cluster, "pods")
    assert ["Name", "Ready", "Status", "Restarts", "Age"] == columns
    assert ("j-", "1/1", "Running", "0") == (name[:2], ready, state, restarts)
    assert re.fullmatch(SPAN, age)


@pytest.mark.parametrize(
    ("code", "state", "done", "pod"), [(0, "Complete", "1/1", "Completed"), (3, "Failed", "0/1", "Error")]
)
def test_a_table_of_jobs_and_pods_that_ended(cluster: Cluster, code: int, state: str, done: str, pod: str) -> None:
    """The Job's end and the container's reason."""
    cluster.create("jobs", job("j", cluster.nodes(1), seconds=0.5, exit_code=code))
    cluster.until(lambda: {"Complete", "Failed"} & set(conditions(cluster.get("jobs", "j"))))
    _, (cells,) = shown(cluster, "jobs")
    assert [state, done] == cells[1:3]
    _, (cells,) = shown(cluster, "pods")
    assert ["0/1", pod, "0"] == cells[1:4]


def test_a_table_of_what_waits(cluster: Cluster) -> None:
    """A Job counts as running though its pod is Pending; a suspended one is Suspended and has no duration."""
    body = job("k", "none")
    body["spec"]["suspend"] = True
    cluster.create("jobs", body)
    cluster.create("jobs", job("j", "none"))
    cluster.until(lambda: conditions(cluster.get("jobs", "k")) and cluster.pods("j"))
    _, rows = shown(cluster, "jobs")
    assert [["j", "Running", "0/1"], ["k", "Suspended", "0/1", ""]] == [rows[0][:3], rows[1][:4]]
    _, (cells,) = shown(cluster, "pods")
    assert ["0/1", "Pending", "0"] == cells[1:4]


def test_a_table_of_nodes(cluster: Cluster) -> None:
    """Ready or not."""
    pool = cluster.nodes(1)
    (name,) = cluster.ready_nodes(pool)
    columns, rows = shown(cluster, "nodes")
    assert ["Name", "Status", "Roles", "Age", "Version"] == columns
    (cells,) = (cells for cells in rows if cells[0] == name)
    assert ["Ready", "<none>"] == cells[1:3]


def test_a_table_of_anything_else(cluster: Cluster) -> None:
    """Name first, age last."""
    columns, rows = shown(cluster, "serviceaccounts")
    assert ("Name", "Age", ["default"]) == (columns[0], columns[-1], [cells[0] for cells in rows])
    assert 0 == len(cluster.table("pods")["rows"])
