"""How long things take in the simulated world, and which of two possible behaviours it shows."""

from attrs import define


@define(slots=False)
class Tempo:
    """Seconds, unless it says otherwise. Defaults are short ends of what reference/gke.md 3.4 records."""

    # Google Kubernetes Engine
    create_seconds: float = 60  # create operation of a fixed pool
    create_flex_seconds: float = 15  # of a flex-start pool: it ends with 0 nodes
    node_seconds: float = 10  # from RUNNING until the nodes have registered and are Ready
    node_spread_seconds: float = 0  # between one node and the next
    flex_seconds: float = 60  # from all pods pending until the nodes are Ready
    flex_retry_seconds: float = 60  # the autoscaler asks again while pods are pending
    visibility_seconds: float = 0  # a new pool is listed only so long after its create was answered
    stockout_seconds: float = 2100  # a create that finds no machines says so after 35 min
    failure_seconds: float = 40  # a create that fails for another reason
    delete_seconds: float = 60
    drain_seconds: float = 5  # from the start of a delete until pods are evicted
    repair_seconds: float = 120  # a lost node of a fixed pool comes back
    concurrent_operations: int = 5  # per cluster
    failed_pools_recover: bool = True  # a pool in ERROR for want of machines gains them later
    numeric_targets: bool = False  # operation.targetLink with the project's number in place of its id
    # Compute
    reservation_lag_seconds: float = 20  # inUseCount follows so much later
    # Kubernetes
    reaction_seconds: float = 0.1  # controllers, scheduler and garbage collector answer a change so much later
    pull_seconds: float = 2  # image pull and container start
    stop_seconds: float = 1  # from SIGTERM to the end of a workload that says nothing else
    node_gone_seconds: float = 5  # a lost machine's Node object is deleted
    pod_gc_seconds: tuple[float, float] = (40, 60)  # pods of a node that is gone are collected, drawn by the seed
    continue_seconds: float = 300  # a continue token is good so long


def brisk() -> Tempo:
    """Return a tempo for tests and demonstrations on the wire: everything within a few seconds."""
    return Tempo(
        create_seconds=1.0,
        create_flex_seconds=0.5,
        node_seconds=0.5,
        flex_seconds=1.0,
        flex_retry_seconds=2.0,
        stockout_seconds=1.0,
        failure_seconds=0.8,
        delete_seconds=0.8,
        drain_seconds=0.2,
        repair_seconds=3.0,
        reservation_lag_seconds=0.5,
        reaction_seconds=0.05,
        pull_seconds=0.3,
        stop_seconds=0.2,
        node_gone_seconds=0.3,
        pod_gc_seconds=(2.0, 3.0),
    )
