"""Deadlines, second tries and the credential behind them."""

import subprocess
import sys
import threading
from typing import Any

import pytest
from cloudsim.premises import Premises

from falcon_rm.cloud.asked import Name, counts
from falcon_rm.cloud.clouds import GoogleClouds
from falcon_rm.cloud.credential import SCOPES, Credential
from falcon_rm.cloud.errors import Unauthenticated, Unavailable
from falcon_rm.cloud.retry import Deadline, ask, within
from falcon_rm.core.errors import Call
from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import CloudError, ErrorKind

NAME = Name("gke", "list_node_pools")
CALLS: tuple[Call, ...] = ("create", "delete", "read", "submit")


class Renewals:
    """A credential that counts how often it was renewed."""

    def __init__(self) -> None:
        self.count = 0

    def renew(self) -> None:
        """Count."""
        self.count += 1


class Service:
    """Something that raises its errors in turn, then answers."""

    def __init__(self, *errors: CloudError) -> None:
        self.errors = list(errors)
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


@pytest.mark.parametrize("call", CALLS)
def test_only_a_read_is_tried_again(call: Call) -> None:
    """Nobody took it: a read is asked once more, anything else is looked at."""
    service = Service(Unavailable(ErrorKind.UNKNOWN, "down"))
    if call == "read":
        assert ("answer", 2) == (ask(service, name=NAME, call=call, credential=Renewals()), service.asked)
        return
    with pytest.raises(Unavailable):
        ask(service, name=NAME, call=call, credential=Renewals())
    assert 1 == service.asked


@pytest.mark.parametrize("call", CALLS)
def test_refused_credential_is_renewed_once(call: Call) -> None:
    """Whatever was asked, a refused credential is renewed once (P100)."""
    credential, service = Renewals(), Service(Unauthenticated(ErrorKind.BUSY, "stale"))
    assert "answer" == ask(service, name=NAME, call=call, credential=credential)
    assert (1, 2) == (credential.count, service.asked)


@pytest.mark.parametrize("kind", [Unauthenticated, Unavailable])
def test_two_tries_at_most(kind: type[CloudError]) -> None:
    """The second refusal is the answer."""
    service = Service(*(kind(ErrorKind.UNKNOWN, str(number)) for number in range(5)))
    with pytest.raises(CloudError, match="1"):
        ask(service, name=NAME, call="read", credential=Renewals())
    assert 2 == service.asked


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_other_errors_are_final(kind: ErrorKind) -> None:
    """Any other error is told at once."""
    service = Service(CloudError(kind, "no"))
    with pytest.raises(CloudError):
        ask(service, name=NAME, call="read", credential=Renewals())
    assert 1 == service.asked


def test_within_answers() -> None:
    """An answer in time is returned."""
    assert 7 == within(Deadline(5), lambda: 7)


def test_within_raises_what_was_raised() -> None:
    """An error in time is raised in the thread that waits."""
    with pytest.raises(ZeroDivisionError):
        within(Deadline(5), lambda: 1 / 0)


def test_within_gives_up() -> None:
    """At the deadline the call is left behind, and its connection cut."""
    hang, cut = threading.Event(), threading.Event()
    with pytest.raises(CloudError) as caught:
        within(Deadline(0.05), lambda: hang.wait(10), abandon=cut.set)
    hang.set()
    assert (ErrorKind.UNKNOWN, "no answer within 0.05 s", True) == (caught.value.kind, caught.value.text, cut.is_set())


def test_deadline_that_has_passed() -> None:
    """Nothing is sent when no time is left."""
    service = Service()
    with pytest.raises(CloudError):
        within(Deadline(0), service)
    with pytest.raises(CloudError) as caught:
        Deadline(0).left()
    assert ErrorKind.UNKNOWN == caught.value.kind


# the credential


def test_token_is_good(premises: Premises) -> None:
    """A token that is asked for is good, also after all earlier ones ended (P100)."""
    credential = Credential()
    tokens = [credential.token()]
    premises.tokens.expire()
    credential.renew()
    tokens.append(credential.token())
    assert (2, None) == (len(set(tokens)), premises.tokens.refusal(f"Bearer {tokens[-1]}"))


def test_credential_is_found_once() -> None:
    """Every client shares one credential."""
    credential = Credential()
    assert credential.google() is credential.google()


def test_scopes() -> None:
    """Kubernetes needs to know who we are."""
    assert ("cloud-platform", "userinfo.email") == tuple(scope.rpartition("/")[2] for scope in SCOPES)


@pytest.mark.parametrize("act", [Credential.google, Credential.token, Credential.renew])
def test_no_credential(act: Any) -> None:
    """Without a credential the clouds are unknown, and the next pass looks again."""
    import google.auth.exceptions

    def find() -> Any:
        raise google.auth.exceptions.DefaultCredentialsError("none")  # type: ignore[no-untyped-call]

    with pytest.raises(CloudError) as caught:
        act(Credential(find=find))
    assert ErrorKind.UNKNOWN == caught.value.kind


# the clouds of a pass


def test_clouds_cost_nothing_before_they_are_asked() -> None:
    """Making the clouds of a pass, and closing them unused, asks nobody."""

    def find() -> Any:
        raise AssertionError("asked")

    clouds = GoogleClouds(
        credential=lambda: Credential(find=find), gke_endpoint="127.0.0.1:1", compute_endpoint="127.0.0.1:1"
    )
    info = ClusterInfo((), None, None, "gke.goog")
    clouds.kubernetes(Cluster(id="c", name="c", project="p", location="l", tpu_type="v7x"), info)
    assert (clouds.gke, clouds.compute) == (clouds.gke, clouds.compute)
    clouds.close()


def test_client_libraries_come_when_they_are_needed() -> None:
    """Making the clouds of a pass loads no client library, and a look at Jobs not all of Kubernetes' kinds."""
    script = """
import sys
from falcon_rm.cloud.clouds import GoogleClouds
from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.model import Cluster
clouds = GoogleClouds(credential=lambda: None)
assert not {"google.auth", "google.api_core", "grpc", "kubernetes", "requests"} & set(sys.modules)
clouds.kubernetes(Cluster("c", "c", "p", "l", "v6e"), ClusterInfo((), None, None, "gke.goog"))
assert "kubernetes" in sys.modules
assert not {"kubernetes.client.api.core_v1_api", "google.cloud.container_v1"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)


def test_every_request_counts_by_how_it_went() -> None:
    """A second try is a request of its own, each by ok or the class of its error."""
    name = Name("gke", "one-of-this-test")
    ask(Service(Unavailable(ErrorKind.UNKNOWN, "down")), name=name, call="read", credential=Renewals())
    with pytest.raises(CloudError):
        ask(Service(CloudError(ErrorKind.QUOTA, "no")), name=name, call="create", credential=Renewals())
    found = {code: count for (api, method, code), count in counts().items() if (api, method) == ("gke", name.method)}
    assert {"unknown": 1, "ok": 1, "quota": 1} == found
