"""Metrics and probes over HTTP on loopback, and what makes them red."""

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.client import HTTPConnection

import pytest
from attrs import define
from builders import job, snapshot
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from world import Falcon

from falcon_rm import probes
from falcon_rm.config import ConfigError
from falcon_rm.core.model import Bounds
from falcon_rm.core.plan import plan
from falcon_rm.loop import Pass, run
from falcon_rm.ports import Store, StoreDown
from falcon_rm.stop import Stop

PATHS = ("/livez", "/healthz", "/readyz", "/metrics")


@define
class Clock:
    """A clock that a test moves."""

    now: float = 1000.0

    def __call__(self) -> float:
        """Return its time."""
        return self.now


@contextmanager
def served(watcher: probes.Watcher) -> Iterator[int]:
    """Answer on a free port of loopback, and return it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    with probes.serving(f"127.0.0.1:{port}", watcher):
        yield port


def get(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    """Return status and body of a path."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def statuses(port: int) -> tuple[int, ...]:
    """Return the statuses of all paths, in their order."""
    return tuple(get(port, path)[0] for path in PATHS)


def seen() -> Pass:
    """Return a pass that read everything."""
    world = snapshot(job())
    return Pass(world, plan(world))


def families(watcher: probes.Watcher) -> dict[str, dict[tuple[str, ...], float]]:
    """Return what is exported: name of a sample -> its label values -> its value."""
    text = generate_latest(watcher.registry).decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_all_paths() -> None:
    """Before the first pass it is alive and not ready, after it both; other paths and methods are refused."""
    watcher = probes.Watcher(limit=30)
    with served(watcher) as port:
        assert (200, 200, 503, 200) == statuses(port)
        watcher.begin()
        watcher(seen())
        assert (200, 200, 200, 200) == statuses(port)
        assert (200, "ok\n") == get(port, "/readyz")
        expected = "[+]settings: valid\n[+]database: read by the last pass\nok\n"
        assert (200, expected) == get(port, "/readyz?verbose")
        assert (404, "not found\n") == get(port, "/")
        assert 501 == get(port, "/livez", "POST")[0]
        status, text = get(port, "/metrics")
        assert 200 == status
        assert 'falcon_queue_depth{cluster="c1",topology="2x2"} 1.0' in text.splitlines()


def test_wedge() -> None:
    """Passes that stop to end make it dead, and one more that ends makes it alive."""
    clock = Clock()
    watcher = probes.Watcher(30, clock)
    clock.now += 500  # waiting for the database at the start has a bound of its own
    with served(watcher) as port:
        assert (200, 200, 503, 200) == statuses(port)
        watcher.begin()
        clock.now += 30
        assert (200, 200, 503, 200) == statuses(port)
        clock.now += 1
        assert (503, 503, 503, 200) == statuses(port)
        assert (503, "[-]passes: the last one ended 31 s ago, limit 30 s\nfailed\n") == get(port, "/livez")
        watcher(seen())
        assert (200, 200, 200, 200) == statuses(port)


def test_database_outage() -> None:
    """Without a database passes go on to end, so it is alive and not ready, and the world's gauges are gone (P107)."""
    clock = Clock()
    watcher = probes.Watcher(30, clock)
    watcher.begin()
    watcher(seen())
    with served(watcher) as port:
        for _ in range(100):
            clock.now += 10
            watcher(StoreDown("connection refused"))
        assert (200, 200, 503, 200) == statuses(port)
    told = families(watcher)
    assert "falcon_jobs" not in told
    assert {(): seen().snapshot.now} == told["falcon_last_success_timestamp_seconds"]
    assert 100 == told["falcon_passes_total"]["no-database",]


def test_counters_stand_from_the_start() -> None:
    """What is counted stands at 0 before it first happens, so that its first time is seen as a rise."""
    told = families(probes.Watcher(30))
    assert 0 == told["falcon_failed_starts_total"]["capacity",]
    assert 0 == told["falcon_jobs_ended_total"]["JobFailed", "Failed"]
    assert 0 == told["falcon_jobs_ended_total"]["", "Succeeded"]
    assert ("Waiting", "Failed") not in told["falcon_jobs_ended_total"]
    assert {(): 0} == told["falcon_stale_writes_total"]
    assert {"done": 0, "unread": 0, "no-database": 0, "failed": 0} == {
        result: value for (result,), value in told["falcon_passes_total"].items()
    }


def test_what_was_asked_of_the_clouds() -> None:
    """Requests are told by API, method and how they went, also while no pass ends; unasked has no sample."""
    asked: dict[tuple[str, ...], float] = {("gke", "get_cluster", "ok"): 3.0}
    told = families(probes.Watcher(30, asked=lambda: asked))
    assert {("gke", "ok", "get_cluster"): 3} == told["falcon_api_requests_total"]
    assert "falcon_api_requests_total" not in families(probes.Watcher(30))


def test_the_loop_hands_every_pass_over() -> None:
    """The loop tells its watcher of passes that end well and of those that end badly."""
    falcon, stop = Falcon(), Stop()
    watcher = probes.Watcher(30)
    opened = iter([falcon.open_store, falcon.open_store])

    def store() -> AbstractContextManager[Store]:
        return next(opened)()

    def watch(made: Pass | Exception) -> None:
        watcher(made)
        if isinstance(made, Exception):
            stop._asked.set()

    run(
        store=store,
        clouds=falcon.clouds,
        bounds=Bounds(),
        interval=0.01,
        pass_seconds=60,
        stop=stop,
        watch=watch,
    )
    told = families(watcher)
    assert {("done",): 2, ("failed",): 1, ("unread",): 0, ("no-database",): 0} == told["falcon_passes_total"]
    assert 2 == told["falcon_pass_duration_seconds_count"]["observe",]


def test_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who connects and says nothing is let go, and others are answered meanwhile."""
    monkeypatch.setattr(probes._Handler, "timeout", 0.2)
    with served(probes.Watcher(30)) as port, socket.create_connection(("127.0.0.1", port), timeout=5) as silent:
        assert 200 == get(port, "/livez")[0]
        assert b"" == silent.recv(1)


def test_address_in_use() -> None:
    """An address that cannot be listened on is a fault of its setting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(ConfigError, match=r"FALCON_METRICS_ADDRESS holds .*Address already in use"),
            probes.serving(address, probes.Watcher(30)),
        ):
            pass


def test_no_address() -> None:
    """Without an address nothing listens."""
    with probes.serving(None, probes.Watcher(30)) as server:
        assert server is None
