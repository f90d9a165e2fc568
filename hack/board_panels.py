"""
What the Grafana board shows: rows of panels, and the queries in them.

1. What has a cluster is narrowed by the board's variable $cluster.
2. A query that has data only once something went wrong is marked quiet: whoever runs all of them expects nothing of it.
"""

from collections.abc import Iterator, Sequence

from attrs import field, frozen

ON = 'cluster=~"$cluster"'
ONE = '{cluster=~"$cluster|"}'
"""Also what has no cluster yet."""


@frozen
class Query:
    """A query, what its series are called, and whether there is nothing to see while all is well."""

    expression: str
    legend: str = ""
    quiet: bool = False


@frozen
class Panel:
    """One panel. *unit* is Grafana's word; *stacked* adds the series up; *limit* is where a number turns red."""

    title: str
    about: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False
    limit: float | None = None
    drawn: bool = field(default=False)
    """Whether the picture of the README shows it."""


def rate(name: str, by: str, where: str = "", *, quiet: bool = False, legend: str | None = None) -> Query:
    """Return how often something happens in a minute, by these labels."""
    return Query(f"60 * sum by ({by}) (rate({name}{where}[$__rate_interval]))", legend or f"{{{{{by}}}}}", quiet)


def quantiles(name: str, by: str = "", legend: str = "") -> tuple[Query, ...]:
    """Return the median and the slow end of a histogram."""
    return tuple(
        Query(
            f"histogram_quantile({share}, sum by (le{by and ', '}{by}) (rate({name}_bucket[$__rate_interval])))",
            f"{legend} {word}".strip(),
        )
        for share, word in ((0.5, "median"), (0.95, "95 %"))
    )


QUEUE = "{{cluster}} {{topology}}"

ROWS: Sequence[tuple[str, Sequence[Panel]]] = (
    (
        "Now",
        (
            Panel(
                "Last success",
                "How long ago a pass came to its end.",
                (Query("time() - max(falcon_last_success_timestamp_seconds)"),),
                "s",
                "stat",
                4,
                limit=300,
            ),
            Panel(
                "Jobs that run", "All pods of them.", (Query(f"sum(falcon_running_jobs{{{ON}}})"),), "short", "stat", 4
            ),
            Panel(
                "Jobs that wait",
                "In a queue, or for a cluster.",
                (Query(f"sum(falcon_queue_depth{ONE})"),),
                "short",
                "stat",
                4,
            ),
            Panel(
                "Chips in use",
                "Of the chips of our pools, those of jobs that run.",
                (Query(f'sum(falcon_chips{{state="busy",{ON}}}) / (sum(falcon_chips{{{ON}}}) > 0)'),),
                "percentunit",
                "stat",
                4,
            ),
            Panel(
                "Clusters unread",
                "Those that could not be read whole in the last pass.",
                (Query(f"count(falcon_cluster_up{{{ON}}}) - sum(falcon_cluster_up{{{ON}}})"),),
                "short",
                "stat",
                4,
                limit=1,
            ),
            Panel("Brake", "1: nothing is swept.", (Query("max(falcon_sweep_braked)"),), "short", "stat", 4, limit=1),
        ),
    ),
    (
        "Queues",
        (
            Panel(
                "Jobs that wait",
                "By queue; one without a cluster fits nowhere yet.",
                (Query(f"falcon_queue_depth{ONE}", QUEUE),),
                stacked=True,
                drawn=True,
            ),
            Panel(
                "Longest wait", "Of the jobs that wait.", (Query(f"falcon_oldest_waiting_seconds{ONE}", QUEUE),), "s"
            ),
            Panel(
                "Jobs by reason",
                "Jobs that are not over.",
                (Query("falcon_jobs > 0", "{{status}} {{reason}}"),),
                stacked=True,
                drawn=True,
            ),
            Panel("Jobs that run", "By queue.", (Query(f"falcon_running_jobs{{{ON}}}", QUEUE),), stacked=True),
            Panel(
                "From queue to pods",
                "Dispatch latency of jobs that came to run.",
                quantiles("falcon_dispatch_latency_seconds"),
                "s",
                drawn=True,
            ),
            Panel("Run time", "Of jobs that ended.", quantiles("falcon_run_seconds", "status", "{{status}}"), "s"),
        ),
    ),
    (
        "Acquisition",
        (
            Panel(
                "Slot held",
                "How long one job has been acquiring.",
                (Query(f"falcon_slot_held_seconds{{{ON}}}", QUEUE),),
                "s",
                drawn=True,
            ),
            Panel(
                "Pools being made",
                "Age of the oldest.",
                (Query(f"falcon_pool_creating_seconds{{{ON}}}", f"{QUEUE} {{{{mode}}}}"),),
                "s",
            ),
            Panel(
                "Time to acquire",
                "From the slot to the start or its failure.",
                quantiles("falcon_acquire_seconds", "result", "{{result}}"),
                "s",
            ),
            Panel(
                "Failed starts",
                "A minute, by why.",
                (rate("falcon_failed_starts_total", "reason", legend="{{reason}}"),),
            ),
            Panel(
                "Pools",
                "As GKE lists them.",
                (Query(f"sum by (state, mode) (falcon_pools{{{ON}}})", "{{state}} {{mode}}"),),
                stacked=True,
                drawn=True,
            ),
            Panel(
                "Reservation",
                "What is in use of it, seen when a job asks for it.",
                (
                    Query(f"falcon_reservation_used{{{ON}}}", "{{cluster}} used"),
                    Query(f"falcon_reservation_size{{{ON}}}", "{{cluster}} size"),
                ),
            ),
        ),
    ),
    (
        "Chips",
        (
            Panel(
                "Chips by use",
                "Of our pools, on clusters that were read.",
                (Query(f"sum by (state) (falcon_chips{{{ON}}})", "{{state}}"),),
                width=12,
                stacked=True,
                drawn=True,
            ),
            Panel(
                "Chips by cluster",
                "Of our pools.",
                (Query(f"sum by (cluster) (falcon_chips{{{ON}}})", "{{cluster}}"),),
                width=12,
                stacked=True,
            ),
        ),
    ),
    (
        "Failures",
        (
            Panel(
                "Ends",
                "Jobs a minute that came to their end.",
                (rate("falcon_jobs_ended_total", "status", legend="{{status}}"),),
                stacked=True,
                drawn=True,
            ),
            Panel(
                "Failures by reason",
                "A minute.",
                (rate("falcon_jobs_ended_total", "reason", '{status="Failed"}', legend="{{reason}}"),),
                stacked=True,
            ),
            Panel(
                "Orphans",
                "What belongs to no living job, and is swept; or is held by the brake.",
                (
                    Query(f"falcon_orphans{{{ON}}}", "{{cluster}} {{kind}}"),
                    Query("falcon_orphans_held > 0", "held {{kind}}", quiet=True),
                ),
            ),
        ),
    ),
    (
        "Clusters",
        (
            Panel("Read whole", "1: everything of it was read.", (Query(f"falcon_cluster_up{{{ON}}}", "{{cluster}}"),)),
            Panel(
                "Requests",
                "To the clouds a minute, by API.",
                (rate("falcon_api_requests_total", "api", legend="{{api}}"),),
                drawn=True,
            ),
            Panel(
                "Requests that failed",
                "A minute, by class.",
                (
                    Query(
                        "60 * sum by (api, method, code) "
                        '(rate(falcon_api_requests_total{code!="ok"}[$__rate_interval]))',
                        "{{api}} {{method}} {{code}}",
                        quiet=True,
                    ),
                ),
            ),
            Panel(
                "Lists not had",
                "A minute.",
                (rate("falcon_unknown_reads_total", "cluster, source", quiet=True, legend="{{cluster}} {{source}}"),),
            ),
            Panel("Pools of others", "Named like ours.", (Query(f"falcon_foreign_pools{{{ON}}}", "{{cluster}}"),)),
            Panel(
                "Errors of actions",
                "A minute, by action and class.",
                (rate("falcon_api_errors_total", "action, kind", quiet=True, legend="{{action}} {{kind}}"),),
            ),
        ),
    ),
    (
        "Controller",
        (
            Panel(
                "Passes",
                "A minute, by how they ended.",
                (rate("falcon_passes_total", "result", legend="{{result}}"),),
                stacked=True,
            ),
            Panel(
                "Time of a pass",
                "By stage, 95 %.",
                (
                    Query(
                        "histogram_quantile(0.95, sum by (le, stage) "
                        "(rate(falcon_pass_duration_seconds_bucket[$__rate_interval])))",
                        "{{stage}}",
                    ),
                ),
                "s",
            ),
            Panel(
                "Writes that came second",
                "A minute.",
                (Query("60 * rate(falcon_stale_writes_total[$__rate_interval])"),),
            ),
            Panel(
                "Actions",
                "Done a minute, by kind.",
                (rate("falcon_actions_total", "action", '{result="done"}', legend="{{action}}"),),
                width=12,
                stacked=True,
                drawn=True,
            ),
            Panel(
                "Actions that were not done",
                "A minute, by result.",
                (rate("falcon_actions_total", "result", '{result!~"done|told"}', legend="{{result}}"),),
                width=12,
            ),
        ),
    ),
)


def panels() -> Iterator[Panel]:
    """Yield every panel."""
    for _, row in ROWS:
        yield from row
