"""TLS to the database: with a CA of one's own, the way passwords go, and servers that are not who they should be."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import private_mysql
import pymysql
import pytest
import trustme
from attrs import evolve, frozen
from click.testing import CliRunner
from database_roles import FALCON, Roles
from private_mysql import PrivateServer

from falcon_rm.cli import build, commands
from falcon_rm.cloud.database import Address, Database, parse_url
from falcon_rm.ports import StoreDown

pytestmark = pytest.mark.every_server


@frozen
class Secured:
    """A server on loopback that speaks TLS, with its papers."""

    url: str
    socket: str
    folder: Path
    plugin: str  # how it takes passwords

    @property
    def address(self) -> Address:
        """Its address for a user who must come by TLS."""
        return parse_url(f"{self.url}?ssl_ca={self.folder / 'ca.pem'}")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def papers(folder: Path) -> None:
    """Write a CA, another CA, and a certificate of the first one for localhost."""
    ca, other = trustme.CA(), trustme.CA()
    certificate = ca.issue_cert("localhost")
    ca.cert_pem.write_to_path(folder / "ca.pem")
    other.cert_pem.write_to_path(folder / "other.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")


@pytest.fixture(scope="session")
def start_secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Secured]]:
    """Start a server of a kind, once."""
    started: dict[str, tuple[PrivateServer, Secured]] = {}

    def start(kind: str) -> Secured:
        if kind not in started:
            folder, port = tmp_path_factory.mktemp("tls"), free_port()
            papers(folder)
            server = private_mysql.start(
                None if kind == "given" else kind,
                "--skip-networking=OFF",
                "--bind-address=127.0.0.1",
                f"--port={port}",
                *(f"--ssl-{name}={folder / name}.pem" for name in ("ca", "cert", "key")),
            )
            with pymysql.connect(unix_socket=str(server.socket), user="root") as root, root.cursor() as cursor:
                cursor.execute("CREATE DATABASE d")
                for user, how in (("falcon", "REQUIRE SSL"), ("plain", "")):
                    cursor.execute(f"CREATE USER {user}@'%' IDENTIFIED BY 'secret' {how}")
                    cursor.execute(f"GRANT ALL ON d.* TO {user}@'%'")
                cursor.execute("SELECT plugin FROM mysql.user WHERE user = 'plain'")
                ((plugin,),) = cursor.fetchall()
            url = f"mysql://falcon:secret@localhost:{port}/d"
            started[kind] = server, Secured(url, str(server.socket), folder, plugin)
        return started[kind][1]

    yield start
    for server, _ in started.values():
        server.stop()


@pytest.fixture
def secured(start_secured: Callable[[str], Secured], database_server: str) -> Secured:
    """A server of the test's kind."""
    return start_secured(database_server)


def answer(address: Address, sql: str) -> object:
    """Return the last value of the first row that a server answers."""
    database = Database(address, timeout=5)
    try:
        return database.rows(sql)[0][-1]
    finally:
        database.close()


def test_a_ca_of_ones_own(secured: Secured) -> None:
    """With ssl_ca in the URL the connection is encrypted, and the server has proved who it is."""
    assert str(answer(secured.address, "SHOW SESSION STATUS LIKE 'Ssl_version'")).startswith("TLSv1.")


def test_a_unix_socket(secured: Secured) -> None:
    """What stays on the machine is not encrypted, which costs every connection dear, unless a CA is given."""
    near = evolve(secured.address, unix_socket=secured.socket)
    encrypted, plain = (
        str(answer(at, "SHOW SESSION STATUS LIKE 'Ssl_version'"))
        for at in (near, evolve(near, user="plain", ssl_ca=None))
    )
    assert (True, "") == (encrypted.startswith("TLSv1."), plain)


def test_another_ca(secured: Secured) -> None:
    """A certificate that our CA did not sign is refused, and the password is neither sent nor told."""
    with pytest.raises(StoreDown, match="2003") as caught:
        answer(evolve(secured.address, ssl_ca=str(secured.folder / "other.pem")), "SELECT 1")
    assert "secret" not in str(caught.value)


def test_another_name(secured: Secured) -> None:
    """A certificate of our CA for somebody else is refused."""
    with pytest.raises(StoreDown, match="2003"):
        answer(evolve(secured.address, host="127.0.0.1"), "SELECT 1")


def test_a_password_without_a_ca(secured: Secured, database_server: str) -> None:
    """The server's own way with passwords works without ssl_ca too, the first time and when the server knows it."""
    plain = evolve(secured.address, user="plain", host="127.0.0.1", ssl_ca=None)
    assert [1, 1] == [answer(plain, "SELECT 1") for _ in range(2)]
    expected = {"mariadb": "mysql_native_password", "mysql": "caching_sha2_password"}
    assert expected.get(database_server, secured.plugin) == secured.plugin


def test_a_wrong_password(secured: Secured) -> None:
    """It is refused as what it is."""
    with pytest.raises(StoreDown, match="1045") as caught:
        answer(evolve(secured.address, password="hunter2"), "SELECT 1")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("password", "code"), [("secret", 0), ("hunter2", 1)])
def test_a_password_in_a_file(roles: Roles, tmp_path: Path, password: str, code: int) -> None:
    """The commands take it from there, and come over the unix socket that the URL names; a wrong one is not told."""
    at, file = roles.address(FALCON), tmp_path / "password"
    file.write_text(password + "\n", encoding="utf-8")
    where = (
        f"localhost/{at.database}?unix_socket={at.unix_socket}"
        if at.unix_socket
        else f"{at.host}:{at.port}/{at.database}"
    )
    settings = {"FALCON_DATABASE_URL": f"mysql://{at.user}@{where}", "FALCON_DATABASE_PASSWORD_FILE": str(file)}
    done = CliRunner().invoke(commands, ["db", "check"], obj=build(settings))
    assert (code, False) == (done.exit_code, password in done.output), done.output
