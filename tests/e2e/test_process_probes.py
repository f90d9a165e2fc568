"""A process of `falcon-rm run` answers probes and shows its metrics."""

import signal
import socket
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException

import pytest
from processes import Site, add_clusters, site, until


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that these tests share."""
    with site(tmp_path_factory.mktemp("site")) as opened:
        yield opened


ASKED = ('api="gke",code="ok",method="list_node_pools"', 'api="kubernetes",code="ok",method="list_namespaced_job"')


def free_address() -> str:
    """Return an address of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def get(address: str, path: str) -> tuple[int, str]:
    """Return status and body of a path; 0 while nobody answers."""
    connection = HTTPConnection(address, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, HTTPException):
        return 0, ""
    finally:
        connection.close()


def test_probes_of_a_process(there: Site, controller_url: str) -> None:
    """It becomes ready, tells what it reads, and ends as quickly as ever when asked."""
    add_clusters(controller_url)
    address = free_address()
    process = there.begin(controller_url, "run", FALCON_METRICS_ADDRESS=address)
    until(lambda: get(address, "/readyz")[0] == 200, 30)
    assert (200, "ok\n") == get(address, "/livez")
    told = get(address, "/metrics")[1].splitlines()
    assert {'falcon_cluster_up{cluster="tpuv6e"} 1.0', 'falcon_cluster_up{cluster="tpuv7x"} 1.0'} <= set(told)
    assert [] == [name for name in ASKED if not any(name in line for line in told)]
    process.kill(signal.SIGTERM)
    assert 0 == process.wait(10).code


def test_address_that_cannot_be_had(there: Site, controller_url: str) -> None:
    """An address that somebody else listens on stops it at once, with one line that names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = there.begin(controller_url, "run", FALCON_METRICS_ADDRESS=address).wait()
    assert 1 == ended.code
    assert f"FALCON_METRICS_ADDRESS holds '{address}'" in ended.err
