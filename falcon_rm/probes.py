"""
What `run` answers over HTTP: metrics for Prometheus, probes for Kubernetes.

1. It only tells: no pass depends on it, and whatever is asked here reaches neither the database nor a cloud.
2. `/livez` (and `/healthz`) says whether passes end, well or badly: a database that is away restarts nobody.
3. `/readyz` says whether the last pass read the database; settings are valid, or the process would not be there.
4. Every connection has a time-out, and every answer is made from values that are already there.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socket import AF_INET, AF_INET6
from socketserver import ThreadingTCPServer

import prometheus_client as prometheus
from attrs import define, field, frozen
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from falcon_rm import __version__
from falcon_rm.config import ConfigError
from falcon_rm.loop import Pass
from falcon_rm.metrics import API_REQUESTS, COUNTERS, GAUGES, HISTOGRAMS, happened
from falcon_rm.telemetry import log

CONNECTION_SECONDS = 5
PLAIN = "text/plain; charset=utf-8"

prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]


@frozen
class Check:
    """One check of a probe, and what there is to say of it."""

    name: str
    passed: bool
    text: str


@define(eq=False)
class Watcher(Collector):
    """
    What is kept of passes to tell it: the last one, when it ended, and counters since the process began.

    *limit* is the age in seconds at which the last pass counts as stuck; *clock* never runs backwards;
    *asked* tells what was asked of the clouds, by the labels of API_REQUESTS.
    """

    limit: float
    clock: Callable[[], float] = time.monotonic
    asked: Callable[[], Mapping[tuple[str, ...], float]] = dict
    registry: prometheus.CollectorRegistry = field(factory=prometheus.CollectorRegistry)
    _last: Pass | None = None  # None: it broke off, or there was none
    _ended: float | None = None
    _success: float | None = None
    _counters: Mapping[str, prometheus.Counter] = field(init=False)
    _histograms: Mapping[str, prometheus.Histogram] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._counters = {
            each.name: prometheus.Counter(each.name, each.help, each.labels, registry=self.registry)
            for each in COUNTERS
        }
        self._histograms = {
            each.name: prometheus.Histogram(
                each.name, each.help, each.labels, registry=self.registry, buckets=each.buckets
            )
            for each in HISTOGRAMS
        }
        families: Mapping[str, prometheus.Counter | prometheus.Histogram] = {**self._counters, **self._histograms}
        for each in (*COUNTERS, *HISTOGRAMS):
            for labels in each.known:
                families[each.name].labels(*labels)
        self.registry.register(self)

    def begin(self) -> None:
        """Count the age of the last pass from now: passes begin."""
        self._ended = self.clock()

    def __call__(self, made: Pass | Exception) -> None:
        """Take a pass in, or the error that ended it."""
        self._last, self._ended = made if isinstance(made, Pass) else None, self.clock()
        if self._last:
            self._success = self._last.snapshot.now
        for sample in happened(made):
            if sample.name in self._counters:
                counter = self._counters[sample.name]
                (counter.labels(*sample.labels) if sample.labels else counter).inc(sample.value)
            else:
                histogram = self._histograms[sample.name]
                (histogram.labels(*sample.labels) if sample.labels else histogram).observe(max(0.0, sample.value))

    def collect(self) -> Iterator[Metric]:
        """Yield what was asked, and the gauges of the last pass: none if it broke off, since nothing was measured."""
        yield _gauge("falcon_build_info", "The version that runs.", ("version",), {(__version__,): 1})
        requests = CounterMetricFamily(API_REQUESTS.name, API_REQUESTS.help, labels=API_REQUESTS.labels)
        for labels, count in sorted(self.asked().items()):
            requests.add_metric(labels, count)
        yield requests
        if self._success is not None:
            about = "When a pass that came to its end read the database."
            yield _gauge("falcon_last_success_timestamp_seconds", about, (), {(): self._success})
        last = self._last
        if last:
            yield from (_gauge(each.name, each.help, each.labels, each.read(last)) for each in GAUGES)

    def alive(self) -> Check:
        """Return whether passes end; before they begin the wait for the database has a bound of its own."""
        if self._ended is None:
            return Check("passes", True, "not begun")
        age = self.clock() - self._ended
        return Check("passes", age <= self.limit, f"the last one ended {age:.0f} s ago, limit {self.limit:.0f} s")

    def ready(self) -> Check:
        """Return whether the last pass read the database."""
        passed = self._last is not None
        return Check("database", passed, "read by the last pass" if passed else "not read by the last pass")


def _gauge(
    name: str, about: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, about, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, value)
    return family


PROBES: Mapping[str, Callable[[Watcher], tuple[Check, ...]]] = {
    "/livez": lambda watcher: (watcher.alive(),),
    "/healthz": lambda watcher: (watcher.alive(),),
    "/readyz": lambda watcher: (Check("settings", True, "valid"), watcher.ready()),
}


class Server(ThreadingTCPServer):
    """Answers for a Watcher, each connection in a thread of its own."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int, watcher: Watcher) -> None:
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.watcher = watcher
        super().__init__((host, port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """Write what went wrong with one connection; the others go on."""
        log().warning("Could not answer a request for metrics or probes", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One request; what is not asked with GET gets 501 from the base class."""

    server: Server
    timeout = CONNECTION_SECONDS
    server_version, sys_version = "falcon-rm", ""

    def do_GET(self) -> None:
        """Answer; the base class looks for this name."""
        path, _, query = self.path.partition("?")
        if path == "/metrics":
            text = prometheus.generate_latest(self.server.watcher.registry)
            self._answer(HTTPStatus.OK, text, prometheus.CONTENT_TYPE_LATEST)
        elif path in PROBES:
            checks = PROBES[path](self.server.watcher)
            passed = all(check.passed for check in checks)
            status = HTTPStatus.OK if passed else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, _told(checks, passed, verbose=query == "verbose").encode(), PLAIN)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"not found\n", PLAIN)

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: a probe every few seconds is no event."""


def _told(checks: tuple[Check, ...], passed: bool, *, verbose: bool) -> str:
    """Return the body of a probe: every check if asked or if one failed, as Kubernetes writes its own."""
    lines = [f"[{'+' if check.passed else '-'}]{check.name}: {check.text}" for check in checks]
    return "\n".join([*(lines if verbose or not passed else ()), "ok" if passed else "failed"]) + "\n"


@contextmanager
def serving(address: str | None, watcher: Watcher) -> Iterator[Server | None]:
    """
    Answer on HOST:PORT, or nowhere, until the block ends.

    Raises:
        ConfigError: nobody can listen there.
    """
    if address is None:
        yield None
        return
    host, _, port = address.rpartition(":")
    try:
        server = Server(host.strip("[]"), int(port), watcher)
    except OSError as error:
        raise ConfigError((f"FALCON_METRICS_ADDRESS holds {address!r}: {error.strerror}",)) from None
    with server:
        threading.Thread(target=server.serve_forever, args=(0.1,), name="probes", daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
