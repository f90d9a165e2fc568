"""
Control planes on loopback: etcd, API server, controller manager and scheduler, each plane with papers of its own.

1. A run has one folder, whose name carries the process that owns it. What it starts carries the folder in its
   environment, ends with its owner (Linux), and is known by that if it did not: the next run ends it.
2. RBAC decides, anonymous requests are refused, bearer tokens are checked by the webhook that is given.
3. Nothing listens on another address than 127.0.0.1.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import urllib3
from attrs import define, field

from control_plane.build import programs
from control_plane.client import Client
from control_plane.papers import Papers, write_config

PREFIX = "falcon-kube-"
MARK = "FALCON_KUBE"
KUBECONFIG = "kubeconfig"
START_SECONDS, STOP_SECONDS, LOOK_SECONDS = 90.0, 20.0, 0.05
TIED = (sys.executable, "-ISs", str(Path(__file__).with_name("tied.py")))
CONTROLLERS = (
    "cronjob-controller,garbage-collector-controller,job-controller,namespace-controller,node-lifecycle-controller,"
    "pod-garbage-collector-controller,resourcequota-controller,root-ca-certificate-publisher-controller,"
    "serviceaccount-controller,taint-eviction-controller,ttl-after-finished-controller"
)
NODES_ARE_SILENT = "--node-monitor-grace-period=8760h"  # what is known of a node is what its kubelet wrote last


class NoPlane(Exception):
    """A control plane did not start; the text, one line, says what it said last."""


@define(eq=False)
class Plane:
    """A running control plane."""

    folder: Path
    port: int
    papers: Papers = field(repr=False)
    store: str  # the URL of its etcd
    processes: dict[str, "subprocess.Popen[bytes]"] = field(factory=dict, repr=False)

    @property
    def endpoint(self) -> str:
        """The API server's host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The API server's URL."""
        return f"https://{self.endpoint}"

    def client(self, token: str | None = None) -> Client:
        """Return a client of whoever owns *token*; without one, of somebody who may do everything."""
        certificate = self.papers.people["admin"] if token is None else None
        return Client(self.url, self.papers.authority, certificate=certificate, token=token)


@define(eq=False)
class Run:
    """What one owner has started."""

    folder: Path
    planes: list[Plane] = field(factory=list)

    @property
    def kubeconfig(self) -> Path:
        """The file by which somebody who may do everything reaches the planes, as contexts c0, c1, ..."""
        return self.folder / KUBECONFIG

    def stop(self) -> None:
        """End every process of this run and remove its folder."""
        processes = [process for plane in self.planes for process in reversed(plane.processes.values())]
        for process in processes:
            process.kill()  # what they hold goes with the folder
        for process in processes:
            process.wait(STOP_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)


def start(
    count: int = 1, *, tokens: Callable[[Path], Path] | None = None, localhost: tuple[Path, Path] | None = None
) -> Run:
    """
    Start control planes, and wait until each answers.

    Args:
        count: how many.
        tokens: writes the configuration of the webhook that checks bearer tokens into a folder, and returns its path.
        localhost: certificate and key for clients that ask for this name; others get those of the plane's own papers.

    Raises:
        NoPlane: one of them did not start.
        NoPrograms: there is nothing to start.
    """
    binaries = programs()
    place = fast_folder()
    end_leftovers(place)
    run = Run(Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{start_time(os.getpid())}-", dir=place)))
    try:
        webhook = None if tokens is None else tokens(run.folder)
        for number in range(count):
            run.planes.append(_begin(binaries, run, number, webhook, localhost))
        for plane in run.planes:
            _wait(plane)
            _follow(binaries, run, plane)
        write_config(
            run.kubeconfig, {plane.folder.name: plane.papers.context("admin", plane.url) for plane in run.planes}
        )
    except BaseException:
        run.stop()
        raise
    return run


def _begin(binaries: Path, run: Run, number: int, webhook: Path | None, localhost: tuple[Path, Path] | None) -> Plane:
    """Start the store and the API server of a plane."""
    folder = run.folder / f"c{number}"
    folder.mkdir()
    with free_ports(3) as ports:
        store, peers, port = ports
    store_url, peers_url = f"http://127.0.0.1:{store}", f"http://127.0.0.1:{peers}"
    plane = Plane(folder, port, Papers(folder), store_url)
    _launch(binaries, run, plane, "etcd", [
        f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=error",
        f"--listen-client-urls={store_url}", f"--advertise-client-urls={store_url}",
        f"--listen-peer-urls={peers_url}", f"--initial-advertise-peer-urls={peers_url}",
        f"--initial-cluster=default={peers_url}",
    ])  # fmt: skip
    certificate, key = plane.papers.server
    more = [] if localhost is None else [f"--tls-sni-cert-key={localhost[0]},{localhost[1]}:localhost"]
    if webhook is not None:
        more += [
            f"--authentication-token-webhook-config-file={webhook}",
            "--authentication-token-webhook-version=v1",
            "--authentication-token-webhook-cache-ttl=1s",
        ]
    _launch(binaries, run, plane, "kube-apiserver", [
        f"--etcd-servers={store_url}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
        f"--secure-port={port}", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/16",
        f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
        f"--client-ca-file={plane.papers.authority}", "--authorization-mode=RBAC", "--anonymous-auth=false",
        f"--service-account-key-file={plane.papers.accounts}",
        f"--service-account-signing-key-file={plane.papers.accounts}",
        "--service-account-issuer=https://kubernetes.default.svc", "--profiling=false", *more,
    ])  # fmt: skip
    return plane


def _follow(binaries: Path, run: Run, plane: Plane) -> None:
    """Start what needs an API server: the controllers and the scheduler."""
    manager, scheduler = (
        plane.papers.kubeconfig(who, plane.url) for who in ("kube-controller-manager", "kube-scheduler")
    )
    _launch(binaries, run, plane, "kube-controller-manager", [
        f"--kubeconfig={manager}", "--secure-port=0", "--leader-elect=false", "--use-service-account-credentials",
        f"--controllers={CONTROLLERS}", f"--root-ca-file={plane.papers.authority}",
        f"--service-account-private-key-file={plane.papers.accounts}", NODES_ARE_SILENT,
    ])  # fmt: skip
    _launch(binaries, run, plane, "kube-scheduler", [
        f"--kubeconfig={scheduler}", "--secure-port=0", "--leader-elect=false",
    ])  # fmt: skip


def _launch(binaries: Path, run: Run, plane: Plane, name: str, arguments: Sequence[str]) -> None:
    with (plane.folder / f"{name}.log").open("wb") as log:
        plane.processes[name] = subprocess.Popen(
            [*TIED, str(os.getpid()), binaries / name, *arguments],
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(plane.folder), MARK: str(run.folder)},
            cwd=plane.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _wait(plane: Plane) -> None:
    """Wait until the API server is ready."""
    client, deadline = plane.client(), time.monotonic() + START_SECONDS
    while True:
        try:
            if client.call("GET", "/readyz").ok:
                client.close()
                return
        except urllib3.exceptions.HTTPError:
            pass  # it does not listen yet
        ended = next((name for name, process in plane.processes.items() if process.poll() is not None), None)
        if ended is not None or time.monotonic() > deadline:
            name = ended or "kube-apiserver"
            said = (plane.folder / f"{name}.log").read_text(errors="replace").strip().splitlines()
            raise NoPlane(f"{name} {'ended' if ended else 'is not ready'}: {' | '.join(said[-3:])[:600]}")
        time.sleep(LOOK_SECONDS)


# who is who


def runs(place: Path) -> Iterator[tuple[Path, int, bool]]:
    """Yield the folder of every run, its owner, and whether that lives."""
    for folder in sorted(place.glob(f"{PREFIX}*-*-*")):
        pid, begun = folder.name.removeprefix(PREFIX).split("-")[:2]
        if pid.isdigit() and begun.isdigit():
            yield folder, int(pid), start_time(int(pid)) == int(begun)


def end_leftovers(place: Path) -> None:
    """End what is left of runs whose owner is gone."""
    for folder, _, lives in runs(place):
        if not lives:
            for pid in marked(folder):
                os.kill(pid, signal.SIGKILL)
            shutil.rmtree(folder, ignore_errors=True)


def marked(folder: Path) -> list[int]:
    """Return the processes that a run has started."""
    found, mark = [], f"{MARK}={folder}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has ended, or is another user's
    return found


def start_time(pid: int) -> int:
    """Return when a process began, in ticks since the machine did; 0 if there is none. With its id it is unique."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    except OSError:
        return 0


def fast_folder() -> Path:
    """Return a folder in memory where there is one, else the usual place for temporary files."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    return memory if roomy else Path(tempfile.gettempdir())


@contextmanager
def free_ports(count: int) -> Iterator[list[int]]:
    """Hold so many ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        yield [held.getsockname()[1] for held in sockets]
    finally:
        for held in sockets:
            held.close()
