"""What is in the image, layer by layer: falcon-rm and the locked packages; no key, no cache, no compiler."""

import json
import os
import platform
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from container import Container
from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[2]
KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:\s|\\n)+[A-Za-z0-9+/=\s\\]{64}")
SECRET_NAMES = re.compile(
    r"(^|/)(\.netrc|\.pypirc|pip\.conf|id_(rsa|dsa|ecdsa|ed25519)|.*credentials?\.json|.*\.p12|auth\.json)$"
)
CACHES = re.compile(r"(^|/)(\.cache|var/cache/apt/archives/.*\.deb|var/lib/apt/lists/.+|tmp/.+|var/log/.+)(/|$)")
TOOLS = re.compile(r"(^|/)s?bin/([\w-]*-)?(gcc|g\+\+|cc|c\+\+|clang|tcc|ld|as|make|cmake|rustc|go|cpp)(-[\d.]+)?$")
WRITABLE_PLACES = {"tmp", "var/tmp", "run/lock"}
"""Places of the base that are everybody's, each with the sticky bit."""
UNCHECKED_HASH = 0b01


@pytest.fixture
def container(tmp_path: Path) -> Container:
    """The image that hack/image has built."""
    return Container(Path(os.environ["FALCON_TEST_IMAGE"]), tmp_path)


def members(layer: Path) -> Iterator[tuple[tarfile.TarInfo, Callable[[], bytes]]]:
    """Yield what a layer holds, and how to read it."""
    with tarfile.open(layer) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            yield member, file.read if file else bytes


def hosts() -> list[bytes]:
    """Return the hosts that this machine's pip and apt get packages from, but for the well-known ones."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    sources = [path.read_text(encoding="utf-8") for path in Path("/etc/apt").glob("sources.list.d/*.sources")]
    named = re.findall(r"https?://(?:[^\s/@']*@)?([\w.-]+)", "\n".join([configured.stdout, *sources]))
    public = platform.freedesktop_os_release()["HOME_URL"].split("//")[1].removeprefix("www.").strip("/")
    return sorted({name.encode() for name in named if name != PyPI.netloc and not name.endswith(public)})


def test_two_builds_are_one(container: Container) -> None:
    """The same source gives the same layers, to the byte."""
    first, second = json.loads((container.image / "builds.json").read_text(encoding="utf-8"))
    assert first == second


def test_a_key_is_known_as_one() -> None:
    """As a file, and within the JSON of a service account."""
    key = trustme.CA().private_key_pem.bytes()
    assert [True, True] == [
        bool(KEY.search(text)) for text in (key, json.dumps({"private_key": key.decode()}).encode())
    ]


def test_no_layer_holds_what_does_not_belong_there(container: Container) -> None:
    """No private key, no package source of the builder, no cache, no compiler; nothing everybody may write to."""
    strange = hosts()
    for layer in container.layers():
        for member, read in members(layer):
            name, content = member.name.removeprefix("./").rstrip("/"), read()
            assert not SECRET_NAMES.search(name), name
            assert not KEY.search(content), name
            assert not [host for host in strange if host in content], name
            assert not CACHES.search(name), name
            assert not TOOLS.search(name), name
            if member.mode & 0o002 and not (member.issym() or member.ischr()):
                assert (name in WRITABLE_PLACES, 0o1000) == (True, member.mode & 0o1000), name


def test_what_is_laid_over_the_base(container: Container) -> None:
    """It is root's, of one time, writable and executable with more rights for nobody, and compiled by content."""
    _, *above = container.layers()
    times = set()
    for layer in above:
        for member, read in members(layer):
            assert (0, 0) == (member.uid, member.gid), member.name
            assert member.issym() or not member.mode & 0o6022, member.name
            times.add(member.mtime)
            if member.name.endswith(".pyc"):
                assert UNCHECKED_HASH == int.from_bytes(read()[4:8], "little"), member.name
    assert 1 == len(times)


def test_packages_are_those_of_the_lock(container: Container) -> None:
    """falcon-rm and what hack/requirements.lock names, in these versions; no pip, no setuptools."""
    (packages,) = (container.image / "root" / "opt" / "falcon" / "lib").glob("python3.*/site-packages")
    found = {path.name.removesuffix(".dist-info") for path in packages.glob("*.dist-info")}
    lock = (ROOT / "hack" / "requirements.lock").read_text(encoding="utf-8")
    locked = {f"{name}-{version}" for name, version in re.findall(r"^(\S+?)==(\S+)", lock, re.MULTILINE)}
    flat = {re.sub(r"[-_.]+", "-", name).lower() for name in found}
    assert {re.sub(r"[-_.]+", "-", name).lower() for name in locked} == {
        x for x in flat if not x.startswith("falcon-rm-")
    }
    assert {"pip", "pip3", "easy_install"}.isdisjoint(
        path.name for path in (container.image / "root/opt/falcon/bin").iterdir()
    )


def test_configuration(container: Container) -> None:
    """A numeric user, the command itself as entry point, and no secret in environment or history."""
    config = container.config()
    told = json.dumps(config)
    assert ("65532:65532", ["falcon-rm"], ["run"]) == tuple(
        config["config"][key] for key in ("User", "Entrypoint", "Cmd")
    )
    assert not [host for host in hosts() if host.decode() in told]
    assert not re.search(r"(?i)password|token|secret", json.dumps(config["config"]))
